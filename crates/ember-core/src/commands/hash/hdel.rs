//! HDEL.

use super::access;
use crate::call::{Attempt, AttemptResult, Call, DataCommand, Run};
use crate::commands::arguments::names_many;
use crate::effects::events::Event;
use crate::spec::{Command, ElementArgs, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::Collection;
use crate::types::hash::Hash;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "hdel",
        summary: "Removes fields from a hash, and the key with the last field.",
        since: "2.0.0",
        group: Group::Hash,
        complexity: "O(N) for N fields.",
        arity: -3,
        flags: Flags::WRITE.union(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::DELETE))],
        elements: Some(ElementArgs::each(2, 1)),
        syntax: "key field [field ...]",
        history: &[("2.4.0", "Takes several fields.")],
        example: Example {
            given: &["HSET user name Ann age 30"],
            call: "HDEL user age email",
            reply: "(integer) 1",
        },
        ..Spec::DEFAULT
    },
    Run::KeysOrLong { long_if: names_many, run: hdel },
)];

fn hdel(call: &mut Call<'_, '_>) -> AttemptResult {
    if names_many(call.args)
        && let Some(hash) = call.keys.value::<Hash>(1)?
        && call.is_long_change(call.args.len() - 2, hash.len())
    {
        return Ok(Attempt::Offload);
    }
    let (names, expired_ms) = (call.args.skip(2), call.keys.turn.expired_ms());
    let mut key = access::key(&mut call.keys)?;
    let removed = key.edit_value::<Hash, usize>(Event::hash("hdel"), |hash| {
        names.iter().filter(|name| hash.remove(name, expired_ms)).count()
    })?;
    call.reply.integer(removed.unwrap_or(0) as i64);
    Ok(Attempt::Done)
}
