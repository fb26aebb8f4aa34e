//! JSON.STRAPPEND and JSON.STRLEN.

use super::access::{
    self, EDIT, MISSING_KEY, READ, edit_selected, missing_path, reply_integers, reply_to_missing_key, select,
    type_name, unexpected,
};
use crate::call::{Attempt, AttemptResult, Call, DataCommand, Run};
use crate::error::CommandError;
use crate::spec::{Command, Example, Spec};
use crate::types::json::packed::{self, View};
use crate::types::json::path::Path;
use crate::types::json::{Change, parse};

const GIVEN: &[&str] = &["JSON.SET user $ '{\"name\":\"Ann\"}'"];

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(
        Spec {
            name: "json.strappend",
            summary: "Appends to the strings at a path of a JSON document and returns their lengths.",
            arity: -3,
            syntax: "key [path] value",
            example: Example {
                given: GIVEN,
                call: "JSON.STRAPPEND user $.name '\"a\"'",
                reply: "1) (integer) 4",
            },
            ..EDIT
        },
        Run::Long(strappend),
    ),
    Command::new(
        Spec {
            name: "json.strlen",
            summary: "Returns the lengths of the strings at a path of a JSON document.",
            arity: -2,
            syntax: "key [path]",
            example: Example { given: GIVEN, call: "JSON.STRLEN user $.name", reply: "1) (integer) 3" },
            ..READ
        },
        Run::Long(strlen),
    ),
];

fn strappend(call: &mut Call<'_, '_>) -> AttemptResult {
    if access::is_long_edit(call)? {
        return Ok(Attempt::Offload);
    }
    if call.keys.entry(1).is_none() {
        return Err(MISSING_KEY.into());
    }
    let args = call.args;
    let (path, value) = match args.get(3) {
        Some(value) => (access::path(args, 2)?, value),
        None => (Path::parse(b".")?, args.at(2)),
    };
    let mut parsed = None;
    let quoted = path.full.clone();
    let names = ("json.strappend", &quoted[..], "not a string");
    let results = edit_selected(call, &path, names, 0, |doc, at| {
        let View::String(text) = packed::view(doc, at) else { return Ok(None) };
        if parsed.is_none() {
            parsed = Some(parse(value).map_err(|error| CommandError::from(format!("ERR {error}")))?);
        }
        let added = parsed.as_ref().map(|parsed| packed::view(&parsed.packed, 0));
        let Some(View::String(added)) = added else {
            return Err(unexpected("string", &String::from_utf8_lossy(value)));
        };
        let whole = [text, added].concat();
        let mut bytes = Vec::with_capacity(whole.len());
        packed::push_string(&mut bytes, &whole);
        Ok(Some((whole.len(), Some(Change::Replace(bytes.into())))))
    })?;
    reply_integers(call.reply, &path, &results);
    Ok(Attempt::Done)
}

fn strlen(call: &mut Call<'_, '_>) -> AttemptResult {
    access::read(call, 1, |json, args, reply| {
        let Some(json) = json else { return reply_to_missing_key(args.get(2), reply) };
        let path = access::path(args, 2)?;
        let found = select(json, &path)?;
        let len_of = |at| match packed::view(json.packed(), at) {
            View::String(text) => Ok(text.len()),
            other => Err(unexpected("string", type_name(other))),
        };
        if path.is_legacy {
            let &first = found.first().ok_or_else(|| missing_path(&path.full))?;
            reply.integer(len_of(first)? as i64);
            return Ok(());
        }
        let lens: Vec<Option<usize>> = found.into_iter().map(|at| len_of(at).ok()).collect();
        reply_integers(reply, &path, &lens);
        Ok(())
    })
}
