//! DIFF: the elements in which two past states of a key differ.

use std::collections::{BTreeMap, BTreeSet};

use ember_protocol::client::{Value, read_value};
use ember_protocol::{OwnedBatch, Protocol, Reply};
use emberkv_core::capture::State;
use emberkv_core::dispatch::past;
use emberkv_core::error::CommandError;
use emberkv_core::rdb::Kind;
use emberkv_core::spec::{Command, Example, Spec};
use emberkv_core::types::value::ValueType;

use super::OF_KEY;
use crate::catalogue::registry::Handler;
use crate::executor::session::{Execution, Outcome, ServerCommand, SessionResult};
use crate::history::reading::{Answer, Question, Then, Writing, ask, history_of};

pub(super) const COMMANDS: &[ServerCommand] = &[Command::new(
    Spec {
        name: "diff",
        summary: "Returns the elements in which the states of a key at two moments differ.",
        complexity: "O(N*log(N)) for N elements of both values.",
        arity: 4,
        syntax: "key moment1 moment2",
        example: Example {
            given: &[],
            call: "DIFF user:1 -1h now",
            reply: "(error) ERR the history is off: set history-keys",
        },
        ..OF_KEY
    },
    Some(|_| Ok(Outcome::Continue(diff))),
)];

/// The only element of a value without elements.
const WHOLE: &[u8] = b"value";

/// The elements of a value, each with its value if it has one.
type Elements = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

fn diff(execution: &mut Execution<'_>) -> SessionResult {
    let args = execution.args;
    let history = history_of(execution.executor.server)?;
    let moments = vec![history.parse_when(args.at(2))?, history.parse_when(args.at(3))?];
    let key: Box<[u8]> = args.at(1).into();
    let name = key.clone();
    ask(
        execution,
        vec![key],
        Question::States(moments),
        Then::Write(Box::new(move |writing, answer| {
            let Answer::States(states) = answer else { unreachable!("states were asked for") };
            let [(before, before_ms), (after, after_ms)] = &states[..] else {
                unreachable!("two moments of one key were asked for")
            };
            let before = elements(writing, &name, before, *before_ms)?;
            let after = elements(writing, &name, after, *after_ms)?;
            write(&before, &after, writing.reply);
            Ok(())
        })),
    )
}

/// Writes the differences: for each, its kind, the element, and the values of the element before and after.
fn write(before: &(Option<ValueType>, Elements), after: &(Option<ValueType>, Elements), reply: &mut Reply) {
    let is_same_type = before.0 == after.0;
    let mut differences = Vec::new();
    for name in before.1.keys().chain(after.1.keys()).collect::<BTreeSet<_>>() {
        match (before.1.get(name), after.1.get(name)) {
            (Some(old), Some(new)) if is_same_type && old == new => {}
            (Some(old), Some(new)) if is_same_type => {
                differences.push(("changed", name, old.as_ref(), new.as_ref()));
            }
            (old, new) => {
                if let Some(old) = old {
                    differences.push(("removed", name, old.as_ref(), None));
                }
                if let Some(new) = new {
                    differences.push(("added", name, None, new.as_ref()));
                }
            }
        }
    }
    reply.array(differences.len());
    for (what, name, old, new) in differences {
        reply.array(4);
        reply.bulk(what.as_bytes());
        reply.bulk(name);
        for value in [old, new] {
            match value {
                Some(value) => reply.bulk(value),
                None => reply.null(),
            }
        }
    }
}

/// Returns the type and the elements of a past value: fields of a hash, members of a set or sorted set, positions of a
/// list, IDs of a stream, or the whole value.
fn elements(
    writing: &Writing<'_>,
    key: &[u8],
    state: &State,
    at_ms: i64,
) -> Result<(Option<ValueType>, Elements), CommandError> {
    let State::Present(image) = state else { return Ok((None, Elements::new())) };
    let value_type = Kind::from_byte(image.kind).map(Kind::value_type);
    let read = |words: &[&[u8]]| run(writing, words, state, at_ms);
    let list = |value: Value| value.elements().map(<[Value]>::to_vec).unwrap_or_default();
    let bytes = |value: &Value| value.bytes().unwrap_or_default().to_vec();
    let pairs = |value: Value| -> Elements {
        list(value).chunks_exact(2).map(|pair| (bytes(&pair[0]), Some(bytes(&pair[1])))).collect()
    };
    let all = match value_type {
        Some(ValueType::Hash) => pairs(read(&[b"HGETALL", key])?),
        Some(ValueType::SortedSet) => pairs(read(&[b"ZRANGE", key, b"0", b"-1", b"WITHSCORES"])?),
        Some(ValueType::Set) => {
            list(read(&[b"SMEMBERS", key])?).iter().map(|member| (bytes(member), None)).collect()
        }
        Some(ValueType::List) => {
            let values = list(read(&[b"LRANGE", key, b"0", b"-1"])?);
            let named = values.iter().enumerate();
            named.map(|(at, value)| (at.to_string().into_bytes(), Some(bytes(value)))).collect()
        }
        Some(ValueType::Stream) => {
            let entries = list(read(&[b"XRANGE", key, b"-", b"+"])?);
            let entry = |entry: &Value| {
                let parts = entry.elements().unwrap_or_default();
                let fields = parts.get(1).and_then(Value::elements).unwrap_or_default();
                let fields: Vec<Vec<u8>> = fields.iter().map(bytes).collect();
                (parts.first().map(bytes).unwrap_or_default(), Some(fields.join(&b' ')))
            };
            entries.iter().map(entry).collect()
        }
        Some(ValueType::String) => whole(&read(&[b"GET", key])?),
        _ => whole(&read(&[b"DUMP", key])?),
    };
    // A key that had expired at that moment has no type.
    Ok((value_type.filter(|_| !all.is_empty()), all))
}

fn whole(value: &Value) -> Elements {
    value.bytes().map(|bytes| (WHOLE.to_vec(), Some(bytes.to_vec()))).into_iter().collect()
}

/// Runs a read call on a past state.
fn run(writing: &Writing<'_>, words: &[&[u8]], state: &State, at_ms: i64) -> Result<Value, CommandError> {
    let command = writing.server.registry.find_declared(words[0]).expect("there is such a command");
    let Handler::Data(data) = command.handler else { unreachable!("it reads keys") };
    let mut call = OwnedBatch::new();
    call.push(words);
    let mut reply = Reply::new(Protocol::Resp2);
    let (keyspace, settings) = (&writing.server.keyspace, writing.settings);
    let moment = (writing.database, at_ms);
    past::run(data, keyspace, settings, moment, call.command(0), std::slice::from_ref(state), &mut reply)?;
    read_value(&mut &*reply.to_vec()).map_err(|error| format!("ERR {error}").into())
}
