//! JSON.ARRPOP and JSON.ARRTRIM.

use super::access::{self, EDIT, MISSING_KEY, edit_selected, reply_all, reply_integers};
use super::get::{Shape, reply_value};
use crate::call::{Attempt, AttemptResult, Call, DataCommand, Run};
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, KeyFlags, KeySpec, Spec};
use crate::types::json::packed::{self, View};
use crate::types::json::path::Path;
use crate::types::json::{Change, print};

const ARRPOP: Spec = Spec {
    name: "json.arrpop",
    summary: "Removes an element of the arrays at a path of a JSON document and returns it.",
    arity: -2,
    flags: Flags::WRITE,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE))],
    syntax: "key [FORMAT format] [path [index]]",
    example: Example {
        given: &["JSON.SET user $ '{\"tags\":[\"a\",\"b\"]}'"],
        call: "JSON.ARRPOP user $.tags",
        reply: "1) \"\\\"b\\\"\"",
    },
    ..EDIT
};

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(ARRPOP, Run::Long(arrpop)),
    Command::new(
        Spec {
            name: "json.arrtrim",
            summary: "Removes all elements outside of a range of the arrays at a path and returns their lengths.",
            arity: 5,
            keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::DELETE))],
            syntax: "key path start stop",
            example: Example {
                call: "JSON.ARRTRIM user $.tags 1 1",
                reply: "1) (integer) 1",
                ..ARRPOP.example
            },
            ..ARRPOP
        },
        Run::Long(arrtrim),
    ),
];

fn arrpop(call: &mut Call<'_, '_>) -> AttemptResult {
    let args = call.args;
    let mut shape = Shape::Text;
    let mut arg = 2;
    if let (Some(word), Some(format)) = (args.get(2), args.get(3))
        && word.eq_ignore_ascii_case(b"FORMAT")
    {
        shape = Shape::parse(format, b"STRINGS")?;
        if !call.reply.is_resp3() {
            return Err("ERR FORMAT argument is not supported on RESP2".into());
        }
        arg = 4;
    }
    let default = if args.get(arg).is_some() { -1 } else { i64::MAX };
    let index = args.get(arg + 1).and_then(ember_protocol::number::parse_i64).unwrap_or(default);
    if args.get(arg).is_none_or(Path::is_legacy_text) && shape != Shape::Text {
        return Err("Legacy paths are supported only with FORMAT STRINGS".into());
    }
    if access::is_long_edit(call)? {
        return Ok(Attempt::Offload);
    }
    let path = access::path(args, arg);
    if call.keys.entry(1).is_none() {
        return Err(MISSING_KEY.into());
    }
    let path = path?;
    let quoted = path.full.clone();
    let results = edit_selected(call, &path, ("json.arrpop", &quoted, "not an array"), 0, |doc, at| {
        let View::Array(mut elements) = packed::view(doc, at) else { return Ok(None) };
        if elements.is_empty() {
            return Ok(Some((None, None)));
        }
        let index = start_index(index, elements.len());
        let child = elements.nth(index).ok_or(CommandError::IndexOutOfRange)?;
        let change = Change::Splice { removed: index..index + 1, added: &[], count: 0 };
        Ok(Some((Some(doc[child.at..child.end].to_vec()), Some(change))))
    })?;
    reply_all(call.reply, &path, &results, |reply, popped: &Option<Vec<u8>>| match popped {
        None => reply.null(),
        Some(popped) if shape != Shape::Text => reply_value(popped, 0, shape, reply),
        Some(popped) => {
            let mut text = Vec::new();
            print(popped, 0, &mut text);
            reply.bulk(&text);
        }
    });
    Ok(Attempt::Done)
}

/// Returns the index of an existing element that is nearest to `index`, which counts from the end if it is negative.
fn start_index(index: i64, len: usize) -> usize {
    let len = len as i64;
    let index = if index < 0 { len.saturating_add(index).max(0) } else { index.min(len - 1) };
    index as usize
}

fn arrtrim(call: &mut Call<'_, '_>) -> AttemptResult {
    let args = call.args;
    let (start, stop) = (access::integer(args, 3)?, access::integer(args, 4)?);
    if access::is_long_edit(call)? {
        return Ok(Attempt::Offload);
    }
    if call.keys.entry(1).is_none() {
        return Err(MISSING_KEY.into());
    }
    let path = access::path(args, 2)?;
    let quoted = path.full.clone();
    let results = edit_selected(call, &path, ("json.arrtrim", &quoted, "not an array"), 0, |doc, at| {
        let View::Array(elements) = packed::view(doc, at) else { return Ok(None) };
        let len = elements.len();
        let is_beyond = usize::try_from(start).is_ok_and(|start| start >= len);
        let (first, last) = if len == 0 { (0, 0) } else { (start_index(start, len), start_index(stop, len)) };
        let kept = if len == 0 || is_beyond || first > last { 0..0 } else { first..last + 1 };
        let change = (kept.len() < len).then(|| Change::Keep(kept.clone()));
        Ok(Some((kept.len(), change)))
    })?;
    reply_integers(call.reply, &path, &results);
    Ok(Attempt::Done)
}
