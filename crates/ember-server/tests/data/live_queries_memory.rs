//! Live queries: the counted memory equals the allocator's count, and is limited whether or not clients read.

use std::collections::HashMap;
use std::thread;
use std::time::Duration;

use ember_testkit::{RawClient, Server};

use crate::watched_results::{next_result, pushed, resp3};
use crate::{MODES, start};

/// The number of measured watches, which is lower in a debug build.
const WATCHES: usize = if cfg!(debug_assertions) { 20_000 } else { 100_000 };

/// The number of commands in one pipeline.
const BATCH: usize = 1000;

/// Makes each of `connections` connections watch its share of the keys. Returns the allocated bytes by the allocator's
/// count, and the bytes counted in `mem_watches`. Thread caches are disabled, because the allocator counts the freed
/// memory in them as allocated. The first quarter of the watches is not measured, because tables begin with unused
/// capacity.
fn taken(connections: usize, key_of: impl Fn(usize, usize) -> String) -> (u64, u64) {
    let server = Server::builder(env!("CARGO_BIN_EXE_ember-server"))
        .arguments(MODES[0])
        .environment("_RJEM_MALLOC_CONF", "tcache:false")
        .start();
    let mut admin = server.client();
    let mut watching: Vec<RawClient> = (0..connections).map(|_| server.client()).collect();
    let share = WATCHES / connections;
    let mut watch = |from: usize, to: usize| {
        for (number, client) in watching.iter_mut().enumerate() {
            let keys: Vec<String> = (from..to).map(|key| key_of(number, key)).collect();
            for some in keys.chunks(BATCH) {
                let calls: Vec<[&str; 2]> = some.iter().map(|key| ["GET.WATCH", key.as_str()]).collect();
                assert!(client.pipeline(&calls).unwrap().iter().all(|reply| !reply.is_error()));
            }
        }
    };
    watch(0, share / 4);
    let before = memory(&mut admin);
    watch(share / 4, share);
    assert_eq!(admin.info_number("ember_live_watchers"), WATCHES as u64);
    let after = memory(&mut admin);
    (after.0 - before.0, after.1 - before.1)
}

/// Returns the allocator's count of allocated bytes, and the bytes counted for watches.
fn memory(admin: &mut RawClient) -> (u64, u64) {
    // The allocator's statistics in INFO are up to 100 ms old.
    thread::park_timeout(Duration::from_millis(200));
    (admin.info_number("used_memory"), admin.info_number("mem_watches"))
}

fn assert_near((taken, counted): (u64, u64)) {
    let watches = WATCHES as u64 * 3 / 4;
    println!("{} bytes for each watch, {} counted", taken / watches, counted / watches);
    assert!(taken.abs_diff(counted) <= taken / 20, "{taken} bytes are allocated, {counted} are counted");
}

#[test]
fn memory_of_watches_of_different_keys_is_counted() {
    assert_near(taken(10, |client, key| format!("key:{client:03}:{key:09}")));
}

#[test]
fn memory_of_many_watchers_of_the_same_keys_is_counted() {
    assert_near(taken(500, |_, key| format!("key:{key:09}")));
}

/// The number of keys that the stalled client watches; the next constant is the length of their values in bytes.
const LARGE_KEYS: usize = 48;
const LARGE_BYTES: usize = 512 * 1024;
const MEMORY_MAX: u64 = 8 << 20;

fn large(key: usize, round: usize) -> String {
    format!("{round}:{key}:{}", "x".repeat(LARGE_BYTES))
}

#[test]
fn a_stalled_watcher_stays_within_the_memory_limit_and_gets_the_newest_states() {
    for mode in MODES {
        let server = start(mode);
        let (mut stalled, mut other) = (resp3(&server), resp3(&server));
        let (mut writer, mut admin) = (server.client(), server.client());
        admin.run(&format!("CONFIG SET watch-max-memory {MEMORY_MAX}"));
        let mut names = HashMap::new();
        for key in 0..LARGE_KEYS {
            let interval = if key % 2 == 0 { "" } else { "INTERVAL 50 " };
            let reply = stalled.run(&format!("WATCH.OPEN {interval}COMMAND GET large{key}"));
            names.insert(reply.get("fingerprint").unwrap().text(), key);
        }
        assert!(!other.run("GET.WATCH small").is_error());
        let mut most = 0;
        for round in 0..3 {
            for key in 0..LARGE_KEYS {
                writer.command(&["SET", &format!("large{key}"), &large(key, round)]);
                most = most.max(admin.info_number("mem_watches"));
            }
            writer.run(&format!("SET small {round}"));
            assert_eq!(
                next_result(&mut other).text(),
                round.to_string(),
                "a reading client receives states meanwhile"
            );
        }
        let under_way = 3 * (LARGE_BYTES as u64 + 4096);
        assert!((MEMORY_MAX / 2..MEMORY_MAX + under_way).contains(&most), "{mode:?}: {most}");
        let clients = admin.run("CLIENT LIST").text();
        let line = clients.lines().find(|line| line.contains(&format!("queries={LARGE_KEYS}"))).unwrap();
        let total: u64 = line.split("tot-mem=").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
        assert!((2 << 20..MEMORY_MAX + under_way).contains(&total), "{mode:?}: {line}");
        let mut last = HashMap::new();
        let newest: Vec<String> = (0..LARGE_KEYS).map(|key| large(key, 2)).collect();
        while last.len() < LARGE_KEYS
            || last.iter().any(|(&key, text): (&usize, &String)| newest[key] != *text)
        {
            let (fingerprint, _, result) = pushed(&mut stalled);
            last.insert(names[&fingerprint], result.text());
        }
        writer.run("SET large0 end");
        assert_eq!(next_result(&mut stalled).text(), "end");
        ember_testkit::wait_until("no state is kept", || admin.info_number("mem_watches") < 100_000);
    }
}
