//! DBSIZE.

use crate::call::{CommandResult, DataCommand, KeyspaceCall, Run};
use crate::spec::{Category, Command, Example, Flags, Group, Spec};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "dbsize",
        summary: "Returns the number of keys in the database, including expired keys that are not removed yet.",
        since: "1.0.0",
        group: Group::Server,
        complexity: "O(1)",
        arity: 1,
        flags: Flags::READONLY.union(Flags::FAST),
        categories: Category::KEYSPACE,
        tips: &["request_policy:all_shards", "response_policy:agg_sum"],
        example: Example { given: &["SET hello world"], call: "DBSIZE", reply: "(integer) 1" },
        ..Spec::DEFAULT
    },
    Run::Keyspace(dbsize),
)];

fn dbsize(call: &mut KeyspaceCall<'_>) -> CommandResult {
    call.reply.integer(call.keyspace.len(call.database) as i64);
    Ok(())
}
