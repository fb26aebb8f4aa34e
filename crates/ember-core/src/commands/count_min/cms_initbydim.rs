//! CMS.INITBYDIM and CMS.INITBYPROB.

use ember_protocol::number;

use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::commands::sketch;
use crate::effects::events::Event;
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::sketches::CountMin;
use crate::types::sketches::count_min::dimensions;

const CMS_INITBYDIM: Spec = Spec {
    name: "cms.initbydim",
    summary: "Creates a count-min sketch with a number of counters per row and a number of rows.",
    since: "8.0.0",
    group: Group::CountMin,
    arity: 4,
    flags: Flags::WRITE.union(Flags::DENYOOM),
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::INSERT))],
    syntax: "key width depth",
    example: Example { given: &[], call: "CMS.INITBYDIM visits 2000 5", reply: "OK" },
    ..Spec::DEFAULT
};

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(CMS_INITBYDIM, Run::Keys(by_dimensions)),
    Command::new(
        Spec {
            name: "cms.initbyprob",
            summary: "Creates a count-min sketch for a maximum error of its estimates, relative to the sum of all \
                      counts, and the probability of a larger error.",
            syntax: "key error probability",
            example: Example { given: &[], call: "CMS.INITBYPROB visits 0.001 0.01", reply: "OK" },
            ..CMS_INITBYDIM
        },
        Run::Keys(by_probability),
    ),
];

fn by_dimensions(call: &mut Call<'_, '_>) -> CommandResult {
    create(call, "cms.initbydim", |call| {
        let dimension = |arg: usize| {
            let number = number::parse_i64(call.args.at(arg)).filter(|&number| number >= 1);
            number.map(i64::cast_unsigned)
        };
        Ok((dimension(2).ok_or("CMS: invalid width")?, dimension(3).ok_or("CMS: invalid depth")?))
    })
}

fn by_probability(call: &mut Call<'_, '_>) -> CommandResult {
    create(call, "cms.initbyprob", |call| {
        let part =
            |arg: usize| number::parse_f64(call.args.at(arg)).filter(|&number| number > 0.0 && number < 1.0);
        let error = part(2).ok_or("CMS: invalid overestimation value")?;
        let (width, depth) = dimensions(error, part(3).ok_or("CMS: invalid prob value")?);
        // A probability that rounds to 1 needs no rows, one that rounds to 0 infinitely many.
        if depth < 1.0 || !depth.is_finite() {
            return Err("CMS: invalid prob value".into());
        }
        Ok((width as u64, depth as u64))
    })
}

/// Creates the sketch with the width and the depth that `parse` returns.
fn create(
    call: &mut Call<'_, '_>,
    event: &'static str,
    parse: impl FnOnce(&Call<'_, '_>) -> Result<(u64, u64), CommandError>,
) -> CommandResult {
    if call.keys.key(1).exists() {
        return Err("CMS: key already exists".into());
    }
    let (width, depth) = parse(call)?;
    let created = CountMin::new(width, depth).map_err(|_| "CMS: the sketch is too large")?;
    sketch::check_memory(call.keys.turn, created.counters().len())?;
    call.keys.key(1).edit_or_create(Event::module(event), |sketch: &mut CountMin| *sketch = created)?;
    call.reply.ok();
    Ok(())
}
