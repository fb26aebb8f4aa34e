//! BLPOP and BRPOP.

use ember_protocol::Reply;

use super::lpop::take_one;
use crate::call::{Attempt, AttemptResult, Call, DataCommand, Run, Wait};
use crate::commands::arguments::timeout_ms;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::list::End;

const BLPOP: Spec = Spec {
    name: "blpop",
    summary: "Removes and returns the first element of the first non-empty list; waits until there is one.",
    since: "2.0.0",
    group: Group::List,
    complexity: "O(N), N being the number of keys",
    arity: -3,
    flags: Flags::WRITE.union(Flags::BLOCKING),
    keys: &[KeySpec::range(1, -2, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE))],
    syntax: "key [key ...] timeout",
    history: &[("6.0.0", "Fractions of seconds.")],
    example: Example {
        given: &["RPUSH letters a b c"],
        call: "BLPOP none letters 0",
        reply: "1) \"letters\"\n2) \"a\"",
    },
    ..Spec::DEFAULT
};

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(BLPOP, Run::Blocking(|call| pop_or_wait(call, End::Front))),
    Command::new(
        Spec {
            name: "brpop",
            summary: "Removes and returns the last element of the first non-empty list; waits until there is one.",
            example: Example { given: &[], call: "BRPOP none 0.01", reply: "(nil)" },
            ..BLPOP
        },
        Run::Blocking(|call| pop_or_wait(call, End::Back)),
    ),
];

fn pop_or_wait(call: &mut Call<'_, '_>, end: End) -> AttemptResult {
    let Call { args, keys, reply, .. } = call;
    let timeout_arg = args.len() - 1;
    let timeout = timeout_ms(*args, timeout_arg, keys.turn.now_ms)?;
    for arg in 1..timeout_arg {
        let name_key = |reply: &mut Reply| {
            reply.array(2);
            reply.bulk(args.at(arg));
        };
        if take_one(keys, arg, end, reply, name_key)? {
            return Ok(Attempt::Done);
        }
    }
    Ok(Attempt::Wait(Wait { timeout_ms: timeout, empty_reply: Reply::null_array, instead: None }))
}
