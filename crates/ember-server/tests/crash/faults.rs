//! A disk that becomes full, broken or slow while the server runs: writes are refused, reads continue, service resumes
//! automatically.
//!
//! The faults are injected between the server and the C library, by a small library (`faults.c`) that is loaded before
//! it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use ember_testkit::{RawClient, Server, Value, encode_command, http_get};

use crate::{Directory, builder};

/// The maximum time in which a server detects that a fault has begun or ended.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) const ENOSPC: &str = "28";
pub(crate) const EIO: &str = "5";

/// A server for whose files faults can be injected.
pub(crate) struct Faulty {
    pub(crate) directory: Directory,
    library: PathBuf,
    pub(crate) server: Option<Server>,
    /// A text that is contained in the paths of the affected files.
    part: &'static str,
}

impl Faulty {
    pub(crate) fn start(name: &str, arguments: &[&str]) -> Faulty {
        Faulty::start_with("appendonlydir", name, &[&["--appendonly", "yes"], arguments].concat())
    }

    /// Starts a server whose faults affect files with `part` in their paths.
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
        faulty.set_fault("");
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

    /// Sets the fault that is injected from now on: `read ERRNO`, `write ERRNO`, `sync ERRNO`, `slow MS`, `stall MS`,
    /// or none.
    pub(crate) fn set_fault(&self, fault: &str) {
        let temporary = self.directory.0.join("faults-next");
        fs::write(&temporary, fault).unwrap();
        fs::rename(temporary, self.directory.0.join("faults")).unwrap();
    }

    pub(crate) fn client(&self) -> RawClient {
        self.server.as_ref().expect("the server was started").client()
    }

    pub(crate) fn log(&self) -> String {
        self.server.as_ref().expect("the server was started").log()
    }

    /// Returns the status and the text of `/ready`.
    pub(crate) fn ready(&self) -> (u16, String) {
        let address = self.server.as_ref().expect("the server was started").metrics_address();
        let answer = http_get(address, "/ready").unwrap();
        (answer.status, answer.body)
    }

    /// Kills the server.
    pub(crate) fn kill(&mut self) {
        self.server = None;
    }
}

/// Writes until the reply satisfies `is_so`.
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

/// Injects a fault and removes it again; no acknowledged write may be lost.
fn recovers(name: &str, policy: &str, fault: &str) {
    let arguments = ["--appendfsync", policy];
    let mut faulty = Faulty::start(name, &arguments);
    let mut client = faulty.client();
    assert_eq!(client.run("SET before 1"), Value::ok());
    faulty.set_fault(fault);
    // A write is not answered until it is as durable as the policy requires; later clients are refused.
    let mut waiting = faulty.client();
    waiting.send_command(&["SET", "waiting", "1"]).unwrap();
    let mut other = faulty.client();
    let begun = Instant::now();
    while other.info("aof_last_write_status") != "err" {
        assert!(begun.elapsed() < PATIENCE, "{}", faulty.log());
    }
    write_until(&mut other, is_refused);
    assert_eq!(other.run("GET before"), Value::from("1"));
    faulty.set_fault("");
    let Value::Integer(tries) = write_until(&mut other, |reply| !is_refused(reply)) else {
        panic!("a number")
    };
    // The write is refused if the fault was already detected with earlier records.
    let waited = waiting.read_value().unwrap();
    assert!(waited == Value::ok() || (policy != "always" && is_refused(&waited)), "{waited:?}");
    assert_eq!(other.info("aof_last_write_status"), "ok");
    // Makes later writes durable, whatever the policy was.
    assert_eq!(other.run("CONFIG SET appendfsync always"), Value::ok());
    assert_eq!(other.run("SET after 1"), Value::ok());
    faulty.restart(&arguments);
    let mut client = faulty.client();
    let found = client.run("MGET before waiting after tries");
    let was_set = if is_refused(&waited) { Value::Null } else { Value::from("1") };
    let expected = [Value::from("1"), was_set, Value::from("1"), Value::Bulk(tries.to_string().into_bytes())];
    assert_eq!(found, Value::Array(expected.to_vec()), "{}", faulty.log());
}

/// Injects a fault and kills the server soon after; no acknowledged write may be lost.
fn keeps_acknowledged_writes(name: &str, policy: &str, fault: &str) {
    let arguments = ["--appendfsync", policy];
    let mut faulty = Faulty::start(name, &arguments);
    let mut client = faulty.client();
    let mut acknowledged = 0;
    let mut write = |acknowledged: &mut i64| {
        client.send_command(&["INCR", "number"]).unwrap();
        match client.read_value() {
            Ok(Value::Integer(number)) => *acknowledged = number,
            Ok(reply) => assert!(is_refused(&reply), "{reply:?}"),
            // Connections are closed when the outcome of their writes is unknown.
            Err(_) => return false,
        }
        *acknowledged > 0
    };
    while acknowledged < 200 {
        write(&mut acknowledged);
    }
    faulty.set_fault(fault);
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(2) && write(&mut acknowledged) {}
    let info = faulty.client().run("INFO persistence").text();
    assert!(info.contains("aof_last_write_status:err"), "{info}");
    faulty.server.as_ref().expect("the server runs").signal("KILL");
    faulty.set_fault("");
    faulty.restart(&arguments);
    let kept: i64 = faulty.client().run("GET number").text().parse().unwrap();
    assert!(kept >= acknowledged, "{acknowledged} were acknowledged, {kept} were kept");
}

#[test]
fn a_kill_after_the_disk_was_full_loses_nothing_acknowledged() {
    keeps_acknowledged_writes("kept-everysec", "everysec", &format!("write {ENOSPC}"));
    keeps_acknowledged_writes("kept-no", "no", &format!("write {EIO}"));
    keeps_acknowledged_writes("kept-sync", "everysec", &format!("sync {EIO}"));
}

#[test]
fn a_full_disk_refuses_writes_until_it_has_space() {
    recovers("full-always", "always", &format!("write {ENOSPC}"));
    recovers("full-everysec", "everysec", &format!("write {ENOSPC}"));
}

#[test]
fn a_failing_disk_refuses_writes_until_it_recovers() {
    recovers("broken-always", "always", &format!("write {EIO}"));
    recovers("broken-no", "no", &format!("write {EIO}"));
}

#[test]
fn after_a_failed_fsync_all_data_are_written_again() {
    recovers("sync-always", "always", &format!("sync {EIO}"));
    recovers("sync-everysec", "everysec", &format!("sync {EIO}"));
}

#[test]
fn replies_that_wait_for_the_disk_and_for_a_key_are_sent_together() {
    let faulty = Faulty::start("both", &["--appendfsync", "always"]);
    let (mut waiting, mut other) = (faulty.client(), faulty.client());
    faulty.set_fault("slow 300");
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
    faulty.set_fault(&format!("write {ENOSPC}"));
    waiting.send_command(&["SET", "waiting", "1"]).unwrap();
    let begun = Instant::now();
    while client.info("aof_last_write_status") != "err" {
        assert!(begun.elapsed() < PATIENCE, "{}", faulty.log());
    }
    write_until(&mut client, is_refused);
    assert_eq!(client.run("CONFIG SET appendonly no"), Value::ok());
    // No client waits for a file that is no longer used.
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
    faulty.set_fault("slow 5000");
    let begun = Instant::now();
    write_until(&mut client, is_refused);
    let begun_reading = Instant::now();
    assert_eq!(client.run("GET key"), Value::from("1"));
    assert!(begun_reading.elapsed() < Duration::from_secs(2), "a read waits for the disk");
    assert!(begun.elapsed() < PATIENCE);
    faulty.set_fault("");
    write_until(&mut client, |reply| !is_refused(reply));
}

/// The maximum latency of a reply while a store receives changes.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(1);

/// Checks that a checkpoint delays no client while each sync of the engine's files takes five seconds.
fn check_commit_delays_no_client(engine: &'static str, file: &'static str) {
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
    faulty.set_fault("slow 5000");
    assert_eq!(set_until_refused(&mut client, 200, 400).1, None);
    // The value is larger than the free space in the store's files.
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
    println!("{engine}: {number} rounds during a checkpoint, at most {slowest:?} for an answer");
    faulty.set_fault("");
    let waiting = Instant::now();
    while is_under_way(&mut client) {
        assert!(waiting.elapsed() < PATIENCE, "the checkpoint does not end");
    }
    assert_eq!(client.info("aof_last_bgrewrite_status"), "ok");
    assert_all_exist(&mut client, 400, engine);
}

#[test]
fn a_commit_of_redb_delays_no_client() {
    check_commit_delays_no_client("redb", "store.redb");
}

#[test]
fn a_commit_of_lmdb_delays_no_client() {
    check_commit_delays_no_client("lmdb", "store.lmdb");
}

#[test]
fn a_commit_of_fjall_delays_no_client() {
    check_commit_delays_no_client("fjall", "store.fjall");
}

/// Sets keys from `from` on until one is refused or `to` is reached; returns the number of keys that then exist.
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

fn assert_all_exist(client: &mut RawClient, count: usize, what: &str) {
    for number in 0..count {
        assert_eq!(
            client.command(&["GET", &format!("key:{number}")]).text(),
            value(number),
            "{what} {number}"
        );
    }
}

/// Returns a number in INFO tiers.
fn tier_figure(client: &mut RawClient, name: &str) -> u64 {
    let text = client.run("INFO tiers").text();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("tier_{name}:")));
    line.unwrap_or_else(|| panic!("{name} in {text}")).trim().parse().unwrap()
}

#[test]
fn tiers_on_a_full_or_broken_disk_lose_nothing() {
    for (fault, mode) in [(ENOSPC, "yes"), (EIO, "no")] {
        let arguments =
            ["--maxmemory", "8mb", "--tiered-path", "tiers", "--concurrent", mode, "--shards", "2"];
        let faulty = Faulty::start_with("segment-", "tiers-fault", &arguments);
        let mut client = faulty.client();
        let (before, refused) = set_until_refused(&mut client, 0, 8000);
        assert_eq!(refused, None, "{}", faulty.log());
        assert!(tier_figure(&mut client, "bytes_written") > 0);
        faulty.set_fault(&format!("write {fault}"));
        let (mut count, refused) = set_until_refused(&mut client, before, 100_000);
        assert!(refused.as_deref().is_some_and(|error| error.starts_with("OOM")), "{refused:?}");
        assert!(tier_figure(&mut client, "write_errors") > 0);
        assert_eq!(tier_figure(&mut client, "demotion_stuck"), 1);
        assert!(faulty.log().contains("values stay in memory: "), "{}", faulty.log());
        // The data of a failed write can be read, and reading needs no permanent memory.
        for number in (before.saturating_sub(50)..count).chain((0..before).step_by(97)) {
            let reply = client.command(&["GET", &format!("key:{number}")]);
            assert_eq!(reply.text(), value(number), "{number}: {}", faulty.log());
        }
        faulty.set_fault("");
        let begun = Instant::now();
        while count < 12_000 {
            count = set_until_refused(&mut client, count, 12_000).0;
            assert!(begun.elapsed() < PATIENCE, "{}", faulty.log());
        }
        assert_all_exist(&mut client, count, "when the disk works again");
        assert_eq!(tier_figure(&mut client, "demotion_stuck"), 0);
    }
}

#[test]
fn an_unreadable_tier_is_an_error_without_loss() {
    let mut arguments =
        vec!["--maxmemory", "8mb", "--tiered-path", "tiers", "--maxmemory-policy", "allkeys-lru"];
    arguments.extend(["--enable-debug-command", "yes"]);
    let faulty = Faulty::start_with("segment-", "tiers-unread", &arguments);
    let mut client = faulty.client();
    // Records are not read from the page cache, where reads would not fail.
    assert_eq!(client.run("DEBUG TIER-CACHED-READS 0"), Value::ok());
    let (count, _) = set_until_refused(&mut client, 0, 8000);
    faulty.set_fault(&format!("read {EIO}"));
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
    assert_eq!(client.command(&["SET", "key:0", &value(0)]), Value::ok(), "an overwritten value is not read");
    faulty.set_fault("");
    assert_all_exist(&mut client, count, "when the disk works again");
}

#[test]
fn a_store_on_a_full_or_broken_disk_loses_nothing() {
    for (store, fault) in [("redb", ENOSPC), ("lmdb", EIO), ("fjall", ENOSPC)] {
        let arguments = ["--maxmemory", "12mb", "--store", store, "--path", "data", "--fsync", "no"];
        let mut faulty = Faulty::start_with("data/store.", "store-fault", &arguments);
        let mut client = faulty.client();
        let (before, refused) = set_until_refused(&mut client, 0, 3000);
        assert_eq!(refused, None, "{}", faulty.log());
        faulty.set_fault(&format!("sync {fault}"));
        let (mut count, refused) = set_until_refused(&mut client, before, 100_000);
        let is_out_of_memory = refused.as_deref().is_some_and(|error| error.starts_with("OOM"));
        assert!(is_out_of_memory, "{store}: {refused:?}");
        assert_eq!(client.info("aof_last_bgrewrite_status"), "err", "{store}");
        assert!(faulty.log().contains("the rewrite of the AOF failed"), "{store}: {}", faulty.log());
        for number in (before.saturating_sub(50)..count).step_by(7) {
            let reply = client.command(&["GET", &format!("key:{number}")]);
            assert_eq!(reply.text(), value(number), "{store}: {}", faulty.log());
        }
        faulty.set_fault("");
        let begun = Instant::now();
        while count < 7_000 {
            count = set_until_refused(&mut client, count, 7_000).0;
            assert!(begun.elapsed() < PATIENCE, "{store}: {}", faulty.log());
        }
        assert_all_exist(&mut client, count, store);
        faulty.restart_with(&arguments);
        assert_all_exist(&mut faulty.client(), count, store);
    }
}
