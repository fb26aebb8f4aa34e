//! JSON.DEBUG MEMORY and HELP.

use super::access::{self, READ, missing_path, select};
use crate::call::{AttemptResult, Call, CommandResult, DataCommand, Run};
use crate::memory::size_class;
use crate::spec::{Command, Example, Flags, KeyFlags, KeySpec, Spec};
use crate::types::json::path::Path;
use crate::types::json::{Json, packed};
use crate::types::{Aggregate, Collection};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::container(
    Spec {
        name: "json.debug",
        summary: "Contains subcommands that describe how JSON documents are stored.",
        complexity: "Depends on the subcommand.",
        arity: -2,
        flags: Flags::empty(),
        keys: &[],
        ..READ
    },
    Run::Container,
    SUBCOMMANDS,
)];

const SUBCOMMANDS: &[DataCommand] = &[
    Command::new(
        Spec {
            name: "help",
            summary: "Describes the subcommands.",
            arity: 2,
            flags: Flags::LOADING.union(Flags::STALE),
            keys: &[],
            complexity: "O(1)",
            example: Example {
                given: &[],
                call: "JSON.DEBUG HELP",
                reply: "1) \"MEMORY <key> [path] - reports memory usage\"\n2) \"HELP                - this message\"",
            },
            ..READ
        },
        Run::Keys(help),
    ),
    Command::new(
        Spec {
            name: "memory",
            summary: "Returns the bytes of memory that the values at a path of a JSON document take.",
            arity: -3,
            keys: &[KeySpec::one(2, KeyFlags::RO)],
            tips: &["nondeterministic_output"],
            syntax: "key [path]",
            example: Example {
                given: &["JSON.SET user $ '{\"name\":\"Ann\"}'"],
                call: "JSON.DEBUG MEMORY user $.name",
                reply: "1) (integer) 4",
            },
            ..READ
        },
        Run::Long(memory),
    ),
];

fn help(call: &mut Call<'_, '_>) -> CommandResult {
    const HELP: [&str; 2] =
        ["MEMORY <key> [path] - reports memory usage", "HELP                - this message"];
    call.reply.array(HELP.len());
    HELP.iter().for_each(|line| call.reply.bulk(line.as_bytes()));
    Ok(())
}

fn memory(call: &mut Call<'_, '_>) -> AttemptResult {
    access::read(call, 2, |json, args, reply| {
        let is_legacy = args.get(3).is_none_or(Path::is_legacy_text);
        let Some(json) = json else {
            if is_legacy {
                reply.integer(0);
            } else {
                reply.array(0);
            }
            return Ok(());
        };
        let path = access::path(args, 3)?;
        let mut found = select(json, &path)?;
        if is_legacy {
            found.truncate(1);
            if found.is_empty() {
                return Err(missing_path(&path.full));
            }
        } else {
            reply.array(found.len());
        }
        found.iter().for_each(|&at| reply.integer(bytes_of(json, at) as i64));
        Ok(())
    })
}

/// Returns the bytes of a value: for the whole document, those of its allocations.
fn bytes_of(json: &Json, at: usize) -> usize {
    match at {
        0 => size_class(size_of::<Aggregate>()) + json.memory_bytes(),
        _ => packed::end(json.packed(), at) - at,
    }
}
