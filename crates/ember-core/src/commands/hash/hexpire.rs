//! HEXPIRE, HPEXPIRE, HEXPIREAT, HPEXPIREAT.

use super::access;
use super::fields::{self, Condition};
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::commands::arguments::ExpiryUnit;
use crate::effects::events::Event;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::hash::Hash;

const TEMPLATE: Spec = Spec {
    since: "7.4.0",
    group: Group::Hash,
    complexity: "O(N) for N fields.",
    arity: -6,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))],
    ..Spec::DEFAULT
};
const GIVEN: &[&str] = &["HSET user name Ann token xyz"];

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(
        Spec {
            name: "hexpire",
            summary: "Sets the expiry of hash fields in seconds from now.",
            syntax: "key seconds [NX | XX | GT | LT] FIELDS numfields field [field ...]",
            example: Example {
                given: GIVEN,
                call: "HEXPIRE user 60 FIELDS 2 token other",
                reply: "1) (integer) 1\n2) (integer) -2",
            },
            ..TEMPLATE
        },
        Run::Keys(|call| expire(call, ExpiryUnit::Seconds, "hexpire")),
    ),
    Command::new(
        Spec {
            name: "hpexpire",
            summary: "Sets the expiry of hash fields in milliseconds from now.",
            syntax: "key milliseconds [NX | XX | GT | LT] FIELDS numfields field [field ...]",
            example: Example {
                given: GIVEN,
                call: "HPEXPIRE user 1500 XX FIELDS 1 token",
                reply: "1) (integer) 0",
            },
            ..TEMPLATE
        },
        Run::Keys(|call| expire(call, ExpiryUnit::Milliseconds, "hpexpire")),
    ),
    Command::new(
        Spec {
            name: "hexpireat",
            summary: "Sets the expiry of hash fields as Unix time in seconds.",
            syntax: "key unix-time-seconds [NX | XX | GT | LT] FIELDS numfields field [field ...]",
            example: Example {
                given: GIVEN,
                call: "HEXPIREAT user 33177117420 FIELDS 1 token",
                reply: "1) (integer) 1",
            },
            ..TEMPLATE
        },
        Run::Keys(|call| expire(call, ExpiryUnit::UnixSeconds, "hexpireat")),
    ),
    Command::new(
        Spec {
            name: "hpexpireat",
            summary: "Sets the expiry of hash fields as Unix time in milliseconds.",
            syntax: "key unix-time-milliseconds [NX | XX | GT | LT] FIELDS numfields field [field ...]",
            example: Example {
                given: GIVEN,
                call: "HPEXPIREAT user 1 FIELDS 1 token",
                reply: "1) (integer) 2",
            },
            ..TEMPLATE
        },
        Run::Keys(|call| expire(call, ExpiryUnit::UnixMilliseconds, "hpexpireat")),
    ),
];

/// The reply for a field that was removed because its new expiry has passed.
const REMOVED: i64 = 2;
/// The reply for a field whose expiry was set.
const SET: i64 = 1;
/// The reply for a field for which the condition does not hold.
const REFUSED: i64 = 0;
/// The reply for a missing field.
const NO_FIELD: i64 = -2;

fn expire(call: &mut Call<'_, '_>, unit: ExpiryUnit, command: &'static str) -> CommandResult {
    let (args, now_ms) = (call.args, call.keys.turn.now_ms);
    call.keys.key(1).value::<Hash>()?;
    let expire_at_ms = fields::expiry(args, 2, unit, now_ms, command)?;
    let condition = Condition::parse(args, 3);
    let at = if condition.is_some() { 4 } else { 3 };
    let condition = condition.unwrap_or(Condition::Always);
    let names = fields::named(args, at, "ERR Parameter `numFields` should be greater than 0")?;
    let reply = &mut *call.reply;
    reply.array(names.len());
    let (expired_ms, is_past) = (call.keys.turn.expired_ms(), expire_at_ms <= call.keys.turn.past_ms());
    let event = Event::hash(if is_past { "hdel" } else { "hexpire" });
    let mut key = access::key(&mut call.keys)?;
    let mut touched = key.names();
    let changed = key.edit_value::<Hash, usize>(event, |hash| {
        let mut changes = 0;
        for arg in names.clone() {
            let name = args.at(arg);
            let outcome = match hash.get(name, expired_ms) {
                None => NO_FIELD,
                Some(field) if !condition.allows(field.expire_at_ms, expire_at_ms) => REFUSED,
                Some(_) if is_past => {
                    hash.remove(name, expired_ms);
                    REMOVED
                }
                Some(_) => {
                    hash.set_expiry(name, Some(expire_at_ms));
                    SET
                }
            };
            reply.integer(outcome);
            if outcome > REFUSED {
                touched.add(args.at(arg));
                changes += 1;
            }
        }
        changes
    })?;
    fields::journal_expiry(&mut key, &touched, Some(expire_at_ms));
    if changed.is_none() {
        names.for_each(|_| reply.integer(NO_FIELD));
    }
    Ok(())
}
