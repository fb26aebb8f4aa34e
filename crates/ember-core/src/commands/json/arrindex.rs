//! JSON.ARRINDEX.

use super::access::{self, READ, missing_path, reply_all, select, type_name, unexpected};
use crate::call::{AttemptResult, Call, DataCommand, Run};
use crate::error::CommandError;
use crate::spec::{Command, Example, Spec};
use crate::types::json::packed::{self, Numbers, View};
use crate::types::json::parse;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "json.arrindex",
        summary: "Returns the index of the first equal value in the arrays at a path of a JSON document, or -1.",
        arity: -4,
        syntax: "key path value [start [stop]]",
        example: Example {
            given: &["JSON.SET user $ '{\"tags\":[\"a\",\"b\"]}'"],
            call: "JSON.ARRINDEX user $.tags '\"b\"'",
            reply: "1) (integer) 1",
        },
        ..READ
    },
    Run::Long(arrindex),
)];

fn arrindex(call: &mut Call<'_, '_>) -> AttemptResult {
    if call.args.len() > 6 {
        return Err(CommandError::WrongArity("json.arrindex".into()));
    }
    let bound = |arg| if call.args.len() > arg { access::integer(call.args, arg) } else { Ok(0) };
    let (start, stop) = (bound(4)?, bound(5)?);
    let wanted = parse(call.args.at(3)).map_err(|error| CommandError::from(format!("ERR {error}")))?;
    access::read(call, 1, |json, args, reply| {
        let Some(json) = json else { return Err(missing_path(args.at(2))) };
        let path = access::path(args, 2)?;
        let doc = json.packed();
        let index_in = |at| {
            let View::Array(elements) = packed::view(doc, at) else { return None };
            let range = search_range(start, stop, elements.len());
            let mut in_range = elements.enumerate().take(range.1).skip(range.0);
            let found = in_range
                .find(|(_, child)| packed::is_equal((doc, child.at), (&wanted.packed, 0), Numbers::ByKind));
            Some(found.map_or(-1, |(index, _)| index as i64))
        };
        let found = select(json, &path)?;
        let results: Vec<Option<i64>> = if path.is_legacy {
            let &first = found.first().ok_or_else(|| missing_path(&path.full))?;
            let index =
                index_in(first).ok_or_else(|| unexpected("array", type_name(packed::view(doc, first))))?;
            vec![Some(index)]
        } else {
            found.into_iter().map(index_in).collect()
        };
        reply_all(reply, &path, &results, |reply, &index| reply.integer(index));
        Ok(())
    })
}

/// Returns the range of indexes to be searched, from the first to the one after the last; a `stop` of 0 means the end.
fn search_range(start: i64, stop: i64, len: usize) -> (usize, usize) {
    let len = len as i64;
    let start = if start < 0 { len.saturating_add(start).max(0) } else { start.min(len - 1).max(0) };
    let stop = match stop {
        0 => len,
        stop if stop < 0 => len.saturating_add(stop).max(0),
        stop => stop.min(len),
    };
    (start as usize, stop as usize)
}
