//! HGETDEL.

use super::access;
use super::fields::{self, NOT_POSITIVE};
use crate::call::{Attempt, AttemptResult, Call, DataCommand, Run};
use crate::commands::arguments::names_many;
use crate::commands::string::value;
use crate::effects::events::Event;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::Collection;
use crate::types::hash::Hash;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "hgetdel",
        summary: "Returns the values of fields of a hash and removes the fields, and the key with the last one.",
        since: "8.0.0",
        group: Group::Hash,
        complexity: "O(N) for N fields.",
        arity: -5,
        flags: Flags::WRITE.union(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE))],
        syntax: "key FIELDS numfields field [field ...]",
        example: Example {
            given: &["HSET user name Ann token xyz"],
            call: "HGETDEL user FIELDS 2 token other",
            reply: "1) \"xyz\"\n2) (nil)",
        },
        ..Spec::DEFAULT
    },
    Run::KeysOrLong { long_if: names_many, run: hgetdel },
)];

fn hgetdel(call: &mut Call<'_, '_>) -> AttemptResult {
    let (args, expired_ms) = (call.args, call.keys.turn.expired_ms());
    call.keys.key(1).value::<Hash>()?;
    let names = fields::named(args, 2, NOT_POSITIVE)?;
    if names_many(args)
        && let Some(hash) = call.keys.value::<Hash>(1)?
        && call.is_long_change(names.len(), hash.len())
    {
        return Ok(Attempt::Offload);
    }
    let reply = &mut *call.reply;
    reply.array(names.len());
    let mut key = access::key(&mut call.keys)?;
    let removed = key.edit_value::<Hash, usize>(Event::hash("hdel"), |hash| {
        let removed = names.clone().filter(|&arg| {
            let field = hash.get(args.at(arg), expired_ms);
            value::reply(reply, field.map(|field| field.value));
            hash.remove(args.at(arg), expired_ms)
        });
        removed.count()
    })?;
    if removed.is_some_and(|removed| removed > 0) {
        key.journal("HDEL", |words| names.clone().for_each(|arg| _ = words.word(args.at(arg))));
    }
    if removed.is_none() {
        names.for_each(|_| reply.null());
    }
    Ok(Attempt::Done)
}
