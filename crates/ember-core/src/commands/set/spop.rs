//! SPOP.

use super::write_member;
use crate::algorithms::random::Random;
use crate::call::{Attempt, AttemptResult, Call, CommandResult, DataCommand, Run};
use crate::commands::arguments::{integer, is_large_count};
use crate::effects::events::Event;
use crate::effects::journal::Names;
use crate::error::CommandError;
use crate::keys::Key;
use crate::memory::reclaim;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::Collection;
use crate::types::set::Set;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "spop",
        summary: "Removes and returns one or more random members of a set.",
        since: "1.0.0",
        group: Group::Set,
        complexity: "O(1) without a count, O(N) for a count of N.",
        arity: -2,
        flags: Flags::WRITE.union(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE))],
        tips: &["nondeterministic_output"],
        syntax: "key [count]@3.2.0",
        history: &[("3.2.0", "The count.")],
        example: Example { given: &["SADD tags rust"], call: "SPOP tags", reply: "\"rust\"" },
        ..Spec::DEFAULT
    },
    Run::KeysOrLong { long_if: |args| is_large_count(args, 2), run: spop },
)];

fn spop(call: &mut Call<'_, '_>) -> AttemptResult {
    match call.args.len() {
        2 => pop_one(call).map(|()| Attempt::Done),
        3 => pop_count(call),
        _ => Err(CommandError::Syntax),
    }
}

fn pop_one(call: &mut Call<'_, '_>) -> CommandResult {
    let Call { keys, reply, .. } = call;
    let mut random = Random::seeded(keys.turn.random.next_u64());
    let mut key = keys.key(1);
    let (mut removed, mut digits) = (key.names(), itoa::Buffer::new());
    let popped = key.edit_value(Event::set("spop"), |set: &mut Set| {
        set.pop_random(&mut random, |member| {
            removed.add(member.bytes(&mut digits));
            write_member(reply, member);
        });
    })?;
    match popped {
        Some(_) => key.journal("SREM", |words| removed.write(words)),
        None => reply.null(),
    }
    Ok(())
}

fn pop_count(call: &mut Call<'_, '_>) -> AttemptResult {
    let count = integer(call.args, 2).ok().and_then(|count| usize::try_from(count).ok());
    let count = count.ok_or("ERR value is out of range, must be positive")?;
    // Reads the length after `key` has removed the key if it has expired.
    let len = call.keys.key(1).value::<Set>()?.map_or(0, Set::len);
    if call.is_long_change(count.min(len), len) {
        return Ok(Attempt::Offload);
    }
    let Call { keys, reply, .. } = call;
    if len == 0 || count == 0 {
        reply.set(0);
        return Ok(Attempt::Done);
    }
    let limits = keys.turn.settings.encoding;
    let mut random = Random::seeded(keys.turn.random.next_u64());
    let mut emptied = Set::default();
    let mut key = keys.key(1);
    let (mut removed, mut digits) = (key.names(), itoa::Buffer::new());
    key.edit_value(Event::set("spop"), |set: &mut Set| {
        reply.set(count.min(set.len()));
        if count >= set.len() {
            set.for_each(|member| write_member(reply, member));
            emptied = std::mem::take(set);
        } else {
            set.pop_many(count, &mut random, &limits, |member| {
                removed.add(member.bytes(&mut digits));
                write_member(reply, member);
            });
        }
    })?;
    journal_popped(&mut key, &removed);
    if emptied.memory_bytes() >= reclaim::WORTH_BYTES_MIN {
        reclaim::later(emptied, 1);
    }
    Ok(Attempt::Done)
}

/// Records the removal of the key if all members were popped, otherwise the removal of the popped members. A single
/// popped member is recorded by SREM, as in Redis.
fn journal_popped(key: &mut Key<'_>, popped: &Names) {
    if !key.exists() {
        key.journal_removal_by_server();
    } else if !popped.is_empty() {
        key.journal("SREM", |words| popped.write(words));
    }
}
