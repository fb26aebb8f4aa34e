//! A replica or a primary alone: the test simulates the other side.

#![allow(clippy::unwrap_used, reason = "the whole program is a test")]

mod applying;
mod failover;
mod hostile_primary;
mod hostile_replica;
mod pairs;
mod primary;
mod resumed_watchers;
mod resuming;
mod roles;
mod slow;
mod stream;
mod synchronous;
mod together;
mod vectors;

use std::path::PathBuf;
use std::time::Duration;

use ember_testkit::{RawClient, Server, Value, wait_until};
use primary::Primary;

/// Both execution modes, each with two workers.
const MODES: [&[&str]; 2] =
    [&["--concurrent", "yes", "--shards", "2"], &["--concurrent", "no", "--shards", "2"]];

/// The timeout of states of live queries.
const PATIENCE: Duration = Duration::from_secs(60);

fn program() -> PathBuf {
    std::env::var_os("EMBER_SERVER").map_or_else(|| env!("CARGO_BIN_EXE_ember-server").into(), PathBuf::from)
}

fn start(mode: &[&str], arguments: &[&str]) -> Server {
    Server::builder(program()).arguments(mode).arguments(arguments).start()
}

/// Makes a server a replica of the listener at `port`.
fn replicaof(client: &mut RawClient, port: u16) {
    assert_eq!(client.run(&format!("REPLICAOF 127.0.0.1 {port}")), Value::ok());
}

/// Starts a server and links it to a simulated primary that has these keys at offset 0.
fn linked(mode: &[&str], arguments: &[&str], keys: &[(&str, &str)]) -> (Server, Primary, primary::Link) {
    let (server, primary) = (start(mode, arguments), Primary::new());
    let link = link(&server, &primary, keys);
    (server, primary, link)
}

fn link(server: &Server, primary: &Primary, keys: &[(&str, &str)]) -> primary::Link {
    let mut client = server.client();
    replicaof(&mut client, primary.port());
    let mut link = primary.accept();
    link.copy(0, keys);
    wait_until("the link is up", || client.info("master_link_status") == "up");
    link
}

/// Waits until a replica has applied all bytes up to `offset`.
fn wait_for_offset(client: &mut RawClient, offset: u64) {
    wait_until("the stream is applied", || client.info_number("slave_repl_offset") == offset);
}
