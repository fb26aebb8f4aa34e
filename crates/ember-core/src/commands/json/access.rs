//! Access of JSON commands to documents: parses paths, selects and edits values, and returns errors with RedisJSON's
//! texts.

use std::collections::HashMap;

use ember_protocol::{Args, Reply};

use crate::call::{Attempt, AttemptResult, Call};
use crate::effects::events::Event;
use crate::error::CommandError;
use crate::keys::Edited;
use crate::spec::{Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::json::packed::{self, View};
use crate::types::json::path::{Evaluation, Path, PathError, Segment, TooManySteps};
use crate::types::json::{Change, DOCUMENT_BYTES_MAX, EditError, Json};

/// The specification of a command that reads a document.
pub(super) const READ: Spec = Spec {
    since: "8.0.0",
    group: Group::Json,
    complexity: "O(N) for N values in the document at most; those before the selected ones are skipped.",
    flags: Flags::READONLY,
    keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
    ..Spec::DEFAULT
};

/// The specification of a command that changes a document.
pub(super) const EDIT: Spec = Spec {
    flags: Flags::WRITE.union(Flags::DENYOOM),
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))],
    ..READ
};

/// The path of a call without a path.
const DEFAULT_PATH: &[u8] = b".";

/// The bytes of a packed document that a read examines in the time of one step.
const READ_BYTES_PER_STEP: usize = 32;

/// The same for an edit, which mostly moves bytes.
const EDIT_BYTES_PER_STEP: usize = 256;

const OTHER_TYPE: &str = "Existing key has wrong Redis type";

/// The error of a command on a missing key.
pub(super) const MISSING_KEY: &str = "ERR could not perform this operation on a key that doesn't exist";

/// Replies to a read of a missing key: nil for a legacy path, which need not be valid.
///
/// # Errors
/// Returns an error for another path.
pub(super) fn reply_to_missing_key(path: Option<&[u8]>, reply: &mut Reply) -> Result<(), CommandError> {
    if !path.is_none_or(Path::is_legacy_text) {
        return Err(MISSING_KEY.into());
    }
    reply.null();
    Ok(())
}

impl From<PathError> for CommandError {
    fn from(error: PathError) -> CommandError {
        error.text().into()
    }
}

impl From<TooManySteps> for CommandError {
    fn from(_: TooManySteps) -> CommandError {
        "ERR the path needs too many steps".into()
    }
}

impl From<EditError> for CommandError {
    fn from(error: EditError) -> CommandError {
        match error {
            EditError::TooLarge => "ERR the document would be larger than 512 MiB".into(),
            EditError::TooDeep => "ERR the document would have more than 128 nested containers".into(),
        }
    }
}

/// Replaces `WRONGTYPE` by RedisJSON's error for a key of another type; returns other errors unchanged.
pub(super) fn other_type(error: CommandError) -> CommandError {
    if error == CommandError::WrongType { OTHER_TYPE.into() } else { error }
}

/// Parses the path in argument `arg`, or the default path if there is no such argument.
pub(super) fn path(args: Args<'_>, arg: usize) -> Result<Path<'_>, CommandError> {
    Ok(Path::parse(args.get(arg).unwrap_or(DEFAULT_PATH))?)
}

/// Parses the integer in argument `arg`.
pub(super) fn integer(args: Args<'_>, arg: usize) -> Result<i64, CommandError> {
    ember_protocol::number::parse_i64(args.at(arg)).ok_or(CommandError::from("Couldn't parse as integer"))
}

/// Returns the positions of the values that the path selects.
pub(super) fn select(json: &Json, path: &Path<'_>) -> Result<Vec<usize>, CommandError> {
    select_segments(json, path.segments())
}

/// Like [`select`], for a part of a path.
pub(super) fn select_segments(json: &Json, segments: &[Segment]) -> Result<Vec<usize>, CommandError> {
    Ok(Evaluation::new(json.packed()).run(segments)?)
}

/// Returns the error for a path that selects nothing.
pub(super) fn missing_path(path: &[u8]) -> CommandError {
    [b"ERR Path '", path, b"' does not exist"].concat().into()
}

/// Returns the error for a path that selects nothing, or only values of other types; `or` describes these.
pub(super) fn missing_path_or(path: &[u8], or: &str) -> CommandError {
    [b"ERR Path '", path, b"' does not exist or ", or.as_bytes()].concat().into()
}

/// Returns the error for a value of another type than a command expects.
pub(super) fn unexpected(expected: &str, found: &str) -> CommandError {
    format!("WRONGTYPE wrong type of path value - expected {expected} but found {found}").into()
}

/// Returns the name of a value's type.
pub(super) fn type_name(view: View<'_>) -> &'static str {
    use crate::types::json::Number;
    match view {
        View::Null => "null",
        View::Bool(_) => "boolean",
        View::Number(Number::Double(_)) => "number",
        View::Number(_) => "integer",
        View::String(_) => "string",
        View::Array(_) => "array",
        View::Object(_) => "object",
    }
}

/// Calls `reply` with the document in argument `arg`, if the key exists. A call on a large document is offloaded.
pub(super) fn read(
    call: &mut Call<'_, '_>,
    arg: usize,
    reply: impl FnOnce(Option<&Json>, Args<'_>, &mut Reply) -> Result<(), CommandError>,
) -> AttemptResult {
    let steps_max = call.steps_max();
    let json = call.keys.read_value::<Json>(arg).map_err(other_type)?;
    if json.is_some_and(|json| is_long_read(json.packed().len(), steps_max)) {
        return Ok(Attempt::Offload);
    }
    reply(json, call.args, call.reply)?;
    Ok(Attempt::Done)
}

/// Returns whether a read of documents of this size takes more than `steps_max` steps.
pub(super) fn is_long_read(bytes: usize, steps_max: usize) -> bool {
    bytes / READ_BYTES_PER_STEP > steps_max
}

/// Returns whether an edit of the document in argument 1 is long-running.
pub(super) fn is_long_edit(call: &Call<'_, '_>) -> Result<bool, CommandError> {
    let json = call.keys.value::<Json>(1).map_err(other_type)?;
    Ok(json.is_some_and(|json| json.packed().len() / EDIT_BYTES_PER_STEP > call.steps_max()))
}

/// Edits the document in argument `arg`, which must exist; a change publishes the event of this name.
pub(super) fn edit<R>(
    call: &mut Call<'_, '_>,
    arg: usize,
    event: &'static str,
    edit: impl FnOnce(&mut Json) -> Result<Edited<R>, CommandError>,
) -> Result<R, CommandError> {
    let edited = call.keys.key(arg).edit_value(Event::module(event), edit).map_err(other_type)?;
    Ok(edited.ok_or(CommandError::from(MISSING_KEY))??.result)
}

/// The result of an edit for one selected value, and the change, if any.
pub(super) type Edit<'c, R> = (R, Option<Change<'c>>);

/// Edits all values that the path selects in the document in argument 1: `each` returns the edit of a value, or `None`
/// if the value has another type. A value that is selected several times is edited once. `depth` is the number of
/// nested containers of the deepest added value.
///
/// With a legacy path, returns only the last result. If no selected value has the right type, returns an error, in
/// which `or` describes the unsuitable values.
pub(super) fn edit_selected<'c, R: Clone>(
    call: &mut Call<'_, '_>,
    path: &Path<'_>,
    (event, quoted, or): (&'static str, &[u8], &str),
    depth: usize,
    mut each: impl FnMut(&[u8], usize) -> Result<Option<Edit<'c, R>>, CommandError>,
) -> Result<Vec<Option<R>>, CommandError> {
    let results = edit(call, 1, event, |json| {
        let found = select(json, path)?;
        let mut results = Vec::with_capacity(found.len());
        let mut changes = Vec::new();
        let mut known: HashMap<usize, Option<R>> = HashMap::new();
        let mut bytes = json.packed().len();
        for &at in &found {
            if let Some(result) = known.get(&at) {
                results.push(result.clone());
                continue;
            }
            let edit = each(json.packed(), at)?;
            let (result, change) = edit.map_or((None, None), |(result, change)| (Some(result), change));
            bytes = bytes.saturating_add(change.as_ref().map_or(0, Change::added_bytes));
            if bytes > DOCUMENT_BYTES_MAX {
                return Err(EditError::TooLarge.into());
            }
            changes.extend(change.map(|change| (at, change)));
            if found.len() > 1 {
                known.insert(at, result.clone());
            }
            results.push(result);
        }
        let is_change = !changes.is_empty();
        if is_change {
            json.apply(changes, depth)?;
        }
        Ok(Edited { is_change, result: results })
    })?;
    if !path.is_legacy {
        return Ok(results);
    }
    let last = results.into_iter().flatten().next_back();
    Ok(vec![Some(last.ok_or_else(|| missing_path_or(quoted, or))?)])
}

/// Replies with the results of an edit or a read: one for each selected value, or the only one of a legacy path.
pub(super) fn reply_all<T>(
    reply: &mut Reply,
    path: &Path<'_>,
    results: &[Option<T>],
    each: impl Fn(&mut Reply, &T),
) {
    if !path.is_legacy {
        reply.array(results.len());
    }
    for result in results {
        match result {
            Some(result) => each(reply, result),
            None => reply.null(),
        }
    }
}

/// Replies with integers, like [`reply_all`].
pub(super) fn reply_integers(reply: &mut Reply, path: &Path<'_>, results: &[Option<usize>]) {
    reply_all(reply, path, results, |reply, &number| reply.integer(number as i64));
}

/// Returns an error if the selected values are too large for a reply together.
pub(super) fn check_reply(json: &Json, found: &[usize]) -> Result<(), CommandError> {
    let sizes = found.iter().map(|&at| packed::end(json.packed(), at) - at);
    check_reply_bytes(sizes.fold(0, usize::saturating_add))
}

/// Returns an error if a reply would have too many bytes.
pub(super) fn check_reply_bytes(bytes: usize) -> Result<(), CommandError> {
    if bytes <= DOCUMENT_BYTES_MAX {
        Ok(())
    } else {
        Err("ERR the reply would be larger than 512 MiB".into())
    }
}

/// Returns the positions of selected values, without those inside of others and without duplicates, in ascending order.
pub(super) fn outermost(doc: &[u8], mut found: Vec<usize>) -> Vec<usize> {
    found.sort_unstable();
    let mut end = 0;
    found.retain(|&at| {
        let is_outside = at >= end;
        if is_outside {
            end = packed::end(doc, at);
        }
        is_outside
    });
    found
}
