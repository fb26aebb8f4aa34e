//! HISTORY, HISTORY.COUNT, HISTORY.FIRST, HISTORY.LAST: the versions of a key.

use ember_protocol::{Args, Reply};
use emberkv_core::capture::{Image, State};
use emberkv_core::commands::arguments::{integer, is_word};
use emberkv_core::error::CommandError;
use emberkv_core::rdb::{self, Kind, Reader, Value};
use emberkv_core::spec::{Command, Example, Spec};
use emberkv_core::types::limits::EncodingLimits;

use super::OF_KEY;
use crate::executor::session::{Execution, Outcome, ServerCommand, SessionResult};
use crate::history::Active;
use crate::history::reading::{Answer, Past, Question, Selection, Then, When, ask, history_of};

const OFF: &str = "(error) ERR the history is off: set history-keys";

pub(super) const COMMANDS: &[ServerCommand] = &[
    Command::new(
        Spec {
            name: "history",
            summary: "Returns the versions of a key: the changes that the history contains.",
            complexity: "O(log(N)+M) for M returned of N versions; with WITHVALUES also the bytes of their values.",
            arity: -2,
            syntax: "key [<FROM | SINCE> from-moment] [<TO | UNTIL> to-moment] [<LIMIT | COUNT> count] \
                     [OFFSET offset] [ORDER <ASC | DESC>] [WITHVALUES]",
            example: Example { given: &[], call: "HISTORY user:1 FROM -1h LIMIT 10", reply: OFF },
            ..OF_KEY
        },
        Some(|_| Ok(Outcome::Continue(history))),
    ),
    Command::new(
        Spec {
            name: "history.count",
            summary: "Returns the number of versions of a key.",
            complexity: "O(N) for N versions.",
            arity: 2,
            syntax: "key",
            example: Example { given: &[], call: "HISTORY.COUNT user:1", reply: OFF },
            ..OF_KEY
        },
        Some(|_| Ok(Outcome::Continue(count))),
    ),
    Command::new(
        Spec {
            name: "history.first",
            summary: "Returns the oldest version of a key that the history contains, with its value.",
            complexity: "O(N) for N versions.",
            arity: 2,
            syntax: "key",
            example: Example { given: &[], call: "HISTORY.FIRST user:1", reply: OFF },
            ..OF_KEY
        },
        Some(|_| Ok(Outcome::Continue(|execution| one(execution, false)))),
    ),
    Command::new(
        Spec {
            name: "history.last",
            summary: "Returns the newest version of a key, with its value.",
            complexity: "O(N) for N versions.",
            arity: 2,
            syntax: "key",
            example: Example { given: &[], call: "HISTORY.LAST user:1", reply: OFF },
            ..OF_KEY
        },
        Some(|_| Ok(Outcome::Continue(|execution| one(execution, true)))),
    ),
];

/// The type of a key that does not exist, as TYPE returns it.
const NO_TYPE: &str = "none";

/// The time to live of a key that does not expire, and of one that does not exist, as PTTL returns them.
const NO_EXPIRY: i64 = -1;
const NO_KEY: i64 = -2;

fn parse(history: &Active, args: Args<'_>) -> Result<(Selection, bool), CommandError> {
    let (mut selection, mut has_values) = (Selection::default(), false);
    let mut at = 2;
    while at < args.len() {
        let has_next = at + 1 < args.len();
        let is_any = |words: [&str; 2]| words.iter().any(|word| is_word(args, at, word));
        let moment = |at: usize| history.parse_when(args.at(at));
        match () {
            () if is_word(args, at, "WITHVALUES") => {
                has_values = true;
                at += 1;
                continue;
            }
            () if is_any(["FROM", "SINCE"]) && has_next => {
                selection.from_ms = Some(match moment(at + 1)? {
                    When::Now => history.now_ms(),
                    When::At(at_ms) => at_ms,
                });
            }
            () if is_any(["TO", "UNTIL"]) && has_next => {
                selection.to_ms = match moment(at + 1)? {
                    When::Now => i64::MAX,
                    When::At(at_ms) => at_ms,
                };
            }
            () if is_any(["LIMIT", "COUNT"]) && has_next => {
                let count = usize::try_from(integer(args, at + 1)?);
                selection.limit = count.map_err(|_| "ERR LIMIT must not be negative")?;
            }
            () if is_word(args, at, "OFFSET") && has_next => {
                let offset = usize::try_from(integer(args, at + 1)?);
                selection.offset = offset.map_err(|_| "ERR OFFSET must not be negative")?;
            }
            () if is_word(args, at, "ORDER") && has_next && is_word(args, at + 1, "ASC") => {
                selection.is_descending = false;
            }
            () if is_word(args, at, "ORDER") && has_next && is_word(args, at + 1, "DESC") => {
                selection.is_descending = true;
            }
            () => return Err(CommandError::Syntax),
        }
        at += 2;
    }
    Ok((selection, has_values))
}

fn history(execution: &mut Execution<'_>) -> SessionResult {
    let args = execution.args;
    let (selection, values) = parse(history_of(execution.executor.server)?, args)?;
    ask(
        execution,
        vec![args.at(1).into()],
        Question::Versions { selection, values },
        Then::Write(Box::new(|writing, answer| {
            let versions = versions_of(answer);
            writing.reply.array(versions.len());
            let version = writing.settings.payload_version;
            versions.iter().try_for_each(|past| write_version(past, version, writing.reply))
        })),
    )
}

fn count(execution: &mut Execution<'_>) -> SessionResult {
    let keys = vec![execution.args.at(1).into()];
    ask(
        execution,
        keys,
        Question::Versions { selection: Selection::default(), values: false },
        Then::Write(Box::new(|writing, answer| {
            writing.reply.integer(versions_of(answer).len() as i64);
            Ok(())
        })),
    )
}

fn one(execution: &mut Execution<'_>, is_last: bool) -> SessionResult {
    let keys = vec![execution.args.at(1).into()];
    let selection = Selection { limit: 1, is_descending: is_last, ..Selection::default() };
    ask(
        execution,
        keys,
        Question::Versions { selection, values: true },
        Then::Write(Box::new(|writing, answer| match versions_of(answer).first() {
            Some(past) => write_version(past, writing.settings.payload_version, writing.reply),
            None => {
                writing.reply.null();
                Ok(())
            }
        })),
    )
}

fn versions_of(answer: Answer) -> Vec<Past> {
    let Answer::Versions(versions) = answer else { unreachable!("versions were asked for") };
    versions
}

/// Writes a version as a map, with its value if that was read.
fn write_version(past: &Past, payload_version: u16, reply: &mut Reply) -> Result<(), CommandError> {
    reply.map(if past.state.is_some() { 6 } else { 3 });
    reply.bulk(b"timestamp");
    reply.integer(past.at_ms);
    reply.bulk(b"version");
    reply.integer(past.number.cast_signed());
    reply.bulk(b"operation");
    reply.bulk(past.operation.as_bytes());
    let image = match &past.state {
        None => return Ok(()),
        Some(State::Present(image)) => Some(image),
        Some(State::Absent | State::Unknown) => None,
    };
    let kind = image.and_then(|image| Kind::from_byte(image.kind));
    reply.bulk(b"type");
    reply.bulk(kind.map_or(NO_TYPE, |kind| kind.value_type().name()).as_bytes());
    reply.bulk(b"ttl");
    let expiry = |image: &Image| image.expire_at_ms.map_or(NO_EXPIRY, |at_ms| (at_ms - past.at_ms).max(0));
    reply.integer(image.map_or(NO_KEY, expiry));
    reply.bulk(b"value");
    let Some((image, kind)) = image.zip(kind) else {
        reply.null();
        return Ok(());
    };
    let damaged = |error: rdb::LoadError| CommandError::from(format!("ERR a past value is damaged: {error}"));
    let mut bytes = &*image.bytes;
    if kind == Kind::String
        && let Value::String(text) =
            rdb::read_value(&mut Reader::new(&mut bytes), kind, &EncodingLimits::DEFAULT).map_err(damaged)?
    {
        reply.bulk(&text);
    } else {
        reply.bulk(&rdb::dump_encoded(kind, &image.bytes, payload_version).map_err(damaged)?);
    }
    Ok(())
}
