//! JSON.CLEAR.

use super::access::{self, EDIT, outermost, select};
use crate::call::{Attempt, AttemptResult, Call, DataCommand, Run};
use crate::keys::Edited;
use crate::spec::{Command, Example, Flags, Spec};
use crate::types::json::packed::{self, View};
use crate::types::json::{Change, Number, parse};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "json.clear",
        summary: "Empties the arrays and objects at a path and sets numbers to 0; returns the number of changed values.",
        arity: -2,
        flags: Flags::WRITE,
        syntax: "key [path]",
        example: Example {
            given: &["JSON.SET user $ '{\"tags\":[1,2],\"age\":30}'"],
            call: "JSON.CLEAR user $.*",
            reply: "(integer) 2",
        },
        ..EDIT
    },
    Run::Long(clear),
)];

fn clear(call: &mut Call<'_, '_>) -> AttemptResult {
    if access::is_long_edit(call)? {
        return Ok(Attempt::Offload);
    }
    let args = call.args;
    let cleared = access::edit(call, 1, "json.clear", |json| {
        let path = access::path(args, 2)?;
        let doc = json.packed();
        let is_clearable = |&at: &usize| match packed::view(doc, at) {
            View::Array(children) | View::Object(children) => !children.is_empty(),
            View::Number(number) => number.compare(Number::Int(0)).is_ne(),
            _ => false,
        };
        let found = select(json, &path)?.into_iter().filter(is_clearable).collect();
        let found = outermost(doc, found);
        let zero = parse(b"0")?.packed;
        let change = |at| match packed::view(doc, at) {
            View::Number(_) => (at, Change::Replace(zero.as_slice().into())),
            _ => (at, Change::Keep(0..0)),
        };
        let changes: Vec<_> = found.iter().map(|&at| change(at)).collect();
        if !changes.is_empty() {
            json.apply(changes, 0)?;
        }
        Ok(Edited { is_change: !found.is_empty(), result: found.len() })
    })?;
    call.reply.integer(cleared as i64);
    Ok(Attempt::Done)
}
