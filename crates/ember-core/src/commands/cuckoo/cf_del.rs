//! CF.DEL.

use super::bytes_of;
use crate::call::{Attempt, AttemptResult, Call, DataCommand, Run};
use crate::commands::sketch::is_long;
use crate::effects::events::Event;
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::sketches::Cuckoo;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "cf.del",
        summary: "Removes an item once from a cuckoo filter; returns whether the filter seemed to contain it.",
        since: "8.0.0",
        group: Group::Cuckoo,
        complexity: "O(T) for T tables; O(N) for N bytes when many items were removed.",
        arity: 3,
        flags: Flags::WRITE.union(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::DELETE))],
        syntax: "key item",
        example: Example { given: &["CF.ADD seen ann"], call: "CF.DEL seen ann", reply: "(integer) 1" },
        ..Spec::DEFAULT
    },
    Run::Long(cf_del),
)];

fn cf_del(call: &mut Call<'_, '_>) -> AttemptResult {
    let compacts = call.keys.value::<Cuckoo>(1).ok().flatten().is_some_and(Cuckoo::compacts_after_removal);
    if compacts && is_long(call, bytes_of(call)) {
        return Ok(Attempt::Offload);
    }
    let item = call.args.at(2);
    let removed =
        call.keys.key(1).edit_value(Event::module("cf.del"), |filter: &mut Cuckoo| filter.remove(item));
    match removed {
        Ok(Some(is_removed)) => call.reply.boolean(is_removed),
        Ok(None) | Err(CommandError::WrongType) => return Err("Not found".into()),
        Err(error) => return Err(error),
    }
    Ok(Attempt::Done)
}
