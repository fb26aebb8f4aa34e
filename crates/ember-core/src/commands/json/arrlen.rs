//! JSON.ARRLEN.

use super::access::{
    self, READ, missing_path, missing_path_or, reply_integers, reply_to_missing_key, select,
};
use crate::call::{AttemptResult, Call, DataCommand, Run};
use crate::spec::{Command, Example, Spec};
use crate::types::json::packed::{self, View};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "json.arrlen",
        summary: "Returns the lengths of the arrays at a path of a JSON document.",
        arity: -2,
        syntax: "key [path]",
        example: Example {
            given: &["JSON.SET user $ '{\"tags\":[\"a\",\"b\"]}'"],
            call: "JSON.ARRLEN user $.tags",
            reply: "1) (integer) 2",
        },
        ..READ
    },
    Run::Long(arrlen),
)];

fn arrlen(call: &mut Call<'_, '_>) -> AttemptResult {
    access::read(call, 1, |json, args, reply| {
        let Some(json) = json else { return reply_to_missing_key(args.get(2), reply) };
        let path = access::path(args, 2)?;
        let mut found = select(json, &path)?;
        if path.is_legacy {
            found.truncate(1);
            if found.is_empty() {
                return Err(missing_path(path.original));
            }
        }
        let len_of = |at| match packed::view(json.packed(), at) {
            View::Array(elements) => Some(elements.len()),
            _ => None,
        };
        let lens: Vec<Option<usize>> = found.into_iter().map(len_of).collect();
        if path.is_legacy && lens[0].is_none() {
            return Err(missing_path_or(path.original, "not an array"));
        }
        reply_integers(reply, &path, &lens);
        Ok(())
    })
}
