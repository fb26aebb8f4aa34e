//! The same random commands give the same replies from ember as from redis-server, byte for byte.
//!
//! `PEERS_SEED` and `PEERS_COMMANDS` change the seed and the number of commands of each run.

use ember_peers::{Mode, Plan, Protocol, compare_servers, start_ember, start_redis};

/// Commands of each run: four of them make a million.
const COMMANDS: usize = 250_000;

const SEED: u64 = 20_261;

fn compare(mode: Mode, protocol: Protocol, offset: u64) {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let plan = Plan {
        seed: number("PEERS_SEED").unwrap_or(SEED + offset),
        commands: number("PEERS_COMMANDS").map_or(COMMANDS, |count| count as usize),
        protocol,
    };
    compare_servers(&start_redis(), &start_ember(mode), plan);
}

#[test]
fn concurrent_mode_replies_like_redis_over_resp2() {
    compare(Mode::Concurrent, Protocol::Resp2, 0);
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
    compare(Mode::Sharded, Protocol::Resp3, 3);
}
