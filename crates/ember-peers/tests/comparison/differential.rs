//! ember and redis-server reply to the same random commands with the same bytes.
//!
//! `PEERS_SEED` and `PEERS_COMMANDS` change the seed and the number of commands of each run.
//!
//! In one run of each mode, ember has a redis-server as its replica, whose connection is cut repeatedly. At the end the
//! replica has the same data.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use ember_peers::{Mode, Plan, Protocol, compare_servers, start_ember, start_redis};
use ember_testkit::{OnDrop, Server, Value, wait_until};

/// The number of commands of each run: a million in four runs.
const COMMANDS: usize = 250_000;

const SEED: u64 = 20_261;

/// The number of bytes of the stream between two cuts of the link to a replica.
const CUT_BYTES: i64 = 300_000;

fn plan(protocol: Protocol, offset: u64) -> Plan {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    Plan {
        seed: number("PEERS_SEED").unwrap_or(SEED + offset),
        commands: number("PEERS_COMMANDS").map_or(COMMANDS, |count| count as usize),
        protocol,
    }
}

fn compare(mode: Mode, protocol: Protocol, offset: u64) {
    compare_servers(&start_redis(), &start_ember(mode), plan(protocol, offset));
}

/// Compares the servers, and at the end also the data of ember's replica.
fn compare_with_a_replica(mode: Mode, protocol: Protocol, offset: u64) {
    let (redis, ember, replica) = (start_redis(), start_ember(mode), start_redis());
    let port = ember.port().to_string();
    assert_eq!(replica.client().command(&["REPLICAOF", "127.0.0.1", &port]), Value::ok());
    let link = || replica.client().info("master_link_status");
    wait_until("the replica has its full sync", || link() == "up");
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let _ends_cutting = OnDrop(|| is_over.store(true, Ordering::Relaxed));
        scope.spawn(|| cut_again_and_again(&ember, &is_over));
        compare_servers(&redis, &ember, plan(protocol, offset));
    });
    wait_until("the replica has the whole stream", || {
        let offset = |server: &Server| server.client().info("master_repl_offset");
        link() == "up" && offset(&ember) == offset(&replica)
    });
    let digest = |server: &Server| server.client().run("DEBUG DIGEST");
    // Keys that have just expired are deleted on both soon.
    wait_until("both have the same data", || digest(&ember) == digest(&replica));
    // The number of full syncs is read from the log, because the compared commands reset the counters of INFO. The
    // replica began with a different history.
    let log = ember.log();
    let count_of = |what: &str| log.lines().filter(|line| line.contains(what)).count();
    assert_eq!(["needs a full sync", "cannot resume"].map(count_of), [1, 1], "{log}");
    assert!(count_of("resumes at") > 0, "{log}");
}

fn cut_again_and_again(ember: &Server, is_over: &AtomicBool) {
    let mut client = ember.client();
    let mut cuts_at = CUT_BYTES;
    while !is_over.load(Ordering::Relaxed) {
        let offset = client.run("ROLE").elements().and_then(|parts| parts[1].integer()).unwrap();
        if offset >= cuts_at {
            cuts_at = offset + CUT_BYTES;
            client.run("CLIENT KILL TYPE replica");
        }
        thread::yield_now();
    }
}

#[test]
fn concurrent_mode_replies_like_redis_over_resp2() {
    compare_with_a_replica(Mode::Concurrent, Protocol::Resp2, 0);
}

#[test]
fn concurrent_mode_replies_like_redis_over_resp3() {
    compare(Mode::Concurrent, Protocol::Resp3, 1);
}

#[test]
fn sharded_mode_replies_like_redis_over_resp2() {
    compare(Mode::Sharded, Protocol::Resp2, 2);
}

#[test]
fn sharded_mode_replies_like_redis_over_resp3() {
    compare_with_a_replica(Mode::Sharded, Protocol::Resp3, 3);
}
