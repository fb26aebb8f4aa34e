//! TTL, PTTL, EXPIRETIME, PEXPIRETIME.

use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::keys::Lookup;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec, Values};

const TEMPLATE: Spec = Spec {
    group: Group::Generic,
    complexity: "O(1)",
    arity: 2,
    flags: Flags::READONLY.union(Flags::FAST),
    keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
    syntax: "key",
    values: Values::Unneeded,
    ..Spec::DEFAULT
};
const TTL_TIPS: &[&str] = &["nondeterministic_output"];
const TTL_HISTORY: &[(&str, &str)] = &[("2.8.0", "Replies -2 for a missing key.")];
const GIVEN: &[&str] = &["SET hello world PXAT 33177117420000"];

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(
        Spec {
            name: "ttl",
            summary: "Returns the time to live of a key in seconds: -1 for no expiry, -2 for a missing key.",
            since: "1.0.0",
            tips: TTL_TIPS,
            history: TTL_HISTORY,
            example: Example {
                given: &["SET hello world EX 100"],
                call: "TTL hello",
                reply: "(integer) 100",
            },
            ..TEMPLATE
        },
        Run::Keys(|call| reply_expiry(call, |at, now| rounded_seconds(at.saturating_sub(now)))),
    ),
    Command::new(
        Spec {
            name: "pttl",
            summary: "Returns the time to live of a key in milliseconds: -1 for no expiry, -2 for a missing key.",
            since: "2.6.0",
            tips: TTL_TIPS,
            history: TTL_HISTORY,
            example: Example { given: &["SET hello world"], call: "PTTL hello", reply: "(integer) -1" },
            ..TEMPLATE
        },
        Run::Keys(|call| reply_expiry(call, i64::saturating_sub)),
    ),
    Command::new(
        Spec {
            name: "expiretime",
            summary: "Returns the expiry of a key as Unix time in seconds: -1 for no expiry, -2 for a missing key.",
            since: "7.0.0",
            example: Example { given: GIVEN, call: "EXPIRETIME hello", reply: "(integer) 33177117420" },
            ..TEMPLATE
        },
        Run::Keys(|call| reply_expiry(call, |at, _| rounded_seconds(at))),
    ),
    Command::new(
        Spec {
            name: "pexpiretime",
            summary: "Returns the expiry of a key as Unix time in milliseconds: -1 for no expiry, -2 for a missing key.",
            since: "7.0.0",
            example: Example { given: GIVEN, call: "PEXPIRETIME hello", reply: "(integer) 33177117420000" },
            ..TEMPLATE
        },
        Run::Keys(|call| reply_expiry(call, |at, _| at)),
    ),
];

/// Returns non-negative `milliseconds` in seconds, rounded to the nearest second; half a second is rounded up.
fn rounded_seconds(milliseconds: i64) -> i64 {
    milliseconds / 1000 + i64::from(milliseconds % 1000 >= 500)
}

/// Replies with the result of `shown` for the expiry and the current time (both Unix time in ms), or with the code for
/// a key without an expiry or a missing key.
fn reply_expiry(call: &mut Call<'_, '_>, shown: fn(i64, i64) -> i64) -> CommandResult {
    let now_ms = call.keys.turn.now_ms;
    let number = match call.keys.read_as(1, Lookup::NoTouch).map(|entry| entry.expire_at_ms()) {
        None => -2,
        Some(None) => -1,
        // A client that sees expired keys receives a remaining time of zero for them.
        Some(Some(expire_at_ms)) => shown(expire_at_ms, now_ms.min(expire_at_ms)),
    };
    call.reply.integer(number);
    Ok(())
}
