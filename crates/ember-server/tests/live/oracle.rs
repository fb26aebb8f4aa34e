//! The expected states of live queries: the results of the command after the records of an append-only file up to a
//! number.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Cursor};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ember_protocol::Protocol;
use ember_protocol::client::read_value;
use ember_testkit::{Value, split_arguments};
use emberkv_core::local::Local;
use emberkv_core::turn::Turn;
use serde_json::{Value as Json, json};

/// The number of records shown before a wrong state.
const HISTORY: usize = 30;

/// The way in which a connection receives states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    Resp2,
    Resp3,
    Channel,
}

/// A watched command.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Query {
    pub(crate) database: usize,
    pub(crate) line: String,
    pub(crate) is_unordered: bool,
    pub(crate) kind: Kind,
}

/// All states that were sent: for each record number, the queries and results.
pub(crate) type States = Arc<Mutex<BTreeMap<u64, BTreeSet<(Query, String)>>>>;

/// Returns a result in a form that can be compared.
pub(crate) fn comparable(value: &Value, query: &Query) -> String {
    let mut value = value.clone();
    let by_text = |value: &Value| format!("{value:?}");
    match &mut value {
        Value::Set(members) => members.sort_by_key(by_text),
        Value::Map(pairs) => pairs.sort_by_key(|pair| format!("{pair:?}")),
        // In RESP2, each field is sorted together with its value.
        Value::Array(list) if query.is_unordered && query.line.starts_with("HGETALL") => {
            let mut pairs: Vec<Vec<Value>> = list.chunks(2).map(<[Value]>::to_vec).collect();
            pairs.sort_by_key(|pair| format!("{pair:?}"));
            *list = pairs.concat();
        }
        Value::Array(list) if query.is_unordered => list.sort_by_key(by_text),
        _ => {}
    }
    match query.kind {
        Kind::Channel => json_of(&value).to_string(),
        Kind::Resp2 | Kind::Resp3 => format!("{value:?}"),
    }
}

/// Converts a result to its form in channel messages.
fn json_of(value: &Value) -> Json {
    match value {
        Value::Bulk(bytes) | Value::Simple(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Json::from(text),
            Err(_) => json!({ "base64": STANDARD.encode(bytes) }),
        },
        Value::Error(text) => json!({ "error": String::from_utf8_lossy(text) }),
        Value::Integer(number) => Json::from(*number),
        Value::Double(digits) => {
            let digits = String::from_utf8_lossy(digits);
            let number = digits.parse().ok().and_then(serde_json::Number::from_f64);
            // JSON has no `nan` and no `inf`.
            number.map_or_else(|| Json::from(&*digits), Json::Number)
        }
        Value::Null => Json::Null,
        Value::Boolean(is_true) => Json::from(*is_true),
        Value::Array(list) | Value::Set(list) => list.iter().map(json_of).collect(),
        Value::Map(pairs) => pairs
            .iter()
            .map(|(name, value)| (json_of(name).as_str().unwrap_or_default().to_owned(), json_of(value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        other => panic!("{other:?}"),
    }
}

/// Returns the result in a channel message, in the form of [`comparable`].
pub(crate) fn comparable_message(message: &Json, query: &Query) -> String {
    let mut result = message["result"].clone();
    if let Json::Array(list) = &mut result
        && query.is_unordered
    {
        list.sort_by_key(|item| format!("{:?}", Value::Bulk(item.as_str().unwrap_or_default().into())));
    }
    result.to_string()
}

pub(crate) fn number_of(version: &str) -> u64 {
    version.split('-').nth(1).unwrap().parse().unwrap()
}

/// Reads the units in the append-only files of all runs of a server: the commands of each record.
pub(crate) fn units(directory: &Path) -> Vec<Vec<Vec<Vec<u8>>>> {
    let folder = directory.join("appendonlydir");
    let number = |path: &PathBuf| path.to_str()?.strip_suffix(".incr.aof")?.rsplit('.').next()?.parse().ok();
    let files = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let incremental: BTreeMap<usize, PathBuf> =
        files.filter_map(|path| Some((number(&path)?, path))).collect();
    assert!(incremental.keys().copied().eq(1..=incremental.len()), "nothing was rewritten");
    let mut input = BufReader::new(Cursor::new(Vec::new()));
    incremental.values().for_each(|path| input.get_mut().get_mut().extend(fs::read(path).unwrap()));
    let mut units: Vec<Vec<Vec<Vec<u8>>>> = Vec::new();
    let mut open: Option<Vec<Vec<Vec<u8>>>> = None;
    let mut select: Option<Vec<Vec<u8>>> = None;
    loop {
        let next = input.fill_buf().unwrap().first().copied();
        match next {
            None => break,
            Some(b'#') => {
                let mut line = Vec::new();
                input.read_until(b'\n', &mut line).unwrap();
                continue;
            }
            Some(_) => {}
        }
        let value = read_value(&mut input).unwrap();
        let words: Vec<Vec<u8>> =
            value.elements().unwrap().iter().map(|word| word.bytes().unwrap().to_vec()).collect();
        match (words[0].to_ascii_uppercase().as_slice(), &mut open) {
            (b"MULTI", _) => open = Some(Vec::new()),
            (b"EXEC", Some(_)) => units.push(select.take().into_iter().chain(open.take().unwrap()).collect()),
            (_, Some(unit)) => unit.push(words),
            (b"SELECT", None) => select = Some(words),
            (_, None) => units.push(select.take().into_iter().chain([words]).collect()),
        }
    }
    units
}

/// Formats the last records that name a key of a query or may change any key.
fn history(units: &[Vec<Vec<Vec<u8>>>], query: &Query) -> String {
    let words: Vec<&str> = query.line.split(' ').skip(1).collect();
    let text = |unit: &Vec<Vec<Vec<u8>>>| {
        let commands = unit.iter().map(|command| String::from_utf8_lossy(&command.join(&b' ')).into_owned());
        commands.collect::<Vec<_>>().join("; ")
    };
    let records = units.iter().enumerate().rev().map(|(at, unit)| (text(unit), at + 1));
    let is_about = |text: &str| {
        ["SWAPDB", "FLUSH"].iter().any(|name| text.contains(name))
            || text.split([' ', ';']).any(|word| words.contains(&word))
    };
    let about = records.filter(|(text, _)| is_about(text)).take(HISTORY);
    about.map(|(text, number)| format!("{number}: {text}\n")).collect()
}

/// Applies the records one by one, and after each runs the queries that have a state with its number.
pub(crate) fn check(units: &[Vec<Vec<Vec<u8>>>], states: &BTreeMap<u64, BTreeSet<(Query, String)>>) {
    let mut writer = Local::new(Protocol::Resp2);
    let turn = || {
        let mut turn = Turn::new(0, 1);
        turn.replay_at(1_700_000_000_000);
        turn
    };
    writer.turn = turn();
    let keyspace = Arc::clone(&writer.keyspace);
    let mut readers = [Protocol::Resp2, Protocol::Resp3]
        .map(|protocol| Local::sharing(Arc::clone(&keyspace), turn(), protocol));
    let last = *states.keys().last().unwrap();
    assert!(last <= units.len() as u64, "there are {} records, and a state of {last}", units.len());
    let mut checked = 0;
    for number in 0..=last {
        if let Some(unit) = number.checked_sub(1).map(|at| &units[at as usize]) {
            for words in unit {
                if words[0].eq_ignore_ascii_case(b"SELECT") {
                    writer.database = std::str::from_utf8(&words[1]).unwrap().parse().unwrap();
                    continue;
                }
                // Function calls are not in the file, only their effects.
                if words[0].eq_ignore_ascii_case(b"FUNCTION") {
                    continue;
                }
                let reply = writer.run(&words.iter().map(Vec::as_slice).collect::<Vec<_>>());
                assert_ne!(reply[0], b'-', "{words:?}: {}", String::from_utf8_lossy(&reply));
            }
        }
        for (query, result) in states.get(&number).into_iter().flatten() {
            let reader = &mut readers[usize::from(query.kind != Kind::Resp2)];
            reader.database = query.database;
            let words = split_arguments(&query.line).unwrap();
            let reply = reader.run(&words.iter().map(Vec::as_slice).collect::<Vec<_>>());
            let value = read_value(&mut &*reply).unwrap();
            let expected = comparable(&value, query);
            let history = || history(&units[..number as usize], query);
            assert_eq!(*result, expected, "{query:?} after record {number}:\n{}", history());
            checked += 1;
        }
    }
    assert!(checked > 0);
    println!("{} records, {checked} different states", units.len());
}
