//! Chains of three servers: the last server has the data of the first, whichever link breaks and whichever server is
//! the primary.

use std::path::PathBuf;

use ember_peers::{Mode, Writer, require_program, require_valkey, start_ember, write_while};
use ember_testkit::{Server, Value, wait_until};

use crate::cuts::bad_line;
use crate::matrix::{assert_same_contents, number};
use crate::replica::{MODES, link, start_other};

/// The number of commands that are written while links break.
const COMMANDS: usize = 5_000;

/// The number of times that each of the two links breaks.
const CUTS: u64 = 8;

const SEED: u64 = 3;

fn assert_copies(servers: &[Server; 3], copies: [&str; 3]) {
    let logs = || servers.iter().map(Server::log).collect::<Vec<_>>().join("\n");
    let made = servers.each_ref().map(|server| server.client().info("sync_full"));
    assert_eq!(made, copies.map(str::to_owned), "{}", logs());
}

/// Promotes `to`, which is a replica of `from`, under writes.
fn change_places(from: &Server, to: &Server) {
    let (mut old, mut new) = (from.client(), to.client());
    let before = new.info_number("slave_repl_offset");
    wait_until("enough data are written", || new.info_number("slave_repl_offset") > before + 50_000);
    assert_eq!(old.run(&format!("FAILOVER TO 127.0.0.1 {}", to.port())), Value::ok());
    wait_until("the other server is the primary", || new.info("role") == "master");
    wait_until("the old primary follows", || {
        old.info("role") == "slave" && old.info("master_link_status") == "up"
    });
}

fn check_chain(servers: &[Server; 3]) {
    let [first, middle, last] = servers;
    let seed = number("PEERS_SEED", SEED);
    let mut writer = Writer::new(first, seed);
    writer.write(500);
    let lines = [bad_line(first, seed, CUTS), bad_line(middle, seed + 1, CUTS)];
    link(middle, lines[0].address());
    link(last, lines[1].address());
    for server in [first, middle] {
        server.client().run("CLIENT KILL TYPE replica");
    }
    writer.write(COMMANDS);
    wait_until("all links have broken", || {
        writer.write(100);
        lines.iter().all(|line| line.connections() > CUTS + 1)
    });
    let ids = || servers.each_ref().map(|server| server.client().info("master_replid"));
    let assert_all_same = || {
        assert_same_contents(first, middle);
        assert_same_contents(first, last);
        let ids = ids();
        assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    };
    let link_is_up = |server: &Server| server.client().info("master_link_status") == "up";
    wait_until("both links are up", || link_is_up(middle) && link_is_up(last));
    assert_all_same();
    assert_copies(servers, ["1", "1", "0"]);
    // The chain is reordered: the middle server becomes the primary of the other two.
    let addresses = servers.each_ref().map(Server::address);
    let written = write_while(&addresses[..2], || {
        change_places(first, middle);
        change_places(middle, first);
    });
    wait_until("both links are up", || link_is_up(middle) && link_is_up(last));
    assert_all_same();
    servers.iter().for_each(|server| written.check(&mut server.client()));
    assert_copies(servers, ["1", "1", "0"]);
}

fn redis() -> Server {
    start_redis_like(require_program("redis-server"))
}

fn valkey() -> Server {
    start_redis_like(require_valkey())
}

fn start_redis_like(program: PathBuf) -> Server {
    start_other(program, &["--repl-backlog-size", "100mb"])
}

fn check_in_both_modes(start: impl Fn(Mode) -> [Server; 3]) {
    MODES.into_iter().for_each(|mode| check_chain(&start(mode)));
}

#[test]
fn ember_servers_replicate_in_a_chain() {
    check_in_both_modes(|mode| [start_ember(mode), start_ember(mode), start_ember(mode)]);
}

#[test]
fn ember_replicates_from_redis_to_valkey() {
    check_in_both_modes(|mode| [redis(), start_ember(mode), valkey()]);
}

#[test]
fn redis_replicates_between_two_ember_servers() {
    check_in_both_modes(|mode| [start_ember(mode), redis(), start_ember(mode)]);
}

#[test]
fn ember_servers_replicate_in_a_chain_from_valkey() {
    check_in_both_modes(|mode| [valkey(), start_ember(mode), start_ember(mode)]);
}
