//! JSON.GET and JSON.MGET.

use std::borrow::Cow;

use ember_protocol::{Args, Reply};

use super::access::{self, READ, check_reply, check_reply_bytes, missing_path, other_type, select};
use crate::call::{Attempt, AttemptResult, Call, DataCommand, Run};
use crate::error::CommandError;
use crate::spec::{Command, Example, KeyFlags, KeySpec, Spec};
use crate::types::json::packed::{self, View};
use crate::types::json::path::Path;
use crate::types::json::{Format, Json, print, print_as, print_list, print_string};

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(
        Spec {
            name: "json.get",
            summary: "Returns the values at one or several paths of a JSON document as text.",
            arity: -2,
            syntax: "key [INDENT indent] [NEWLINE newline] [SPACE space] [FORMAT format] [path ...]",
            example: Example {
                given: &["JSON.SET user $ '{\"name\":\"Ann\",\"age\":30}'"],
                call: "JSON.GET user $.name",
                reply: "\"[\\\"Ann\\\"]\"",
            },
            ..READ
        },
        Run::Long(get),
    ),
    Command::new(
        Spec {
            name: "json.mget",
            summary: "Returns the values at a path of several JSON documents as text, null for each that is missing.",
            complexity: "O(N) for N values in all documents.",
            arity: -3,
            keys: &[KeySpec::range(1, -2, KeyFlags::RO.union(KeyFlags::ACCESS))],
            tips: &["request_policy:multi_shard"],
            syntax: "key [key ...] path",
            example: Example {
                given: &["JSON.SET user $ '{\"name\":\"Ann\"}'"],
                call: "JSON.MGET user other $.name",
                reply: "1) \"[\\\"Ann\\\"]\"\n2) (nil)",
            },
            ..READ
        },
        Run::Long(mget),
    ),
];

/// The longest option; longer words are paths.
const OPTION_BYTES_MAX: usize = "NOESCAPE".len();

/// The form of a reply in RESP3.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// Text.
    Text,
    /// Scalars as RESP3 values, containers as text.
    Expand1,
    /// All values as RESP3 values.
    Expand,
}

impl Shape {
    /// Parses the word after FORMAT; `plain` is the word for text.
    pub(super) fn parse(word: &[u8], plain: &[u8]) -> Result<Shape, CommandError> {
        match word {
            b"EXPAND" => Ok(Shape::Expand),
            b"EXPAND1" => Ok(Shape::Expand1),
            word if word == plain => Ok(Shape::Text),
            _ => Err("ERR wrong reply format".into()),
        }
    }
}

struct Options<'o> {
    format: Format<'o>,
    shape: Shape,
    paths: Vec<&'o [u8]>,
}

impl<'o> Options<'o> {
    fn parse(args: Args<'o>, is_resp3: bool) -> Result<Options<'o>, CommandError> {
        let mut options = Options { format: Format::default(), shape: Shape::Text, paths: Vec::new() };
        let mut arg = 2;
        let following = |arg: usize| args.get(arg).ok_or(CommandError::WrongArity("json.get".into()));
        while let Some(word) = args.get(arg) {
            arg += 1;
            let is =
                |name: &str| word.len() <= OPTION_BYTES_MAX && word.eq_ignore_ascii_case(name.as_bytes());
            let place = match () {
                () if is("INDENT") => &mut options.format.indent,
                () if is("NEWLINE") => &mut options.format.newline,
                () if is("SPACE") => &mut options.format.space,
                () if is("FORMAT") => {
                    if !is_resp3 && options.paths.is_empty() {
                        return Err("ERR FORMAT argument is not supported on RESP2".into());
                    }
                    options.shape = Shape::parse(following(arg)?, b"STRING")?;
                    arg += 1;
                    continue;
                }
                // An option of old versions, which has no effect.
                () if is("NOESCAPE") => continue,
                () => {
                    options.paths.push(word);
                    continue;
                }
            };
            *place = following(arg)?;
            arg += 1;
        }
        if options.paths.is_empty() {
            options.paths.push(b".");
        }
        Ok(options)
    }
}

fn get(call: &mut Call<'_, '_>) -> AttemptResult {
    let options = Options::parse(call.args, call.reply.is_resp3())?;
    access::read(call, 1, |json, _, reply| {
        let Some(json) = json else {
            reply.null();
            return Ok(());
        };
        if reply.is_resp3() && options.shape != Shape::Text {
            return reply_expanded(json, &options, reply);
        }
        let mut text = Vec::new();
        match options.paths[..] {
            [path] => print_path(json, &Path::parse(path)?, &options.format, 0, &mut text)?,
            _ => print_paths(json, &options, &mut text)?,
        }
        reply.bulk(&text);
        Ok(())
    })
}

/// Appends the values that a path selects, as an array unless the path is a legacy path.
fn print_path(
    json: &Json,
    path: &Path<'_>,
    format: &Format<'_>,
    level: usize,
    text: &mut Vec<u8>,
) -> Result<(), CommandError> {
    let found = select(json, path)?;
    if path.is_legacy {
        let &first = found.first().ok_or_else(|| missing_path(&path.full))?;
        print_as(json.packed(), first, text, format, level);
        return Ok(());
    }
    print_found(json, &found, format, level, text)
}

fn print_found(
    json: &Json,
    found: &[usize],
    format: &Format<'_>,
    level: usize,
    text: &mut Vec<u8>,
) -> Result<(), CommandError> {
    let mut checked = Ok(());
    print_list(found, [b'[', b']'], text, format, level, |&at, text| {
        if checked.is_ok() {
            print_as(json.packed(), at, text, format, level + 1);
            checked = check_reply_bytes(text.len());
        }
    });
    checked
}

/// Appends an object with a member for each path. Invalid paths are left out. If one of the paths is not a legacy path,
/// all values are arrays.
fn print_paths(json: &Json, options: &Options<'_>, text: &mut Vec<u8>) -> Result<(), CommandError> {
    let is_legacy = options.paths.iter().all(|path| Path::is_legacy_text(path));
    let mut members: Vec<(Cow<'_, str>, Vec<usize>)> = Vec::new();
    for path in options.paths.iter().flat_map(|path| Path::parse(path)) {
        let mut found = select(json, &path)?;
        if is_legacy {
            found.truncate(1);
            if found.is_empty() {
                return Err(missing_path(path.original));
            }
        }
        let name = String::from_utf8_lossy(path.original);
        members.retain(|(other, _)| *other != name);
        members.push((name, found));
    }
    let format = &options.format;
    let mut result = Ok(());
    print_list(&members, [b'{', b'}'], text, format, 0, |(name, found), text| {
        print_string(name.as_bytes(), text);
        text.push(b':');
        text.extend_from_slice(format.space);
        if result.is_ok() {
            if is_legacy {
                print_as(json.packed(), found[0], text, format, 1);
            } else {
                result = print_found(json, found, format, 1, text);
            }
        }
    });
    result
}

fn reply_expanded(json: &Json, options: &Options<'_>, reply: &mut Reply) -> Result<(), CommandError> {
    let mut all = Vec::new();
    for path in &options.paths {
        // An invalid path selects nothing.
        all.push(match Path::parse(path) {
            Ok(path) => select(json, &path)?,
            Err(_) => Vec::new(),
        });
    }
    check_reply(json, &all.concat())?;
    reply.array(all.len());
    for found in all {
        reply.array(found.len());
        found.iter().for_each(|&at| reply_value(json.packed(), at, options.shape, reply));
    }
    Ok(())
}

/// Replies with a value in RESP3.
pub(super) fn reply_value(doc: &[u8], at: usize, shape: Shape, reply: &mut Reply) {
    match packed::view(doc, at) {
        View::Null => reply.null(),
        View::Bool(value) => reply.boolean(value),
        View::Number(number) => super::resp::reply_number(number, reply),
        View::String(text) if shape == Shape::Expand => reply.bulk(text),
        View::Array(elements) if shape == Shape::Expand => {
            reply.array(elements.len());
            elements.for_each(|child| reply_value(doc, child.at, shape, reply));
        }
        View::Object(members) if shape == Shape::Expand => {
            reply.map(members.len());
            members.for_each(|child| {
                reply.bulk(child.name.unwrap_or_default());
                reply_value(doc, child.at, shape, reply);
            });
        }
        _ => {
            let mut text = Vec::new();
            print(doc, at, &mut text);
            reply.bulk(&text);
        }
    }
}

fn mget(call: &mut Call<'_, '_>) -> AttemptResult {
    let keys = 1..call.args.len() - 1;
    let path = Path::parse(call.args.at(keys.end)).ok();
    let mut bytes = 0;
    for arg in keys.clone() {
        let json = call.keys.read_value::<Json>(arg).map_err(other_type).ok().flatten();
        bytes += json.map_or(0, |json| json.packed().len());
    }
    if access::is_long_read(bytes, call.steps_max()) {
        return Ok(Attempt::Offload);
    }
    let mut texts = Vec::with_capacity(keys.len());
    for arg in keys {
        // The reply for a missing value or a key of another type is null, not an error.
        let json = call.keys.value::<Json>(arg).ok().flatten();
        let mut text = Vec::new();
        let printed = match (json, &path) {
            (Some(json), Some(path)) => print_path(json, path, &Format::default(), 0, &mut text).is_ok(),
            _ => false,
        };
        texts.push(printed.then_some(text));
    }
    call.reply.array(texts.len());
    for text in texts {
        match text {
            Some(text) => call.reply.bulk(&text),
            None => call.reply.null(),
        }
    }
    Ok(Attempt::Done)
}
