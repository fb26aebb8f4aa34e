//! Live queries of a server without a journal, which is the default: no file contains the history of states.
//!
//! So each key has one writer, and each write contains a number that the result shows. The numbers that a watcher
//! receives must ascend and end with the last written number: then each number was a state, no state arrived after a
//! newer state, and the last state has arrived.
//!
//! The same test can measure another server that supports `GET.WATCH`: `DICEDB_SERVER` is its address, and the test
//! prints its lost states.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use ember_testkit::{RawClient, Server, Value, split_arguments};

use super::oracle::Kind;
use super::{PATIENCE, setting};

/// Commands that write a number (`#`) to a key (`{}`), each with the command whose result shows the number.
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

/// The number of connections that watch all keys, for each kind of delivery.
const WATCHERS: usize = 3;

/// Counts of faults in the states that were sent.
#[derive(Debug, Default)]
struct Findings {
    states: AtomicU64,
    /// States that were older than states sent before.
    out_of_order: AtomicU64,
    /// Watchers that never received the last state.
    lost: AtomicU64,
    /// Queries that the server does not watch.
    refused: AtomicU64,
}

fn key(shape: usize) -> String {
    format!("unrecorded:{}", (b'a' + shape as u8) as char)
}

/// Returns the largest number in a text.
fn number_in(text: &str) -> u64 {
    let numbers =
        text.split(|letter: char| !letter.is_ascii_digit()).filter_map(|digits| digits.parse().ok());
    numbers.max().unwrap_or(0)
}

/// Returns all text in a value.
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

/// A watching connection, with the shape and the last received number of each of its queries, by the query's name.
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
                // Replies and states have the same form in RESP2: a message without a known name is the reply.
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
        // The first message of a channel may contain no value yet.
        if number <= *last && number > 0 {
            findings.out_of_order.fetch_add(1, Ordering::SeqCst);
        }
        *last = number;
    }

    /// Reads until all queries have received the last number.
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

/// Writes all keys, each by one connection, while other connections watch them; some of these begin to watch before the
/// writes, and some during the writes.
fn measure(address: SocketAddr, kinds: &[Kind], patience: Duration) -> Findings {
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
    let findings = measure(server.address(), &[Kind::Resp2, Kind::Resp3, Kind::Channel], PATIENCE);
    println!("{mode:?}: {findings:?}");
    let [states, out_of_order, lost, refused] =
        [&findings.states, &findings.out_of_order, &findings.lost, &findings.refused]
            .map(|count| count.load(Ordering::SeqCst));
    assert!(states > 0);
    assert_eq!([out_of_order, lost, refused], [0; 3]);
}

#[test]
fn versions_ascend_to_the_last_state_without_a_journal_in_the_concurrent_mode() {
    assert_nothing_wrong(&["--shards", "3", "--concurrent", "yes"]);
    measure_another();
}

#[test]
fn versions_ascend_to_the_last_state_without_a_journal_in_the_sharded_mode() {
    assert_nothing_wrong(&["--shards", "3", "--concurrent", "no"]);
}

/// The timeout for the next state of another server.
const OTHERS_PATIENCE: Duration = Duration::from_secs(5);

/// Prints the lost states of the server in `DICEDB_SERVER`, if set.
fn measure_another() {
    if let Ok(address) = std::env::var("DICEDB_SERVER") {
        let address = address.parse().expect("DICEDB_SERVER is an address and a port");
        println!("{address}: {:?}", measure(address, &[Kind::Resp2], OTHERS_PATIENCE));
    }
}
