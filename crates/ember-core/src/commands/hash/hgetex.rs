//! HGETEX.

use ember_protocol::Args;

use super::access;
use super::fields::{self, NOT_POSITIVE};
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::commands::arguments::{expiry_unit, is_word};
use crate::commands::string::value;
use crate::effects::events::Event;
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::hash::Hash;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "hgetex",
        summary: "Returns the values of fields of a hash and sets or removes their expiry.",
        since: "8.0.0",
        group: Group::Hash,
        complexity: "O(N) for N fields.",
        arity: -5,
        flags: Flags::WRITE.union(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE))
            .with_notes("RW and UPDATE because it changes the TTL")],
        syntax: "key [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | PERSIST] \
                 FIELDS numfields field [field ...]",
        example: Example {
            given: &["HSET user name Ann token xyz"],
            call: "HGETEX user EX 60 FIELDS 2 token other",
            reply: "1) \"xyz\"\n2) (nil)",
        },
        ..Spec::DEFAULT
    },
    Run::Keys(hgetex),
)];

/// The change that a call makes to the expiries of the fields.
#[derive(Clone, Copy)]
enum Change {
    None,
    Persist,
    /// The fields expire at this Unix time in ms, which may be in the past.
    ExpireAt(i64),
}

/// Parses the change in the arguments from 2 on; returns the change, and the argument index of the word `FIELDS` after
/// it.
fn change(args: Args<'_>, now_ms: i64) -> Result<(Change, usize), CommandError> {
    if let Some(unit) = expiry_unit(args, 2) {
        return Ok((Change::ExpireAt(fields::expiry(args, 3, unit, now_ms, "hgetex")?), 4));
    }
    Ok(if is_word(args, 2, "PERSIST") { (Change::Persist, 3) } else { (Change::None, 2) })
}

fn hgetex(call: &mut Call<'_, '_>) -> CommandResult {
    let (args, now_ms) = (call.args, call.keys.turn.now_ms);
    call.keys.key(1).value::<Hash>()?;
    let (change, at) = change(args, now_ms)?;
    let names = fields::named(args, at, NOT_POSITIVE)?;
    let (expired_ms, past_ms) = (call.keys.turn.expired_ms(), call.keys.turn.past_ms());
    let event = Event::hash(match change {
        Change::ExpireAt(at_ms) if at_ms <= past_ms => "hdel",
        Change::ExpireAt(_) => "hexpire",
        Change::Persist | Change::None => "hpersist",
    });
    let reply = &mut *call.reply;
    reply.array(names.len());
    let mut key = access::key(&mut call.keys)?;
    let mut touched = key.names();
    let changed = key.edit_value::<Hash, usize>(event, |hash| {
        let mut changes = 0;
        for arg in names.clone() {
            let name = args.at(arg);
            let Some(field) = hash.get(name, expired_ms) else {
                reply.null();
                continue;
            };
            value::reply(reply, Some(field.value));
            let is_volatile = field.expire_at_ms.is_some();
            if apply(hash, name, change, is_volatile, past_ms) {
                touched.add(name);
                changes += 1;
            }
        }
        changes
    })?;
    let expire_at_ms = if let Change::ExpireAt(at_ms) = change { Some(at_ms) } else { None };
    fields::journal_expiry(&mut key, &touched, expire_at_ms);
    if changed.is_none() {
        names.for_each(|_| reply.null());
    }
    Ok(())
}

/// Applies a change to the expiry of an existing field; returns whether this has changed the hash.
fn apply(hash: &mut Hash, name: &[u8], change: Change, is_volatile: bool, past_ms: i64) -> bool {
    match change {
        Change::None => return false,
        Change::Persist if !is_volatile => return false,
        Change::Persist => hash.set_expiry(name, None),
        // `i64::MIN`, because the client sees the field, whatever its current expiry.
        Change::ExpireAt(at_ms) if at_ms <= past_ms => return hash.remove(name, i64::MIN),
        Change::ExpireAt(at_ms) => hash.set_expiry(name, Some(at_ms)),
    }
    true
}
