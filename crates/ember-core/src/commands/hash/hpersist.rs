//! HPERSIST.

use super::access;
use super::fields::{self, NOT_POSITIVE};
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::effects::events::Event;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::hash::Hash;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "hpersist",
        summary: "Removes the expiry of hash fields.",
        since: "7.4.0",
        group: Group::Hash,
        complexity: "O(N) for N fields.",
        arity: -5,
        flags: Flags::WRITE.union(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))],
        syntax: "key FIELDS numfields field [field ...]",
        example: Example {
            given: &["HSET user name Ann token xyz", "HEXPIRE user 60 FIELDS 1 token"],
            call: "HPERSIST user FIELDS 2 token name",
            reply: "1) (integer) 1\n2) (integer) -1",
        },
        ..Spec::DEFAULT
    },
    Run::Keys(hpersist),
)];

const PERSISTED: i64 = 1;
const NO_EXPIRY: i64 = -1;
const NO_FIELD: i64 = -2;

fn hpersist(call: &mut Call<'_, '_>) -> CommandResult {
    let (args, expired_ms) = (call.args, call.keys.turn.expired_ms());
    call.keys.key(1).value::<Hash>()?;
    let names = fields::named(args, 2, NOT_POSITIVE)?;
    let reply = &mut *call.reply;
    reply.array(names.len());
    let mut key = access::key(&mut call.keys)?;
    let changed = key.edit_value::<Hash, usize>(Event::hash("hpersist"), |hash| {
        let changes = names.clone().filter(|&arg| {
            let outcome = persist(hash, args.at(arg), expired_ms);
            reply.integer(outcome);
            outcome == PERSISTED
        });
        changes.count()
    })?;
    if changed.is_none() {
        names.for_each(|_| reply.integer(NO_FIELD));
    }
    Ok(())
}

/// Removes the expiry of one field, and returns the reply for that field.
fn persist(hash: &mut Hash, name: &[u8], expired_ms: i64) -> i64 {
    let Some(field) = hash.get(name, expired_ms) else { return NO_FIELD };
    if field.expire_at_ms.is_none() {
        return NO_EXPIRY;
    }
    hash.set_expiry(name, None);
    PERSISTED
}
