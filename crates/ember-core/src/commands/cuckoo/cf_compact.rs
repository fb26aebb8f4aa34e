//! CF.COMPACT.

use super::bytes_of;
use crate::call::{Attempt, AttemptResult, Call, DataCommand, Run};
use crate::commands::sketch::is_long;
use crate::effects::events::Event;
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::sketches::Cuckoo;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "cf.compact",
        summary: "Moves items of a cuckoo filter to its earlier tables, and removes the last tables that are then empty.",
        since: "8.0.0",
        group: Group::Cuckoo,
        complexity: "O(N) for N bytes.",
        arity: 2,
        flags: Flags::WRITE,
        keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))],
        syntax: "key",
        example: Example { given: &["CF.ADD seen ann"], call: "CF.COMPACT seen", reply: "OK" },
        ..Spec::DEFAULT
    },
    Run::Long(cf_compact),
)];

fn cf_compact(call: &mut Call<'_, '_>) -> AttemptResult {
    if is_long(call, bytes_of(call)) {
        return Ok(Attempt::Offload);
    }
    match call.keys.key(1).edit_value(Event::module("cf.compact"), Cuckoo::compact) {
        Ok(Some(())) => call.reply.ok(),
        Ok(None) | Err(CommandError::WrongType) => return Err("Cuckoo filter was not found".into()),
        Err(error) => return Err(error),
    }
    Ok(Attempt::Done)
}
