//! Vector sets compared with a redis-server 8, whose path is in `REDIS8_SERVER`: replies, payloads and files. Debian 12
//! does not contain this version; `scripts/setup-redis8.sh` builds one.

#![allow(clippy::unwrap_used, reason = "the whole program is a test")]

use std::path::PathBuf;

use ember_testkit::{Directory, Random, RawClient, Server, Value, find_ember_server};

/// The accepted difference between scores: the servers add the terms of sums in different orders.
const TOLERANCE: f64 = 1e-5;

fn redis8() -> PathBuf {
    let path = std::env::var_os("REDIS8_SERVER").map(PathBuf::from);
    path.expect("set REDIS8_SERVER to a redis-server 8; scripts/setup-redis8.sh builds one")
}

/// Starts the given program as a server in a directory of its own.
fn start(program: PathBuf, directory: &Directory) -> Server {
    let builder = Server::builder(program).directory(&directory.0);
    builder.arguments(&["--save", "", "--enable-debug-command", "yes"]).start()
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Double(text) | Value::Bulk(text) => std::str::from_utf8(text).ok()?.parse().ok(),
        _ => None,
    }
}

/// Whether two replies are equal except for the last digits of numbers.
fn are_alike(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| are_alike(one, other))
        }
        (Value::Map(one), Value::Map(other)) => {
            let are_pairs_alike = |(one, other): (&(Value, Value), &(Value, Value))| {
                are_alike(&one.0, &other.0) && are_alike(&one.1, &other.1)
            };
            one.len() == other.len() && one.iter().zip(other).all(are_pairs_alike)
        }
        _ if one == other => true,
        _ => match (number(one), number(other)) {
            (Some(one), Some(other)) => (one - other).abs() < TOLERANCE,
            _ => false,
        },
    }
}

/// Calls with deterministic replies, including calls that are refused.
const LINES: &[&str] = &[
    "VADD k VALUES 3 1 0 0.5 a",
    "VADD k VALUES 3 0 1 0.25 b SETATTR {\"year\":1984}",
    "VADD k VALUES 3 -1 0.5 1 c Q8",
    "VADD k VALUES 3 1 1 1 a",
    "VADD k FP32 \"\\x00\\x00\\x80?\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\" d CAS",
    "VADD k VALUES 3 1 0 0.5 e EF 100 M 16",
    "VCARD k",
    "VDIM k",
    "VEMB k a",
    "VEMB k a RAW",
    "VEMB k none",
    "VEMB none a",
    "VEMB k a x",
    "VGETATTR k b",
    "VGETATTR k a",
    "VGETATTR none a",
    "VSETATTR k a {\"year\":2001}",
    "VSETATTR k none {}",
    "VSETATTR none a {}",
    "VISMEMBER k a",
    "VISMEMBER k none",
    "VISMEMBER none a",
    "VRANDMEMBER none",
    "VRANDMEMBER none 3",
    "VRANDMEMBER k 0",
    "VSIM k ELE a TRUTH",
    "VSIM k ELE a TRUTH WITHSCORES",
    "VSIM k ELE a TRUTH WITHSCORES WITHATTRIBS",
    "VSIM k ELE a TRUTH WITHATTRIBS COUNT 3",
    "VSIM k VALUES 3 1 0.5 0.25 WITHSCORES COUNT 2 EF 500",
    "VSIM k VALUES 3 1 0.5 0.25 NOTHREAD EPSILON 0.2",
    "VSIM k ELE a FILTER \".year > 1990\"",
    "VSIM k ELE a FILTER \".year > 1980 and .year < 2000\" FILTER-EF 50",
    "VSIM k ELE a FILTER \".year in [1984, 2001]\" WITHSCORES TRUTH",
    "VSIM k ELE none",
    "VSIM none ELE a",
    "VSIM none ELE a NONSENSE",
    "VSIM none VALUES 3 1 2 3 COUNT x",
    "VSIM k VALUES 2 1 0",
    "VSIM k VALUES 3 1 0",
    "VSIM k VALUES x 1 0 0",
    "VSIM k FP32 abc",
    "VSIM k ELE a COUNT 0",
    "VSIM k ELE a COUNT x",
    "VSIM k ELE a EPSILON 0",
    "VSIM k ELE a EF 0",
    "VSIM k ELE a EF 2000000",
    "VSIM k ELE a FILTER-EF x",
    "VSIM k ELE a FILTER \".year >\"",
    "VSIM k ELE a FILTER \"year > 3\"",
    "VSIM k ELE a NONSENSE",
    "VSIM k NONSENSE a",
    "VADD k VALUES 2 1 0 x",
    "VADD k VALUES 3 1 0 x",
    "VADD k VALUES 3 1 0 0 x NOQUANT",
    "VADD k VALUES 3 1 0 0 x BIN",
    "VADD k VALUES 3 1 0 0 x M 8",
    "VADD k VALUES 3 1 0 0 x M 3",
    "VADD k VALUES 3 1 0 0 x EF 0",
    "VADD k VALUES 3 1 0 0 x EF 2000000",
    "VADD k VALUES 3 1 0 0 x NONSENSE",
    "VADD k REDUCE 2 VALUES 3 1 0 0 x",
    "VADD k REDUCE 4 VALUES 3 1 0 0 x",
    "VADD k FP32 abc x",
    "VADD r REDUCE 2 VALUES 4 1 2 3 4 a",
    "VADD r REDUCE 2 VALUES 4 4 -2 1 4 b",
    "VADD r REDUCE 3 VALUES 4 1 2 3 4 c",
    "VADD r VALUES 4 1 2 3 4 c",
    "VADD r REDUCE 2 VALUES 3 1 2 3 c",
    "VDIM r",
    "VEMB r a",
    "VSIM r VALUES 4 1 2 3 4 WITHSCORES",
    "VSIM r VALUES 2 1 2 WITHSCORES",
    "VSIM r VALUES 3 1 2 3",
    "VADD f VALUES 2 3 -4 a NOQUANT",
    "VEMB f a RAW",
    "VADD b VALUES 3 3 -4 0 a BIN",
    "VEMB b a RAW",
    "VEMB b a",
    "VLINKS k none",
    "VLINKS none a",
    "VINFO none",
    "VDIM none",
    "VCARD none",
    "VREM k none",
    "VREM none a",
    "VREM k a",
    "VCARD k",
    "VSIM k ELE a",
    "TYPE k",
    "OBJECT ENCODING k",
    "VREM f a",
    "EXISTS f",
    "SET text x",
    "VADD text VALUES 2 1 0 a",
    "VSIM text ELE a",
    "VCARD text",
    "VREM text a",
    "VINFO text",
];

#[test]
fn replies_equal_those_of_redis_8_in_both_protocols() {
    for protocol in ["2", "3"] {
        let directories = [Directory::new("redis8-replies"), Directory::new("ember-replies")];
        let (redis, ember) = (start(redis8(), &directories[0]), start(find_ember_server(), &directories[1]));
        let [mut one, mut other] = [redis.client(), ember.client()];
        for client in [&mut one, &mut other] {
            client.run(&format!("HELLO {protocol}"));
        }
        let mut differences = Vec::new();
        for line in LINES {
            let (expected, answered) = (one.run(line), other.run(line));
            if !are_alike(&expected, &answered) {
                differences.push(format!("{line}\n  redis {expected:?}\n  ember {answered:?}"));
            }
        }
        assert!(differences.is_empty(), "RESP{protocol}:\n{}", differences.join("\n"));
    }
}

const SETS: [(&str, &str, &str); 4] =
    [("q8", "", ""), ("floats", "", " NOQUANT"), ("bits", "", " BIN"), ("reduced", "REDUCE 9 ", "")];

const ELEMENTS: usize = 60;

/// Creates sets of all kinds, with replaced and removed elements.
fn fill(clients: &mut [&mut RawClient], random: &mut Random) {
    const DIM: usize = 20;
    for call in 0..600 {
        let (set, reduce, options) = SETS[random.below(SETS.len())];
        let id = random.below(ELEMENTS);
        let line = match random.below(5) {
            0 => format!("VREM {set} e{id}"),
            1 => format!("VSETATTR {set} e{id} {call}"),
            _ => {
                let numbers = (0..DIM).map(|_| format!(" {}", random.below(2001) as f32 / 1000.0 - 1.0001));
                let numbers = numbers.collect::<String>();
                format!("VADD {set} {reduce}VALUES {DIM}{numbers} e{id}{options}")
            }
        };
        let replies: Vec<Value> = clients.iter_mut().map(|client| client.run(&line)).collect();
        assert!(!replies[0].is_error(), "{line}: {replies:?}");
        assert!(replies.iter().all(|reply| *reply == replies[0]), "{line}: {replies:?}");
    }
}

/// Returns all replies about the sets that do not depend on links.
fn answers(client: &mut RawClient) -> Vec<Value> {
    let mut answers = Vec::new();
    for (set, _, _) in SETS {
        answers.push(client.run(&format!("VCARD {set}")));
        answers.push(client.run(&format!("VDIM {set}")));
        for id in 0..ELEMENTS {
            for line in [format!("VEMB {set} e{id} RAW"), format!("VGETATTR {set} e{id}")] {
                answers.push(client.run(&line));
            }
        }
        for id in 0..ELEMENTS {
            answers.push(client.run(&format!("VSIM {set} ELE e{id} TRUTH COUNT 5 WITHSCORES WITHATTRIBS")));
        }
    }
    answers
}

/// Asserts that all replies are alike; in sets of sign bits, many elements have equal distances, and their order may
/// differ.
fn assert_alike(one: &[Value], other: &[Value]) {
    assert_eq!(one.len(), other.len());
    for (at, (one, other)) in one.iter().zip(other).enumerate() {
        let scores = |value: &Value| -> Vec<f64> {
            let elements = value.elements().unwrap_or_default();
            elements.iter().skip(1).step_by(3).filter_map(number).collect()
        };
        let are_scores_alike = || {
            let (one, other) = (scores(one), scores(other));
            let are_alike = one.iter().zip(&other).all(|(one, other)| (one - other).abs() < TOLERANCE);
            !one.is_empty() && one.len() == other.len() && are_alike
        };
        assert!(are_alike(one, other) || are_scores_alike(), "answer {at}: {one:?}\n{other:?}");
    }
}

#[test]
fn payloads_and_files_are_exchanged_both_ways() {
    let directories = [Directory::new("redis8-files"), Directory::new("ember-files")];
    let programs = [redis8(), find_ember_server()];
    let servers = [0, 1].map(|at: usize| start(programs[at].clone(), &directories[at]));
    let [mut redis, mut ember] = [servers[0].client(), servers[1].client()];
    fill(&mut [&mut redis, &mut ember], &mut Random::new(3));
    let expected = answers(&mut redis);
    assert_alike(&answers(&mut ember), &expected);
    // Each server restores the payloads of the other under different names.
    for (set, _, _) in SETS {
        let payloads = [&mut redis, &mut ember].map(|client| {
            let payload = client.run(&format!("DUMP {set}"));
            payload.bytes().expect("the set exists").to_vec()
        });
        for (client, payload) in [(&mut redis, &payloads[1]), (&mut ember, &payloads[0])] {
            let restored = client.command(&[&b"RESTORE"[..], set.as_bytes(), b"0", payload, b"REPLACE"]);
            assert_eq!(restored, Value::ok(), "{set}");
        }
    }
    assert_alike(&answers(&mut redis), &expected);
    assert_alike(&answers(&mut ember), &expected);
    // Elements are also found over links that the other server has built.
    for (set, _, _) in SETS {
        for client in [&mut redis, &mut ember] {
            let found = client.run(&format!("VSIM {set} VALUES 20{} COUNT 100 EF 1000", " 0.5".repeat(20)));
            assert_eq!(found.elements().unwrap().len() as i64, integer(&client.run(&format!("VCARD {set}"))));
        }
    }
    // Each server starts with the file of the other.
    for client in [&mut redis, &mut ember] {
        assert_eq!(client.run("SAVE"), Value::ok());
    }
    drop(servers);
    let swapped = [0, 1].map(|at: usize| start(programs[at].clone(), &directories[1 - at]));
    for server in &swapped {
        assert_alike(&answers(&mut server.client()), &expected);
    }
}

fn integer(value: &Value) -> i64 {
    let Value::Integer(number) = value else { panic!("{value:?} is not a number") };
    *number
}
