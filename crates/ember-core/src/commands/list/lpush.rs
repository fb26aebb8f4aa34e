//! LPUSH and RPUSH, and LPUSHX and RPUSHX, which require the list to exist.

use super::ends::limit;
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::effects::events::Event;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::Collection;
use crate::types::list::{End, List, NewElement};

const LPUSH: Spec = Spec {
    name: "lpush",
    summary: "Prepends elements to a list one after the other, creating the list if it is missing.",
    since: "1.0.0",
    group: Group::List,
    complexity: "O(1) for each element",
    arity: -3,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::INSERT))],
    syntax: "key element [element ...]",
    history: &[("2.4.0", "More than one element.")],
    example: Example { given: &["LPUSH letters c"], call: "LPUSH letters b a", reply: "(integer) 3" },
    ..Spec::DEFAULT
};

const LPUSHX: Spec = Spec {
    name: "lpushx",
    summary: "Prepends elements to a list, only if the list exists.",
    since: "2.2.0",
    history: &[("4.0.0", "More than one element.")],
    example: Example { given: &["LPUSH letters b"], call: "LPUSHX letters a", reply: "(integer) 2" },
    ..LPUSH
};

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(LPUSH, Run::Keys(|call| push(call, End::Front))),
    Command::new(LPUSHX, Run::Keys(|call| push_if_there(call, End::Front))),
    Command::new(
        Spec {
            name: "rpush",
            summary: "Appends elements to a list, creating the list if it is missing.",
            example: Example { given: &["RPUSH letters a"], call: "RPUSH letters b c", reply: "(integer) 3" },
            ..LPUSH
        },
        Run::Keys(|call| push(call, End::Back)),
    ),
    Command::new(
        Spec {
            name: "rpushx",
            summary: "Appends elements to a list, only if the list exists.",
            example: Example { given: &[], call: "RPUSHX letters a", reply: "(integer) 0" },
            ..LPUSHX
        },
        Run::Keys(|call| push_if_there(call, End::Back)),
    ),
];

/// Returns the event for adding an element at this end.
pub(super) fn event(end: End) -> Event {
    Event::list(if end == End::Front { "lpush" } else { "rpush" })
}

fn push(call: &mut Call<'_, '_>, end: End) -> CommandResult {
    let (args, limit) = (call.args, limit(call.keys.turn));
    let len = call.keys.key(1).edit_or_create(event(end), |list: &mut List| {
        list.push_all(end, (2..args.len()).map(|arg| NewElement::argument(args, arg)), limit);
        list.len()
    })?;
    call.reply.integer(len as i64);
    Ok(())
}

fn push_if_there(call: &mut Call<'_, '_>, end: End) -> CommandResult {
    let (args, limit) = (call.args, limit(call.keys.turn));
    let len = call.keys.key(1).edit_value(event(end), |list: &mut List| {
        list.push_all(end, (2..args.len()).map(|arg| NewElement::argument(args, arg)), limit);
        list.len()
    })?;
    call.reply.integer(len.unwrap_or(0) as i64);
    Ok(())
}
