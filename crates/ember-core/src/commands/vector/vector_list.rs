//! VECTOR.LIST.

use crate::call::{Attempt, AttemptResult, DataCommand, KeyspaceCall, Run};
use crate::keyspace::SHARDS;
use crate::spec::{Category, Command, Example, Flags, Group, Spec};
use crate::types::value::ValueType;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "vector.list",
        summary: "Returns the names of all indexes and vector sets of the database, in order. Each shard is read at one \
                  moment; the shards are read one after the other.",
        since: "0.1.0",
        group: Group::VectorSet,
        complexity: "O(N) for N keys in the database.",
        arity: 1,
        flags: Flags::READONLY,
        categories: Category::DANGEROUS,
        tips: &["request_policy:all_shards"],
        syntax: "",
        example: Example {
            given: &["VECTOR.CREATE films DIM 2"],
            call: "VECTOR.LIST",
            reply: "1) \"films\"",
        },
        ..Spec::DEFAULT
    },
    Run::LongKeyspace(list),
)];

fn list(call: &mut KeyspaceCall<'_>) -> AttemptResult {
    let mut steps_left = call.steps_max();
    let expired_ms = call.turn.expired_ms();
    let mut names: Vec<Box<[u8]>> = Vec::new();
    for shard in 0..SHARDS {
        let data = call.keyspace.lock(shard);
        let table = data.database(call.database).table();
        let Some(left) = steps_left.checked_sub(table.len()) else { return Ok(Attempt::Offload) };
        steps_left = left;
        let live = table.iter().filter(|entry| !entry.is_expired(expired_ms));
        let indexes = live.filter(|entry| entry.value_type() == ValueType::VectorSet);
        names.extend(indexes.map(|entry| entry.key().into()));
    }
    names.sort_unstable();
    call.reply.array(names.len());
    names.iter().for_each(|name| call.reply.bulk(name));
    Ok(Attempt::Done)
}
