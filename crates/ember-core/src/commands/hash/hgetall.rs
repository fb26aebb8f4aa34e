//! HGETALL, HKEYS and HVALS, which reply with the names and values of all fields of a hash, or with one of the two.

use ember_protocol::Reply;

use super::access;
use crate::call::{Attempt, AttemptResult, Call, DataCommand, Run};
use crate::commands::string::value;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::Collection;
use crate::types::hash::Field;

const TEMPLATE: Spec = Spec {
    since: "2.0.0",
    group: Group::Hash,
    complexity: "O(N) for N fields in the hash.",
    arity: 2,
    flags: Flags::READONLY,
    keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
    tips: &["nondeterministic_output_order"],
    syntax: "key",
    ..Spec::DEFAULT
};
const GIVEN: &[&str] = &["HSET user name Ann age 30"];

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(
        Spec {
            name: "hgetall",
            summary: "Returns all fields of a hash with their values.",
            replies_pairs: true,
            example: Example {
                given: GIVEN,
                call: "HGETALL user",
                reply: "1) \"name\"\n2) \"Ann\"\n3) \"age\"\n4) \"30\"",
            },
            ..TEMPLATE
        },
        Run::Long(|call| all(call, Reply::map, reply_pair)),
    ),
    Command::new(
        Spec {
            name: "hkeys",
            summary: "Returns all fields of a hash.",
            example: Example { given: GIVEN, call: "HKEYS user", reply: "1) \"name\"\n2) \"age\"" },
            ..TEMPLATE
        },
        Run::Long(|call| all(call, Reply::array, |reply, field| value::reply(reply, Some(field.name)))),
    ),
    Command::new(
        Spec {
            name: "hvals",
            summary: "Returns the values of all fields of a hash.",
            example: Example { given: GIVEN, call: "HVALS user", reply: "1) \"Ann\"\n2) \"30\"" },
            ..TEMPLATE
        },
        Run::Long(|call| all(call, Reply::array, |reply, field| value::reply(reply, Some(field.value)))),
    ),
];

fn reply_pair(reply: &mut Reply, field: Field<'_>) {
    value::reply(reply, Some(field.name));
    value::reply(reply, Some(field.value));
}

/// Replies with the output of `head`, which receives the number of fields, followed by the output of `each` for every
/// field.
fn all(
    call: &mut Call<'_, '_>,
    head: fn(&mut Reply, usize),
    each: fn(&mut Reply, Field<'_>),
) -> AttemptResult {
    let steps_max = call.steps_max();
    access::read(call, |hash, reply, expired_ms| {
        if hash.is_some_and(|hash| hash.len() > steps_max) {
            return Attempt::Offload;
        }
        head(reply, hash.map_or(0, |hash| hash.live_len(expired_ms)));
        if let Some(hash) = hash {
            hash.for_each(expired_ms, |field| each(reply, field));
        }
        Attempt::Done
    })
}
