//! Servers that start from restored files have the data that the killed server had at that time.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};

use ember_testkit::{Directory, RawClient, Server, Value, find_ember_server, wait_until};

/// Both execution modes, each with two workers.
const MODES: [&[&str]; 2] =
    [&["--concurrent", "yes", "--shards", "2"], &["--concurrent", "no", "--shards", "2"]];

const KEEPING: [&str; 8] =
    ["--appendonly", "yes", "--aof-keep-seconds", "3600", "--enable-debug-command", "yes", "--save", ""];

fn start_in(directory: &Path, arguments: &[&str]) -> Server {
    Server::builder(find_ember_server()).arguments(arguments).directory(directory).start()
}

fn restore(directory: &Path, to_s: i64, out: &Path, key: Option<&str>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ember-cli"));
    command.args(["restore", "--to", &to_s.to_string(), "--dir"]).arg(directory).arg("--out").arg(out);
    command.env_remove("EMBER_ENCRYPTION_KEY").envs(key.map(|key| ("EMBER_ENCRYPTION_KEY", key)));
    command.output().unwrap()
}

fn clock_s(client: &mut RawClient) -> i64 {
    client.run("TIME").elements().unwrap()[0].text().parse().unwrap()
}

/// A point in time: the second of the last changes so far, and the data at its end.
struct Moment {
    second: i64,
    digest: Value,
    functions: Value,
}

/// Waits until the current second is over, and returns it with the data at its end.
fn moment(client: &mut RawClient) -> Moment {
    let second = clock_s(client);
    wait_until("the second is over", || clock_s(client) > second);
    Moment { second, digest: client.run("DEBUG DIGEST"), functions: client.run("FUNCTION LIST WITHCODE") }
}

fn rewrite(client: &mut RawClient) {
    assert!(!client.run("BGREWRITEAOF").is_error());
    wait_until("the rewrite is over", || client.info("aof_rewrite_in_progress") == "0");
    assert_eq!(client.info("aof_last_bgrewrite_status"), "ok");
}

fn must(client: &mut RawClient, line: &str) {
    let reply = client.run(line);
    assert!(!reply.is_error(), "{line}: {reply:?}");
}

/// Checks that a server that starts from the restored file has the data of the moment.
fn check(directory: &Path, moment: &Moment, arguments: &[&str], key: Option<&str>) {
    // Tests of this program run at the same time.
    static FOLDERS: AtomicUsize = AtomicUsize::new(0);
    let folder = Directory::new(&format!("restored-{}", FOLDERS.fetch_add(1, Ordering::Relaxed)));
    let restored = restore(directory, moment.second, &folder.0.join("dump.rdb"), key);
    assert!(restored.status.success(), "{restored:?}");
    let mut builder = Server::builder(find_ember_server()).arguments(arguments).directory(&folder.0);
    if let Some(key) = key {
        builder = builder.environment("EMBER_ENCRYPTION_KEY", key);
    }
    let server = builder.start();
    let mut client = server.client();
    assert_eq!(client.run("DEBUG DIGEST"), moment.digest, "{restored:?}");
    assert_eq!(client.run("FUNCTION LIST WITHCODE"), moment.functions);
}

/// Changes data of all types, and the libraries.
fn change(client: &mut RawClient, round: usize) {
    let library = |name: &str| {
        format!("#!lua name={name}\nredis.register_function('{name}', function() return {round} end)")
    };
    for line in [
        format!("SET text round-{round}"),
        "SET number 12 PX 100000000".to_owned(),
        format!("RPUSH list a b {round}"),
        format!("SADD set {round} x"),
        format!("ZADD zset {round} a 2.5 b"),
        format!("HSET hash f{round} v g w"),
        format!("HPEXPIRE hash 100000000 FIELDS 1 f{round}"),
        format!("XADD stream {}-1 a b", round + 1),
        "PFADD hll a b c".to_owned(),
        format!("VADD vectors VALUES 2 {round} 1 element:{round}"),
        "SELECT 3".to_owned(),
        format!("APPEND other {round}"),
        "SELECT 0".to_owned(),
        "SWAPDB 3 4".to_owned(),
    ] {
        must(client, &line);
    }
    match round {
        0 => must(client, "XGROUP CREATE stream group 0"),
        1 => {
            assert!(!client.command(&["FUNCTION", "LOAD", &library("one")]).is_error());
            assert!(!client.command(&["FUNCTION", "LOAD", &library("two")]).is_error());
        }
        2 => must(client, "FUNCTION DELETE one"),
        3 => {
            let Value::Bulk(payload) = client.run("FUNCTION DUMP") else { panic!("a payload") };
            must(client, "FUNCTION FLUSH");
            let words: [&[u8]; 4] = [b"FUNCTION", b"RESTORE", &payload, b"FLUSH"];
            assert!(!client.command(&words).is_error());
        }
        _ => must(client, "FLUSHALL"),
    }
    for line in ["MULTI", "INCR left", "INCR right", "EXEC"] {
        must(client, line);
    }
}

#[test]
fn every_moment_of_a_killed_server_can_be_restored() {
    for (index, mode) in MODES.into_iter().enumerate() {
        let directory = Directory::new("restore-killed");
        let preamble = ["--aof-use-rdb-preamble", ["yes", "no"][index]];
        let arguments = [mode, &KEEPING[..], &preamble].concat();
        let mut server = start_in(&directory.0, &arguments);
        let mut moments = Vec::new();
        for round in 0..5 {
            let mut client = server.client();
            change(&mut client, round);
            moments.push(moment(&mut client));
            if round != 2 {
                rewrite(&mut client);
            } else {
                drop(client);
                drop(server.crash());
                server = start_in(&directory.0, &arguments);
            }
        }
        // Restores while the server runs, and again after it was killed.
        check(&directory.0, &moments[0], &KEEPING[4..], None);
        drop(server.crash());
        for moment in &moments {
            check(&directory.0, moment, &KEEPING[4..], None);
        }
        let too_early = restore(&directory.0, moments[0].second - 1000, &directory.0.join("new.rdb"), None);
        assert_eq!(too_early.status.code(), Some(2));
        let said = String::from_utf8(too_early.stderr).unwrap();
        assert!(said.contains("it is before the oldest data; the files contain from"), "{said}");
        assert!(!directory.0.join("new.rdb").exists());
    }
}

#[test]
fn encrypted_and_cold_values_are_restored() {
    let key = "42".repeat(32);
    let directory = Directory::new("restore-tiers");
    let tiers = ["--maxmemory", "8mb", "--tiered-path", "tiers"];
    let arguments = [&KEEPING[..], &tiers].concat();
    let builder = Server::builder(find_ember_server()).arguments(&arguments).directory(&directory.0);
    let server = builder.environment("EMBER_ENCRYPTION_KEY", &key).start();
    let mut client = server.client();
    let value = "v".repeat(100_000);
    (0..150).for_each(|number| must(&mut client, &format!("SET key:{number} {number}{value}")));
    rewrite(&mut client);
    assert!(client.run("INFO tiers").text().contains("tier_"), "values are demoted");
    must(&mut client, "APPEND key:0 x");
    let before = moment(&mut client);
    must(&mut client, "DEL key:1");
    rewrite(&mut client);
    let after = moment(&mut client);
    drop(server.crash());
    for moment in [before, after] {
        check(&directory.0, &moment, &["--enable-debug-command", "yes", "--save", ""], Some(&key));
    }
    let refused = restore(&directory.0, clock_now_s(), &directory.0.join("new.rdb"), None);
    assert_eq!(refused.status.code(), Some(2));
}

fn clock_now_s() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    now.as_secs() as i64
}

#[test]
fn times_at_which_the_aof_was_off_are_refused() {
    for mode in MODES {
        let directory = Directory::new("restore-gap");
        let server = start_in(&directory.0, &[mode, &KEEPING].concat());
        let mut client = server.client();
        change(&mut client, 0);
        let first = moment(&mut client);
        let quiet = moment(&mut client);
        must(&mut client, "CONFIG SET appendonly no");
        let off = moment(&mut client);
        change(&mut client, 1);
        let unrecorded = moment(&mut client);
        must(&mut client, "CONFIG SET appendonly yes");
        wait_until("its base is written", || {
            client.info("aof_rewrite_in_progress") == "0" && client.info("aof_rewrite_scheduled") == "0"
        });
        change(&mut client, 2);
        let last = moment(&mut client);
        drop(server.crash());
        // Until the AOF was switched off, nothing is missing, even in seconds without a change.
        for moment in [&first, &quiet, &off, &last] {
            check(&directory.0, moment, &KEEPING[4..], None);
        }
        let refused = restore(&directory.0, unrecorded.second, &directory.0.join("new.rdb"), None);
        let said = String::from_utf8(refused.stderr).unwrap();
        assert!(said.contains("changes are missing after"), "{said}");
        assert_eq!(refused.status.code(), Some(2));
    }
}
