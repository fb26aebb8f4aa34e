//! VECTOR.GET.

use super::{NO_INDEX, reply};
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::commands::arguments::is_word;
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::vector_set::VectorSet;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "vector.get",
        summary: "Returns an element of an index with its payload and, on request, its vector.",
        since: "0.1.0",
        group: Group::VectorSet,
        complexity: "O(log N + D) for N elements and D dimensions.",
        arity: -3,
        flags: Flags::READONLY.union(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
        syntax: "index id [WITHVECTOR]",
        example: Example {
            given: &["VECTOR.CREATE films DIM 2", "VECTOR.ADD films alien [0.9,0.1] '{\"year\":1979}'"],
            call: "VECTOR.GET films alien",
            reply: "1) \"id\"\n2) \"alien\"\n3) \"payload\"\n4) \"{\\\"year\\\":1979}\"",
        },
        ..Spec::DEFAULT
    },
    Run::Keys(get),
)];

fn get(call: &mut Call<'_, '_>) -> CommandResult {
    let args = call.args;
    let with_vector = args.len() == 4 && (is_word(args, 3, "WITHVECTOR") || is_word(args, 3, "WITHVECTORS"));
    if args.len() > 3 && !with_vector {
        return Err(CommandError::Syntax);
    }
    let set = call.keys.read_value::<VectorSet>(1)?.ok_or(NO_INDEX)?;
    let Some(slot) = set.find(args.at(2)) else {
        call.reply.null();
        return Ok(());
    };
    call.reply.map(if with_vector { 3 } else { 2 });
    call.reply.bulk(b"id");
    call.reply.bulk(args.at(2));
    call.reply.bulk(b"payload");
    match set.element(slot).attributes() {
        Some(payload) => call.reply.bulk(payload),
        None => call.reply.null(),
    }
    if with_vector {
        call.reply.bulk(b"vector");
        reply::write_vector(&set.vector(slot), call.reply);
    }
    Ok(())
}
