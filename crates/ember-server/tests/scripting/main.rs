//! Scripts and functions over the socket: their functions, their limits, and stopping them.

#![allow(clippy::unwrap_used, reason = "the whole program is a test")]

mod calls;
mod confined;
mod functions;
mod hostile;
mod kill;
mod long_calls;
mod queues;

use std::path::PathBuf;
use std::time::Duration;

use ember_testkit::{RawClient, Server, Value, wait_until};

/// Both execution modes with two workers, and a single worker.
const MODES: [&[&str]; 3] = [
    &["--concurrent", "yes", "--shards", "2"],
    &["--concurrent", "no", "--shards", "2"],
    &["--concurrent", "yes", "--shards", "1"],
];

/// The maximum time that a test waits for any condition.
const PATIENCE: Duration = Duration::from_secs(180);

fn program() -> PathBuf {
    std::env::var_os("EMBER_SERVER").map_or_else(|| env!("CARGO_BIN_EXE_ember-server").into(), PathBuf::from)
}

/// Runs a test on a server of each mode.
fn everywhere(arguments: &[&str], test: impl Fn(&Server, &mut RawClient)) {
    for mode in MODES {
        let server = Server::builder(program()).arguments(mode).arguments(arguments).start();
        let mut client = server.client();
        client.set_timeout(PATIENCE).unwrap();
        test(&server, &mut client);
    }
}

/// Runs a script without keys and returns its reply.
fn eval(client: &mut RawClient, script: &str) -> Value {
    client.command(&["EVAL", script, "0"])
}

/// Asserts that a script without keys fails with an error that contains these words.
#[track_caller]
fn assert_fails(client: &mut RawClient, script: &str, words: &str) {
    let answer = eval(client, script);
    assert!(answer.is_error() && answer.text().contains(words), "{script}: {answer:?}");
}
