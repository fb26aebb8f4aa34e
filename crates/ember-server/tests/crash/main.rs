//! A server is killed at a random moment under random writes, and the next server must have all acknowledged writes.
//!
//! Connections write to separate keys, so that each connection's calls form one history; some of their calls change
//! shared counters. The data set is compared with that of another server without persistence that replays the histories
//! (`check.rs`). The comparison shows whether all acknowledged writes are present, and how many of the others.
//!
//! `CRASH_KILLS` is the number of servers that all tests together kill; `CRASH_SEED` is the first seed, and a failure
//! prints its own. `EMBER_SERVER` is the path of another server to test.

#![allow(clippy::unwrap_used, reason = "the whole program is a test")]

mod ballast;
mod check;
mod death;
mod faults;
mod full_disk;
mod history;
mod random_writes;
mod slow_disk;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::RwLock;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use ember_testkit::{Random, Server, ServerBuilder};

use crate::ballast::Ballast;
use crate::check::Reference;
use crate::death::Death;
use crate::history::{Book, write};

/// The number of times that the server of one seed is started.
const LIVES: usize = 3;

/// The stores whose data is in the files of an engine.
const STORES: [&str; 3] = ["redb", "lmdb", "fjall"];

/// The policy of a server with tiers: `appendfsync always`, and more data than the memory limit.
const TIERS: &str = "tiers";

/// The number of policies, stores and tiers, each with a separate test.
const POLICIES: u64 = 7;

/// Execution modes, each tried with every seed.
const MODES: [bool; 2] = [true, false];

/// The number of servers that one seed kills.
const KILLS: u64 = (LIVES as u64 - 1) * MODES.len() as u64;

/// The number of connections that write.
const CONNECTIONS: usize = 6;

/// The maximum number of units that a connection sends at once.
const PIPELINE_MAX: usize = 8;

/// The maximum number of acknowledged units after which the server is killed.
const UNITS_MAX: usize = 3000;

/// A key, for seeds whose files are encrypted.
const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

#[test]
fn nothing_acknowledged_is_lost_with_always() {
    every_seed("always");
}

#[test]
fn nothing_acknowledged_is_lost_with_everysec() {
    every_seed("everysec");
}

#[test]
fn nothing_acknowledged_is_lost_with_no() {
    every_seed("no");
}

#[test]
fn nothing_acknowledged_is_lost_with_a_store_of_redb() {
    every_seed("redb");
}

#[test]
fn nothing_acknowledged_is_lost_with_a_store_of_lmdb() {
    every_seed("lmdb");
}

#[test]
fn nothing_acknowledged_is_lost_with_a_store_of_fjall() {
    every_seed("fjall");
}

#[test]
fn nothing_acknowledged_is_lost_with_tiers() {
    every_seed(TIERS);
}

#[test]
fn nothing_acknowledged_is_lost_when_memory_is_exhausted() {
    let mut random = Random::new(3);
    for policy in ["everysec", "no"] {
        let directory = Directory::new(&format!("memory-{policy}"));
        let arguments = arguments(&mut random, policy, true, &directory.0);
        let mut reference = Reference::start();
        let books = (0..CONNECTIONS).map(Book::new).collect();
        let server = builder(&arguments).directory(&directory.0).start();
        let mut books = live(server, books, &mut random, true, Death::OutOfMemory, None);
        let server = builder(&arguments).directory(&directory.0).start();
        check::recovered(&mut server.client(), &mut reference, &mut books);
    }
}

#[test]
fn a_lost_write_is_detected() {
    let mut random = Random::new(1);
    let directory = Directory::new("noticed");
    let arguments = arguments(&mut random, "always", true, &directory.0);
    let mut reference = Reference::start();
    let server = builder(&arguments).directory(&directory.0).start();
    let books = (0..CONNECTIONS).map(Book::new).collect();
    let mut books = live(server, books, &mut random, true, Death::Signal("KILL"), None);
    let server = builder(&arguments).directory(&directory.0).start();
    let mut client = server.client();
    // The increment exceeds the sum of all calls that were in progress when the server was killed, so the check must
    // fail.
    assert!(!client.run("INCRBY 0:seen 1000000").is_error());
    let check = || check::recovered(&mut client, &mut reference, &mut books);
    assert!(catch_unwind(AssertUnwindSafe(check)).is_err(), "a number is too large");
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name)
        .ok()
        .map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

/// Kills servers with this policy, store or tiers, in both modes.
fn every_seed(policy: &'static str) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as u64;
    let first = number("CRASH_SEED").unwrap_or(now);
    let seeds = number("CRASH_KILLS").map_or(1, |kills| kills.div_ceil(POLICIES * KILLS));
    for seed in first..first + seeds {
        for is_concurrent in MODES {
            run(&mut Random::new(seed), policy, is_concurrent);
        }
    }
    println!("{policy}: {} servers killed", seeds * KILLS);
}

fn program() -> PathBuf {
    std::env::var_os("EMBER_SERVER").map_or_else(|| env!("CARGO_BIN_EXE_ember-server").into(), PathBuf::from)
}

fn builder(arguments: &[&str]) -> ServerBuilder {
    Server::builder(program()).arguments(arguments)
}

/// A directory that is removed on drop.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("ember-crash-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        Directory(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("the files are in {}", self.0.display());
        } else {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}

/// Starts and kills a server several times in one directory.
fn run(random: &mut Random, policy: &'static str, is_concurrent: bool) {
    let mode = if is_concurrent { "concurrent" } else { "sharded" };
    let directory = Directory::new(&format!("{policy}-{mode}-{}", random.seed()));
    let mut arguments = arguments(random, policy, is_concurrent, &directory.0);
    // Some values are in the store or in tiers, others only in memory.
    let is_short = policy == TIERS || (STORES.contains(&policy) && random.chance(50));
    if is_short {
        arguments.extend(ballast::ARGUMENTS);
    }
    let mut ballast: Option<Ballast> = None;
    let mut reference = Reference::start();
    let mut books: Vec<Book> = (0..CONNECTIONS).map(Book::new).collect();
    for life in 0..LIVES {
        let server = builder(&arguments).directory(&directory.0).start();
        if life > 0 {
            let may_be_flushed = books[0].may_be_flushed;
            check::recovered(&mut server.client(), &mut reference, &mut books);
            if let Some(ballast) = &mut ballast {
                ballast.recovered(&mut server.client(), may_be_flushed);
            }
        } else if is_short {
            ballast = Some(Ballast::load(&mut server.client()));
        }
        if life + 1 < LIVES {
            let death = Death::any(random);
            books = live(server, books, random, is_concurrent, death, ballast.as_mut());
        }
    }
}

fn arguments(
    random: &mut Random,
    policy: &'static str,
    is_concurrent: bool,
    directory: &Path,
) -> Vec<&'static str> {
    let mut arguments = if STORES.contains(&policy) {
        vec!["--store", policy, "--path", ".", "--fsync", "yes", "--shards", "3"]
    } else if policy == TIERS {
        vec!["--appendonly", "yes", "--appendfsync", "always", "--shards", "3", "--tiered-path", "tiers"]
    } else {
        vec!["--appendonly", "yes", "--appendfsync", policy, "--shards", "3"]
    };
    arguments.extend(["--enable-debug-command", "yes", "--auto-aof-rewrite-percentage", "0"]);
    arguments.extend(["--concurrent", if is_concurrent { "yes" } else { "no" }]);
    arguments.extend(["--aof-use-rdb-preamble", if random.chance(50) { "yes" } else { "no" }]);
    if random.chance(50) {
        let path = directory.join("keys");
        fs::write(&path, KEY).unwrap();
        fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
        arguments.extend(["--encryption-key-file", "keys"]);
    }
    arguments
}

/// Makes all connections write, and kills the server.
fn live(
    server: Server,
    books: Vec<Book>,
    random: &mut Random,
    is_concurrent: bool,
    death: Death,
    ballast: Option<&mut Ballast>,
) -> Vec<Book> {
    let address = server.address();
    // The workers of the sharded mode run the calls of a pipeline concurrently: their order is undefined.
    let pipeline_max = if is_concurrent { PIPELINE_MAX } else { 1 };
    let world = RwLock::new(());
    let (acknowledged, count) = mpsc::channel();
    thread::scope(|scope| {
        let writers: Vec<_> = books
            .into_iter()
            .map(|book| {
                let mut random = Random::new(random.next_u64());
                let (acknowledged, world) = (acknowledged.clone(), &world);
                scope.spawn(move || write(address, book, &mut random, pipeline_max, world, &acknowledged))
            })
            .collect();
        drop(acknowledged);
        let flush = meddle(&server, random, &world, &count, death, ballast);
        let mut books: Vec<Book> = writers.into_iter().map(|writer| writer.join().unwrap()).collect();
        drop(server.crash());
        books.iter_mut().for_each(|book| book.may_be_flushed = flush);
        books
    })
}

/// Makes the server rewrite the AOF and save until enough units are acknowledged, and then kills it. Returns true if a
/// FLUSHALL is in progress at the end.
fn meddle(
    server: &Server,
    random: &mut Random,
    world: &RwLock<()>,
    count: &Receiver<()>,
    death: Death,
    mut ballast: Option<&mut Ballast>,
) -> bool {
    let mut client = server.client();
    for _ in 0..random.below(UNITS_MAX) {
        count.recv().expect("the writers write until the server is killed");
        if random.below(200) == 0 {
            // The command may be refused because another save is in progress.
            client.run(random.pick(&["BGREWRITEAOF", "BGSAVE", "SAVE"]));
        }
        if let Some(ballast) = &mut ballast
            && random.chance(20)
        {
            ballast.stir(&mut client, random, CONNECTIONS);
        }
    }
    // No other write is in progress then, so the FLUSHALL is executed as a whole or not at all.
    let is_flushed = random.chance(20);
    let _exclusive = is_flushed.then(|| {
        let exclusive = world.write().unwrap();
        client.send_command(&["FLUSHALL"]).unwrap();
        exclusive
    });
    death.kill(server);
    // Waits for the end of the server, which runs for a moment after the signal, so that no connection writes after the
    // FLUSHALL.
    while client.read_value().is_ok() {}
    is_flushed
}
