//! Links that break at any byte: replicas resume at their offsets, and have the same data as the primary each time.
//!
//! `PEERS_SEED` and `PEERS_CUTS` change the seed, and the number of times that the link of each pair breaks.

use std::path::PathBuf;

use ember_peers::{require_program, require_valkey};
use ember_testkit::{Proxy, Random, RawClient, Server, wait_until};

use crate::matrix::{assert_same_contents, in_both_modes, number, writer_for};
use crate::replica::{assert_same, link};

/// The number of times that the link of each pair breaks: 340 times for all ten pairs.
const CUTS: u64 = 34;

const SEED: u64 = 200;

/// A number of bytes that exceeds the replies to the handshake, which a primary sends before the stream continues.
const ANSWERS_BYTES: usize = 160;

/// The link mostly breaks within this number of bytes (a few commands), sometimes after many more.
const SHORT_BYTES: usize = 600;
const LONG_BYTES: usize = 60_000;

/// The number of commands written at a time until the link breaks.
const COMMANDS: usize = 50;

/// Creates a proxy to a server. Its first connection transfers the full sync and is closed by the test; the next `cuts`
/// connections break at random bytes.
pub(crate) fn bad_line(server: &Server, seed: u64, cuts: u64) -> Proxy {
    let mut random = Random::new(seed);
    let places: Vec<u64> = (0..cuts)
        .map(|_| {
            let most = if random.chance(70) { SHORT_BYTES } else { LONG_BYTES };
            (ANSWERS_BYTES + random.below(most)) as u64
        })
        .collect();
    Proxy::cutting(server.address(), move |number| match number {
        0 => u64::MAX,
        _ => places.get(number as usize - 1).copied().unwrap_or(u64::MAX),
    })
}

fn break_again_and_again(name: &str, primary: &Server, replica: &Server) {
    let (seed, cuts) = (number("PEERS_SEED", SEED), number("PEERS_CUTS", CUTS));
    println!("{name}: seed {seed}");
    let proxy = bad_line(primary, seed, cuts);
    let mut writer = writer_for(primary, replica, seed);
    writer.write(COMMANDS);
    link(replica, proxy.address());
    assert_same_contents(primary, replica);
    let mut client = primary.client();
    let refused = client.info("sync_partial_err");
    client.run("CLIENT KILL TYPE replica");
    for cut in 1..=cuts {
        let mut pieces = 0;
        wait_until("the link breaks", || {
            // A link that breaks before it is up receives nothing more.
            pieces += 1;
            if pieces % 20 == 1 {
                writer.write(COMMANDS);
            }
            proxy.connections() > cut + 1
        });
        wait_until("the link is up", || is_linked(&mut client));
        assert_same_at_cut(primary, replica);
    }
    assert_same_contents(primary, replica);
    let [full, partial, refused_now] =
        ["sync_full", "sync_partial_ok", "sync_partial_err"].map(|name| client.info(name));
    assert_eq!((full.as_str(), refused_now), ("1", refused), "{}", replica.log());
    assert!(partial.parse::<u64>().unwrap() > cuts, "{name}: {partial} of {cuts}");
}

/// Asserts that both servers have the same data, by comparing digests, which is quick. With Valkey, whose digests of
/// expiring fields are different, compares the data.
fn assert_same_at_cut(primary: &Server, replica: &Server) {
    let is_valkey = |server: &Server| server.client().run("INFO server").text().contains("valkey_version");
    if is_valkey(primary) || is_valkey(replica) {
        assert_same_contents(primary, replica);
    } else {
        assert_same(primary, replica);
    }
}

fn is_linked(primary: &mut RawClient) -> bool {
    primary.info("connected_slaves") == "1"
}

fn break_in_both_modes(program: Option<fn() -> PathBuf>, leads: bool) {
    let backlog = ["--repl-backlog-size", "100mb"];
    in_both_modes(program, &backlog, leads, |mode, primary, replica| {
        break_again_and_again(&format!("ember {mode:?}, leads: {leads}"), primary, replica);
    });
}

#[test]
fn broken_links_between_ember_servers_are_resumed() {
    break_in_both_modes(None, true);
}

#[test]
fn broken_links_from_redis_to_ember_are_resumed() {
    break_in_both_modes(Some(|| require_program("redis-server")), true);
}

#[test]
fn broken_links_from_ember_to_redis_are_resumed() {
    break_in_both_modes(Some(|| require_program("redis-server")), false);
}

#[test]
fn broken_links_from_valkey_to_ember_are_resumed() {
    break_in_both_modes(Some(require_valkey), true);
}

#[test]
fn broken_links_from_ember_to_valkey_are_resumed() {
    break_in_both_modes(Some(require_valkey), false);
}
