//! LINSERT.

use super::ends::limit;
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::commands::arguments::is_word;
use crate::effects::events::Event;
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::Collection;
use crate::types::list::{List, Needle, NewElement, Side};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "linsert",
        summary: "Inserts an element into a list before or after the first element that equals a given one.",
        since: "2.2.0",
        group: Group::List,
        complexity: "O(N), N being the number of elements before the given one",
        arity: 5,
        flags: Flags::WRITE.union(Flags::DENYOOM),
        keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::INSERT))],
        syntax: "key where:<BEFORE | AFTER> pivot element",
        example: Example {
            given: &["RPUSH letters a c"],
            call: "LINSERT letters BEFORE c b",
            reply: "(integer) 3",
        },
        ..Spec::DEFAULT
    },
    Run::Keys(linsert),
)];

fn linsert(call: &mut Call<'_, '_>) -> CommandResult {
    let (args, limit) = (call.args, limit(call.keys.turn));
    let side = if is_word(args, 2, "BEFORE") {
        Side::Before
    } else if is_word(args, 2, "AFTER") {
        Side::After
    } else {
        return Err(CommandError::Syntax);
    };
    let pivot = Needle::new(args.at(3));
    let len = call.keys.key(1).edit_value(Event::list("linsert"), |list: &mut List| {
        let is_added = list.insert_next_to(&pivot, side, NewElement::argument(args, 4), limit);
        is_added.then_some(list.len())
    })?;
    call.reply.integer(match len {
        None => 0,
        Some(None) => -1,
        Some(Some(len)) => len as i64,
    });
    Ok(())
}
