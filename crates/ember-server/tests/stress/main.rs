//! All types at once: many connections, both protocols, both modes, and records of all elements that must be returned.
//!
//! Eight connections send random batches of calls, some in transactions and scripts, and record them; others wait for
//! jobs or subscribe. At the end the records are compared with the data set. `STRESS_SECONDS` and `STRESS_SEED` change
//! the duration of each test and its seed, which a failure prints; `EMBER_SERVER` is the path of another server to
//! test.

#![allow(clippy::unwrap_used, reason = "the whole program is a test")]

mod batch;
mod book;
mod counters;
mod expiry;
mod lists;
mod owned;
mod pubsub;
mod sets;
mod streams;
mod transfers;
mod waiting;

use std::path::PathBuf;
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ember_testkit::{DEMOTION_TARGETS, Random, RawClient, Server, Value};

use crate::batch::{Batch, ask, words};
use crate::book::{Bag, Book, items};
use crate::pubsub::Received;

/// The number of connections that send random batches.
const CONNECTION_COUNT: usize = 8;

/// The maximum number of calls in a batch; all are sent before a reply is read, so they must fit in the socket buffers.
const BATCH_CALLS_MAX: usize = 24;

/// The duration of each test in seconds without `STRESS_SECONDS`.
const SECONDS: u64 = 2;

/// The time for which collections grow before they shrink, and vice versa.
const PHASE: Duration = Duration::from_millis(300);

/// The timeout of a reply, after which a lost wake-up is detected.
const PATIENCE: Duration = Duration::from_secs(180);

/// The probability, in 1/1000, of a conversation with WATCH before a batch; the next constant is that of a new
/// connection after a batch.
const CONVERSATION_CHANCE: usize = 80;
const RECONNECT_CHANCE: usize = 4;

/// There are more workers than most test machines have cores. Limits are low, so that encodings change frequently and
/// calls that read a few dozen elements already run on separate threads.
const ARGUMENTS: [&str; 16] = [
    "--shards",
    "4",
    "--enable-debug-command",
    "yes",
    "--list-max-listpack-size",
    "16",
    "--hash-max-listpack-entries",
    "32",
    "--set-max-listpack-entries",
    "32",
    "--zset-max-listpack-entries",
    "32",
    "--stream-node-max-entries",
    "20",
    "--long-call-elements",
    "50",
];

type Act = fn(&mut Batch, &mut Random, &mut Book);

const ACTS: [Act; 9] = [
    lists::act,
    counters::act,
    sets::act,
    streams::act,
    transfers::act,
    expiry::act,
    pubsub::act,
    owned::act,
    waiting::act,
];

#[test]
fn nothing_is_lost_or_duplicated_in_concurrent_mode() {
    stress("yes", &[]);
}

#[test]
fn nothing_is_lost_or_duplicated_in_sharded_mode() {
    stress("no", &[]);
}

#[test]
fn nothing_is_lost_or_duplicated_in_concurrent_mode_with_cold_values() {
    stress_cold_values("yes", "tiers");
}

#[test]
fn nothing_is_lost_or_duplicated_in_sharded_mode_with_cold_values() {
    stress_cold_values("no", "tiers");
}

#[test]
fn nothing_is_lost_or_duplicated_in_redb() {
    stress_cold_values("yes", "redb");
}

#[test]
fn nothing_is_lost_or_duplicated_in_lmdb() {
    stress_cold_values("no", "lmdb");
}

#[test]
fn nothing_is_lost_or_duplicated_in_fjall() {
    stress_cold_values("yes", "fjall");
}

fn stress_cold_values(concurrent: &str, place: &str) {
    let (_, arguments) = DEMOTION_TARGETS.iter().find(|(name, _)| *name == place).unwrap();
    stress(concurrent, arguments);
}

fn program() -> PathBuf {
    std::env::var_os("EMBER_SERVER").map_or_else(|| env!("CARGO_BIN_EXE_ember-server").into(), PathBuf::from)
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name)
        .ok()
        .map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

/// Opens a connection with one of the protocols.
pub(crate) fn connect(server: &Server, is_resp3: bool) -> RawClient {
    let mut client = server.client();
    client.set_timeout(PATIENCE).unwrap();
    if is_resp3 {
        ask(&mut client, &words!["HELLO", "3"]);
    }
    client
}

/// Shows the data needed to analyze a failure.
struct Report<'a> {
    server: &'a Server,
    seed: u64,
}

impl Drop for Report<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!(
                "STRESS_SEED={} repeats the calls; the server's log:\n{}",
                self.seed,
                self.server.log()
            );
        }
    }
}

/// Runs a stress test. `away` contains the server arguments for demotion; without them values remain in memory.
fn stress(concurrent: &str, away: &[&str]) {
    let duration = Duration::from_secs(number("STRESS_SECONDS").unwrap_or(SECONDS));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let seed = number("STRESS_SEED").unwrap_or(now.as_micros() as u64);
    let builder = Server::builder(program()).arguments(&["--concurrent", concurrent]).arguments(&ARGUMENTS);
    let mut server = builder.arguments(away).start();
    run(&server, duration, seed);
    if !away.is_empty() {
        let mut client = connect(&server, false);
        let figures = ask(&mut client, &words!["TIERING", "STATS"]);
        let demoted = items(&figures)
            .chunks_exact(2)
            .filter(|pair| ["demotions", "free_drops"].contains(&pair[0].text().as_str()));
        let demoted: i64 =
            demoted.map(|pair| if let Value::Integer(count) = pair[1] { count } else { 0 }).sum();
        println!("{demoted} values were demoted");
        assert!(demoted > 100, "values were demoted: {figures:?}");
    }
    server.signal("TERM");
    let status = server.wait();
    assert!(status.success(), "the server ended with {status}:\n{}", server.log());
}

fn run(server: &Server, duration: Duration, seed: u64) {
    let _report = Report { server, seed };
    let mut client = connect(server, false);
    let empty = used_bytes(&mut client);
    sets::set_up(&mut client);
    streams::set_up(&mut client);
    transfers::set_up(&mut client);
    waiting::set_up(&mut client);
    let (mut books, received, taken) = thread::scope(|scope| {
        let listeners: Vec<_> = pubsub::subscribers(server)
            .into_iter()
            .map(|(client, count)| scope.spawn(move || pubsub::receive(client, count)))
            .collect();
        let waiters: Vec<_> = waiting::waiters(server)
            .into_iter()
            .map(|(client, wait)| scope.spawn(move || waiting::take_jobs(client, wait)))
            .collect();
        let end = Instant::now() + duration;
        let workers: Vec<_> =
            (0..CONNECTION_COUNT).map(|me| scope.spawn(move || work(server, me, seed, end))).collect();
        let books = join(server, workers);
        pubsub::end(&mut client);
        waiting::end(&mut client);
        let received: Vec<Received> = join(server, listeners);
        let taken: Vec<Bag> = join(server, waiters);
        (books, received, taken)
    });
    lists::check(&books, &mut client);
    counters::check(&books, &mut client);
    sets::check(&books, &mut client);
    streams::check(&mut books, &mut client);
    transfers::check(&books, &mut client);
    pubsub::check(&books, &received);
    owned::check(&books, &mut client);
    waiting::check(&books, &taken, &mut client);
    check_copies(&mut client);
    assert!(client.info_number("ember_long_calls") > 0, "some calls are long");
    assert_eq!(ask(&mut client, &words!["FLUSHALL"]), Value::ok());
    // Each worker publishes the memory that its batch has allocated or freed when the batch is over.
    let flushed = Instant::now();
    let mut used = used_bytes(&mut client);
    while used != empty {
        assert!(flushed.elapsed() < PATIENCE, "an empty data set still uses {used} bytes, not {empty}");
        used = used_bytes(&mut client);
    }
    let calls = client.info_number("total_commands_processed");
    let asked: u64 = books.iter().map(|book| book.expiring.asked).sum();
    println!("{calls} calls in {} s, {asked} expired keys asked for", duration.as_secs());
}

/// Returns the results of threads. If one of them fails, stops the server, so that no thread continues to wait.
fn join<T>(server: &Server, threads: Vec<ScopedJoinHandle<T>>) -> Vec<T> {
    let results: Vec<_> = threads.into_iter().map(ScopedJoinHandle::join).collect();
    if results.iter().any(Result::is_err) {
        server.signal("KILL");
    }
    results
        .into_iter()
        .map(|result| result.unwrap_or_else(|failure| std::panic::resume_unwind(failure)))
        .collect()
}

/// Sends random batches over one connection until `end`; returns its records.
fn work(server: &Server, me: usize, seed: u64, end: Instant) -> Book {
    let mut random = Random::new(seed.wrapping_add(me as u64));
    let mut book = Book::new(me);
    let begun = Instant::now();
    let connect = || {
        let mut client = connect(server, me % 2 == 1);
        if me % 4 == 1 {
            ask(&mut client, &words!["CLIENT", "TRACKING", "ON"]);
        }
        client
    };
    let mut client = connect();
    while Instant::now() < end {
        book.is_filling = (begun.elapsed().as_millis() / PHASE.as_millis()).is_multiple_of(2);
        if random.below(1000) < CONVERSATION_CHANCE {
            transfers::converse(&mut client, &mut random, &mut book);
        }
        let mut batch = Batch::default();
        for _ in 0..=random.below(BATCH_CALLS_MAX) {
            ACTS[random.below(ACTS.len())](&mut batch, &mut random, &mut book);
        }
        batch.run(&mut client, &mut random, &mut book);
        if random.below(1000) < RECONNECT_CHANCE {
            client = connect();
        }
    }
    book
}

/// Checks that DUMP and RESTORE reproduce every value, which would reveal damage inside a value. (Values that may
/// expire during the check are excluded: copies have no expiry.)
fn check_copies(client: &mut RawClient) {
    let keys = ask(client, &words!["KEYS", "*"]);
    assert!(items(&keys).len() > 40, "all types have keys: {keys:?}");
    for key in items(&keys) {
        let key = key.bytes().unwrap().to_vec();
        if key.starts_with(b"expiring:") {
            continue;
        }
        let payload = ask(client, &words!["DUMP", key.clone()]);
        let Some(payload) = payload.bytes() else { continue };
        let restored = ask(client, &words!["RESTORE", "a copy", "0", payload, "REPLACE"]);
        assert_eq!(restored, Value::ok());
        let digests = ask(client, &words!["DEBUG", "DIGEST-VALUE", key.clone(), "a copy"]);
        let shown = String::from_utf8_lossy(&key);
        assert_eq!(items(&digests)[0], items(&digests)[1], "{shown} differs from its copy");
    }
}

fn used_bytes(client: &mut RawClient) -> u64 {
    client.info_number("used_memory_dataset")
}
