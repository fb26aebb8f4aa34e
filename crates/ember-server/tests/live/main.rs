//! Live queries compared with the append-only file: every state that was sent is the command's result after exactly the
//! number of records in the state's version.
//!
//! Random writers of all types, transactions and scripts run concurrently with connections that watch random commands
//! in RESP2, in RESP3 and as channels; some of these connections stall. `LIVE_CHANGES`, `LIVE_WATCHERS` and `LIVE_SEED`
//! change the number of writes, of watchers, and the seed. Other watchers resume after the server was killed
//! (`killed.rs`); `LIVE_KILLS` is the number of kills. States of servers without a file are compared with the numbers
//! that are written (`unrecorded.rs`). Past states are compared in the same way (`past.rs`).

#![allow(clippy::unwrap_used, reason = "the whole program is a test")]

mod killed;
mod oracle;
mod past;
mod random_commands;
mod unrecorded;

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use ember_testkit::{Random, RawClient, Server, Value, encode, split_arguments, wait_until};
use oracle::{Kind, Query, States, check, comparable, comparable_message, number_of, units};
use serde_json::Value as Json;

/// The number of queries of one connection.
const QUERIES_EACH: usize = 20;

/// The number of connections that write.
const WRITERS: usize = 4;

/// The timeout for the last states.
const PATIENCE: Duration = Duration::from_secs(60);

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// A connection that watches.
struct Watching {
    client: RawClient,
    kind: Kind,
    /// For each fingerprint and database, or channel: the query, whether equal results are requested, and the last
    /// number and result.
    queries: HashMap<String, (Query, bool, Option<u64>, String)>,
    states: States,
    received: u64,
}

impl Watching {
    fn begin(server: &Server, kind: Kind, random: &mut Random, states: States) -> Watching {
        let mut client = server.client();
        client.set_timeout(PATIENCE).unwrap();
        if kind == Kind::Resp3 {
            client.run("HELLO 3");
        }
        let mut watching = Watching { client, kind, queries: HashMap::new(), states, received: 0 };
        // A connection uses one database; channels include the database in their names.
        let own = random.below(random_commands::DATABASES);
        watching.client.run(&format!("SELECT {own}"));
        watching.watch("GET awake", 0, false, false, random);
        for _ in 0..QUERIES_EACH {
            let (line, is_unordered) = random_commands::read(random);
            let database = if kind == Kind::Channel { random.below(random_commands::DATABASES) } else { own };
            let every = kind != Kind::Channel && random.chance(10);
            watching.watch(&line, database, is_unordered, every, random);
        }
        watching
    }

    fn watch(&mut self, line: &str, database: usize, is_unordered: bool, every: bool, random: &mut Random) {
        let query = Query { database, line: line.to_owned(), is_unordered, kind: self.kind };
        if self.queries.values().any(|(other, ..)| *other == query) {
            return;
        }
        if self.kind == Kind::Channel {
            let channel = format!("__watch@{database}__:{line}");
            self.client.send_command(&["SUBSCRIBE", &channel]).unwrap();
            self.queries.insert(channel, (query, every, None, String::new()));
            return;
        }
        let interval = if random.chance(20) { "INTERVAL 20 " } else { "" };
        let every_word = if every { "EVERY " } else { "" };
        let call = format!("WATCH.OPEN {interval}{every_word}COMMAND {line}");
        self.client.send(format!("{call}\r\n").as_bytes()).unwrap();
        // States of other queries may precede the reply; they have an entry already.
        let (fingerprint, version, result) = loop {
            let value = self.client.read_value().unwrap();
            match (&value, self.kind) {
                (Value::Map(_), _) => {
                    let text = |name: &str| value.get(name).unwrap().text();
                    break (text("fingerprint"), text("version"), value.get("result").unwrap());
                }
                (Value::Array(parts), Kind::Resp2) if !self.queries.contains_key(&parts[1].text()) => {
                    break (parts[1].text(), parts[2].text(), parts[3].clone());
                }
                _ => self.take(&value),
            }
        };
        let text = comparable(&result, &query);
        self.note(&query, number_of(&version), &text);
        self.queries.insert(fingerprint, (query, every, Some(number_of(&version)), text));
    }

    fn note(&mut self, query: &Query, number: u64, result: &str) {
        self.received += 1;
        self.states.lock().unwrap().entry(number).or_default().insert((query.clone(), result.to_owned()));
    }

    /// Checks and records a message.
    fn take(&mut self, value: &Value) {
        let (Value::Array(parts) | Value::Push(parts)) = value else { panic!("{:?}: {value:?}", self.kind) };
        let (name, version, text);
        if self.kind == Kind::Channel {
            if parts[0].text() == "subscribe" {
                return;
            }
            let message: Json = serde_json::from_str(&parts[2].text()).unwrap();
            name = parts[1].text();
            version = message["version"].as_str().unwrap().to_owned();
            text = comparable_message(&message, &self.queries[&name].0);
        } else {
            name = parts[1].text();
            version = parts[2].text();
            text = comparable(&parts[3], &self.queries[&name].0);
        }
        let number = number_of(&version);
        let (query, every, last, before) = self.queries.get_mut(&name).unwrap();
        assert!(Some(number) > *last, "{query:?}: {number} arrives after {last:?}");
        assert!(*every || *before != text, "{query:?}: {text} comes twice");
        (*last, *before) = (Some(number), text.clone());
        let query = query.clone();
        self.note(&query, number, &text);
    }

    /// Reads until all queries have received their final states, which are known once `is_over`.
    fn run(
        mut self,
        random: &mut Random,
        is_over: &AtomicBool,
        finals: &Mutex<HashMap<Query, String>>,
    ) -> u64 {
        let mut patience: Option<Instant> = None;
        loop {
            let value = self.client.read_value().unwrap();
            self.take(&value);
            if random.below(2000) == 0 {
                thread::park_timeout(Duration::from_millis(random.below(200) as u64));
            }
            if is_over.load(Ordering::SeqCst) {
                let finals = finals.lock().unwrap();
                let late: Vec<_> = self
                    .queries
                    .values()
                    .filter(|(query, _, _, last)| query.line != "GET awake" && finals[query] != *last)
                    .map(|(query, _, number, last)| (query, number, last, &finals[query]))
                    .collect();
                if late.is_empty() {
                    return self.received;
                }
                let since = *patience.get_or_insert_with(Instant::now);
                assert!(since.elapsed() < PATIENCE, "the last states have not arrived: {late:?}");
            }
        }
    }
}

/// Sends random writes, some of them in transactions.
fn write(server: &Server, changes: u64, random: &mut Random) {
    let mut client = server.client();
    let mut sent = 0;
    while sent < changes {
        let calls = if random.chance(20) { 1 + random.below(30) } else { 1 };
        let is_transaction = random.chance(15);
        let mut bytes = encode(&["SELECT".to_owned(), random.below(random_commands::DATABASES).to_string()]);
        let mut replies = 1;
        if is_transaction {
            bytes.extend(encode(&["MULTI"]));
            replies += 2;
        }
        for _ in 0..calls {
            bytes.extend(encode(&split_arguments(random_commands::write(random)).unwrap()));
            replies += 1;
        }
        if is_transaction {
            bytes.extend(encode(&["EXEC"]));
        }
        client.send(&bytes).unwrap();
        (0..replies).for_each(|_| _ = client.read_value().unwrap());
        sent += calls as u64;
    }
}

fn run(mode: &[&str]) {
    let changes = setting("LIVE_CHANGES", 6000);
    let watchers = setting("LIVE_WATCHERS", 200);
    let seed = setting("LIVE_SEED", 1);
    let mut random = Random::new(seed);
    let mut server = Server::builder(env!("CARGO_BIN_EXE_ember-server"))
        .arguments(mode)
        .arguments(&["--appendonly", "yes", "--auto-aof-rewrite-percentage", "0", "--save", ""])
        .start();
    assert!(!server.client().command(&["FUNCTION", "LOAD", random_commands::LIBRARY]).is_error());
    let states: States = Arc::default();
    let (is_over, finals) = (AtomicBool::new(false), Mutex::new(HashMap::new()));
    let connections: Vec<Watching> = (0..watchers as usize / QUERIES_EACH)
        .map(|number| {
            let kind = [Kind::Resp2, Kind::Resp3, Kind::Channel][number % 3];
            Watching::begin(&server, kind, &mut random, Arc::clone(&states))
        })
        .collect();
    let queries: BTreeSet<Query> =
        connections.iter().flat_map(|one| one.queries.values().map(|(query, ..)| query.clone())).collect();
    let received: u64 = thread::scope(|scope| {
        let (is_over, finals) = (&is_over, &finals);
        let watching: Vec<_> = connections
            .into_iter()
            .map(|one| {
                let mut random = Random::new(random.next_u64());
                scope.spawn(move || one.run(&mut random, is_over, finals))
            })
            .collect();
        let writing: Vec<_> = (0..WRITERS)
            .map(|_| {
                let mut random = Random::new(random.next_u64());
                let server = &server;
                scope.spawn(move || write(server, changes / WRITERS as u64, &mut random))
            })
            .collect();
        writing.into_iter().for_each(|writer| writer.join().unwrap());
        let mut control = server.client();
        control.run("CONFIG SET maxmemory 0");
        wait_until("nothing expires any more", || {
            let text = control.run("INFO keyspace").text();
            let volatile = text.split("expires=").skip(1).all(|rest| rest.starts_with("0,"));
            let fields = (0..random_commands::DATABASES).all(|database| {
                control.run(&format!("SELECT {database}"));
                (0..4).all(|key| {
                    let ttl = control.run(&format!("EVAL \"local r = redis.pcall('HKEYS', KEYS[1]) if r.err then return 0 end local n = 0 for _, f in ipairs(r) do if redis.call('HPTTL', KEYS[1], 'FIELDS', 1, f)[1] >= 0 then n = n + 1 end end return n\" 1 h{key}"));
                    ttl.integer().unwrap_or(0) == 0
                })
            });
            volatile && fields
        });
        let mut clients = [server.client(), server.client()];
        clients[1].run("HELLO 3");
        for query in queries {
            let client = &mut clients[usize::from(query.kind != Kind::Resp2)];
            client.run(&format!("SELECT {}", query.database));
            let value = client.command(&split_arguments(&query.line).unwrap());
            let result = comparable(&value, &query);
            finals.lock().unwrap().insert(query, result);
        }
        is_over.store(true, Ordering::SeqCst);
        // Wakes connections that have received all states, so that they check them.
        let mut number = 0;
        while !watching.iter().all(|one| one.is_finished()) {
            number += 1;
            for database in 0..random_commands::DATABASES {
                control.run(&format!("SELECT {database}"));
                control.run(&format!("SET awake {number}"));
            }
            thread::park_timeout(Duration::from_millis(20));
        }
        watching.into_iter().map(|one| one.join().unwrap()).sum()
    });
    server.signal("TERM");
    assert!(server.wait().success());
    println!("{mode:?}: {received} states received");
    check(&units(server.directory()), &states.lock().unwrap());
}

#[test]
fn every_state_matches_its_record_in_the_concurrent_mode() {
    run(&["--shards", "3", "--concurrent", "yes"]);
}

#[test]
fn every_state_matches_its_record_in_the_sharded_mode() {
    run(&["--shards", "3", "--concurrent", "no"]);
}

#[test]
fn every_state_matches_its_record_where_threads_run_the_queries() {
    run(&["--shards", "3", "--concurrent", "yes", "--long-call-elements", "2"]);
}

#[test]
fn every_state_matches_its_record_where_threads_run_the_queries_of_shards() {
    run(&["--shards", "3", "--concurrent", "no", "--long-call-elements", "2"]);
}
