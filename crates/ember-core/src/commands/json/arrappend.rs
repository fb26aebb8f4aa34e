//! JSON.ARRAPPEND and JSON.ARRINSERT.

use std::ops::Range;

use super::access::{self, EDIT, MISSING_KEY, edit_selected, reply_integers};
use crate::call::{Attempt, AttemptResult, Call, DataCommand, Run};
use crate::error::CommandError;
use crate::spec::{Command, Example, KeyFlags, KeySpec, Spec};
use crate::types::json::packed::{self, View};
use crate::types::json::path::Path;
use crate::types::json::{Change, parse};

const GIVEN: &[&str] = &["JSON.SET user $ '{\"tags\":[\"a\",\"b\"]}'"];

const ARRAPPEND: Spec = Spec {
    name: "json.arrappend",
    summary: "Appends values to the arrays at a path of a JSON document and returns their lengths.",
    arity: -4,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::INSERT))],
    syntax: "key path value [value ...]",
    example: Example { given: GIVEN, call: "JSON.ARRAPPEND user $.tags '\"c\"'", reply: "1) (integer) 3" },
    ..EDIT
};

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(ARRAPPEND, Run::Long(arrappend)),
    Command::new(
        Spec {
            name: "json.arrinsert",
            summary: "Inserts values into the arrays at a path of a JSON document and returns their lengths.",
            arity: -5,
            syntax: "key path index value [value ...]",
            example: Example { call: "JSON.ARRINSERT user $.tags 0 '\"c\"'", ..ARRAPPEND.example },
            ..ARRAPPEND
        },
        Run::Long(arrinsert),
    ),
];

fn arrappend(call: &mut Call<'_, '_>) -> AttemptResult {
    insert(call, 3, ("json.arrappend", |path| path.original), |_| Ok(usize::MAX..usize::MAX))
}

fn arrinsert(call: &mut Call<'_, '_>) -> AttemptResult {
    let index = access::integer(call.args, 3)?;
    insert(call, 4, ("json.arrinsert", |path| &path.full), |len| {
        let index = if index < 0 { index.saturating_add(len as i64) } else { index };
        let index = usize::try_from(index).ok().filter(|&index| index <= len);
        index.map(|index| index..index).ok_or("ERR index out of bounds".into())
    })
}

/// Inserts the values from argument `first` on into all selected arrays, at the position that `place` returns for the
/// length of an array. `names` are the event, and the path that errors quote.
fn insert(
    call: &mut Call<'_, '_>,
    first: usize,
    names: (&'static str, for<'p> fn(&'p Path<'_>) -> &'p [u8]),
    place: impl Fn(usize) -> Result<Range<usize>, CommandError>,
) -> AttemptResult {
    let args = call.args;
    let mut added = Vec::new();
    let mut depth = 0;
    for arg in first..args.len() {
        let parsed = parse(args.at(arg))?;
        added.extend_from_slice(&parsed.packed);
        depth = depth.max(parsed.depth);
    }
    if access::is_long_edit(call)? {
        return Ok(Attempt::Offload);
    }
    if call.keys.entry(1).is_none() {
        return Err(MISSING_KEY.into());
    }
    let path = access::path(args, 2)?;
    let count = args.len() - first;
    let results = edit_selected(call, &path, (names.0, names.1(&path), "not an array"), depth, |doc, at| {
        let View::Array(elements) = packed::view(doc, at) else { return Ok(None) };
        let len = elements.len();
        let change = Change::Splice { removed: place(len)?, added: &added, count };
        Ok(Some((len + count, Some(change))))
    })?;
    reply_integers(call.reply, &path, &results);
    Ok(Attempt::Done)
}
