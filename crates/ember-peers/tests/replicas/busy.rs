//! Replicas of a primary under constant writes: one full sync suffices and uses no memory beyond its limit, and a
//! replica whose process was stopped resumes.
//!
//! `COPY_MEGABYTES` and `STOPPED_SECONDS` change the amount of data, and the time for which a replica is stopped.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use ember_peers::Mode;
use ember_testkit::{OnDrop, Pace, Proxy, Random, RawClient, Server, Value, find_ember_server, wait_until};

use crate::matrix::number;
use crate::replica::{MODES, assert_same, link, replicaof};

/// The size of the data in MB; values have [`VALUE_BYTES`] bytes.
const DATA_MEGABYTES: u64 = 200;

/// The size of a value in bytes; the next constant is the number of values per write.
const VALUE_BYTES: usize = 10_000;
const BATCH: usize = 8;

/// The rate of writes in bytes per second; the next constant is the rate of the link to the replica.
const WRITTEN: u64 = 40_000_000;
const LINE: u64 = 100_000_000;

/// The maximum memory in bytes for a full sync and the stream buffered during it: 64 MiB for the full sync, 16 MiB for
/// the backlog, 64 MiB for a segment that is being written to the disk, and 8 MiB for everything else.
const MEMORY_MAX: u64 = (64 + 16 + 64 + 8) << 20;

/// The time for which a replica is stopped, in seconds.
const STOPPED_SECONDS: u64 = 4;

fn start(mode: Mode, arguments: &[&str]) -> Server {
    let concurrent = if mode == Mode::Concurrent { "yes" } else { "no" };
    let fixed = ["--shards", "2", "--concurrent", concurrent, "--save", "", "--enable-debug-command", "yes"];
    let delay = ["--repl-diskless-sync-delay", "0"];
    Server::builder(find_ember_server()).arguments(&fixed).arguments(&delay).arguments(arguments).start()
}

/// Overwrites random keys from `key:0` on until `is_over`, at most `per_second` bytes per second; returns the number of
/// bytes written.
fn write_until(client: &mut RawClient, keys: u64, per_second: u64, is_over: &AtomicBool) -> u64 {
    let mut random = Random::new(keys);
    let bytes = random.bytes(2 * VALUE_BYTES);
    let mut pace = Pace::new(per_second);
    let mut written = 0;
    while !is_over.load(Ordering::SeqCst) {
        let values: Vec<[Vec<u8>; 3]> = (0..BATCH)
            .map(|_| {
                let key = format!("key:{}", random.below(keys as usize));
                let from = random.below(VALUE_BYTES);
                [b"SET".to_vec(), key.into_bytes(), bytes[from..from + VALUE_BYTES].to_vec()]
            })
            .collect();
        let replies = client.pipeline(&values).unwrap();
        assert!(replies.iter().all(|reply| *reply == Value::ok()));
        written += (BATCH * VALUE_BYTES) as u64;
        pace.pass((BATCH * VALUE_BYTES) as u64);
    }
    written
}

/// Runs `act` while a writer overwrites keys of the primary; returns the number of bytes written during that time.
fn while_written(primary: &Server, keys: u64, per_second: u64, act: impl FnOnce()) -> u64 {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let writer = scope.spawn(|| write_until(&mut primary.client(), keys, per_second, &is_over));
        let ends = OnDrop(|| is_over.store(true, Ordering::SeqCst));
        act();
        drop(ends);
        writer.join().unwrap()
    })
}

#[test]
fn one_full_sync_suffices_under_heavy_writes() {
    for mode in MODES {
        let megabytes = number("COPY_MEGABYTES", DATA_MEGABYTES);
        let keys = megabytes * 1_000_000 / VALUE_BYTES as u64;
        let primary = start(mode, &["--repl-backlog-spill", "4gb"]);
        let replica = start(mode, &[]);
        let mut client = primary.client();
        client.run(&format!("DEBUG POPULATE {keys} key {VALUE_BYTES}"));
        let proxy = Proxy::limited(primary.address(), LINE);
        let before = primary.usage().unwrap().rss_bytes;
        let mut peak = 0;
        let begun = std::time::Instant::now();
        let written = while_written(&primary, keys, WRITTEN, || {
            replicaof(&replica, proxy.address());
            let mut other = replica.client();
            wait_until("the link is up", || other.info("master_link_status") == "up");
            peak = primary.usage().unwrap().peak_rss_bytes;
        });
        let rate = written / begun.elapsed().as_millis() as u64 / 1000;
        println!(
            "{mode:?}: full sync of {megabytes} MB under {rate} MB/s of writes took {:?}; memory {} MiB above the data",
            begun.elapsed(),
            (peak - before) >> 20
        );
        assert_same(&primary, &replica);
        assert_eq!((client.info("sync_full"), proxy.connections()), ("1".into(), 1), "{}", primary.log());
        assert!(peak < before + MEMORY_MAX);
    }
}

#[test]
fn a_stopped_replica_resumes_at_its_offset() {
    for mode in MODES {
        let seconds = number("STOPPED_SECONDS", STOPPED_SECONDS);
        let timeout = (seconds / 2).to_string();
        let primary = start(mode, &["--repl-backlog-spill", "4gb", "--repl-timeout", &timeout]);
        let replica = start(mode, &[]);
        link(&replica, primary.address());
        let mut client = primary.client();
        let keys = 1000;
        while_written(&primary, keys, WRITTEN, || {
            wait_until("enough data are written", || client.info_number("master_repl_offset") > 10_000_000);
            replica.signal("STOP");
            wait_until("the primary drops the replica", || client.info("connected_slaves") == "0");
            Pace::new(1).pass(seconds - seconds / 2);
            replica.signal("CONT");
            wait_until("the replica is connected again", || client.info("connected_slaves") == "1");
        });
        assert_same(&primary, &replica);
        assert_eq!(
            ["sync_full", "sync_partial_ok"].map(|name| client.info(name)),
            ["1", "1"],
            "{}",
            primary.log()
        );
    }
}
