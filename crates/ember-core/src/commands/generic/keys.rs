//! KEYS.

use std::collections::BinaryHeap;

use ember_protocol::Args;

use crate::algorithms::glob::{self, Case};
use crate::call::{Attempt, AttemptResult, DataCommand, KeyspaceCall, Run};
use crate::commands::arguments::{integer, is_word};
use crate::error::CommandError;
use crate::keyspace::SHARDS;
use crate::spec::{Category, Command, Example, Flags, Group, Spec};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "keys",
        summary: "Returns the keys that match a glob pattern, up to a limit; with `--store btree` in order, and the \
                  first ones. Each shard is read at one moment; the shards are read one after the other.",
        since: "1.0.0",
        group: Group::Generic,
        complexity: "O(N) for N keys in the database; with `--store btree`, O(log(N) + M) for M keys that begin as the \
                     pattern does.",
        arity: -2,
        flags: Flags::READONLY,
        categories: Category::DANGEROUS,
        tips: &["request_policy:all_shards", "nondeterministic_output_order"],
        syntax: "pattern [LIMIT count]",
        example: Example { given: &["SET one 1", "SET two 2"], call: "KEYS t*", reply: "1) \"two\"" },
        ..Spec::DEFAULT
    },
    Run::LongKeyspace(keys),
)];

fn limit(args: Args<'_>) -> Result<usize, CommandError> {
    match args.len() {
        2 => Ok(usize::MAX),
        4 if is_word(args, 2, "LIMIT") => {
            usize::try_from(integer(args, 3)?).map_err(|_| CommandError::Syntax)
        }
        // Redis, which has no limit here, replies with this error to further arguments after the pattern.
        _ => Err(CommandError::WrongArity("keys".into())),
    }
}

fn keys(call: &mut KeyspaceCall<'_>) -> AttemptResult {
    let limit = limit(call.args)?;
    let mark = call.reply.mark();
    let is_done = if call.keyspace.keeps_order() { in_order(call, limit) } else { in_any_order(call, limit) };
    if is_done {
        return Ok(Attempt::Done);
    }
    call.reply.truncate_to(mark);
    Ok(Attempt::Offload)
}

/// Replies with matching keys in any order. Returns false if this would read more keys than a short call may.
fn in_any_order(call: &mut KeyspaceCall<'_>, limit: usize) -> bool {
    let mut steps_left = call.steps_max();
    let pattern = call.args.at(1);
    let all = glob::matches_all(pattern);
    let expired_ms = call.turn.expired_ms();
    let mark = call.reply.mark();
    let mut count = 0;
    for shard in 0..SHARDS {
        if count == limit {
            break;
        }
        let data = call.keyspace.lock(shard);
        let len = data.database(call.database).table().len();
        let Some(left) = steps_left.checked_sub(len) else { return false };
        steps_left = left;
        let live = data.database(call.database).table().iter().filter(|entry| !entry.is_expired(expired_ms));
        let matching = live.filter(|entry| all || glob::matches(pattern, entry.key(), Case::Sensitive));
        for entry in matching.take(limit - count) {
            call.reply.bulk(entry.key());
            count += 1;
        }
    }
    call.reply.insert_array(mark, count);
    true
}

/// Replies with the first matching keys in sorted order. In each shard, reads only names that sort before the last key
/// selected so far. Returns false like [`in_any_order`].
fn in_order(call: &mut KeyspaceCall<'_>, limit: usize) -> bool {
    let mut steps_left = call.steps_max();
    let KeyspaceCall { keyspace, database, .. } = *call;
    let pattern = call.args.at(1);
    let (prefix, all) = (glob::literal_prefix(pattern), glob::matches_all(pattern));
    let expired_ms = call.turn.expired_ms();
    let mut first: BinaryHeap<Box<[u8]>> = BinaryHeap::new();
    for shard in (0..SHARDS).take_while(|_| limit > 0) {
        let data = keyspace.lock(shard);
        let Some(names) = data.database(database).names() else { continue };
        let is_live = |name: &[u8]| {
            let found = data.find(database, keyspace.hash(name), name);
            found.is_some_and(|at| !data.entry(database, at).is_expired(expired_ms))
        };
        for name in names.starting_with(prefix) {
            if first.len() == limit && first.peek().is_some_and(|last| **last < *name) {
                break;
            }
            let Some(left) = steps_left.checked_sub(1) else { return false };
            steps_left = left;
            if (all || glob::matches(pattern, name, Case::Sensitive)) && is_live(name) {
                first.push(name.into());
                if first.len() > limit {
                    first.pop();
                }
            }
        }
    }
    let first = first.into_sorted_vec();
    call.reply.array(first.len());
    first.iter().for_each(|name| call.reply.bulk(name));
    true
}
