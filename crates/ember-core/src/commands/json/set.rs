//! JSON.SET and JSON.MSET.

use ember_protocol::Args;

use super::access::{self, EDIT, other_type, select, select_segments};
use crate::call::{Call, CommandResult, DataCommand, Locked, Run};
use crate::effects::events::Event;
use crate::error::CommandError;
use crate::keys::Edited;
use crate::spec::{Command, Example, KeyFlags, KeySpec, Spec};
use crate::types::json::packed::{self, View};
use crate::types::json::path::{Last, Path};
use crate::types::json::{Change, FloatType, Json, Parsed, parse, parse_as};

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(
        Spec {
            name: "json.set",
            summary: "Sets the value at a path of a JSON document, creating the document or a member of it.",
            complexity: "O(M + N) for a value of M bytes and a document of N bytes.",
            arity: -4,
            syntax: "key path value [NX | XX] [FORMAT format] [FPHA <FP16 | BF16 | FP32 | FP64>]@8.8.0",
            example: Example { given: &[], call: "JSON.SET user $ '{\"name\":\"Ann\"}'", reply: "OK" },
            ..EDIT
        },
        Run::Prepared(set),
    ),
    Command::new(
        Spec {
            name: "json.mset",
            summary: "Sets values of several JSON documents atomically.",
            complexity: "O(M + N) for values of M bytes and documents of N bytes.",
            arity: -4,
            keys: &[KeySpec::from(1, 3, KeyFlags::RW.union(KeyFlags::UPDATE))],
            syntax: "key path value [key path value ...]",
            example: Example { given: &[], call: "JSON.MSET one $ 1 two $ 2", reply: "OK" },
            ..EDIT
        },
        Run::Prepared(mset),
    ),
];

/// The condition under which a value is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    Always,
    IfMissing,
    IfExists,
}

/// The error for a path in a document that does not exist.
pub(super) const NOT_AT_ROOT: &str = "ERR new objects must be created at the root";

/// Returns the error of an option without its argument.
fn wrong_arity(is_set: bool) -> CommandError {
    CommandError::WrongArity(if is_set { "json.set" } else { "json.merge" }.into())
}

/// The options of JSON.SET.
pub(super) struct Options {
    condition: Condition,
    /// The type of the numbers in arrays that have only numbers.
    floats: Option<FloatType>,
}

/// Parses the options after the value; those other than FORMAT only if `is_set`.
pub(super) fn options(args: Args<'_>, is_set: bool) -> Result<Options, CommandError> {
    let (mut condition, mut floats) = (Condition::Always, None);
    let mut arg = 4;
    while let Some(word) = args.get(arg) {
        arg += 1;
        if word.eq_ignore_ascii_case(b"FORMAT") {
            let format = args.get(arg).ok_or_else(|| wrong_arity(is_set))?;
            if ![&b"JSON"[..], b"STRING"].contains(&format) {
                return Err("ERR wrong format".into());
            }
            arg += 1;
        } else if is_set && condition == Condition::Always && word.eq_ignore_ascii_case(b"NX") {
            condition = Condition::IfMissing;
        } else if is_set && condition == Condition::Always && word.eq_ignore_ascii_case(b"XX") {
            condition = Condition::IfExists;
        } else if is_set && word.eq_ignore_ascii_case(b"FPHA") {
            let name = args.get(arg).ok_or_else(|| wrong_arity(is_set))?;
            floats = Some(FloatType::parse(name).ok_or("ERR invalid FPHA type")?);
            arg += 1;
        } else {
            return Err(CommandError::Syntax);
        }
    }
    Ok(Options { condition, floats })
}

fn set(args: Args<'_>) -> Result<Locked<'_>, CommandError> {
    let Options { condition, floats } = options(args, true)?;
    let parsed = parse_as(args.at(3), floats);
    Ok(Box::new(move |call| {
        let exists = call.keys.key(1).value::<Json>().map_err(other_type)?.is_some();
        let parsed = parsed?;
        let is_set = store(call, 1, exists, parsed, condition)?;
        if is_set {
            call.reply.ok()
        } else {
            call.reply.null()
        }
        Ok(())
    }))
}

/// Sets the value at the path after the key in argument `arg`; returns whether the condition allowed it.
fn store(
    call: &mut Call<'_, '_>,
    arg: usize,
    exists: bool,
    parsed: Parsed,
    condition: Condition,
) -> Result<bool, CommandError> {
    if !exists && condition == Condition::IfExists {
        return Ok(false);
    }
    let path = Path::parse(call.args.at(arg + 1));
    if path.as_ref().is_ok_and(Path::is_root) {
        if exists && condition == Condition::IfMissing {
            return Ok(false);
        }
        let mut key = call.keys.key(arg);
        key.edit_or_create(Event::module("json.set"), |json: &mut Json| *json = Json::new(parsed.packed))?;
        return Ok(true);
    }
    if !exists {
        return Err(NOT_AT_ROOT.into());
    }
    let path = path?;
    access::edit(call, arg, "json.set", |json| {
        let is_set = set_in(json, &path, &parsed, condition)?;
        Ok(Edited { is_change: is_set, result: is_set })
    })
}

/// Sets the values that a path selects, or adds a member; returns whether anything was set.
pub(super) fn set_in(
    json: &mut Json,
    path: &Path<'_>,
    parsed: &Parsed,
    condition: Condition,
) -> Result<bool, CommandError> {
    let found = if condition == Condition::IfMissing { Vec::new() } else { select(json, path)? };
    if !found.is_empty() {
        let replace = |at| (at, Change::Replace(parsed.packed.as_slice().into()));
        json.apply(found.into_iter().map(replace).collect(), parsed.depth)?;
        return Ok(true);
    }
    if condition == Condition::IfExists { Ok(false) } else { add_in(json, path, parsed) }
}

/// Adds the member that a path names to each selected object that lacks it; returns whether a member was added.
pub(super) fn add_in(json: &mut Json, path: &Path<'_>, parsed: &Parsed) -> Result<bool, CommandError> {
    let (last, before) = path.split_last().ok_or("Err wrong static path")?;
    let Last::Name(name) = last else {
        let exists = !select(json, path)?.is_empty();
        return if exists { Ok(false) } else { Err("ERR array index out of range".into()) };
    };
    let lacks_member = |&at: &usize| match packed::view(json.packed(), at) {
        View::Object(mut members) => members.all(|member| member.name != Some(name)),
        _ => false,
    };
    let objects: Vec<usize> = select_segments(json, before)?.into_iter().filter(lacks_member).collect();
    if objects.is_empty() {
        return Ok(false);
    }
    let mut added = Vec::with_capacity(name.len() + parsed.packed.len());
    packed::push_string(&mut added, name);
    added.extend_from_slice(&parsed.packed);
    let append = |at| (at, Change::Splice { removed: usize::MAX..usize::MAX, added: &added, count: 1 });
    json.apply(objects.into_iter().map(append).collect(), parsed.depth)?;
    Ok(true)
}

fn mset(args: Args<'_>) -> Result<Locked<'_>, CommandError> {
    if !(args.len() - 1).is_multiple_of(3) {
        return Err(CommandError::WrongArity("json.mset".into()));
    }
    let parsed: Vec<Result<Parsed, String>> =
        (1..args.len()).step_by(3).map(|arg| parse(args.at(arg + 2))).collect();
    Ok(Box::new(move |call| set_several(call, parsed)))
}

/// A key of JSON.MSET with its new document.
struct Pending {
    arg: usize,
    json: Json,
    is_changed: bool,
}

fn set_several(call: &mut Call<'_, '_>, parsed: Vec<Result<Parsed, String>>) -> CommandResult {
    let args = call.args;
    // The documents are stored only after all values have been set in copies without an error.
    let mut pending: Vec<Pending> = Vec::new();
    let mut places = std::collections::HashMap::new();
    for (arg, parsed) in (1..args.len()).step_by(3).zip(parsed) {
        let current = call.keys.key(arg).value::<Json>().map_err(other_type)?.cloned();
        let path = Path::parse(args.at(arg + 1));
        let is_root = path.as_ref().is_ok_and(Path::is_root);
        if current.is_none() && !is_root {
            return Err(NOT_AT_ROOT.into());
        }
        let path = path?;
        let place = *places.entry(args.at(arg)).or_insert_with(|| {
            let json = current.unwrap_or_default();
            pending.push(Pending { arg, json, is_changed: false });
            pending.len() - 1
        });
        let key = &mut pending[place];
        // An error of the path comes before one of the value.
        if !is_root && parsed.is_err() {
            set_in(&mut key.json.clone(), &path, &Parsed::null(), Condition::Always)?;
        }
        let parsed = parsed?;
        key.is_changed |= if is_root {
            key.json = Json::new(parsed.packed);
            true
        } else {
            set_in(&mut key.json, &path, &parsed, Condition::Always)?
        };
    }
    for Pending { arg, json, is_changed } in pending {
        if is_changed {
            let mut key = call.keys.key(arg);
            key.edit_or_create(Event::module("json.mset"), |value: &mut Json| *value = json)?;
        }
    }
    call.reply.ok();
    Ok(())
}
