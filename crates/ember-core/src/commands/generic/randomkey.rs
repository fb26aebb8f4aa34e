//! RANDOMKEY.

use crate::call::{CommandResult, DataCommand, KeyspaceCall, Run};
use crate::keyspace::SHARDS;
use crate::spec::{Command, Example, Flags, Group, Spec};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "randomkey",
        summary: "Returns a random key; each key has the same probability.",
        since: "1.0.0",
        group: Group::Generic,
        complexity: "O(1)",
        arity: 1,
        flags: Flags::READONLY,
        tips: &["request_policy:all_shards", "nondeterministic_output"],
        example: Example { given: &["SET one 1"], call: "RANDOMKEY", reply: "\"one\"" },
        ..Spec::DEFAULT
    },
    Run::Keyspace(randomkey),
)];

/// The maximum number of random draws; after that, all keys are searched. If this number of consecutive draws finds only
/// expired keys, few other keys exist.
const DRAWS_MAX: usize = 100;

fn randomkey(call: &mut KeyspaceCall<'_>) -> CommandResult {
    let key = draw(call).or_else(|| first_live(call));
    match key {
        Some(key) => call.reply.bulk(&key),
        None => call.reply.null(),
    }
    Ok(())
}

/// Returns a random key that has not expired; all such keys have the same probability.
fn draw(call: &mut KeyspaceCall<'_>) -> Option<Vec<u8>> {
    let KeyspaceCall { keyspace, database, .. } = *call;
    // The weight of a shard is its number of keys; the numbers are read once for all draws.
    let lens: Vec<usize> =
        (0..SHARDS).map(|shard| keyspace.lock(shard).database(database).table().len()).collect();
    let total: usize = lens.iter().sum();
    if total == 0 {
        return None;
    }
    for _ in 0..DRAWS_MAX {
        let mut rank = call.turn.random.below(total);
        let shard = lens.iter().position(|&len| {
            let is_here = rank < len;
            rank = rank.saturating_sub(len);
            is_here
        });
        let shard = shard.expect("rank is below the sum of the lengths");
        let mut data = keyspace.lock(shard);
        // The shard may have become empty since its keys were counted.
        let Some(entry) = data.database(database).table().random(&mut call.turn.random) else { continue };
        let key = entry.key().to_vec();
        if !entry.is_expired(call.turn.expired_ms()) {
            return Some(key);
        }
        data.expire_key(database, keyspace.hash(&key), &key, call.turn);
        call.turn.growth_bytes += keyspace.release(shard, data);
    }
    None
}

/// Returns any key that has not expired. O(keys).
fn first_live(call: &KeyspaceCall<'_>) -> Option<Vec<u8>> {
    (0..SHARDS).find_map(|shard| {
        let data = call.keyspace.lock(shard);
        let mut entries = data.database(call.database).table().iter();
        entries.find(|entry| !entry.is_expired(call.turn.expired_ms())).map(|entry| entry.key().to_vec())
    })
}
