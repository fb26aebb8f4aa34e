//! `activedefrag`: allocations are moved together, and their contents do not change.

use ember_testkit::RawClient;

use crate::{MODES, assert_ok, builder, wait_until};

const KEYS: usize = 100_000;

fn fragmentation(client: &mut RawClient) -> f64 {
    client.info("allocator_frag_ratio").parse().unwrap()
}

/// Creates values of one size and larger ones, and deletes nine of ten.
fn scatter(client: &mut RawClient) {
    let text = "x".repeat(400);
    let fill = |number: usize| match number % 100 {
        0 => vec!["HSET".to_owned(), format!("hash:{}", number % 7), format!("field:{number}"), text.clone()],
        1 => {
            vec!["ZADD".to_owned(), format!("zset:{}", number % 3), number.to_string(), format!("m:{number}")]
        }
        _ => vec!["SET".to_owned(), format!("key:{number}"), text.clone()],
    };
    client.pipeline(&(0..KEYS).map(fill).collect::<Vec<_>>()).unwrap();
    // The remaining values are far from each other in memory.
    let is_kept = |number: usize| number.wrapping_mul(2_654_435_761) % 1000 < 100;
    let remove = (0..KEYS).filter(|&number| !is_kept(number)).map(|number| match number % 100 {
        0 => vec!["HDEL".to_owned(), format!("hash:{}", number % 7), format!("field:{number}")],
        1 => vec!["ZREM".to_owned(), format!("zset:{}", number % 3), format!("m:{number}")],
        _ => vec!["DEL".to_owned(), format!("key:{number}")],
    });
    client.pipeline(&remove.collect::<Vec<_>>()).unwrap();
}

#[test]
fn defragmentation_returns_memory_and_keeps_data() {
    for mode in MODES {
        let server = builder(mode).arguments(&["--enable-debug-command", "yes"]).start();
        let mut client = server.client();
        scatter(&mut client);
        let (digest, before) = (client.run("DEBUG DIGEST"), fragmentation(&mut client));
        assert!(before > 2.5, "{before}");
        for field in ["active_defrag_running", "active_defrag_hits", "total_active_defrag_time"] {
            assert_eq!(client.info(field), "0", "{field} while it is off");
        }
        // Nothing is moved while the unused memory is below this limit.
        assert_ok(&mut client, "CONFIG SET activedefrag yes active-defrag-ignore-bytes 1gb");
        assert_ok(&mut client, "CONFIG SET active-defrag-cycle-min 50 active-defrag-cycle-max 90");
        assert_eq!(client.info("active_defrag_hits"), "0");
        assert_ok(&mut client, "CONFIG SET active-defrag-ignore-bytes 1mb active-defrag-max-scan-fields 50");
        wait_until("defragmentation runs", || client.info_number("active_defrag_running") >= 50);
        wait_until("memory is returned", || fragmentation(&mut client) < 1.35);
        wait_until("defragmentation pauses", || client.info("active_defrag_running") == "0");
        for field in ["active_defrag_hits", "active_defrag_key_hits", "active_defrag_misses"] {
            assert_ne!(client.info(field), "0", "{field}");
        }
        assert_eq!(client.info("current_active_defrag_time"), "0");
        assert_ne!(client.info("total_active_defrag_time"), "0");
        assert_eq!(client.run("DEBUG DIGEST"), digest);
        let (members, scores) = (client.run("ZCARD zset:0"), client.run("ZCOUNT zset:0 -inf +inf"));
        assert_eq!(members, scores);
        // Defragmentation is stopped and restarted with the parameter.
        assert_ok(&mut client, "CONFIG SET activedefrag no");
        let hits = client.info_number("active_defrag_hits");
        client.run("FLUSHALL");
        scatter(&mut client);
        assert!(fragmentation(&mut client) > 2.5);
        assert_eq!(client.info_number("active_defrag_hits"), hits);
        assert_ok(&mut client, "CONFIG SET activedefrag yes");
        wait_until("memory is returned", || fragmentation(&mut client) < 1.35);
        assert_eq!(client.run("DEBUG DIGEST"), digest);
    }
}
