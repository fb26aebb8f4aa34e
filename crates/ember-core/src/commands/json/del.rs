//! JSON.DEL and JSON.FORGET.

use super::access::{self, EDIT, other_type, outermost, select};
use crate::call::{Attempt, AttemptResult, Call, DataCommand, Run};
use crate::effects::events::Event;
use crate::keys::Edited;
use crate::spec::{Command, Example, Flags, KeyFlags, KeySpec, Spec};
use crate::types::json::{Change, Json};

const DEL: Spec = Spec {
    name: "json.del",
    summary: "Removes the values at a path of a JSON document, or the document; returns the number of values.",
    arity: -2,
    flags: Flags::WRITE,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::DELETE))],
    syntax: "key [path]",
    example: Example {
        given: &["JSON.SET user $ '{\"name\":\"Ann\",\"age\":30}'"],
        call: "JSON.DEL user $.age",
        reply: "(integer) 1",
    },
    ..EDIT
};

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(DEL, Run::Long(del)),
    Command::new(
        Spec {
            name: "json.forget",
            summary: "Removes the values at a path of a JSON document, like JSON.DEL.",
            example: Example { call: "JSON.FORGET user $.age", ..DEL.example },
            ..DEL
        },
        Run::Long(del),
    ),
];

fn del(call: &mut Call<'_, '_>) -> AttemptResult {
    if call.keys.key(1).value::<Json>().map_err(other_type)?.is_none() {
        call.reply.integer(0);
        return Ok(Attempt::Done);
    }
    let path = access::path(call.args, 2)?;
    let event = "json.del";
    if path.is_root() {
        let mut key = call.keys.key(1);
        drop(key.remove());
        key.notify(Event::module(event));
        call.reply.integer(1);
        return Ok(Attempt::Done);
    }
    if access::is_long_edit(call)? {
        return Ok(Attempt::Offload);
    }
    let removed = access::edit(call, 1, event, |json| {
        let found = outermost(json.packed(), select(json, &path)?);
        let removed = found.len();
        if removed > 0 {
            json.apply(found.into_iter().map(|at| (at, Change::Remove)).collect(), 0)?;
        }
        Ok(Edited { is_change: removed > 0, result: removed })
    })?;
    call.reply.integer(removed as i64);
    Ok(Attempt::Done)
}
