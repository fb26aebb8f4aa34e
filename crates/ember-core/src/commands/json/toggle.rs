//! JSON.TOGGLE.

use super::access::{self, EDIT, MISSING_KEY, edit_selected, reply_all};
use crate::call::{Attempt, AttemptResult, Call, DataCommand, Run};
use crate::spec::{Command, Example, Spec};
use crate::types::json::Change;
use crate::types::json::packed::{self, View};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "json.toggle",
        summary: "Inverts the booleans at a path of a JSON document and returns the new values.",
        arity: 3,
        syntax: "key path",
        example: Example {
            given: &["JSON.SET user $ '{\"active\":true}'"],
            call: "JSON.TOGGLE user $.active",
            reply: "1) (integer) 0",
        },
        ..EDIT
    },
    Run::Long(toggle),
)];

fn toggle(call: &mut Call<'_, '_>) -> AttemptResult {
    if access::is_long_edit(call)? {
        return Ok(Attempt::Offload);
    }
    if call.keys.entry(1).is_none() {
        return Err(MISSING_KEY.into());
    }
    let path = access::path(call.args, 2)?;
    let quoted = path.full.clone();
    let results = edit_selected(call, &path, ("json.toggle", &quoted, "not a bool"), 0, |doc, at| {
        let View::Bool(value) = packed::view(doc, at) else { return Ok(None) };
        let mut bytes = Vec::with_capacity(1);
        packed::push_bool(&mut bytes, !value);
        Ok(Some((!value, Some(Change::Replace(bytes.into())))))
    })?;
    reply_all(call.reply, &path, &results, |reply, &value| {
        if path.is_legacy {
            reply.bulk(if value { b"true" } else { b"false" });
        } else {
            reply.integer(i64::from(value));
        }
    });
    Ok(Attempt::Done)
}
