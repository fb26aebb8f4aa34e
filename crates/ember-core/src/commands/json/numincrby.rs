//! JSON.NUMINCRBY and JSON.NUMMULTBY.

use super::access::{self, EDIT, edit_selected};
use super::resp::reply_number;
use crate::call::{Attempt, AttemptResult, Call, DataCommand, Run};
use crate::error::CommandError;
use crate::spec::{Command, Example, Spec};
use crate::types::json::packed::{self, View};
use crate::types::json::{Change, Format, Number, parse_number, print_list, print_number};

const NUMINCRBY: Spec = Spec {
    name: "json.numincrby",
    summary: "Adds to the numbers at a path of a JSON document and returns the sums.",
    arity: 4,
    syntax: "key path value",
    example: Example {
        given: &["JSON.SET user $ '{\"age\":30}'"],
        call: "JSON.NUMINCRBY user $.age 2",
        reply: "\"[32]\"",
    },
    ..EDIT
};

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(NUMINCRBY, Run::Long(|call| combine(call, "json.numincrby", Number::plus))),
    Command::new(
        Spec {
            name: "json.nummultby",
            summary: "Multiplies the numbers at a path of a JSON document and returns the products.",
            example: Example { call: "JSON.NUMMULTBY user $.age 2", reply: "\"[60]\"", ..NUMINCRBY.example },
            ..NUMINCRBY
        },
        Run::Long(|call| combine(call, "json.nummultby", Number::times)),
    ),
];

fn combine(
    call: &mut Call<'_, '_>,
    event: &'static str,
    operation: fn(Number, Number) -> Option<Number>,
) -> AttemptResult {
    if access::is_long_edit(call)? {
        return Ok(Attempt::Offload);
    }
    let args = call.args;
    let path = access::path(args, 2);
    if call.keys.entry(1).is_none() {
        return Err(access::MISSING_KEY.into());
    }
    let mut path = path?;
    let (is_resp3, is_legacy) = (call.reply.is_resp3(), path.is_legacy);
    // In RESP3, legacy paths are treated like JSONPaths.
    path.is_legacy &= !is_resp3;
    let mut operand = None;
    let quoted = path.full.clone();
    let results =
        edit_selected(call, &path, (event, &quoted, "does not contains a number"), 0, |doc, at| {
            let View::Number(number) = packed::view(doc, at) else { return Ok(None) };
            let other = match operand {
                Some(operand) => operand,
                None => *operand.insert(parse_operand(args.at(3))?),
            };
            let result = operation(number, other).ok_or("ERR result is not a number")?;
            let mut bytes = Vec::with_capacity(packed::NUMBER_BYTES_MAX);
            packed::push_number(&mut bytes, result);
            Ok(Some((result, Some(Change::Replace(bytes.into())))))
        })?;
    if is_resp3 {
        call.reply.array(results.len());
        for result in results {
            match result {
                Some(number) => reply_number(number, call.reply),
                None => call.reply.null(),
            }
        }
        return Ok(Attempt::Done);
    }
    let mut text = Vec::new();
    let print = |result: &Option<Number>, text: &mut Vec<u8>| match result {
        Some(number) => print_number(*number, text),
        None => text.extend_from_slice(b"null"),
    };
    if is_legacy {
        results.iter().for_each(|result| print(result, &mut text));
    } else {
        print_list(&results, [b'[', b']'], &mut text, &Format::default(), 0, print);
    }
    call.reply.bulk(&text);
    Ok(Attempt::Done)
}

fn parse_operand(text: &[u8]) -> Result<Number, CommandError> {
    let number = parse_number(text).map_err(|error| CommandError::from(format!("ERR {error}")))?;
    number.ok_or("bad input number".into())
}
