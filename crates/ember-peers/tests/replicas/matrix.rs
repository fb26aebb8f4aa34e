//! Every kind of server as the primary and as the replica of ember: after random commands, both have the same data at
//! the same offset.
//!
//! `PEERS_SEED` and `PEERS_COMMANDS` change the seed and the number of commands of each pair.

use std::path::PathBuf;
use std::thread;

use ember_peers::{Mode, Writer, contents, differences, require_program, require_valkey, start_ember};
use ember_testkit::{RawClient, Server, wait_until};

use crate::replica::{MODES, assert_not_stopped, link, start_other};

/// The number of commands of each pair.
const COMMANDS: u64 = 20_000;

const SEED: u64 = 16;

/// Returns the number in the environment variable `name`, or `usual`.
pub(crate) fn number(name: &str, usual: u64) -> u64 {
    std::env::var(name).map_or(usual, |text| text.parse().unwrap())
}

/// Fields of stream groups that a primary does not replicate. The lag of a group is computed, in different ways by
/// different versions; only ember replicates the number of entries that a group has read.
pub(crate) fn unreplicated(primary: &Server) -> &'static [&'static str] {
    let is_ember = primary.client().run("INFO server").text().contains("ember_version");
    if is_ember { &["lag"] } else { &["lag", "entries-read"] }
}

/// Waits until a replica has its primary's offset, and compares the data.
pub(crate) fn assert_same_contents(primary: &Server, replica: &Server) {
    let (mut one, mut other) = (primary.client(), replica.client());
    let is_same_offset = |one: &mut RawClient, other: &mut RawClient| {
        assert_not_stopped(replica, other);
        one.info("master_repl_offset") == other.info("slave_repl_offset")
    };
    wait_until("the replica has its primary's offset", || is_same_offset(&mut one, &mut other));
    // An expiry or a PING may occur between reading the two servers, so the comparison is repeated.
    let (mut found, unreplicated) = (String::new(), unreplicated(primary));
    for _ in 0..100 {
        let [here, there] = [primary, replica].map(|server| contents(server, unreplicated));
        if here == there {
            return;
        }
        found = differences(&here, &there);
        wait_until("the replica has its primary's offset", || is_same_offset(&mut one, &mut other));
    }
    panic!("not the same data:\n{found}{}", replica.log());
}

/// Returns a writer of commands for a primary; it uses expiring fields if both servers support them.
pub(crate) fn writer_for(primary: &Server, replica: &Server, seed: u64) -> Writer {
    let knows_fields = |server: &Server| {
        let info = server.client().run("COMMAND INFO hpexpire");
        info.elements().is_some_and(|commands| commands[0].elements().is_some())
    };
    let writer = Writer::new(primary, seed);
    if knows_fields(primary) && knows_fields(replica) { writer.with_expiring_fields() } else { writer }
}

fn follow(primary: &Server, replica: &Server) {
    let seed = number("PEERS_SEED", SEED);
    let commands = number("PEERS_COMMANDS", COMMANDS) as usize;
    let mut writer = writer_for(primary, replica, seed);
    writer.write(commands / 10);
    link(replica, primary.address());
    writer.write(commands - commands / 10);
    assert_same_contents(primary, replica);
    assert_eq!(primary.client().info("sync_full"), "1", "{}", replica.log());
}

/// For each mode of ember, calls `check` with ember as the primary and with ember as the replica of the other server.
/// The arguments of `check` are ember's mode, the primary and the replica. The other server is started with these
/// options.
pub(super) fn in_both_modes(
    program: Option<fn() -> PathBuf>,
    options: &[&str],
    leads: bool,
    check: impl Fn(Mode, &Server, &Server) + Sync,
) {
    let check = &check;
    thread::scope(|scope| {
        for mode in MODES {
            scope.spawn(move || {
                let ember = start_ember(mode);
                let other_mode = if mode == Mode::Sharded { Mode::Concurrent } else { Mode::Sharded };
                let other = program
                    .map_or_else(|| start_ember(other_mode), |program| start_other(program(), options));
                let (primary, replica) = if leads { (&ember, &other) } else { (&other, &ember) };
                check(mode, primary, replica);
            });
        }
    });
}

fn follow_in_both_modes(program: Option<fn() -> PathBuf>, leads: bool) {
    in_both_modes(program, &[], leads, |_, primary, replica| follow(primary, replica));
}

#[test]
fn ember_follows_ember() {
    follow_in_both_modes(None, true);
}

#[test]
fn redis_follows_ember() {
    follow_in_both_modes(Some(|| require_program("redis-server")), true);
}

#[test]
fn ember_follows_redis() {
    follow_in_both_modes(Some(|| require_program("redis-server")), false);
}

#[test]
fn valkey_follows_ember() {
    follow_in_both_modes(Some(require_valkey), true);
}

#[test]
fn ember_follows_valkey() {
    follow_in_both_modes(Some(require_valkey), false);
}
