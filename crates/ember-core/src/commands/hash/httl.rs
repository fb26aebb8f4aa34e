//! HTTL, HPTTL, HEXPIRETIME, HPEXPIRETIME.

use super::access;
use super::fields::{self, NOT_POSITIVE};
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::hash::Hash;

const TEMPLATE: Spec = Spec {
    since: "7.4.0",
    group: Group::Hash,
    complexity: "O(N) for N fields.",
    arity: -5,
    flags: Flags::READONLY.union(Flags::FAST),
    keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
    syntax: "key FIELDS numfields field [field ...]",
    ..Spec::DEFAULT
};
const TTL_TIPS: &[&str] = &["nondeterministic_output"];
const RELATIVE: &[&str] = &["HSET user name Ann token xyz", "HEXPIRE user 60 FIELDS 1 token"];
const ABSOLUTE: &[&str] = &["HSET user name Ann token xyz", "HPEXPIREAT user 33177117420000 FIELDS 1 token"];

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(
        Spec {
            name: "httl",
            summary: "Returns the time to live of hash fields in seconds: -1 for no expiry, -2 for a missing field.",
            tips: TTL_TIPS,
            example: Example {
                given: RELATIVE,
                call: "HTTL user FIELDS 2 token name",
                reply: "1) (integer) 60\n2) (integer) -1",
            },
            ..TEMPLATE
        },
        Run::Keys(|call| reply_expiries(call, |at, now| in_seconds(at - now))),
    ),
    Command::new(
        Spec {
            name: "hpttl",
            summary: "Returns the time to live of hash fields in milliseconds: -1 for no expiry, -2 for a missing field.",
            tips: TTL_TIPS,
            example: Example {
                given: RELATIVE,
                call: "HPTTL user FIELDS 2 name other",
                reply: "1) (integer) -1\n2) (integer) -2",
            },
            ..TEMPLATE
        },
        Run::Keys(|call| reply_expiries(call, |at, now| at - now)),
    ),
    Command::new(
        Spec {
            name: "hexpiretime",
            summary: "Returns the expiry of hash fields as Unix time in seconds: -1 for no expiry, -2 for a missing field.",
            example: Example {
                given: ABSOLUTE,
                call: "HEXPIRETIME user FIELDS 1 token",
                reply: "1) (integer) 33177117420",
            },
            ..TEMPLATE
        },
        Run::Keys(|call| reply_expiries(call, |at, _| in_seconds(at))),
    ),
    Command::new(
        Spec {
            name: "hpexpiretime",
            summary: "Returns the expiry of hash fields as Unix time in milliseconds: -1 for no expiry, -2 for a missing \
                      field.",
            example: Example {
                given: ABSOLUTE,
                call: "HPEXPIRETIME user FIELDS 1 token",
                reply: "1) (integer) 33177117420000",
            },
            ..TEMPLATE
        },
        Run::Keys(|call| reply_expiries(call, |at, _| at)),
    ),
];

/// Returns `milliseconds` in seconds, rounded up.
fn in_seconds(milliseconds: i64) -> i64 {
    milliseconds.saturating_add(999) / 1000
}

/// Replies for each field with the result of `shown` for its expiry and the current time (both Unix time in ms), or
/// with the code for a field without an expiry or a missing field.
fn reply_expiries(call: &mut Call<'_, '_>, shown: fn(i64, i64) -> i64) -> CommandResult {
    let args = call.args;
    call.keys.value::<Hash>(1)?;
    let names = fields::named(args, 2, NOT_POSITIVE)?;
    let now_ms = call.keys.turn.now_ms;
    access::read(call, |hash, reply, expired_ms| {
        reply.array(names.len());
        for arg in names {
            let field = hash.and_then(|hash| hash.get(args.at(arg), expired_ms));
            reply.integer(match field.map(|field| field.expire_at_ms) {
                None => -2,
                Some(None) => -1,
                Some(Some(expire_at_ms)) => shown(expire_at_ms, now_ms.min(expire_at_ms)),
            });
        }
    })
}
