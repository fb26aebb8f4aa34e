//! Users, their rules and passwords, and TLS.

#![allow(clippy::unwrap_used, reason = "the whole program is a test")]

mod certificates;
mod cluster_bus;
mod contexts;
mod denials;
mod files;
mod passwords;
mod rules;
mod tls;
mod users;

use std::path::PathBuf;

use ember_testkit::{RawClient, Server, ServerBuilder, Value};

/// Both execution modes, each with two workers.
const MODES: [&[&str]; 2] =
    [&["--concurrent", "yes", "--shards", "2"], &["--concurrent", "no", "--shards", "2"]];

fn program() -> PathBuf {
    std::env::var_os("EMBER_SERVER").map_or_else(|| env!("CARGO_BIN_EXE_ember-server").into(), PathBuf::from)
}

fn builder(arguments: &[&str]) -> ServerBuilder {
    Server::builder(program()).arguments(arguments)
}

/// Runs a test on a server of each mode.
fn everywhere(arguments: &[&str], test: impl Fn(&Server, &mut RawClient)) {
    for mode in MODES {
        let server = builder(mode).arguments(arguments).start();
        test(&server, &mut server.client());
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

/// Returns the texts of an array's elements.
fn texts(value: &Value) -> Vec<String> {
    let Value::Array(items) = value else { panic!("no array: {value:?}") };
    items.iter().map(Value::text).collect()
}

/// Opens a connection authenticated as this user.
fn login(server: &Server, name: &str, password: &str) -> RawClient {
    let mut client = server.client();
    assert_ok(&mut client, &format!("AUTH {name} {password}"));
    client
}
