//! KEYS.

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
        summary: "Returns the keys that match a glob pattern, up to a limit. Each shard is read at one moment; \
                  the shards are read one after the other.",
        since: "1.0.0",
        group: Group::Generic,
        complexity: "O(N) for N keys in the database.",
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
        // What Redis, which has no limit here, says of more than a pattern.
        _ => Err(CommandError::WrongArity("keys".into())),
    }
}

fn keys(call: &mut KeyspaceCall<'_>) -> AttemptResult {
    let limit = limit(call.args)?;
    if call.keyspace.len(call.database) > call.steps_max() {
        return Ok(Attempt::Offload);
    }
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
        let live = data.database(call.database).table().iter().filter(|entry| !entry.is_expired(expired_ms));
        let matching = live.filter(|entry| all || glob::matches(pattern, entry.key(), Case::Sensitive));
        for entry in matching.take(limit - count) {
            call.reply.bulk(entry.key());
            count += 1;
        }
    }
    call.reply.insert_array(mark, count);
    Ok(Attempt::Done)
}
