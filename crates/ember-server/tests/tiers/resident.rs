//! `maxmemory` limits resident memory: while ten times as much data is written, used, saved, loaded and replicated.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ember_testkit::{Directory, Random, RawClient, Server, ServerBuilder, Value, wait_until};

use crate::{MODES, builder, figure, hold_disk};

/// The memory limit in bytes: large enough compared with memory that does not depend on it.
const LIMIT: u64 = 128 << 20;

/// The guaranteed maximum of resident memory: this percentage of the limit, plus the memory of an empty server.
const MOST_PERCENT: u64 = 105;

/// Returns a builder for a server that demotes values to a folder in its directory.
fn limited(mode: &[&str], limit: u64) -> ServerBuilder {
    builder(mode).arguments(&["--maxmemory", &limit.to_string(), "--tiered-max-size", "4gb"])
}

/// Returns the resident memory of an empty server.
fn base(mode: &[&str]) -> u64 {
    let server = limited(mode, LIMIT).start();
    server.client().run("PING");
    server.usage().unwrap().rss_bytes
}

/// The peak resident memory of a server, sampled each second.
struct Watch {
    stops: Arc<AtomicBool>,
    watching: JoinHandle<u64>,
}

impl Watch {
    fn begin(pid: u32) -> Watch {
        let stops = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&stops);
        let watching = thread::spawn(move || {
            let mut most = 0;
            while !is_over.load(Ordering::Relaxed) {
                let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
                let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
                let kib: u64 = line.trim().trim_end_matches(" kB").parse().unwrap_or(0);
                most = most.max(kib << 10);
                thread::park_timeout(Duration::from_secs(1));
            }
            most
        });
        Watch { stops, watching }
    }

    /// Ends the sampling, and asserts that the peak does not exceed the guaranteed maximum.
    fn end(self, what: &str, limit: u64, base: u64) {
        self.stops.store(true, Ordering::Relaxed);
        let (most, promised) = (self.watching.join().unwrap(), limit / 100 * MOST_PERCENT + base);
        println!("{what}: {} of {} KiB", most >> 10, promised >> 10);
        assert!(most <= promised, "{what}: {} of {} KiB", most >> 10, promised >> 10);
    }
}

/// Returns a call that creates a key of a random type and size.
fn call(number: usize, random: &mut Random) -> Vec<Vec<u8>> {
    let bytes = match number % 500 {
        0 => 500_000,
        _ => [100, 300, 700, 1000, 1500, 3000, 5000, 20_000][random.below(8)],
    };
    let text = |text: String| text.into_bytes();
    let (name, mut words): (_, Vec<Vec<u8>>) = match number % 10 {
        0..6 => ("SET", vec![random.bytes(bytes)]),
        6 => {
            let fields = (0..1 + bytes / 120).flat_map(|at| [text(format!("field:{at}")), random.bytes(100)]);
            ("HSET", fields.collect())
        }
        7 => ("RPUSH", (0..1 + bytes / 110).map(|_| random.bytes(100)).collect()),
        8 => {
            let pairs = (0..1 + bytes / 60).flat_map(|at| [text(at.to_string()), random.bytes(50)]);
            ("ZADD", pairs.collect())
        }
        _ => ("SADD", (0..1 + bytes / 60).map(|_| random.bytes(50)).collect()),
    };
    let mut call = vec![text(name.to_owned()), text(format!("key:{number}"))];
    call.append(&mut words);
    call
}

fn send(client: &mut RawClient, calls: &[Vec<Vec<u8>>]) {
    let replies = client.pipeline(calls).unwrap();
    let refused = replies.iter().find(|reply| reply.is_error());
    assert!(refused.is_none(), "{refused:?}");
}

/// Creates keys with a total of `bytes` bytes; returns the number of keys.
fn load(client: &mut RawClient, random: &mut Random, bytes: u64) -> usize {
    let (mut made, mut count) = (0, 0);
    while made < bytes {
        let mut calls = Vec::new();
        let mut together = 0;
        while together < 256 << 10 {
            let call = call(count, random);
            together += call.iter().map(|word| word.len() as u64).sum::<u64>();
            calls.push(call);
            count += 1;
        }
        send(client, &calls);
        made += together;
    }
    count
}

/// Reads each tenth string, and changes some values of all types.
fn use_keys(client: &mut RawClient, random: &mut Random, count: usize) {
    let word = |word: &str| word.as_bytes().to_vec();
    for numbers in (0..count).step_by(10).collect::<Vec<_>>().chunks(100) {
        let calls = numbers.iter().map(|number| vec![word("GET"), word(&format!("key:{number}"))]);
        send(client, &calls.collect::<Vec<_>>());
    }
    for _ in 0..200 {
        let calls = (0..100).map(|_| {
            let number = random.below(count);
            let key = word(&format!("key:{number}"));
            match number % 10 {
                0..6 => vec![word("SET"), key, random.bytes(200 + number % 3000)],
                6 => vec![word("HSET"), key, word("field:0"), random.bytes(50)],
                7 => vec![word("LPUSH"), key, random.bytes(70)],
                8 => vec![word("ZADD"), key, word("1"), random.bytes(50)],
                _ => vec![word("SADD"), key, random.bytes(50)],
            }
        });
        send(client, &calls.collect::<Vec<_>>());
    }
}

fn keys(server: &Server) -> Value {
    let mut client = server.client();
    wait_until("the data are loaded", || client.info("loading") == "0");
    client.run("DBSIZE")
}

#[test]
fn resident_memory_stays_within_the_limit_with_ten_times_the_data() {
    let _disk = hold_disk();
    let mode = MODES[0];
    let base = base(mode);
    let directory = Directory::new("tiers-resident");
    let server = limited(mode, LIMIT).directory(&directory.0).start();
    let mut client = server.client();
    let mut random = Random::new(1);
    let watch = Watch::begin(server.pid());
    let count = load(&mut client, &mut random, 10 * LIMIT);
    watch.end("loading", LIMIT, base);
    let watch = Watch::begin(server.pid());
    use_keys(&mut client, &mut random, count);
    watch.end("reading and changing", LIMIT, base);
    let watch = Watch::begin(server.pid());
    assert!(!client.run("BGSAVE").is_error());
    use_keys(&mut client, &mut random, count / 4);
    wait_until("the snapshot is saved", || client.info("rdb_bgsave_in_progress") == "0");
    assert_eq!(client.info("rdb_last_bgsave_status"), "ok");
    watch.end("saving", LIMIT, base);
    assert_eq!(client.run("DBSIZE"), Value::Integer(count as i64));
    assert_eq!(client.info_number("evicted_keys"), 0);
    assert!(figure(&mut client, "goal_bytes") < LIMIT);
    assert!(figure(&mut client, "beside_bytes") > 0);
    server.crash();
    // The limit is three quarters of the usual one.
    let limit = LIMIT / 4 * 3;
    let server = limited(mode, limit).directory(&directory.0).start();
    let watch = Watch::begin(server.pid());
    assert_eq!(keys(&server), Value::Integer(count as i64));
    watch.end("a start with less memory", limit, base);
}

#[test]
fn an_aof_is_loaded_with_less_memory_than_it_was_written_with() {
    let _disk = hold_disk();
    let mode = MODES[1];
    let base = base(mode);
    let directory = Directory::new("tiers-less");
    let appends = ["--appendonly", "yes", "--appendfsync", "no"];
    let mut server = limited(mode, 1 << 30).arguments(&appends).directory(&directory.0).start();
    let mut client = server.client();
    let mut random = Random::new(2);
    let count = load(&mut client, &mut random, 3 * LIMIT);
    use_keys(&mut client, &mut random, count);
    assert_eq!(client.run("DBSIZE"), Value::Integer(count as i64));
    let digest = client.run("DEBUG DIGEST");
    server.signal("TERM");
    server.wait();
    let server = limited(mode, LIMIT).arguments(&appends).directory(&directory.0).start();
    let watch = Watch::begin(server.pid());
    assert_eq!(keys(&server), Value::Integer(count as i64));
    watch.end("a start with less memory", LIMIT, base);
    let mut client = server.client();
    assert!(figure(&mut client, "cold_keys") > 0);
    assert_eq!(client.run("DEBUG DIGEST"), digest);
}
