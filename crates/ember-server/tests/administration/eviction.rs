//! Eviction at `maxmemory`: what counts against the limit.

use ember_testkit::{RawClient, Value};

use crate::{MODES, assert_ok, builder};

const MIB: u64 = 1024 * 1024;

/// The number of keys that the tests write, which take three times the limit.
const KEYS: usize = 12_000;
const VALUE_BYTES: usize = 2000;
const LIMIT: [&str; 2] = ["--maxmemory", "8mb"];

/// Sets keys in portions.
fn write(client: &mut RawClient, keys: std::ops::Range<usize>) {
    let value = vec![b'v'; VALUE_BYTES];
    let numbers: Vec<usize> = keys.collect();
    for portion in numbers.chunks(100) {
        let set = |number| [b"SET".to_vec(), format!("key:{number}").into(), value.clone()];
        let commands: Vec<[Vec<u8>; 3]> = portion.iter().map(set).collect();
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
        write(&mut client, 0..KEYS);
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
