//! XRANGE and XREVRANGE.

use super::ids::{count, interval_last, interval_start, reply_entries};
use crate::call::{Attempt, AttemptResult, Call, DataCommand, Run};
use crate::commands::arguments::is_word;
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::Collection;
use crate::types::stream::Stream;

const XRANGE: Spec = Spec {
    name: "xrange",
    summary: "Returns the entries of a stream with IDs between two others, in order.",
    since: "5.0.0",
    group: Group::Stream,
    complexity: "O(N) for N entries returned, and O(log M) in a stream of M entries to find the first",
    arity: -4,
    flags: Flags::READONLY,
    keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
    syntax: "key start end [COUNT count]",
    history: &[("6.2.0", "`(` before an ID excludes it.")],
    example: Example {
        given: &["XADD readings 1-1 a 1", "XADD readings 2-1 a 2"],
        call: "XRANGE readings - + COUNT 1",
        reply: "1) 1) \"1-1\"\n   2) 1) \"a\"\n      2) \"1\"",
    },
    ..Spec::DEFAULT
};

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(XRANGE, Run::Long(|call| range(call, false))),
    Command::new(
        Spec {
            name: "xrevrange",
            summary: "Returns the entries of a stream with IDs between two others, from the last to the first.",
            syntax: "key end start [COUNT count]",
            example: Example {
                given: &["XADD readings 1-1 a 1", "XADD readings 2-1 a 2"],
                call: "XREVRANGE readings + - COUNT 1",
                reply: "1) 1) \"2-1\"\n   2) 1) \"a\"\n      2) \"2\"",
            },
            ..XRANGE
        },
        Run::Long(|call| range(call, true)),
    ),
];

fn range(call: &mut Call<'_, '_>, is_backward: bool) -> AttemptResult {
    let (args, steps_max) = (call.args, call.steps_max());
    let (start, end) = if is_backward { (3, 2) } else { (2, 3) };
    let ids = interval_start(args.at(start))?..=interval_last(args.at(end))?;
    let mut wanted = None;
    let mut arg = 4;
    while arg < args.len() {
        if !is_word(args, arg, "COUNT") || arg + 1 == args.len() {
            return Err(CommandError::Syntax);
        }
        wanted = Some(count(args, arg + 1)?);
        arg += 2;
    }
    let reply = &mut *call.reply;
    let Some(stream) = call.keys.read_value::<Stream>(1)? else {
        reply.array(0);
        return Ok(Attempt::Done);
    };
    if wanted.unwrap_or(usize::MAX).min(stream.len()) > steps_max {
        return Ok(Attempt::Offload);
    }
    match wanted {
        Some(0) => reply.null_array(),
        _ if is_backward => reply_entries(reply, stream.log().range_back(ids), wanted.unwrap_or(0)),
        _ => reply_entries(reply, stream.log().range(ids), wanted.unwrap_or(0)),
    }
    Ok(Attempt::Done)
}
