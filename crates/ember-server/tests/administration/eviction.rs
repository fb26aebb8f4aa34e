//! Eviction at `maxmemory`: what counts against the limit, and the policy with ghosts.

use ember_testkit::{RawClient, Value};

use crate::{MODES, assert_error, assert_ok, builder};

const MIB: u64 = 1024 * 1024;

/// The number of keys that the tests write, which take three times the limit.
const KEYS: usize = 12_000;
const VALUE_BYTES: usize = 2000;
const LIMIT: [&str; 2] = ["--maxmemory", "8mb"];

/// Sets keys in portions. Before each portion, the `hot` keys are read, or set if they were evicted.
fn write(client: &mut RawClient, keys: std::ops::Range<usize>, hot: usize) {
    let value = vec![b'v'; VALUE_BYTES];
    let set = |name: String| [b"SET".to_vec(), name.into(), value.clone()];
    let numbers: Vec<usize> = keys.collect();
    for portion in numbers.chunks(100) {
        for number in 0..hot {
            if client.run(&format!("GET hot:{number}")) == Value::Null {
                client.command(&set(format!("hot:{number}")));
            }
        }
        let commands: Vec<[Vec<u8>; 3]> = portion.iter().map(|number| set(format!("key:{number}"))).collect();
        let replies = client.pipeline(&commands).unwrap();
        assert!(replies.iter().all(|reply| *reply == Value::ok()));
    }
}

#[test]
fn the_memory_of_the_started_server_counts_against_the_limit() {
    for mode in MODES {
        let server =
            builder(mode).arguments(&LIMIT).arguments(&["--maxmemory-policy", "allkeys-lru"]).start();
        let mut client = server.client();
        write(&mut client, 0..KEYS, 0);
        let startup = client.info_number("used_memory_startup").min(8 * MIB / 16);
        assert!(startup > 0);
        let dataset = client.info_number("used_memory_dataset");
        // A worker publishes its growth when it exceeds 64 KiB.
        assert!(dataset + startup <= 8 * MIB + MIB / 4, "{mode:?}: {dataset} and {startup} bytes");
        assert!(dataset + startup >= 7 * MIB, "{mode:?}: no more keys than necessary are evicted");
        let not_counted = client.info_number("mem_not_counted_for_evict");
        assert_ok(&mut client, "CONFIG SET maxmemory 0");
        let without_limit = client.info_number("mem_not_counted_for_evict");
        assert!(without_limit > not_counted, "{mode:?}: {not_counted} and {without_limit} bytes");
    }
}

#[test]
fn a_history_of_evicted_keys_keeps_the_keys_that_are_used_again() {
    for mode in MODES {
        let server = builder(mode).arguments(&LIMIT).start();
        let mut client = server.client();
        assert_ok(&mut client, "CONFIG SET maxmemory-policy allkeys-ghosts");
        assert_eq!(client.info("maxmemory_policy"), "allkeys-ghosts");
        write(&mut client, 0..KEYS, 50);
        assert!(client.info_number("evicted_keys") > KEYS as u64 / 2);
        let hot = (0..50).filter(|number| client.run(&format!("EXISTS hot:{number}")) == Value::Integer(1));
        assert_eq!(hot.count(), 50, "{mode:?}");
        let Value::Integer(uses) = client.run("OBJECT FREQ hot:7") else { panic!("{mode:?}: no counter") };
        assert!((8..=15).contains(&uses), "{mode:?}: {uses} uses");
        assert_error(
            &mut client,
            "OBJECT IDLETIME hot:7",
            "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when switching \
             between policies at runtime LRU and LFU data will take some time to adjust.",
        );

        // Most of the keys that were evicted last are in the history.
        let recalled = client.info_number("recalled_keys");
        write(&mut client, KEYS - 4000..KEYS - 3000, 0);
        let recalled = client.info_number("recalled_keys") - recalled;
        assert!(recalled > 100, "{mode:?}: {recalled} of 1000 keys");

        assert_ok(&mut client, "CONFIG SET maxmemory-policy allkeys-lru");
        client.run("GET hot:7");
        assert_eq!(client.run("OBJECT IDLETIME hot:7"), Value::Integer(0), "{mode:?}");
        assert_ok(&mut client, "FLUSHALL");
        assert_eq!(client.info_number("used_memory_dataset"), 0, "{mode:?}");
    }
}
