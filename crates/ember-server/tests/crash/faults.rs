//! A disk that is full, broken or slow while the server runs: writes are refused, reads go on, service resumes by itself.
//!
//! The faults are put between the server and the C library, by a small library (`faults.c`) that is loaded before it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use ember_testkit::{RawClient, Server, Value, encode_command, http_get};

use crate::{Directory, builder};

/// How long a server may take to notice that something fails, or no more.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) const ENOSPC: &str = "28";
pub(crate) const EIO: &str = "5";

/// A server whose disk does as it is told.
pub(crate) struct Faulty {
    pub(crate) directory: Directory,
    library: PathBuf,
    pub(crate) server: Option<Server>,
    /// What the paths of the files have that fail.
    part: &'static str,
}

impl Faulty {
    pub(crate) fn start(name: &str, arguments: &[&str]) -> Faulty {
        Faulty::start_with("appendonlydir", name, &[&["--appendonly", "yes"], arguments].concat())
    }

    /// One whose faults are those of files with `part` in their paths.
    pub(crate) fn start_with(part: &'static str, name: &str, arguments: &[&str]) -> Faulty {
        let directory = Directory::new(name);
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/crash/faults.c");
        let library = directory.0.join("faults.so");
        let built = Command::new("cc")
            .args(["-shared", "-fPIC", "-o"])
            .arg(&library)
            .arg(source)
            .args(["-ldl"])
            .status();
        assert!(built.unwrap().success(), "a C compiler builds faults.c");
        let mut faulty = Faulty { directory, library, server: None, part };
        faulty.tell("");
        faulty.restart_with(arguments);
        faulty
    }

    pub(crate) fn restart(&mut self, arguments: &[&str]) {
        self.restart_with(&[&["--appendonly", "yes"], arguments].concat());
    }

    pub(crate) fn restart_with(&mut self, arguments: &[&str]) {
        self.server = None;
        let started = builder(arguments)
            .directory(&self.directory.0)
            .environment("FAULTY", self.part)
            .environment("LD_PRELOAD", &self.library.display().to_string())
            .environment("FAULTS", &self.directory.0.join("faults").display().to_string())
            .metrics()
            .start();
        self.server = Some(started);
    }

    /// What is to happen from now on: `read ERRNO`, `write ERRNO`, `sync ERRNO`, `slow MS`, `stall MS`, or nothing.
    pub(crate) fn tell(&self, fault: &str) {
        let temporary = self.directory.0.join("faults-next");
        fs::write(&temporary, fault).unwrap();
        fs::rename(temporary, self.directory.0.join("faults")).unwrap();
    }

    pub(crate) fn client(&self) -> RawClient {
        self.server.as_ref().expect("it was started").client()
    }

    pub(crate) fn log(&self) -> String {
        self.server.as_ref().expect("it was started").log()
    }

    /// The status of `/ready`, and what it says.
    pub(crate) fn ready(&self) -> (u16, String) {
        let address = self.server.as_ref().expect("it was started").metrics_address();
        let answer = http_get(address, "/ready").unwrap();
        (answer.status, answer.body)
    }

    /// Kills the server.
    pub(crate) fn kill(&mut self) {
        self.server = None;
    }
}

/// Writes until the answer is what it should be.
pub(crate) fn write_until(client: &mut RawClient, is_so: impl Fn(&Value) -> bool) -> Value {
    let begun = Instant::now();
    loop {
        let reply = client.run("INCR tries");
        if is_so(&reply) {
            return reply;
        }
        assert!(begun.elapsed() < PATIENCE, "{reply:?}");
    }
}

pub(crate) fn is_refused(reply: &Value) -> bool {
    reply.text().starts_with("MISCONF Errors writing to the AOF file: ")
}

/// A fault, then none; nothing that was acknowledged is lost.
fn recovers(name: &str, policy: &str, fault: &str) {
    let arguments = ["--appendfsync", policy];
    let mut faulty = Faulty::start(name, &arguments);
    let mut client = faulty.client();
    assert_eq!(client.run("SET before 1"), Value::ok());
    faulty.tell(fault);
    // A write is not answered as long as it is not kept as the policy says; who comes later is refused.
    let mut waiting = faulty.client();
    waiting.send_command(&["SET", "waiting", "1"]).unwrap();
    let mut other = faulty.client();
    let begun = Instant::now();
    while other.info("aof_last_write_status") != "err" {
        assert!(begun.elapsed() < PATIENCE, "{}", faulty.log());
    }
    write_until(&mut other, is_refused);
    assert_eq!(other.run("GET before"), Value::from("1"));
    faulty.tell("");
    let Value::Integer(tries) = write_until(&mut other, |reply| !is_refused(reply)) else {
        panic!("a number")
    };
    // Unless the fault was noticed before it came, with what was written before.
    let waited = waiting.read_value().unwrap();
    assert!(waited == Value::ok() || (policy != "always" && is_refused(&waited)), "{waited:?}");
    assert_eq!(other.info("aof_last_write_status"), "ok");
    // Durable, whatever the policy.
    assert_eq!(other.run("CONFIG SET appendfsync always"), Value::ok());
    assert_eq!(other.run("SET after 1"), Value::ok());
    faulty.restart(&arguments);
    let mut client = faulty.client();
    let found = client.run("MGET before waiting after tries");
    let was_set = if is_refused(&waited) { Value::Null } else { Value::from("1") };
    let expected = [Value::from("1"), was_set, Value::from("1"), Value::Bulk(tries.to_string().into_bytes())];
    assert_eq!(found, Value::Array(expected.to_vec()), "{}", faulty.log());
}

/// A fault, and a kill soon after it; nothing that was acknowledged is lost.
fn keeps_what_it_acknowledged(name: &str, policy: &str, fault: &str) {
    let arguments = ["--appendfsync", policy];
    let mut faulty = Faulty::start(name, &arguments);
    let mut client = faulty.client();
    let mut acknowledged = 0;
    let mut write = |acknowledged: &mut i64| {
        client.send_command(&["INCR", "number"]).unwrap();
        match client.read_value() {
            Ok(Value::Integer(number)) => *acknowledged = number,
            Ok(reply) => assert!(is_refused(&reply), "{reply:?}"),
            // Whose outcome is not known is closed.
            Err(_) => return false,
        }
        *acknowledged > 0
    };
    while acknowledged < 200 {
        write(&mut acknowledged);
    }
    faulty.tell(fault);
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(2) && write(&mut acknowledged) {}
    let info = faulty.client().run("INFO persistence").text();
    assert!(info.contains("aof_last_write_status:err"), "{info}");
    faulty.server.as_ref().expect("it runs").signal("KILL");
    faulty.tell("");
    faulty.restart(&arguments);
    let kept: i64 = faulty.client().run("GET number").text().parse().unwrap();
    assert!(kept >= acknowledged, "{acknowledged} were acknowledged, {kept} are there");
}

#[test]
fn a_kill_after_the_disk_was_full_loses_nothing_acknowledged() {
    keeps_what_it_acknowledged("kept-everysec", "everysec", &format!("write {ENOSPC}"));
    keeps_what_it_acknowledged("kept-no", "no", &format!("write {EIO}"));
    keeps_what_it_acknowledged("kept-sync", "everysec", &format!("sync {EIO}"));
}

#[test]
fn a_full_disk_refuses_writes_until_there_is_room() {
    recovers("full-always", "always", &format!("write {ENOSPC}"));
    recovers("full-everysec", "everysec", &format!("write {ENOSPC}"));
}

#[test]
fn a_disk_that_cannot_write_refuses_writes_until_it_can() {
    recovers("broken-always", "always", &format!("write {EIO}"));
    recovers("broken-no", "no", &format!("write {EIO}"));
}

#[test]
fn a_failed_fsync_is_not_trusted_and_all_is_written_again() {
    recovers("sync-always", "always", &format!("sync {EIO}"));
    recovers("sync-everysec", "everysec", &format!("sync {EIO}"));
}

#[test]
fn a_reply_that_waits_for_the_disk_is_sent_with_one_that_waited_for_a_key() {
    let faulty = Faulty::start("both", &["--appendfsync", "always"]);
    let (mut waiting, mut other) = (faulty.client(), faulty.client());
    faulty.tell("slow 300");
    waiting.send(&[encode(&["SET", "key", "1"]), encode(&["BLPOP", "list", "0"])].concat()).unwrap();
    let begun = Instant::now();
    while !other.run("INFO clients").text().contains("blocked_clients:1") {
        assert!(begun.elapsed() < PATIENCE, "{}", faulty.log());
    }
    other.send_command(&["LPUSH", "list", "element"]).unwrap();
    assert_eq!(waiting.read_value().unwrap(), Value::ok());
    assert_eq!(
        waiting.read_value().unwrap(),
        Value::Array(vec![Value::from("list"), Value::from("element")])
    );
    assert_eq!(other.read_value().unwrap(), Value::Integer(1));
}

fn encode(call: &[&str]) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_command(call, &mut bytes);
    bytes
}

#[test]
fn an_aof_whose_disk_fails_can_be_switched_off() {
    let faulty = Faulty::start("off", &["--appendfsync", "everysec"]);
    let (mut client, mut waiting) = (faulty.client(), faulty.client());
    faulty.tell(&format!("write {ENOSPC}"));
    waiting.send_command(&["SET", "waiting", "1"]).unwrap();
    let begun = Instant::now();
    while client.info("aof_last_write_status") != "err" {
        assert!(begun.elapsed() < PATIENCE, "{}", faulty.log());
    }
    write_until(&mut client, is_refused);
    assert_eq!(client.run("CONFIG SET appendonly no"), Value::ok());
    // Nobody waits for a file that there is no more.
    assert_eq!(waiting.read_value().unwrap(), Value::ok());
    write_until(&mut client, |reply| !is_refused(reply));
    assert_eq!(client.info("aof_last_write_status"), "ok");
}

#[test]
fn with_a_limit_a_slow_disk_delays_writes_then_refuses_them_and_delays_no_reads() {
    let limits = ["--appendfsync", "everysec", "--aof-lag-limit", "1000", "--aof-wait-limit", "300"];
    let faulty = Faulty::start("slow", &limits);
    let mut client = faulty.client();
    assert_eq!(client.run("SET key 1"), Value::ok());
    faulty.tell("slow 5000");
    let begun = Instant::now();
    write_until(&mut client, is_refused);
    let begun_reading = Instant::now();
    assert_eq!(client.run("GET key"), Value::from("1"));
    assert!(begun_reading.elapsed() < Duration::from_secs(2), "a read waits for the disk");
    assert!(begun.elapsed() < PATIENCE);
    faulty.tell("");
    write_until(&mut client, |reply| !is_refused(reply));
}

/// How long a client may be kept from its answer while a store is told of changes.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(1);

/// While each sync of an engine's files takes five seconds, a checkpoint is under way and nobody waits for it.
fn nobody_waits_for_a_commit(engine: &'static str, file: &'static str) {
    let name = format!("slow-{engine}");
    let arguments = ["--store", engine, "--path", "data", "--maxmemory", "64mb"];
    let faulty = Faulty::start_with(file, &name, &arguments);
    let (mut client, mut other) = (faulty.client(), faulty.client());
    let is_under_way = |client: &mut RawClient| client.info("aof_rewrite_in_progress") == "1";
    let checkpoint = |client: &mut RawClient| {
        while is_under_way(client) {}
        assert!(!client.run("BGREWRITEAOF").is_error());
    };
    for _ in 0..2 {
        assert_eq!(set_until_refused(&mut client, 0, 400).1, None);
        checkpoint(&mut client);
        while is_under_way(&mut client) {}
    }
    faulty.tell("slow 5000");
    assert_eq!(set_until_refused(&mut client, 200, 400).1, None);
    // More than its files have room for.
    let large = value(1).repeat(25);
    for number in 0..200 {
        assert_eq!(client.command(&["SET", &format!("large:{number}"), &large]), Value::ok());
    }
    checkpoint(&mut client);
    let begun = Instant::now();
    let (mut slowest, mut number) = (Duration::ZERO, 0);
    while begun.elapsed() < Duration::from_secs(4) {
        let [away, unsaved] = [format!("key:{}", number % 200), format!("large:{}", number % 200)];
        other.command(&["TIERING", "MIGRATE", &away, "COLD"]);
        let changes = [["SET", "key", "new"].as_slice(), &["SET", &unsaved, &large]];
        for call in changes.into_iter().chain([["GET", "key"].as_slice(), &["GET", &away]]) {
            let asked = Instant::now();
            assert!(!client.command(call).is_error(), "{:?}", &call[..2]);
            assert!(
                asked.elapsed() < ANSWER_TIME_MAX,
                "{engine}: {:?} for {:?}",
                asked.elapsed(),
                &call[..2]
            );
            slowest = slowest.max(asked.elapsed());
        }
        number += 1;
    }
    assert!(is_under_way(&mut client), "{engine}: the checkpoint is slow");
    println!("{engine}: {number} rounds beside a checkpoint, at most {slowest:?} for an answer");
    faulty.tell("");
    let waiting = Instant::now();
    while is_under_way(&mut client) {
        assert!(waiting.elapsed() < PATIENCE, "the checkpoint does not end");
    }
    assert_eq!(client.info("aof_last_bgrewrite_status"), "ok");
    assert_all_there(&mut client, 400, engine);
}

#[test]
fn nobody_waits_for_a_commit_of_redb() {
    nobody_waits_for_a_commit("redb", "store.redb");
}

#[test]
fn nobody_waits_for_a_commit_of_lmdb() {
    nobody_waits_for_a_commit("lmdb", "store.lmdb");
}

#[test]
fn nobody_waits_for_a_commit_of_fjall() {
    nobody_waits_for_a_commit("fjall", "store.fjall");
}

/// Sets keys from `from` on until one is refused or `to` is reached; how many there are then.
fn set_until_refused(client: &mut RawClient, from: usize, to: usize) -> (usize, Option<String>) {
    for number in from..to {
        let reply = client.command(&["SET", &format!("key:{number}"), &value(number)]);
        if reply.is_error() {
            return (number, Some(reply.text()));
        }
    }
    (to, None)
}

fn value(number: usize) -> String {
    format!("{number}:").repeat(400)
}

fn assert_all_there(client: &mut RawClient, count: usize, what: &str) {
    for number in 0..count {
        assert_eq!(
            client.command(&["GET", &format!("key:{number}")]).text(),
            value(number),
            "{what} {number}"
        );
    }
}

/// A figure of INFO tiers.
fn tier_figure(client: &mut RawClient, name: &str) -> u64 {
    let text = client.run("INFO tiers").text();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("tier_{name}:")));
    line.unwrap_or_else(|| panic!("{name} in {text}")).trim().parse().unwrap()
}

#[test]
fn tiers_whose_disk_is_full_or_broken_lose_nothing() {
    for (fault, mode) in [(ENOSPC, "yes"), (EIO, "no")] {
        let arguments =
            ["--maxmemory", "8mb", "--tiered-path", "tiers", "--concurrent", mode, "--shards", "2"];
        let faulty = Faulty::start_with("segment-", "tiers-fault", &arguments);
        let mut client = faulty.client();
        let (before, refused) = set_until_refused(&mut client, 0, 8000);
        assert_eq!(refused, None, "{}", faulty.log());
        assert!(tier_figure(&mut client, "bytes_written") > 0);
        faulty.tell(&format!("write {fault}"));
        let (mut count, refused) = set_until_refused(&mut client, before, 100_000);
        assert!(refused.as_deref().is_some_and(|error| error.starts_with("OOM")), "{refused:?}");
        assert!(tier_figure(&mut client, "write_errors") > 0);
        assert_eq!(tier_figure(&mut client, "demotion_stuck"), 1);
        assert!(faulty.log().contains("values stay in memory: "), "{}", faulty.log());
        // What a failed write was to write can be read, and what is read needs no room for good.
        for number in (before.saturating_sub(50)..count).chain((0..before).step_by(97)) {
            let reply = client.command(&["GET", &format!("key:{number}")]);
            assert_eq!(reply.text(), value(number), "{number}: {}", faulty.log());
        }
        faulty.tell("");
        let begun = Instant::now();
        while count < 12_000 {
            count = set_until_refused(&mut client, count, 12_000).0;
            assert!(begun.elapsed() < PATIENCE, "{}", faulty.log());
        }
        assert_all_there(&mut client, count, "when the disk works again");
        assert_eq!(tier_figure(&mut client, "demotion_stuck"), 0);
    }
}

#[test]
fn a_tier_that_cannot_be_read_is_an_error_and_no_loss() {
    let mut arguments =
        vec!["--maxmemory", "8mb", "--tiered-path", "tiers", "--maxmemory-policy", "allkeys-lru"];
    arguments.extend(["--enable-debug-command", "yes"]);
    let faulty = Faulty::start_with("segment-", "tiers-unread", &arguments);
    let mut client = faulty.client();
    // What the system has in memory does not fail.
    assert_eq!(client.run("DEBUG TIER-CACHED-READS 0"), Value::ok());
    let (count, _) = set_until_refused(&mut client, 0, 8000);
    faulty.tell(&format!("read {EIO}"));
    let replies: Vec<Value> =
        (0..count).step_by(20).map(|number| client.command(&["GET", &format!("key:{number}")])).collect();
    let failed = replies.iter().filter(|reply| reply.is_error()).count();
    assert!(failed > 100, "{failed} of {}", replies.len());
    for (number, reply) in (0..count).step_by(20).zip(&replies) {
        let text = reply.text();
        let error = format!("IOERR the value of 'key:{number}' cannot be read");
        assert!(text == value(number) || text.starts_with(&error), "{number}: {text}");
    }
    assert!(tier_figure(&mut client, "read_errors") >= failed as u64);
    assert_eq!(client.run("EXISTS key:0 key:1"), Value::Integer(2));
    assert_eq!(client.command(&["SET", "key:0", &value(0)]), Value::ok(), "what is overwritten is not read");
    faulty.tell("");
    assert_all_there(&mut client, count, "when the disk works again");
}

#[test]
fn a_store_whose_disk_is_full_or_broken_loses_nothing() {
    for (store, fault) in [("redb", ENOSPC), ("lmdb", EIO), ("fjall", ENOSPC)] {
        let arguments = ["--maxmemory", "12mb", "--store", store, "--path", "data", "--fsync", "no"];
        let mut faulty = Faulty::start_with("data/store.", "store-fault", &arguments);
        let mut client = faulty.client();
        let (before, refused) = set_until_refused(&mut client, 0, 3000);
        assert_eq!(refused, None, "{}", faulty.log());
        faulty.tell(&format!("sync {fault}"));
        let (mut count, refused) = set_until_refused(&mut client, before, 100_000);
        let is_out_of_memory = refused.as_deref().is_some_and(|error| error.starts_with("OOM"));
        assert!(is_out_of_memory, "{store}: {refused:?}");
        assert_eq!(client.info("aof_last_bgrewrite_status"), "err", "{store}");
        assert!(faulty.log().contains("has failed"), "{store}: {}", faulty.log());
        for number in (before.saturating_sub(50)..count).step_by(7) {
            let reply = client.command(&["GET", &format!("key:{number}")]);
            assert_eq!(reply.text(), value(number), "{store}: {}", faulty.log());
        }
        faulty.tell("");
        let begun = Instant::now();
        while count < 7_000 {
            count = set_until_refused(&mut client, count, 7_000).0;
            assert!(begun.elapsed() < PATIENCE, "{store}: {}", faulty.log());
        }
        assert_all_there(&mut client, count, store);
        faulty.restart_with(&arguments);
        assert_all_there(&mut faulty.client(), count, store);
    }
}
