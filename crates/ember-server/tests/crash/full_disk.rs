//! A full disk: a server starts on it and serves reads, rewrites fail immediately, and writes resume as soon as there
//! is space.

use std::time::{Duration, Instant};

use ember_testkit::{RawClient, Value};

use crate::faults::{ENOSPC, Faulty, PATIENCE, is_refused, write_until};

/// The maximum time for which writes are refused after the disk has space again. The server retries five times per
/// second; the rest allows for a busy machine.
const RESUMES_WITHIN: Duration = Duration::from_secs(2);

fn full() -> String {
    format!("write {ENOSPC}")
}

/// Starts a server with one key on a full disk, and then frees space.
fn starts_on_a_full_disk(name: &str, before: &[&str], arguments: &[&str]) {
    let mut faulty = Faulty::start_with("appendonlydir", name, before);
    let mut client = faulty.client();
    assert_eq!(client.run("SET kept 1"), Value::ok());
    if before.contains(&"no") {
        assert_eq!(client.run("SAVE"), Value::ok());
    }
    faulty.kill();
    faulty.set_fault(&full());
    faulty.restart_with(arguments);
    let mut client = faulty.client();
    assert_eq!(client.run("GET kept"), Value::from("1"), "{name}: reads are served");
    assert!(is_refused(&client.run("SET new 1")), "{name}: writes are refused");
    assert_eq!(client.info("aof_last_write_status"), "err", "{name}");
    let (status, text) = faulty.ready();
    assert!(status == 503 && text.starts_with("writes are refused: MISCONF"), "{name}: {status} {text}");
    assert!(client.run("BGREWRITEAOF").is_error(), "{name}");
    assert_eq!(client.info("aof_last_bgrewrite_status"), "err", "{name}");
    faulty.set_fault("");
    await_writes(&mut client, &faulty);
    assert_eq!(client.run("SET new 1"), Value::ok(), "{name}");
    assert_eq!(client.info("aof_last_write_status"), "ok", "{name}");
    faulty.restart_with(arguments);
    let found = faulty.client().run("MGET kept new tries");
    let expected = [Value::from("1"), Value::from("1"), Value::from("1")];
    assert_eq!(found, Value::Array(expected.to_vec()), "{name}: {}", faulty.log());
}

#[test]
fn a_server_with_an_aof_starts_on_a_full_disk_and_serves_reads() {
    for policy in ["always", "everysec", "no"] {
        let arguments = ["--appendonly", "yes", "--appendfsync", policy];
        starts_on_a_full_disk(&format!("start-{policy}"), &arguments, &arguments);
    }
    let tiers = ["--appendonly", "yes", "--maxmemory", "16mb", "--tiered-path", "tiers"];
    starts_on_a_full_disk("start-tiers", &tiers, &tiers);
}

#[test]
fn an_aof_with_an_rdb_base_begins_once_a_full_disk_has_space() {
    starts_on_a_full_disk("start-rdb", &["--appendonly", "no"], &["--appendonly", "yes"]);
}

#[test]
fn a_server_with_a_store_starts_on_a_full_disk_and_serves_reads() {
    for store in ["redb", "lmdb", "fjall"] {
        let arguments = ["--store", store, "--path", "data"];
        starts_on_a_full_disk(&format!("start-store-{store}"), &arguments, &arguments);
    }
}

#[test]
fn a_rewrite_on_a_full_disk_fails_at_once() {
    let faulty = Faulty::start("rewrite", &["--appendfsync", "no"]);
    let mut client = faulty.client();
    assert_eq!(client.run("SET key 1"), Value::ok());
    faulty.set_fault(&full());
    // The server does not know yet that the disk is full: the rewrite begins and fails.
    client.run("BGREWRITEAOF");
    await_failure(&mut client, &faulty);
    // The server has now detected the full disk.
    write_until(&mut client, is_refused);
    assert!(client.run("BGREWRITEAOF").is_error(), "{}", faulty.log());
    await_failure(&mut client, &faulty);
    assert!(faulty.log().contains("the rewrite of the AOF failed"), "{}", faulty.log());
    faulty.set_fault("");
    await_writes(&mut client, &faulty);
    assert!(!client.run("BGREWRITEAOF").is_error());
    let begun = Instant::now();
    while client.info("aof_last_bgrewrite_status") != "ok" {
        assert!(begun.elapsed() < PATIENCE, "{}", faulty.log());
    }
}

/// Waits until writes are accepted, for at most [`RESUMES_WITHIN`]. The time that the machine's own disk takes for the
/// first write is excluded: the log reports slow writes.
fn await_writes(client: &mut RawClient, faulty: &Faulty) {
    let begun = Instant::now();
    write_until(client, |reply| !is_refused(reply));
    let (elapsed, log) = (begun.elapsed(), faulty.log());
    assert!(elapsed < RESUMES_WITHIN || log.contains("the disk is slow"), "{elapsed:?}: {log}");
}

fn await_failure(client: &mut RawClient, faulty: &Faulty) {
    let begun = Instant::now();
    let is_over = |client: &mut RawClient| {
        client.info("aof_rewrite_in_progress") == "0" && client.info("aof_last_bgrewrite_status") == "err"
    };
    while !is_over(client) {
        assert!(begun.elapsed() < PATIENCE, "{}", faulty.log());
    }
}

#[test]
fn a_checkpoint_that_cannot_begin_loses_no_removal() {
    let arguments = ["--store", "redb", "--path", "data"];
    let mut faulty = Faulty::start_with("appendonlydir", "removal", &arguments);
    let mut client = faulty.client();
    let rewrite = |client: &mut RawClient, faulty: &Faulty| {
        assert!(!client.run("BGREWRITEAOF").is_error(), "{}", faulty.log());
        let begun = Instant::now();
        while client.info("aof_rewrite_in_progress") == "1" {
            assert!(begun.elapsed() < PATIENCE, "{}", faulty.log());
        }
    };
    assert_eq!(client.run("MSET removed 1 other 1"), Value::ok());
    rewrite(&mut client, &faulty);
    assert_eq!(client.info("aof_last_bgrewrite_status"), "ok");
    assert_eq!(client.run("DEL removed"), Value::Integer(1));
    faulty.set_fault(&full());
    client.run("BGREWRITEAOF");
    await_failure(&mut client, &faulty);
    faulty.set_fault("");
    write_until(&mut client, |reply| !is_refused(reply));
    rewrite(&mut client, &faulty);
    assert_eq!(client.info("aof_last_bgrewrite_status"), "ok");
    faulty.restart_with(&arguments);
    assert_eq!(faulty.client().run("EXISTS removed other"), Value::Integer(1), "{}", faulty.log());
}

#[test]
fn errors_for_clients_contain_no_directories() {
    let directory = std::env::temp_dir().join(format!("ember-crash-paths-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let (tiers, users) = (directory.join("tiers"), directory.join("users.acl"));
    std::fs::write(&users, "user default on nopass ~* &* +@all\n").unwrap();
    let [tiers, users] = [&tiers, &users].map(|path| path.display().to_string());
    let mut arguments = vec!["--maxmemory", "8mb", "--tiered-path", &tiers, "--aclfile", &users];
    arguments.extend(["--enable-debug-command", "yes"]);
    let faulty = Faulty::start_with("segment-", "paths", &arguments);
    let mut client = faulty.client();
    assert_eq!(client.run("DEBUG TIER-CACHED-READS 0"), Value::ok());
    let value = "x".repeat(2000);
    for number in 0..8000 {
        assert_eq!(client.command(&["SET", &format!("key:{number}"), &value]), Value::ok());
    }
    faulty.set_fault("read 5");
    let replies = (0..8000).step_by(20).map(|number| client.command(&["GET", &format!("key:{number}")]));
    let mut errors: Vec<String> = replies.filter(Value::is_error).map(|error| error.text()).collect();
    assert!(!errors.is_empty());
    std::fs::write(&users, "nonsense\n").unwrap();
    let other = faulty.directory.0.join("held");
    std::fs::create_dir(&other).unwrap();
    let _holder = crate::builder(&["--appendonly", "yes"]).directory(&other).start();
    for call in
        [vec!["ACL", "LOAD"], vec!["CONFIG", "SET", "dir", &other.display().to_string(), "save", "1 1"]]
    {
        let reply = client.command(&call);
        assert!(reply.is_error(), "{call:?}: {reply:?}");
        errors.push(reply.text());
    }
    let places = [directory.display().to_string(), faulty.directory.0.display().to_string()];
    for error in &errors {
        assert!(!places.iter().any(|place| error.contains(place)), "{error}");
    }
    assert!(faulty.log().contains(&tiers), "the log has the paths: {}", faulty.log());
    faulty.set_fault("");
    std::fs::remove_dir_all(directory).unwrap();
}
