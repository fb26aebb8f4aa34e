//! BF.RESERVE.

use ember_protocol::number;

use super::{Creation, expansion};
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::commands::sketch::{EXISTS, find_word};
use crate::effects::events::Event;
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::sketches::Bloom;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "bf.reserve",
        summary: "Creates an empty Bloom filter for a number of items with an error rate.",
        since: "8.0.0",
        group: Group::Bloom,
        arity: -4,
        flags: Flags::WRITE.union(Flags::DENYOOM),
        keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::INSERT))],
        syntax: "key error_rate capacity [EXPANSION expansion] [NONSCALING]",
        example: Example { given: &[], call: "BF.RESERVE seen 0.01 1000", reply: "OK" },
        ..Spec::DEFAULT
    },
    Run::Keys(bf_reserve),
)];

/// The maximum number of arguments.
const ARGUMENTS_MAX: usize = 7;

fn bf_reserve(call: &mut Call<'_, '_>) -> CommandResult {
    let args = call.args;
    if args.len() > ARGUMENTS_MAX {
        return Err(CommandError::WrongArity("bf.reserve".into()));
    }
    let error = number::parse_f64(args.at(2)).ok_or("ERR bad error rate")?;
    if error >= 1.0 || error <= 0.0 {
        return Err("ERR (0 < error rate range < 1) ".into());
    }
    let capacity = number::parse_i64(args.at(3)).ok_or("ERR bad capacity")?;
    if capacity <= 0 {
        return Err("ERR (capacity should be larger than 0)".into());
    }
    let mut creation = Creation { error, capacity: capacity as u64, ..Creation::DEFAULT };
    creation.is_scaling = find_word(args, 4, "NONSCALING").is_none();
    if let Some(at) = find_word(args, 4, "EXPANSION") {
        let value = args.get(at + 1).ok_or("ERR no expansion")?;
        if !creation.is_scaling {
            return Err("Nonscaling filters cannot expand".into());
        }
        if number::parse_i64(value).is_some_and(|number| number < 1) {
            return Err("ERR expansion should be greater or equal to 1".into());
        }
        creation.expansion = expansion(value).ok_or("ERR bad expansion")?;
    }
    let key = call.keys.key(1);
    if key.value::<Bloom>()?.is_some() {
        return Err(EXISTS.into());
    }
    let created = creation.create(call.keys.turn)?;
    call.keys.key(1).edit_or_create(Event::module("bf.reserve"), |filter: &mut Bloom| *filter = created)?;
    call.reply.ok();
    Ok(())
}
