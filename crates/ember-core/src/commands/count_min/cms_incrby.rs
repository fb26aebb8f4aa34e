//! CMS.INCRBY.

use ember_protocol::number;

use super::NO_KEY;
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::effects::events::Event;
use crate::error::CommandError;
use crate::keys::Edited;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::sketches::CountMin;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "cms.incrby",
        summary: "Increases the counts of items in a count-min sketch; returns their new estimates.",
        since: "8.0.0",
        group: Group::CountMin,
        complexity: "O(N · D) for N items and D rows.",
        arity: -4,
        flags: Flags::WRITE.union(Flags::DENYOOM),
        keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))],
        syntax: "key <item increment> [item increment ...]",
        example: Example {
            given: &["CMS.INITBYDIM visits 2000 5"],
            call: "CMS.INCRBY visits home 3 help 1",
            reply: "1) (integer) 3\n2) (integer) 1",
        },
        ..Spec::DEFAULT
    },
    Run::Keys(cms_incrby),
)];

fn cms_incrby(call: &mut Call<'_, '_>) -> CommandResult {
    let args = call.args;
    if args.len() % 2 == 1 {
        return Err(CommandError::WrongArity("cms.incrby".into()));
    }
    let mut key = call.keys.key(1);
    key.value::<CountMin>()?.ok_or(NO_KEY)?;
    let mut pairs = Vec::with_capacity(args.len() / 2 - 1);
    for arg in (2..args.len()).step_by(2) {
        let by = number::parse_i64(args.at(arg + 1)).ok_or("CMS: Cannot parse number")?;
        let by = u64::try_from(by).map_err(|_| "CMS: Number cannot be negative")?;
        pairs.push((args.at(arg), by));
    }
    let estimates = key.edit_value(Event::module("cms.incrby"), |sketch: &mut CountMin| {
        let estimates: Vec<u32> = pairs.iter().map(|&(item, by)| sketch.increment(item, by)).collect();
        Edited { is_change: pairs.iter().any(|&(_, by)| by > 0), result: estimates }
    })?;
    let estimates = estimates.map(|edited| edited.result).unwrap_or_default();
    call.reply.array(estimates.len());
    for estimate in estimates {
        match estimate {
            u32::MAX => call.reply.error("CMS: INCRBY overflow"),
            estimate => call.reply.integer(estimate.into()),
        }
    }
    Ok(())
}
