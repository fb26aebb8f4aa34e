//! JSON.RESP.

use ember_protocol::Reply;

use super::access::{self, READ, check_reply, missing_path, select};
use crate::call::{AttemptResult, Call, DataCommand, Run};
use crate::spec::{Command, Example, Spec};
use crate::types::json::Number;
use crate::types::json::packed::{self, View};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "json.resp",
        summary: "Returns the values at a path of a JSON document as nested replies.",
        arity: -2,
        syntax: "key [path]",
        example: Example {
            given: &["JSON.SET user $ '{\"name\":\"Ann\"}'"],
            call: "JSON.RESP user",
            reply: "1) {\n2) \"name\"\n3) \"Ann\"",
        },
        ..READ
    },
    Run::Long(resp),
)];

fn resp(call: &mut Call<'_, '_>) -> AttemptResult {
    access::read(call, 1, |json, args, reply| {
        let Some(json) = json else {
            reply.null();
            return Ok(());
        };
        let path = access::path(args, 2)?;
        let mut found = select(json, &path)?;
        check_reply(json, &found)?;
        if path.is_legacy {
            found.truncate(1);
            if found.is_empty() {
                return Err(missing_path(&path.full));
            }
        } else {
            reply.array(found.len());
        }
        found.iter().for_each(|&at| reply_nested(json.packed(), at, reply));
        Ok(())
    })
}

fn reply_nested(doc: &[u8], at: usize, reply: &mut Reply) {
    match packed::view(doc, at) {
        View::Null => reply.null(),
        View::Bool(value) => reply.simple(if value { "true" } else { "false" }),
        View::Number(number) => reply_number(number, reply),
        View::String(text) => reply.bulk(text),
        View::Array(elements) => {
            reply.array(1 + elements.len());
            reply.simple("[");
            elements.for_each(|child| reply_nested(doc, child.at, reply));
        }
        View::Object(members) => {
            reply.array(1 + 2 * members.len());
            reply.simple("{");
            members.for_each(|child| {
                reply.bulk(child.name.unwrap_or_default());
                reply_nested(doc, child.at, reply);
            });
        }
    }
}

/// Replies with a number.
pub(super) fn reply_number(number: Number, reply: &mut Reply) {
    match number {
        Number::Int(number) => reply.integer(number),
        Number::Uint(_) | Number::Double(_) => reply.double(number.as_f64()),
    }
}
