//! JSON: random documents, paths and commands, payloads in both directions, and files.
//!
//! The random commands avoid these differences (docs/json.md explains them): a value that is selected twice is edited
//! once, and selected containers inside of others are edited before those; filters do not apply to values that are no
//! containers; members keep their order when one is removed; spaces in quoted names count; sums beyond 64 bits do not
//! wrap; JSON.DEL removes every selected value. Redis Stack does not read all numbers exactly, so its documents are
//! compared with those that it reads from the same text.

use ember_peers::{Mode, start_ember};
use ember_testkit::{Directory, Random, Server, Value, find_ember_server};

use crate::{Pair, Words, commands, is_shorter_double, start_stack, words};

const MODES: [Mode; 2] = [Mode::Concurrent, Mode::Sharded];

/// Names of members by the kind of their values: in all documents, the same names have the same kinds, so that filters
/// apply to arrays and objects only.
const SCALARS: [&str; 4] = ["n", "f", "s", "t"];
const ARRAYS: [&str; 2] = ["l", "m"];

/// The maximum nesting of random documents.
const DEPTH_MAX: usize = 3;

fn scalar(random: &mut Random) -> String {
    let strings = ["", "x", "é", "a\\\"b", "tab\\t", "\\u0001", "\\u00e9", "a\\\\b", "2024-01-02T03:04:05Z"];
    match random.below(9) {
        0 => "null".to_owned(),
        1 => "true".to_owned(),
        2 => "false".to_owned(),
        3 => random.between(-3, 3).to_string(),
        4 => random.between(-5_000_000_000, 5_000_000_000).to_string(),
        5 => format!("{}.{}", random.between(-99, 99), random.below(1000)),
        6 => format!("{}e{}", random.between(1, 99), random.between(-9, 21)),
        _ => format!("\"{}\"", random.pick(&strings)),
    }
}

fn array(random: &mut Random, depth: usize) -> String {
    let elements: Vec<String> = (0..random.below(5)).map(|_| value(random, depth + 1)).collect();
    format!("[{}]", elements.join(","))
}

fn object(random: &mut Random, depth: usize) -> String {
    let mut members = Vec::new();
    for name in SCALARS {
        if random.chance(60) {
            members.push(format!("\"{name}\":{}", scalar(random)));
        }
    }
    if depth < DEPTH_MAX {
        for name in ARRAYS {
            if random.chance(40) {
                members.push(format!("\"{name}\":{}", array(random, depth)));
            }
        }
        if random.chance(40) {
            members.push(format!("\"o\":{}", object(random, depth + 1)));
        }
    }
    random.shuffle(&mut members);
    format!("{{{}}}", members.join(","))
}

fn value(random: &mut Random, depth: usize) -> String {
    match random.below(6) {
        0 if depth < DEPTH_MAX => array(random, depth),
        1 | 2 if depth < DEPTH_MAX => object(random, depth),
        _ => scalar(random),
    }
}

fn any_name(random: &mut Random) -> &'static str {
    ["n", "f", "s", "t", "l", "m", "o", "q"][random.below(8)]
}

/// Whether a path may contain segments that select values inside of others.
#[derive(Clone, Copy, PartialEq)]
enum Reach {
    Any,
    /// No filter selects members, which RedisJSON 2.8 cannot edit.
    Editable,
    /// As [`Reach::Editable`], and no selected value is inside of another one, so that the order of edits does not
    /// matter.
    Disjoint,
}

fn filter(random: &mut Random) -> String {
    let name = any_name(random);
    let term = ["@", "@.n", "@.f", "@.s", "@['t']", "@.o.n", "@.l[0]", "$.n"][random.below(8)];
    let literal =
        ["1", "0", "-1", "2.5", "'x'", "\"é\"", "true", "false", "null", "$.n", "@.f"][random.below(11)];
    let comparison = ["==", "!=", "<", "<=", ">", ">="][random.below(6)];
    let test = match random.below(5) {
        0 => format!("@.{name}"),
        1 => "@.s =~ '^[xa]'".to_owned(),
        _ => format!("{term} {comparison} {literal}"),
    };
    match random.below(4) {
        0 => format!("({test}) && @.{name}"),
        1 => format!("@.{name} || {test}"),
        _ => format!("({test})"),
    }
}

/// Returns a random path.
fn path(random: &mut Random, reach: Reach) -> String {
    let is_legacy = random.chance(25);
    let mut path = if is_legacy { String::new() } else { "$".to_owned() };
    if random.chance(8) {
        return if is_legacy { ".".to_owned() } else { path };
    }
    for _ in 0..1 + random.below(3) {
        let name = any_name(random);
        let index = random.below(4);
        path += &match random.below(12) {
            0 => format!("['{name}']"),
            1 => format!("[\"{name}\",\"n\"]").replace("\"n\",\"n\"", "\"n\",\"s\""),
            2 => format!(".l[{index}]"),
            3 => format!(".l[-{}]", 1 + index),
            4 => format!(".m[{index}:]"),
            5 => format!(".m[:{index}:2]"),
            6 => format!(".l[?({})]", filter(random)),
            7 if reach != Reach::Disjoint => format!("..{name}"),
            8 if reach == Reach::Any => format!(".o[?({})]", filter(random)),
            9 => ".*".to_owned(),
            10 => ".l[*]".to_owned(),
            _ => format!(".{name}"),
        };
    }
    if random.chance(2) {
        path.push_str(["[", "..", ".é", "[1", "[?(", "]"][random.below(6)]);
    }
    path
}

/// Returns a random command on the key; the flag tells whether it may change the order of members.
fn command(random: &mut Random, key: &str, is_resp3: bool) -> (Vec<String>, bool) {
    let number = random.between(-4, 4).to_string();
    let any = path(random, Reach::Any);
    let editable = path(random, Reach::Editable);
    let disjoint = path(random, Reach::Disjoint);
    let other = value(random, 1);
    let words: Vec<String> = match random.below(27) {
        0 => vec!["JSON.SET".into(), key.into(), disjoint, other],
        1 => vec!["JSON.SET".into(), key.into(), disjoint, other, random.pick(&["NX", "XX"]).to_owned()],
        2 => vec!["JSON.GET".into(), key.into()],
        3 | 4 => vec!["JSON.GET".into(), key.into(), any],
        5 => vec!["JSON.GET".into(), key.into(), any, path(random, Reach::Any)],
        6 => {
            let mut words: Vec<String> = vec!["JSON.GET".into(), key.into(), "INDENT".into(), "  ".into()];
            words.extend(["NEWLINE".into(), "\n".into(), "SPACE".into(), " ".into(), any]);
            words
        }
        7 => vec!["JSON.MGET".into(), key.into(), "k0".into(), "text".into(), "missing".into(), any],
        8 => vec!["JSON.TYPE".into(), key.into(), any],
        9 => vec!["JSON.NUMINCRBY".into(), key.into(), editable, number],
        10 => vec!["JSON.NUMINCRBY".into(), key.into(), editable, format!("{number}.5")],
        11 => vec!["JSON.NUMMULTBY".into(), key.into(), editable, number],
        12 => vec!["JSON.STRAPPEND".into(), key.into(), editable, scalar(random)],
        13 => vec!["JSON.STRLEN".into(), key.into(), any],
        14 => vec!["JSON.TOGGLE".into(), key.into(), editable],
        15 => vec!["JSON.ARRAPPEND".into(), key.into(), editable, other, scalar(random)],
        16 => vec!["JSON.ARRINDEX".into(), key.into(), any, other],
        17 => vec![
            "JSON.ARRINDEX".into(),
            key.into(),
            any,
            scalar(random),
            number,
            random.between(-4, 4).to_string(),
        ],
        18 => vec!["JSON.ARRINSERT".into(), key.into(), disjoint, number, other],
        19 => vec!["JSON.ARRLEN".into(), key.into(), any],
        20 => vec!["JSON.ARRPOP".into(), key.into(), disjoint, number],
        21 => vec!["JSON.ARRTRIM".into(), key.into(), disjoint, number, random.between(-4, 4).to_string()],
        22 => vec!["JSON.OBJKEYS".into(), key.into(), any],
        23 => vec!["JSON.OBJLEN".into(), key.into(), any],
        24 => vec!["JSON.RESP".into(), key.into(), any],
        25 if is_resp3 => {
            let format = random.pick(&["EXPAND", "EXPAND1"]).to_owned();
            vec!["JSON.GET".into(), key.into(), "FORMAT".into(), format, any]
        }
        25 => vec!["JSON.CLEAR".into(), key.into(), disjoint],
        _ => match random.below(3) {
            0 => return (vec!["JSON.DEL".into(), key.into(), disjoint], true),
            1 => return (vec!["JSON.MERGE".into(), key.into(), disjoint, other], true),
            _ => vec![
                "JSON.MSET".into(),
                "k1".into(),
                "$".into(),
                other,
                key.into(),
                ".".into(),
                object(random, 0),
            ],
        },
    };
    (words, false)
}

/// Whether two texts are the same JSON value; the order of members does not matter.
fn is_same_json(one: &[u8], other: &[u8]) -> bool {
    let parse = |text| serde_json::from_slice::<serde_json::Value>(text).ok();
    parse(one).is_some_and(|one| Some(one) == parse(other))
}

/// Whether two replies are equal: members in any order, errors of paths at any position.
fn are_alike(one: &Value, other: &Value) -> bool {
    const PATH_ERROR: &[u8] = b"Error occurred on position";
    match (one, other) {
        (Value::Error(one), Value::Error(other)) => {
            // RedisJSON 2.8 damages quoted letters that are not ASCII.
            let ascii = |text: &[u8]| text.iter().copied().filter(u8::is_ascii).collect::<Vec<u8>>();
            ascii(one) == ascii(other) || one.starts_with(PATH_ERROR) && other.starts_with(PATH_ERROR)
        }
        (Value::Bulk(one), Value::Bulk(other)) => one == other || is_same_json(one, other),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| are_alike(one, other))
        }
        (Value::Map(one), Value::Map(other)) => {
            let has = |(name, value): &(Value, Value)| {
                other.iter().any(|pair| pair.0 == *name && are_alike(value, &pair.1))
            };
            one.len() == other.len() && one.iter().all(has)
        }
        (Value::Double(one), Value::Double(other)) => one == other || is_shorter_double(one, other),
        _ => one == other,
    }
}

fn bytes(text: &[String]) -> Words {
    text.iter().map(|word| word.as_bytes().to_vec()).collect()
}

/// Each server restores the documents of the other one: ember has the same documents as before, and Redis Stack those
/// that it reads from their text.
fn exchange(pair: &mut Pair, ember_replies: &[Value], stack_replies: &[Value]) {
    let [ember_texts, ember_payloads] = ember_replies.as_chunks::<2>().0 else { panic!("four replies") };
    let [_, stack_payloads] = stack_replies.as_chunks::<2>().0 else { panic!("four replies") };
    let (mut ember, mut stack, mut texts) = (Vec::new(), Vec::new(), Vec::new());
    for (key, index) in [("k0", 0), ("k1", 1)] {
        let payloads = (stack_payloads[index].bytes(), ember_payloads[index].bytes());
        let ((Some(from_stack), Some(from_ember)), Some(text)) = (payloads, ember_texts[index].bytes())
        else {
            continue;
        };
        let restore =
            |payload: &[u8]| [&b"RESTORE"[..], key.as_bytes(), b"0", payload, b"REPLACE"].map(<[u8]>::to_vec);
        let get = words(&format!("JSON.GET {key}"));
        texts.push(&ember_texts[index]);
        ember.extend([restore(from_stack).to_vec(), get.clone()]);
        let set = [&b"JSON.SET"[..], b"read", b"$", text].map(<[u8]>::to_vec);
        stack.extend([restore(from_ember).to_vec(), get, set.to_vec(), words("JSON.GET read")]);
    }
    let (ember_replies, stack_replies) = pair.run_each(&ember, &stack);
    let history = || pair.history.join("\n");
    for (replies, text) in ember_replies.as_chunks::<2>().0.iter().zip(texts) {
        assert_eq!(replies[0], Value::ok(), "after\n{}", history());
        assert!(are_alike(&replies[1], text), "{:?}\n{text:?}\nafter\n{}", replies[1], history());
    }
    for [restored, document, set, expected] in stack_replies.as_chunks::<4>().0 {
        assert_eq!([restored, set], [&Value::ok(); 2], "after\n{}", history());
        assert!(are_alike(document, expected), "{document:?}\n{expected:?}\nafter\n{}", history());
    }
}

#[test]
fn random_commands_have_the_same_replies() {
    let directory = Directory::new("stack-json");
    let stack = start_stack(&directory);
    for mode in MODES {
        let ember = start_ember(mode);
        for protocol in ["2", "3"] {
            let mut random = Random::new(if protocol == "2" { 1 } else { 2 });
            let mut pair = Pair::connect(&ember, &stack, protocol);
            let mut count = 0;
            while count < commands() / 4 {
                pair.history.clear();
                let mut batch = vec![words("DEL missing")];
                for key in ["k0", "k1"] {
                    let document = object(&mut random, 0);
                    batch.push(bytes(&["JSON.SET".into(), key.into(), "$".into(), document]));
                }
                for _ in 0..12 {
                    let key = ["k0", "k1", "k0", "k1", "k0", "missing", "text"][random.below(7)];
                    let (words, reorders) = command(&mut random, key, protocol == "3");
                    batch.push(bytes(&words));
                    count += 1;
                    if reorders {
                        break;
                    }
                }
                let reads = ["JSON.GET k0", "JSON.GET k1", "DUMP k0", "DUMP k1"].map(words);
                let first = batch.len();
                batch.extend(reads);
                let (ember_replies, stack_replies) = pair.run(&batch, are_alike);
                exchange(&mut pair, &ember_replies[first..], &stack_replies[first..]);
            }
        }
    }
}

#[test]
fn numbers_of_17_digits_are_read_exactly_and_by_redis_stack_not() {
    let directory = Directory::new("stack-json-numbers");
    let (stack, ember) = (start_stack(&directory), start_ember(Mode::Concurrent));
    let read = |server: &Server| {
        let mut client = server.client();
        assert_eq!(client.run("JSON.SET n $ 241.92000000000002"), Value::ok());
        client.run("JSON.GET n").text()
    };
    assert_eq!([read(&ember), read(&stack)], ["241.92000000000002", "241.92"]);
}

#[test]
fn documents_are_read_from_files_of_redis_stack() {
    let directory = Directory::new("stack-json-file");
    let stack = start_stack(&directory);
    let mut client = stack.client();
    let mut random = Random::new(3);
    for number in 0..100 {
        let document = object(&mut random, 0);
        client.command(&["JSON.SET", &format!("k{number}"), "$", &document]);
    }
    client.run("SAVE");
    let ember = Server::builder(find_ember_server()).directory(&directory.0).start();
    let mut loaded = ember.client();
    assert_eq!(loaded.run("DBSIZE"), Value::Integer(100));
    for number in 0..100 {
        let key = format!("k{number}");
        assert_eq!(loaded.command(&["JSON.GET", &key]), client.command(&["JSON.GET", &key]));
    }
}
