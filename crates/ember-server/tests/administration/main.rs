//! The connection and server commands as clients see them: in both execution modes and both protocols.

#![allow(clippy::unwrap_used, reason = "the whole program is a test")]

mod authentication;
mod client;
mod command_docs;
mod command_log;
mod config;
mod daemon;
mod dashboard;
mod debug;
mod defragmentation;
mod eviction;
mod hot_keys;
mod http_watch;
mod info;
mod latency;
mod log;
mod memory_command;
mod metrics;
mod newer_parameters;
mod parameters;
mod reply_shapes;
mod shutdown;
mod slowlog;
mod standalone;
mod starting;
mod stock_files;

use std::path::PathBuf;
use std::time::Duration;

use ember_testkit::{RawClient, Server, ServerBuilder, Value, wait_until};

/// Both execution modes, each with two workers.
const MODES: [&[&str]; 2] =
    [&["--concurrent", "yes", "--shards", "2"], &["--concurrent", "no", "--shards", "2"]];

/// The maximum time that a test waits for any condition.
const PATIENCE: Duration = Duration::from_secs(60);

fn program() -> PathBuf {
    std::env::var_os("EMBER_SERVER").map_or_else(|| env!("CARGO_BIN_EXE_ember-server").into(), PathBuf::from)
}

fn builder(arguments: &[&str]) -> ServerBuilder {
    Server::builder(program()).arguments(arguments)
}

/// Runs a test on a server of each mode, each time with a client of each protocol.
fn everywhere(arguments: &[&str], test: impl Fn(&Server, &mut RawClient)) {
    for mode in MODES {
        let server = builder(mode).arguments(arguments).start();
        for protocol in [2, 3] {
            let mut client = server.client();
            client.run(&format!("HELLO {protocol}"));
            test(&server, &mut client);
        }
    }
}

/// Runs a line and asserts that the reply is this error.
#[track_caller]
fn assert_error(client: &mut RawClient, line: &str, text: &str) {
    assert_eq!(client.run(line), Value::Error(text.as_bytes().to_vec()), "{line}");
}

/// Runs a line and asserts that the reply is OK.
#[track_caller]
fn assert_ok(client: &mut RawClient, line: &str) {
    assert_eq!(client.run(line), Value::ok(), "{line}");
}

/// Returns the value of a field `name=value` in a line of CLIENT LIST.
fn field(line: &str, name: &str) -> String {
    let fields = line.split(' ').filter_map(|field| field.split_once('='));
    let mut found = fields.filter(|(field, _)| *field == name);
    found.next().unwrap_or_else(|| panic!("no {name} in {line}")).1.trim_end().to_owned()
}
