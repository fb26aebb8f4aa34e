//! A server with `appendfsync always` is killed under random writes, and its watchers reconnect to the next server with
//! their last versions.
//!
//! Every state that was sent is in the append-only file: it is the result after a record that the next server also has.
//! A reconnecting client receives the reply "unchanged" exactly if it has the current result, and otherwise receives
//! the current result. Some clients reconnect while the server lives.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use ember_testkit::{
    Directory, OnDrop, Random, RawClient, Server, Value, encode, split_arguments, wait_until,
};
use serde_json::Value as Json;

use super::oracle::{Kind, Query, States, check, comparable, comparable_message, number_of, units};
use super::{PATIENCE, random_commands, setting};

/// The number of connections that watch; the next constant is the number of queries of each.
const FOLLOWERS: usize = 9;
const QUERIES: usize = 12;

/// The number of connections that write.
const WRITERS: usize = 3;

/// The maximum number of states that are sent before the server is killed.
const STATES_MAX: usize = 1500;

/// The mean number of states that a connection receives before it reconnects.
const STATES_BEFORE_RETURN: usize = 300;

/// The state of a watched query.
struct Followed {
    query: Query,
    /// The version of the last state, and its result.
    version: String,
    result: String,
}

/// A client that watches across all runs of a server.
struct Follower {
    kind: Kind,
    database: usize,
    followed: Vec<Followed>,
}

/// One run of a server.
struct Life<'l> {
    server: &'l Server,
    /// The number of records before this run.
    origin: u64,
    states: &'l States,
    received: &'l AtomicU64,
    is_killed: &'l AtomicBool,
}

impl Life<'_> {
    fn record(&self, followed: &Followed) {
        let number = self.origin + number_of(&followed.version);
        let state = (followed.query.clone(), followed.result.clone());
        self.states.lock().unwrap().entry(number).or_default().insert(state);
        self.received.fetch_add(1, Ordering::SeqCst);
    }

    /// Checks the error that has ended a connection.
    fn end(&self, error: &io::Error) {
        assert!(self.is_killed.load(Ordering::SeqCst), "a connection has ended: {error}");
    }
}

fn history_of(version: &str) -> &str {
    version.split('-').next().unwrap()
}

impl Follower {
    fn new(number: usize, random: &mut Random) -> Follower {
        let kind = [Kind::Resp2, Kind::Resp3, Kind::Channel][number % 3];
        let database = random.below(random_commands::DATABASES);
        let mut followed: Vec<Followed> = Vec::new();
        while followed.len() < QUERIES {
            let (line, is_unordered) = random_commands::read(random);
            let query = Query { database, line, is_unordered, kind };
            if !followed.iter().any(|other| other.query == query) {
                followed.push(Followed { query, version: String::new(), result: String::new() });
            }
        }
        Follower { kind, database, followed }
    }

    /// Resumes all queries. `is_quiet`: whether no connection writes.
    fn open<'f>(&'f mut self, life: &'f Life<'f>, is_quiet: bool) -> io::Result<Connected<'f>> {
        let mut client = RawClient::connect(life.server.address())?;
        client.set_timeout(PATIENCE)?;
        if self.kind == Kind::Resp3 {
            client.send(b"HELLO 3\r\n")?;
            client.read_value()?;
        }
        client.send(format!("SELECT {}\r\n", self.database).as_bytes())?;
        client.read_value()?;
        let count = self.followed.len();
        let mut connected = Connected { client, follower: self, life, names: HashMap::new() };
        for at in 0..count {
            connected.watch(at, is_quiet)?;
        }
        if is_quiet && connected.follower.kind == Kind::Channel {
            // Each query receives a confirmation and a state.
            for _ in 0..2 * count {
                let value = connected.client.read_value()?;
                connected.take(&value);
            }
        }
        Ok(connected)
    }
}

/// A connection of a follower.
struct Connected<'f> {
    client: RawClient,
    follower: &'f mut Follower,
    life: &'f Life<'f>,
    /// Indexes into [`Follower::followed`] by fingerprint or channel.
    names: HashMap<String, usize>,
}

impl Connected<'_> {
    /// Watches a query from the known version on, and checks the reply.
    fn watch(&mut self, at: usize, is_quiet: bool) -> io::Result<()> {
        let Followed { query, version, .. } = &self.follower.followed[at];
        let (line, given) = (query.line.clone(), version.clone());
        if self.follower.kind == Kind::Channel {
            let channel = format!("__watch@{}__:{line}", self.follower.database);
            self.client.send_command(&["SUBSCRIBE", &channel])?;
            self.names.insert(channel, at);
            return Ok(());
        }
        let since = if given.is_empty() { String::new() } else { format!("SINCE {given} ") };
        self.client.send(format!("WATCH.OPEN {since}COMMAND {line}\r\n").as_bytes())?;
        // States of other queries may arrive before the reply.
        let (name, version, result) = loop {
            let value = self.client.read_value()?;
            match &value {
                Value::Map(_) => {
                    let text = |name: &str| value.get(name).unwrap().text();
                    break (text("fingerprint"), text("version"), value.get("result").unwrap());
                }
                Value::Array(parts) if !self.names.contains_key(&parts[1].text()) => {
                    break (parts[1].text(), parts[2].text(), parts[3].clone());
                }
                _ => self.take(&value),
            }
        };
        self.names.insert(name, at);
        let followed = &mut self.follower.followed[at];
        if version == given {
            assert_eq!(result, Value::Null, "{:?}: unchanged", followed.query);
            if is_quiet {
                // The current result is the last known one.
                let state = (followed.query.clone(), followed.result.clone());
                self.life.states.lock().unwrap().entry(self.life.origin).or_default().insert(state);
            }
            return Ok(());
        }
        let text = comparable(&result, &followed.query);
        if history_of(&version) == history_of(&given) {
            assert!(number_of(&version) > number_of(&given), "{given} goes back to {version}");
        }
        assert!(
            !is_quiet || given.is_empty() || text != followed.result,
            "{:?} is unchanged",
            followed.query
        );
        (followed.version, followed.result) = (version, text);
        self.life.record(followed);
        Ok(())
    }

    /// Checks and records a state.
    fn take(&mut self, value: &Value) {
        let (Value::Array(parts) | Value::Push(parts)) = value else { panic!("{value:?}") };
        if parts[0].text() == "subscribe" {
            return;
        }
        let is_channel = self.follower.kind == Kind::Channel;
        let at = self.names[&parts[1].text()];
        let followed = &mut self.follower.followed[at];
        let (version, text) = if is_channel {
            let message: Json = serde_json::from_str(&parts[2].text()).unwrap();
            let text = comparable_message(&message, &followed.query);
            (message["version"].as_str().unwrap().to_owned(), text)
        } else {
            (parts[2].text(), comparable(&parts[3], &followed.query))
        };
        // A new subscription to a channel begins with the current state.
        let (before, now) = (&followed.version, &version);
        if history_of(before) == history_of(now) {
            let is_later = number_of(now) > number_of(before);
            assert!(is_later || (is_channel && now == before), "{before} goes back to {now}");
            assert!(is_channel || text != followed.result, "{:?} is sent twice", followed.query);
        }
        (followed.version, followed.result) = (version, text);
        self.life.record(followed);
    }
}

/// Watches queries until the server is killed.
fn follow(follower: &mut Follower, life: &Life<'_>, random: &mut Random) {
    loop {
        let mut connected = match follower.open(life, false) {
            Ok(connected) => connected,
            Err(error) => return life.end(&error),
        };
        loop {
            match connected.client.read_value() {
                Ok(value) => connected.take(&value),
                Err(error) => return life.end(&error),
            }
            if random.below(STATES_BEFORE_RETURN) == 0 {
                break;
            }
        }
    }
}

/// Sends random writes until the server is killed.
fn write(life: &Life<'_>, random: &mut Random) -> io::Result<()> {
    let mut client = RawClient::connect(life.server.address())?;
    client.set_timeout(PATIENCE)?;
    loop {
        let mut bytes = encode(&["SELECT".to_owned(), random.below(random_commands::DATABASES).to_string()]);
        let calls = 1 + random.below(4);
        let is_transaction = random.chance(15);
        if is_transaction {
            bytes.extend(encode(&["MULTI"]));
        }
        for _ in 0..calls {
            bytes.extend(encode(&split_arguments(random_commands::final_write(random)).unwrap()));
        }
        if is_transaction {
            bytes.extend(encode(&["EXEC"]));
        }
        client.send(&bytes)?;
        for _ in 0..1 + calls + 2 * usize::from(is_transaction) {
            client.read_value()?;
        }
    }
}

fn start(mode: &[&str], directory: &Path) -> Server {
    Server::builder(env!("CARGO_BIN_EXE_ember-server"))
        .arguments(mode)
        .arguments(&["--appendonly", "yes", "--appendfsync", "always"])
        .arguments(&["--auto-aof-rewrite-percentage", "0", "--save", ""])
        .directory(directory)
        .start()
}

fn run(name: &str, mode: &[&str]) {
    let kills = setting("LIVE_KILLS", 3);
    let mut random = Random::new(setting("LIVE_SEED", 1));
    let directory = Directory::new(&format!("live-killed-{name}"));
    let states = States::default();
    let mut followers: Vec<Follower> =
        (0..FOLLOWERS).map(|number| Follower::new(number, &mut random)).collect();
    for number in 0..=kills {
        let server = start(mode, &directory.0);
        let origin = units(&directory.0).len() as u64;
        let last = states.lock().unwrap().last_key_value().map_or(0, |(&number, _)| number);
        assert!(
            last <= origin,
            "a state of record {last} was sent, and {origin} have survived life {number}"
        );
        let (received, is_killed) = (AtomicU64::new(0), AtomicBool::new(false));
        let life =
            Life { server: &server, origin, states: &states, received: &received, is_killed: &is_killed };
        // Before any write, the exact replies are known.
        for follower in &mut followers {
            drop(follower.open(&life, true).unwrap());
        }
        if number == kills {
            break;
        }
        received.store(0, Ordering::SeqCst);
        let most = 1 + random.below(STATES_MAX) as u64;
        thread::scope(|scope| {
            let kill = OnDrop(|| {
                is_killed.store(true, Ordering::SeqCst);
                server.signal("KILL");
            });
            for follower in &mut followers {
                let (life, mut random) = (&life, Random::new(random.next_u64()));
                scope.spawn(move || follow(follower, life, &mut random));
            }
            for _ in 0..WRITERS {
                let (life, mut random) = (&life, Random::new(random.next_u64()));
                scope.spawn(move || life.end(&write(life, &mut random).unwrap_err()));
            }
            wait_until("states are sent", || received.load(Ordering::SeqCst) >= most);
            thread::park_timeout(Duration::from_millis(random.below(20) as u64));
            drop(kill);
        });
    }
    println!("{name}: {kills} servers killed");
    check(&units(&directory.0), &states.lock().unwrap());
}

#[test]
fn versions_survive_a_killed_server_in_the_concurrent_mode() {
    run("concurrent", &["--shards", "3", "--concurrent", "yes"]);
}

#[test]
fn versions_survive_a_killed_server_in_the_sharded_mode() {
    run("sharded", &["--shards", "3", "--concurrent", "no"]);
}

#[test]
fn versions_survive_a_killed_server_where_threads_run_the_queries() {
    run("long", &["--shards", "3", "--concurrent", "yes", "--long-call-elements", "2"]);
}
