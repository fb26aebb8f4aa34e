//! Live queries of a server that keeps no journal, which is the default: nothing tells afterwards what each state was.
//!
//! So each key has one writer, and each write a number that its result shows. The numbers that a watcher is sent must rise,
//! and end with the last one: then each of them was a state, none came after a newer one, and the last one has arrived.
//!
//! The same look at another server that has `GET.WATCH` is a measurement: `DICEDB_SERVER` is its address, and what it loses
//! is printed.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use ember_testkit::{RawClient, Server, Value, split_arguments};

use super::oracle::Kind;
use super::{PATIENCE, setting};

/// How a number is written (`#`) to a key (`{}`), and the command whose result shows it.
const SHAPES: [(&str, &str); 8] = [
    ("SET {} #", "GET {}"),
    ("INCR {}", "GET {}"),
    ("ZADD {} # m", "ZRANGE {} 0 -1 WITHSCORES"),
    ("ZINCRBY {} 1 m", "ZRANGE {} 0 -1 REV WITHSCORES"),
    ("HSET {} f #", "HGETALL {}"),
    ("RPUSH {} x", "LLEN {}"),
    ("SADD {} m#", "SCARD {}"),
    ("XADD {} 0-# f v", "XREVRANGE {} + - COUNT 1"),
];

/// Connections that watch all keys, for each way to be told.
const WATCHERS: usize = 3;

/// What was wrong with the states that were sent.
#[derive(Debug, Default)]
struct Findings {
    states: AtomicU64,
    /// States that did not come behind those that were sent before.
    fallen_behind: AtomicU64,
    /// Watchers that never got the last state.
    lost: AtomicU64,
    /// Queries that the server does not watch.
    refused: AtomicU64,
}

fn key(shape: usize) -> String {
    format!("unrecorded:{}", (b'a' + shape as u8) as char)
}

/// The largest number in a text.
fn number_in(text: &str) -> u64 {
    let numbers =
        text.split(|letter: char| !letter.is_ascii_digit()).filter_map(|digits| digits.parse().ok());
    numbers.max().unwrap_or(0)
}

/// All that a value says.
fn text_of(value: &Value) -> String {
    match value {
        Value::Array(list) | Value::Set(list) => list.iter().map(|item| text_of(item) + " ").collect(),
        Value::Map(pairs) => {
            pairs.iter().map(|(name, value)| format!("{} {} ", text_of(name), text_of(value))).collect()
        }
        Value::Null => String::new(),
        Value::Integer(number) => number.to_string(),
        Value::Double(digits) => String::from_utf8_lossy(digits).into_owned(),
        other => other.text(),
    }
}

/// A connection that watches; by the names that it knows its queries by, the shape and the number it was sent last.
struct Follower {
    client: RawClient,
    kind: Kind,
    last: HashMap<String, (usize, u64)>,
}

impl Follower {
    fn begin(address: SocketAddr, kind: Kind, patience: Duration, findings: &Findings) -> Follower {
        let mut client = RawClient::connect(address).unwrap();
        client.set_timeout(patience).unwrap();
        if kind == Kind::Resp3 {
            client.run("HELLO 3");
        }
        let mut follower = Follower { client, kind, last: HashMap::new() };
        for (shape, (_, read)) in SHAPES.iter().enumerate() {
            follower.watch(shape, &read.replace("{}", &key(shape)), findings);
        }
        follower
    }

    fn watch(&mut self, shape: usize, call: &str, findings: &Findings) {
        if self.kind == Kind::Channel {
            let channel = format!("__watch@0__:{call}");
            self.client.send_command(&["SUBSCRIBE", &channel]).unwrap();
            self.last.insert(channel, (shape, 0));
            return;
        }
        let (name, words) = call.split_once(' ').unwrap();
        self.client.send_command(&split_arguments(format!("{name}.WATCH {words}")).unwrap()).unwrap();
        loop {
            let value = self.client.read_value().unwrap();
            let (name, result) = match &value {
                Value::Error(_) => {
                    findings.refused.fetch_add(1, Ordering::SeqCst);
                    return;
                }
                Value::Map(_) => {
                    (value.get("fingerprint").unwrap().text(), text_of(&value.get("result").unwrap()))
                }
                // Replies and states look alike in RESP2: what has no name yet is the reply.
                Value::Array(parts) if !self.last.contains_key(&parts[1].text()) => {
                    (parts[1].text(), text_of(&parts[2]))
                }
                _ => {
                    self.take(&value, findings);
                    continue;
                }
            };
            self.last.insert(name, (shape, number_in(&result)));
            return;
        }
    }

    fn take(&mut self, value: &Value, findings: &Findings) {
        let (Value::Array(parts) | Value::Push(parts)) = value else { panic!("{:?}: {value:?}", self.kind) };
        let text = match self.kind {
            Kind::Channel if parts[0].text() == "subscribe" => return,
            Kind::Channel => {
                let message: serde_json::Value = serde_json::from_str(&parts[2].text()).unwrap();
                message["result"].to_string()
            }
            Kind::Resp2 => text_of(&parts[2]),
            Kind::Resp3 => text_of(&parts[3]),
        };
        findings.states.fetch_add(1, Ordering::SeqCst);
        let (_, last) = self.last.get_mut(&parts[1].text()).unwrap();
        let number = number_in(&text);
        // The first message of a channel may say that there is nothing yet.
        if number <= *last && number > 0 {
            findings.fallen_behind.fetch_add(1, Ordering::SeqCst);
        }
        *last = number;
    }

    /// Reads until all numbers are the last one.
    fn run(mut self, last: u64, findings: &Findings) {
        while self.last.values().any(|(_, number)| *number != last) {
            let Ok(value) = self.client.read_value() else { break };
            self.take(&value, findings);
        }
        let lost: Vec<_> = self.last.values().filter(|(_, number)| *number != last).collect();
        if !lost.is_empty() {
            println!("{:?}: of {last} the last numbers by shape are {lost:?}", self.kind);
        }
        findings.lost.fetch_add(lost.len() as u64, Ordering::SeqCst);
    }
}

/// Has all keys written, each by one connection, while others watch them; some begin to watch before, some meanwhile.
fn look(address: SocketAddr, kinds: &[Kind], patience: Duration) -> Findings {
    let last = setting("LIVE_CHANGES", 6000) / SHAPES.len() as u64;
    let findings = Findings::default();
    let mut control = RawClient::connect(address).unwrap();
    (0..SHAPES.len()).for_each(|shape| _ = control.run(&format!("DEL {}", key(shape))));
    let begin = |kind: Kind| Follower::begin(address, kind, patience, &findings);
    let early: Vec<Follower> = kinds.iter().map(|&kind| begin(kind)).collect();
    thread::scope(|scope| {
        let (findings, begin) = (&findings, &begin);
        for (shape, (write, _)) in SHAPES.iter().enumerate() {
            scope.spawn(move || {
                let mut client = RawClient::connect(address).unwrap();
                for number in 1..=last {
                    let line = write.replace("{}", &key(shape)).replace('#', &number.to_string());
                    client.run(&line);
                }
            });
        }
        early.into_iter().for_each(|follower| _ = scope.spawn(move || follower.run(last, findings)));
        for &kind in kinds.iter().cycle().take(kinds.len() * (WATCHERS - 1)) {
            scope.spawn(move || begin(kind).run(last, findings));
        }
    });
    findings
}

fn assert_nothing_wrong(mode: &[&str]) {
    let server = Server::start(env!("CARGO_BIN_EXE_ember-server"), mode);
    let findings = look(server.address(), &[Kind::Resp2, Kind::Resp3, Kind::Channel], PATIENCE);
    println!("{mode:?}: {findings:?}");
    let [states, fallen_behind, lost, refused] =
        [&findings.states, &findings.fallen_behind, &findings.lost, &findings.refused]
            .map(|count| count.load(Ordering::SeqCst));
    assert!(states > 0);
    assert_eq!([fallen_behind, lost, refused], [0; 3]);
}

#[test]
fn states_rise_to_the_last_one_without_a_journal_in_the_concurrent_mode() {
    assert_nothing_wrong(&["--shards", "3", "--concurrent", "yes"]);
    look_at_another();
}

#[test]
fn states_rise_to_the_last_one_without_a_journal_in_the_sharded_mode() {
    assert_nothing_wrong(&["--shards", "3", "--concurrent", "no"]);
}

/// How long a state of another server may take after the one before it.
const OTHERS_PATIENCE: Duration = Duration::from_secs(5);

/// Prints what another server loses, if there is one.
fn look_at_another() {
    if let Ok(address) = std::env::var("DICEDB_SERVER") {
        let address = address.parse().expect("DICEDB_SERVER is an address and a port");
        println!("{address}: {:?}", look(address, &[Kind::Resp2], OTHERS_PATIENCE));
    }
}
