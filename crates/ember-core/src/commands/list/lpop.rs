//! LPOP and RPOP.

use ember_protocol::{Args, Reply};

use super::ends::{at_least, limit};
use crate::call::{Attempt, AttemptResult, Call, DataCommand, Run};
use crate::commands::arguments::is_large_count;
use crate::effects::events::Event;
use crate::error::CommandError;
use crate::keys::Keys;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::Collection;
use crate::types::list::{End, List};

const LPOP: Spec = Spec {
    name: "lpop",
    summary: "Removes the first elements of a list and returns them.",
    since: "1.0.0",
    group: Group::List,
    complexity: "O(N), N being the number of elements returned",
    arity: -2,
    flags: Flags::WRITE.union(Flags::FAST),
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE))],
    syntax: "key [count]@6.2.0",
    history: &[("6.2.0", "The number of elements.")],
    example: Example { given: &["RPUSH letters a b c"], call: "LPOP letters 2", reply: "1) \"a\"\n2) \"b\"" },
    ..Spec::DEFAULT
};

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(
        LPOP,
        Run::KeysOrLong { long_if: has_large_count, run: |call| pop(call, End::Front, "lpop") },
    ),
    Command::new(
        Spec {
            name: "rpop",
            summary: "Removes the last elements of a list and returns them, the last one first.",
            example: Example { given: &["RPUSH letters a b c"], call: "RPOP letters", reply: "\"c\"" },
            ..LPOP
        },
        Run::KeysOrLong { long_if: has_large_count, run: |call| pop(call, End::Back, "rpop") },
    ),
];

fn has_large_count(args: Args<'_>) -> bool {
    is_large_count(args, 2)
}

/// Returns whether removing up to `count` elements from the list in argument `arg` is a long change
/// ([`Call::is_long_change`]).
///
/// # Errors
/// Returns `WrongType` if the key holds another type.
pub(super) fn takes_long(call: &Call<'_, '_>, arg: usize, count: usize) -> Result<bool, CommandError> {
    let list = call.keys.value::<List>(arg)?;
    Ok(list.is_some_and(|list| call.is_long_change(count.min(list.len()), list.len())))
}

/// Returns the event for removing an element from this end.
pub(super) fn event(end: End) -> Event {
    Event::list(if end == End::Front { "lpop" } else { "rpop" })
}

/// Removes the element at an end of the list in argument `arg` and writes it to `reply`, after the output of `head`.
/// Returns false if there is no element.
pub(super) fn take_one(
    keys: &mut Keys<'_, '_>,
    arg: usize,
    end: End,
    reply: &mut Reply,
    head: impl FnOnce(&mut Reply),
) -> Result<bool, CommandError> {
    let limit = limit(keys.turn);
    let taken = keys.key(arg).edit_value(event(end), |list: &mut List| {
        if let Some(element) = list.end(end) {
            head(reply);
            element.write(reply);
        }
        list.remove_end(end, 1, limit);
    })?;
    if taken.is_some() {
        keys.key(arg).journal(if end == End::Front { "LPOP" } else { "RPOP" }, |_| {});
    }
    Ok(taken.is_some())
}

/// Removes up to `count` elements from an end of the list in argument `arg`, and writes them to `reply` as an array
/// that begins with the element at that end, after the output of `head`. Returns false if the list does not exist.
pub(super) fn take_many(
    keys: &mut Keys<'_, '_>,
    arg: usize,
    end: End,
    count: usize,
    reply: &mut Reply,
    head: impl FnOnce(&mut Reply),
) -> Result<bool, CommandError> {
    let limit = limit(keys.turn);
    let taken = keys.key(arg).edit_value(event(end), |list: &mut List| {
        let count = count.min(list.len());
        head(reply);
        reply.array(count);
        match end {
            End::Front => list.visit(0..count, |element| element.write(reply)),
            End::Back => list.visit_last(count, |element| element.write(reply)),
        }
        list.remove_end(end, count, limit);
        count
    })?;
    if let Some(count @ 1..) = taken {
        keys.key(arg)
            .journal(if end == End::Front { "LPOP" } else { "RPOP" }, |words| _ = words.integer(count));
    }
    Ok(taken.is_some())
}

fn pop(call: &mut Call<'_, '_>, end: End, name: &'static str) -> AttemptResult {
    let args = call.args;
    if args.len() > 3 {
        return Err(CommandError::WrongArity(name.into()));
    }
    if args.len() == 2 {
        let Call { keys, reply, .. } = call;
        if !take_one(keys, 1, end, reply, |_| ())? {
            reply.null();
        }
        return Ok(Attempt::Done);
    }
    let count = at_least(0, args, 2, "ERR value is out of range, must be positive")?;
    if takes_long(call, 1, count)? {
        return Ok(Attempt::Offload);
    }
    let Call { keys, reply, .. } = call;
    if !take_many(keys, 1, end, count, reply, |_| ())? {
        reply.null_array();
    }
    Ok(Attempt::Done)
}
