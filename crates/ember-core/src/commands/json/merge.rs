//! JSON.MERGE.

use ember_protocol::Args;

use super::access::{self, EDIT, other_type, select};
use super::set;
use crate::call::{DataCommand, Locked, Run};
use crate::effects::events::Event;
use crate::error::CommandError;
use crate::keys::Edited;
use crate::spec::{Command, Example, Spec};
use crate::types::json::path::Path;
use crate::types::json::{Change, Json, Parsed, parse};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "json.merge",
        summary: "Merges a JSON value into the values at a path; null removes members.",
        complexity: "O(M + N) for a value of M bytes and a document of N bytes.",
        arity: -4,
        syntax: "key path value [FORMAT format]",
        example: Example {
            given: &["JSON.SET user $ '{\"name\":\"Ann\",\"age\":30}'"],
            call: "JSON.MERGE user $ '{\"age\":null,\"city\":\"Bonn\"}'",
            reply: "OK",
        },
        ..EDIT
    },
    Run::Prepared(merge),
)];

fn merge(args: Args<'_>) -> Result<Locked<'_>, CommandError> {
    set::options(args, false)?;
    let parsed = parse(args.at(3));
    Ok(Box::new(move |call| {
        let exists = call.keys.key(1).value::<Json>().map_err(other_type)?.is_some();
        let parsed = parsed?;
        let path = Path::parse(call.args.at(2));
        let is_changed = if exists {
            let path = path?;
            access::edit(call, 1, "json.merge", |json| {
                let is_change = merge_in(json, &path, &parsed)?;
                Ok(Edited { is_change, result: is_change })
            })?
        } else if path.is_ok_and(|path| path.is_root()) {
            let mut key = call.keys.key(1);
            key.edit_or_create(Event::module("json.merge"), |json: &mut Json| {
                *json = Json::new(parsed.packed)
            })?;
            true
        } else {
            return Err(set::NOT_AT_ROOT.into());
        };
        if is_changed {
            call.reply.ok()
        } else {
            call.reply.null()
        }
        Ok(())
    }))
}

fn merge_in(json: &mut Json, path: &Path<'_>, parsed: &Parsed) -> Result<bool, CommandError> {
    let found = select(json, path)?;
    if found.is_empty() {
        return set::add_in(json, path, parsed);
    }
    json.apply(found.into_iter().map(|at| (at, Change::Merge(&parsed.packed))).collect(), parsed.depth)?;
    Ok(true)
}
