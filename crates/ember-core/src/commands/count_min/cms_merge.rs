//! CMS.MERGE.

use ember_protocol::number;

use super::NO_KEY;
use crate::call::{Attempt, AttemptResult, Call, DataCommand, Run};
use crate::commands::sketch::{find_word, is_long};
use crate::effects::events::Event;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::sketches::CountMin;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "cms.merge",
        summary: "Stores the sum of count-min sketches with equal dimensions, each multiplied by its weight, in an existing \
                  one.",
        since: "8.0.0",
        group: Group::CountMin,
        complexity: "O(N · C) for N sketches of C counters.",
        arity: -4,
        flags: Flags::WRITE.union(Flags::DENYOOM),
        keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE)), KeySpec::counted(2, KeyFlags::RO)],
        syntax: "destination numkeys source [source ...] [WEIGHTS weight [weight ...]]",
        example: Example {
            given: &["CMS.INITBYDIM week 2000 5", "CMS.INITBYDIM day 2000 5"],
            call: "CMS.MERGE week 2 week day",
            reply: "OK",
        },
        ..Spec::DEFAULT
    },
    Run::Long(cms_merge),
)];

/// The first argument that is a source.
const FIRST_SOURCE: usize = 3;

fn cms_merge(call: &mut Call<'_, '_>) -> AttemptResult {
    let args = call.args;
    let destination = call.keys.value::<CountMin>(1)?.ok_or(NO_KEY)?;
    let count = number::parse_i64(args.at(2)).ok_or("CMS: invalid numkeys")?;
    let count = usize::try_from(count)
        .ok()
        .filter(|&count| count > 0)
        .ok_or("CMS: Number of keys must be positive")?;
    let words = args.len() - FIRST_SOURCE;
    let weights = find_word(args, FIRST_SOURCE, "WEIGHTS").map(|at| at - FIRST_SOURCE);
    match weights {
        None if count != words => return Err("CMS: wrong number of keys".into()),
        Some(at) if at != count || words - 1 != count.saturating_mul(2) => {
            return Err("CMS: wrong number of keys/weights".into());
        }
        _ => {}
    }
    let mut sources = Vec::with_capacity(count);
    for index in 0..count {
        let weight = match weights {
            None => 1,
            Some(_) => {
                let weight = number::parse_i64(args.at(FIRST_SOURCE + count + 1 + index));
                weight.ok_or("CMS: invalid weight value")?
            }
        };
        let source = call.keys.value::<CountMin>(FIRST_SOURCE + index)?.ok_or(NO_KEY)?;
        if (source.width(), source.depth()) != (destination.width(), destination.depth()) {
            return Err("CMS: width/depth is not equal".into());
        }
        sources.push((source, weight));
    }
    if is_long(call, destination.counters().len().saturating_mul(count)) {
        return Ok(Attempt::Offload);
    }
    let sum = destination.weighted_sum(&sources).map_err(|_| "CMS: MERGE overflow")?;
    call.keys.key(1).edit_value(Event::module("cms.merge"), |sketch: &mut CountMin| *sketch = sum)?;
    call.reply.ok();
    Ok(Attempt::Done)
}
