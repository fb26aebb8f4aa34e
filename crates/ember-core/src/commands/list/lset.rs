//! LSET.

use super::ends::{limit, position};
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::commands::arguments::integer;
use crate::effects::events::Event;
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::Collection;
use crate::types::list::{List, NewElement};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "lset",
        summary: "Replaces an element of a list.",
        since: "1.0.0",
        group: Group::List,
        complexity: "O(N), N being the number of elements, or of nodes of a large list, to the nearer end",
        arity: 4,
        flags: Flags::WRITE.union(Flags::DENYOOM),
        keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))],
        syntax: "key index element",
        example: Example { given: &["RPUSH letters a b x"], call: "LSET letters -1 c", reply: "OK" },
        ..Spec::DEFAULT
    },
    Run::Keys(lset),
)];

fn lset(call: &mut Call<'_, '_>) -> CommandResult {
    let (args, limit) = (call.args, limit(call.keys.turn));
    let mut key = call.keys.key(1);
    key.value::<List>()?.ok_or(CommandError::NoSuchKey)?;
    let index = integer(args, 2)?;
    let is_set = key.edit_value(Event::list("lset"), |list: &mut List| {
        list.set(position(index, list.len()), NewElement::argument(args, 3), limit)
    })?;
    if is_set != Some(true) {
        return Err(CommandError::IndexOutOfRange);
    }
    call.reply.ok();
    Ok(())
}
