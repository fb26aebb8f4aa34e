//! SWAPDB.

use ember_protocol::Args;

use crate::call::{CommandResult, DataCommand, KeyspaceCall, Run};
use crate::commands::arguments::{database_in_range, integer};
use crate::error::CommandError;
use crate::spec::{Category, Command, Example, Flags, Group, Spec};
use crate::turn::Turn;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "swapdb",
        summary: "Swaps two databases atomically for all connections.",
        since: "4.0.0",
        group: Group::Server,
        complexity: "O(S) for S shards, and O(N) for N clients that watch or wait for keys of the two.",
        arity: 3,
        flags: Flags::WRITE.union(Flags::FAST),
        categories: Category::KEYSPACE.union(Category::DANGEROUS),
        databases_of: Some(|_| vec![1, 2]),
        syntax: "index1 index2",
        example: Example { given: &[], call: "SWAPDB 0 1", reply: "OK" },
        ..Spec::DEFAULT
    },
    Run::Keyspace(swapdb),
)];

fn number(args: Args<'_>, arg: usize, error: &'static str) -> Result<i32, CommandError> {
    integer(args, arg).ok().and_then(|number| i32::try_from(number).ok()).ok_or_else(|| error.into())
}

fn swapdb(call: &mut KeyspaceCall<'_>) -> CommandResult {
    if call.keyspace.has_slots() {
        return Err("ERR SWAPDB is not allowed in cluster mode".into());
    }
    let one = number(call.args, 1, "ERR invalid first DB index")?;
    let other = number(call.args, 2, "ERR invalid second DB index")?;
    let databases = call.keyspace.databases();
    let (one, other) = (database_in_range(one, databases)?, database_in_range(other, databases)?);
    if one != other {
        let (current, args) = (call.database, call.args);
        let record = |turn: &mut Turn| {
            turn.journal.capture_swap(one, other);
            turn.journal.record_now(current, args);
        };
        call.keyspace.swap_databases(one, other, call.turn, record);
    }
    call.turn.counters.changes += 1;
    call.reply.ok();
    Ok(())
}
