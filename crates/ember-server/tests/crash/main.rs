//! The server is killed at a random moment under random writes, and the next one must know what was promised.
//!
//! Connections write to keys of their own, so that what each has sent is one history; some of their calls meet at counters
//! that all share. What was acknowledged, and how much of what was not, is told by comparing the data set with another
//! server that runs the histories again and keeps nothing on disk (`check.rs`).
//!
//! `CRASH_SEEDS` is how many seeds are tried by each test, or `CRASH_SECONDS` how long; `CRASH_SEED` is the first one, which
//! a failure prints. `EMBER_SERVER` names another server to test.

#![allow(clippy::unwrap_used, reason = "the whole program is a test")]

mod acts;
mod check;
mod faults;
mod history;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::RwLock;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ember_testkit::{Random, Server, ServerBuilder};

use crate::check::Reference;
use crate::history::{Book, write};

/// Seeds that each test tries.
const SEEDS: u64 = 2;

/// How often the server of one seed is killed.
const LIVES: usize = 3;

/// Connections that write.
const CONNECTIONS: usize = 6;

/// Units that a connection sends at once, at most.
const PIPELINE_MAX: usize = 8;

/// Acknowledged units after which the server is killed, at most.
const UNITS_MAX: usize = 3000;

/// A key, for seeds whose files are encrypted.
const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

/// What is promised when the process is killed and the system lives on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Policy {
    /// Everything acknowledged is there.
    Always,
    /// Everything is there that was acknowledged a second before, and what is missing is newer than all that is there.
    EverySec,
    /// The same.
    No,
}

impl Policy {
    fn name(self) -> &'static str {
        match self {
            Policy::Always => "always",
            Policy::EverySec => "everysec",
            Policy::No => "no",
        }
    }

    /// How old what is missing may be.
    fn loss(self) -> Option<Duration> {
        (self != Policy::Always).then_some(Duration::from_secs(1))
    }
}

#[test]
fn with_always_nothing_acknowledged_is_lost() {
    every_seed(|random| run(random, Policy::Always));
}

#[test]
fn with_everysec_and_no_only_the_newest_is_lost() {
    every_seed(|random| {
        let policy = if random.chance(50) { Policy::EverySec } else { Policy::No };
        run(random, policy);
    });
}

#[test]
fn a_difference_is_noticed() {
    let mut random = Random::new(1);
    let directory = Directory::new("noticed");
    let arguments = arguments(&mut random, Policy::Always, true, &directory.0);
    let mut reference = Reference::start();
    let server = builder(&arguments).directory(&directory.0).start();
    let mut books =
        live(server, (0..CONNECTIONS).map(Book::new).collect(), &mut random, Policy::Always, true);
    let server = builder(&arguments).directory(&directory.0).start();
    let mut client = server.client();
    assert!(!client.run("INCR 0:seen").is_error());
    let check = || check::recovered(&mut client, &mut reference, &mut books, None);
    assert!(catch_unwind(AssertUnwindSafe(check)).is_err(), "a number is larger by one");
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name)
        .ok()
        .map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

fn every_seed(run: impl Fn(&mut Random)) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as u64;
    let (first, begun) = (number("CRASH_SEED").unwrap_or(now), Instant::now());
    for seed in first.. {
        let is_over = match number("CRASH_SECONDS") {
            Some(seconds) => begun.elapsed() >= Duration::from_secs(seconds),
            None => seed - first >= number("CRASH_SEEDS").unwrap_or(SEEDS),
        };
        if is_over {
            println!("{} seeds", seed - first);
            return;
        }
        run(&mut Random::new(seed));
    }
}

fn program() -> PathBuf {
    std::env::var_os("EMBER_SERVER").map_or_else(|| env!("CARGO_BIN_EXE_ember-server").into(), PathBuf::from)
}

fn builder(arguments: &[&str]) -> ServerBuilder {
    Server::builder(program()).arguments(arguments)
}

/// A directory that is removed with this.
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

/// Several lives of a server in one directory.
fn run(random: &mut Random, policy: Policy) {
    let directory = Directory::new(&format!("{}-{}", policy.name(), random.seed()));
    let is_concurrent = random.chance(50);
    let arguments = arguments(random, policy, is_concurrent, &directory.0);
    let mut reference = Reference::start();
    let mut books: Vec<Book> = (0..CONNECTIONS).map(Book::new).collect();
    for life in 0..LIVES {
        let server = builder(&arguments).directory(&directory.0).start();
        if life > 0 {
            check::recovered(&mut server.client(), &mut reference, &mut books, policy.loss());
        }
        if life + 1 < LIVES {
            books = live(server, books, random, policy, is_concurrent);
        }
    }
}

fn arguments(
    random: &mut Random,
    policy: Policy,
    is_concurrent: bool,
    directory: &Path,
) -> Vec<&'static str> {
    let mut arguments = vec!["--appendonly", "yes", "--appendfsync", policy.name(), "--shards", "3"];
    arguments.extend(["--enable-debug-command", "yes", "--auto-aof-rewrite-percentage", "0"]);
    arguments.extend(["--concurrent", if is_concurrent { "yes" } else { "no" }]);
    if random.chance(50) {
        let path = directory.join("keys");
        fs::write(&path, KEY).unwrap();
        fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
        arguments.extend(["--encryption-key-file", "keys"]);
    }
    arguments
}

/// Lets all connections write until the server is killed.
fn live(
    server: Server,
    books: Vec<Book>,
    random: &mut Random,
    policy: Policy,
    is_concurrent: bool,
) -> Vec<Book> {
    let address = server.address();
    // The workers of the sharded mode run the calls of a pipeline beside each other: what of it takes place first is open.
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
        let flush = meddle(&server, random, policy, &world, &count);
        drop(server.crash());
        let killed_at = Instant::now();
        let mut books: Vec<Book> = writers.into_iter().map(|writer| writer.join().unwrap()).collect();
        books.iter_mut().for_each(|book| {
            book.killed_at = Some(killed_at);
            book.may_be_flushed = flush;
        });
        books
    })
}

/// Waits until so many units are acknowledged that it is time to kill the server, and has it rewrite and save meanwhile.
/// True if a FLUSHALL is on its way at the end.
fn meddle(
    server: &Server,
    random: &mut Random,
    policy: Policy,
    world: &RwLock<()>,
    count: &Receiver<()>,
) -> bool {
    let mut client = server.client();
    for _ in 0..random.below(UNITS_MAX) {
        count.recv().expect("the writers write until the server is killed");
        if random.below(200) == 0 {
            // What is refused, because there is such a thing under way, is so for a moment.
            client.run(random.pick(&["BGREWRITEAOF", "BGSAVE", "SAVE"]));
        }
    }
    // Nothing else is under way then: all or nothing of it is there afterwards.
    if policy == Policy::Always && random.chance(20) {
        let _alone = world.write().unwrap();
        client.send_command(&["FLUSHALL"]).unwrap();
        server.signal("KILL");
        return true;
    }
    false
}
