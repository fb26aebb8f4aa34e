//! FLUSHDB and FLUSHALL.

use ember_protocol::Args;

use crate::call::{CommandResult, DataCommand, KeyspaceCall, Run};
use crate::commands::arguments::is_word;
use crate::error::CommandError;
use crate::keyspace::states::capture_flush;
use crate::memory::reclaim;
use crate::spec::{Category, Command, Example, Flags, Group, Spec};
use crate::turn::Turn;

const TEMPLATE: Spec = Spec {
    since: "1.0.0",
    group: Group::Server,
    arity: -1,
    flags: Flags::WRITE,
    categories: Category::KEYSPACE.union(Category::DANGEROUS),
    tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
    syntax: "async:[ASYNC @4.0.0 | SYNC @6.2.0]",
    history: &[("4.0.0", "Option `ASYNC`."), ("6.2.0", "Option `SYNC`.")],
    ..Spec::DEFAULT
};

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(
        Spec {
            name: "flushdb",
            summary: "Removes all keys of the database.",
            complexity: "O(N) for N keys in the database.",
            example: Example { given: &["SET hello world"], call: "FLUSHDB", reply: "OK" },
            ..TEMPLATE
        },
        Run::Keyspace(|call| flush(call, Some(call.database))),
    ),
    Command::new(
        Spec {
            name: "flushall",
            summary: "Removes all keys of all databases.",
            complexity: "O(N) for N keys in all databases.",
            example: Example { given: &["SET hello world"], call: "FLUSHALL ASYNC", reply: "OK" },
            ..TEMPLATE
        },
        Run::Keyspace(|call| flush(call, None)),
    ),
];

/// Returns whether the memory must be freed in the background, according to the option or else `by_default`.
fn in_background(args: Args<'_>, by_default: bool) -> Result<bool, CommandError> {
    match args.len() {
        1 => Ok(by_default),
        2 if is_word(args, 1, "SYNC") => Ok(false),
        2 if is_word(args, 1, "ASYNC") => Ok(true),
        _ => Err(CommandError::Syntax),
    }
}

fn flush(call: &mut KeyspaceCall<'_>, database: Option<usize>) -> CommandResult {
    let in_background = in_background(call.args, call.turn.settings.frees_flushed_lazily)?;
    let Turn { notices, journal, .. } = &mut *call.turn;
    let (current, args) = (call.database, call.args);
    let databases = database.map_or(0..call.keyspace.databases(), |index| index..index + 1);
    let operation = if database.is_some() { "flushdb" } else { "flushall" };
    let (keys, taken) = call.keyspace.flush(database, notices, |shards| {
        if journal.captures() {
            capture_flush(shards, databases, operation, journal);
        }
        journal.record_now(current, args);
    });
    call.turn.counters.changes += keys;
    call.turn.notices.is_emptied |= database.is_none();
    if in_background {
        let freed = taken.iter().map(|database| database.table().len() as u64).sum();
        reclaim::later(taken, freed);
    }
    call.reply.ok();
    Ok(())
}
