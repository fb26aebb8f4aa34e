//! Visibility of changes between clients: transactions and blocking, over sockets and in all modes.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod blocking;
mod busy_scripts;
mod dicedb;
mod disconnected;
mod expired;
mod history;
mod import_mode;
mod live_queries_memory;
mod long_calls;
mod long_live_queries;
mod migration;
mod monitors;
mod pubsub;
mod several_keys;
mod streams;
mod tracking;
mod transactions;
mod vectors;
mod watched_results;

use ember_testkit::{RawClient, Server};

/// The execution modes, as arguments of the server.
const MODES: [&[&str]; 3] =
    [&["--shards", "2", "--concurrent", "yes"], &["--shards", "2", "--concurrent", "no"], &["--shards", "1"]];

/// Starts a server of this build in a mode.
fn start(mode: &[&str]) -> Server {
    Server::start(env!("CARGO_BIN_EXE_ember-server"), mode)
}

/// Like [`start`], with demotion disabled even if other servers of the tests demote values.
fn start_with_values(mode: &[&str]) -> Server {
    Server::builder(env!("CARGO_BIN_EXE_ember-server")).arguments(mode).keeps_values().start()
}

/// Splits a command line at blanks.
fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

/// Opens a connection of each protocol.
fn clients(server: &Server) -> [RawClient; 2] {
    let (two, mut three) = (server.client(), server.client());
    assert!(!three.run("HELLO 3").is_error());
    [two, three]
}
