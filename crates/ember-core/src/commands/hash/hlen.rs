//! HLEN.

use super::access;
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::Collection;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "hlen",
        summary: "Returns the number of fields of a hash.",
        since: "2.0.0",
        group: Group::Hash,
        arity: 2,
        flags: Flags::READONLY.union(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RO)],
        syntax: "key",
        example: Example { given: &["HSET user name Ann age 30"], call: "HLEN user", reply: "(integer) 2" },
        ..Spec::DEFAULT
    },
    Run::Keys(hlen),
)];

/// Replies with the number of fields, including expired fields that were not removed yet, as Redis does: excluding them
/// would be O(fields).
fn hlen(call: &mut Call<'_, '_>) -> CommandResult {
    access::read(call, |hash, reply, _| reply.integer(hash.map_or(0, |hash| hash.len() as i64)))
}
