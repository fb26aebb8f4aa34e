//! BLMOVE, and its older form BRPOPLPUSH, which wait until there is an element to move.

use ember_protocol::Reply;

use super::lmove::{Ends, LMOVE, move_element};
use crate::call::{Attempt, AttemptResult, Call, DataCommand, Run, Wait};
use crate::commands::arguments::timeout_ms;
use crate::spec::{Command, Example, Flags, Spec};

const BLMOVE: Spec = Spec {
    name: "blmove",
    summary: "Moves an element from an end of a list to an end of another and returns it; waits until there is one.",
    arity: 6,
    flags: LMOVE.flags.union(Flags::BLOCKING),
    syntax: "source destination wherefrom:<LEFT | RIGHT> whereto:<LEFT | RIGHT> timeout",
    example: Example {
        given: &["RPUSH todo a b c"],
        call: "BLMOVE todo done LEFT RIGHT 0.5",
        reply: "\"a\"",
    },
    ..LMOVE
};

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(BLMOVE, Run::Blocking(blmove)),
    Command::new(
        Spec {
            name: "brpoplpush",
            summary: "Moves the last element of a list to the front of another and returns it; waits until there is one.",
            since: "2.2.0",
            arity: 4,
            syntax: "source destination timeout",
            deprecated: Some(("6.2.0", "`BLMOVE` with the `RIGHT` and `LEFT` arguments")),
            history: &[("6.0.0", "Fractions of seconds.")],
            example: Example { given: &["RPUSH todo a b c"], call: "BRPOPLPUSH todo done 1", reply: "\"c\"" },
            ..BLMOVE
        },
        Run::Blocking(brpoplpush),
    ),
];

fn blmove(call: &mut Call<'_, '_>) -> AttemptResult {
    let ends = Ends::parse_ends(call.args)?;
    move_or_wait(call, ends, 5)
}

fn brpoplpush(call: &mut Call<'_, '_>) -> AttemptResult {
    move_or_wait(call, Ends::USUAL, 3)
}

fn move_or_wait(call: &mut Call<'_, '_>, ends: Ends, timeout_arg: usize) -> AttemptResult {
    let timeout = timeout_ms(call.args, timeout_arg, call.keys.turn.now_ms)?;
    if move_element(call, ends)? {
        return Ok(Attempt::Done);
    }
    Ok(Attempt::Wait(Wait { timeout_ms: timeout, empty_reply: Reply::null, instead: None }))
}
