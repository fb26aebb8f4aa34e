//! GET.

use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::keyspace::entry::{EntryRef, StringValue};
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use ember_protocol::Reply;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "get",
        summary: "Returns the string value of a key.",
        since: "1.0.0",
        group: Group::String,
        complexity: "O(1)",
        arity: 2,
        flags: Flags::READONLY.union(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
        syntax: "key",
        example: Example { given: &["SET hello world"], call: "GET hello", reply: "\"world\"" },
        ..Spec::DEFAULT
    },
    Run::Keys(get),
)];

fn get(call: &mut Call<'_, '_>) -> CommandResult {
    let entry = call.keys.read(1);
    reply_value(call.reply, entry);
    Ok(())
}

/// Writes a string entry's value as a bulk string, or null.
pub(crate) fn reply_value(reply: &mut Reply, entry: Option<EntryRef<'_>>) {
    match entry.map(EntryRef::string) {
        None => reply.null(),
        Some(StringValue::Inline(bytes)) => reply.bulk(bytes),
        Some(StringValue::Int(number)) => reply.bulk_integer(number),
        Some(StringValue::Large(large)) => reply.bulk_shared(&large.share()),
    }
}
