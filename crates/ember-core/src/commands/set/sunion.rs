//! SUNION and SUNIONSTORE.

use super::{sources, write_member};
use crate::call::{Attempt, AttemptResult, Call, DataCommand, Run};
use crate::effects::events::Event;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::Collection;
use crate::types::set::algebra;

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(
        Spec {
            name: "sunion",
            summary: "Returns the union of several sets.",
            since: "1.0.0",
            group: Group::Set,
            complexity: "O(N) for N members in all sets.",
            arity: -2,
            flags: Flags::READONLY,
            keys: &[KeySpec::from(1, 1, KeyFlags::RO.union(KeyFlags::ACCESS))],
            tips: &["nondeterministic_output_order"],
            syntax: "key [key ...]",
            example: Example {
                given: &["SADD even 2 4 6", "SADD prime 2 3 5"],
                call: "SUNION even prime",
                reply: "1) \"2\"\n2) \"3\"\n3) \"4\"\n4) \"5\"\n5) \"6\"",
            },
            ..Spec::DEFAULT
        },
        Run::Long(sunion),
    ),
    Command::new(
        Spec {
            name: "sunionstore",
            summary: "Stores the union of several sets; returns its size.",
            since: "1.0.0",
            group: Group::Set,
            complexity: "O(N) for N members in all sets.",
            arity: -3,
            flags: Flags::WRITE.union(Flags::DENYOOM),
            keys: &[
                KeySpec::one(1, KeyFlags::OW.union(KeyFlags::UPDATE)),
                KeySpec::from(2, 1, KeyFlags::RO.union(KeyFlags::ACCESS)),
            ],
            syntax: "destination key [key ...]",
            example: Example {
                given: &["SADD even 2 4 6", "SADD prime 2 3 5"],
                call: "SUNIONSTORE both even prime",
                reply: "(integer) 5",
            },
            ..Spec::DEFAULT
        },
        Run::Long(sunionstore),
    ),
];

fn sunion(call: &mut Call<'_, '_>) -> AttemptResult {
    let range = 1..call.args.len();
    sources::look_up(&mut call.keys, range.clone())?;
    if sources::all_steps(&call.keys, range.clone()) > call.steps_max() {
        return Ok(Attempt::Offload);
    }
    let sets = sources::sets(&call.keys, range);
    let mark = call.reply.mark();
    let mut count = 0;
    algebra::for_each_in_any(&sets, &call.keys.turn.settings.encoding, |member| {
        write_member(call.reply, member);
        count += 1;
    });
    call.reply.insert_set(mark, count);
    Ok(Attempt::Done)
}

fn sunionstore(call: &mut Call<'_, '_>) -> AttemptResult {
    let range = 2..call.args.len();
    sources::look_up(&mut call.keys, range.clone())?;
    if sources::all_steps(&call.keys, range.clone()) > call.steps_max() {
        return Ok(Attempt::Offload);
    }
    let union = algebra::union(&sources::sets(&call.keys, range), &call.keys.turn.settings.encoding);
    call.reply.integer(union.len() as i64);
    call.keys.key(1).store_value(Event::set("sunionstore"), union);
    Ok(Attempt::Done)
}
