//! Cold values: clients observe no difference except latency, in both modes and protocols.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod copies;
mod limits;
mod registry;
mod residency;
mod resident;
mod waiting;

use std::sync::{Mutex, MutexGuard, PoisonError};

use ember_testkit::{RawClient, Server, ServerBuilder, Value};

/// Locked by tests that write much more than others and by tests that measure latency, so that they do not run at the
/// same time.
static DISK: Mutex<()> = Mutex::new(());

fn hold_disk() -> MutexGuard<'static, ()> {
    // Another test has failed, which is reported already.
    DISK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The execution modes, as arguments of the server.
const MODES: [&[&str]; 2] =
    [&["--shards", "2", "--concurrent", "yes"], &["--shards", "2", "--concurrent", "no"]];

/// Returns a builder for a server of this build in a mode, with a folder for cold values in its directory.
fn builder(mode: &[&str]) -> ServerBuilder {
    Server::builder(env!("CARGO_BIN_EXE_ember-server")).arguments(mode).arguments(&[
        "--tiered-path",
        "tiers",
        "--maxmemory",
        "1gb",
        "--enable-debug-command",
        "yes",
    ])
}

/// Starts a server of [`builder`].
fn start(mode: &[&str]) -> Server {
    builder(mode).start()
}

/// Runs a line and returns the reply, formatted as by redis-cli.
fn shown(client: &mut RawClient, line: &str) -> String {
    ember_testkit::render(&client.run(line)).trim_end().to_owned()
}

/// Demotes the value of a key.
fn demote(client: &mut RawClient, key: &str) {
    let reply = client.command(&["DEBUG", "TIER", "DEMOTE", key]).text();
    assert!(reply.starts_with("tier:warm") || reply.starts_with("tier:cold"), "{key}: {reply}");
}

/// Returns a number in INFO tiers.
fn figure(client: &mut RawClient, name: &str) -> u64 {
    let text = client.run("INFO tiers").text();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("tier_{name}:")));
    line.unwrap_or_else(|| panic!("{name} in {text}")).trim().parse().unwrap()
}

/// Returns the elements of a reply as text.
fn texts(value: &Value) -> Vec<String> {
    value.elements().unwrap_or_default().iter().map(Value::text).collect()
}
