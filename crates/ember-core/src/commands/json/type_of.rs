//! JSON.TYPE.

use super::access::{self, READ, select, type_name};
use crate::call::{AttemptResult, Call, DataCommand, Run};
use crate::error::CommandError;
use crate::spec::{Command, Example, Spec};
use crate::types::json::packed;
use crate::types::json::path::Path;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "json.type",
        summary: "Returns the types of the values at a path of a JSON document.",
        arity: -2,
        syntax: "key [path]",
        example: Example {
            given: &["JSON.SET user $ '{\"name\":\"Ann\",\"age\":30}'"],
            call: "JSON.TYPE user $.*",
            reply: "1) \"string\"\n2) \"integer\"",
        },
        ..READ
    },
    Run::Long(type_of),
)];

fn type_of(call: &mut Call<'_, '_>) -> AttemptResult {
    access::read(call, 1, |json, args, reply| {
        let types = match json {
            None => None,
            Some(json) => {
                // An invalid legacy path is treated like a path that selects nothing.
                let selected = access::path(args, 2).and_then(|path| select(json, &path));
                let is_legacy = args.get(2).is_none_or(Path::is_legacy_text);
                match selected {
                    Err(_) if is_legacy => None,
                    Err(error) => return Err::<(), CommandError>(error),
                    Ok(found) => {
                        let names = found.iter().map(|&at| type_name(packed::view(json.packed(), at)));
                        Some((names.collect::<Vec<_>>(), is_legacy))
                    }
                }
            }
        };
        if reply.is_resp3() {
            reply.array(1);
        }
        match types {
            Some((names, false)) => {
                reply.array(names.len());
                names.iter().for_each(|name| reply.bulk(name.as_bytes()));
            }
            Some((names, true)) if !names.is_empty() => reply.bulk(names[0].as_bytes()),
            _ => reply.null(),
        }
        Ok(())
    })
}
