//! The files that a server writes, and the data that the next server loads from them.

#![allow(clippy::unwrap_used, reason = "the whole program is a test")]

mod aof;
mod background;
mod data_lock;
mod disk_stores;
mod emptying;
mod encryption;
mod importing;
mod kept_files;
mod snapshots;
mod stores;

use std::path::{Path, PathBuf};
use std::process::Command;

use ember_testkit::{Directory, RawClient, Server, ServerBuilder, Value};

/// Both execution modes, each with two workers.
const MODES: [&[&str]; 2] =
    [&["--concurrent", "yes", "--shards", "2"], &["--concurrent", "no", "--shards", "2"]];

fn program() -> PathBuf {
    std::env::var_os("EMBER_SERVER").map_or_else(|| env!("CARGO_BIN_EXE_ember-server").into(), PathBuf::from)
}

fn builder(arguments: &[&str]) -> ServerBuilder {
    Server::builder(program()).arguments(arguments)
}

/// Starts a server in an existing directory, which is not removed afterwards.
fn start_in(directory: &Path, arguments: &[&str]) -> Server {
    builder(arguments).directory(directory).start()
}

/// Creates a value of each type, in two databases.
fn fill(client: &mut RawClient) {
    for line in [
        "SET text hello",
        "SET number 12 PX 100000000",
        "RPUSH list a b c",
        "SADD set 1 2 3",
        "ZADD zset 1 a 2.5 b",
        "HSET hash f v g w",
        "HPEXPIRE hash 100000000 FIELDS 1 f",
        "XADD stream 1-1 a b",
        "XGROUP CREATE stream g 0",
        "XREADGROUP GROUP g c STREAMS stream >",
        "PFADD hll a b c",
        "SELECT 3",
        "SET other x",
        "SELECT 0",
    ] {
        let reply = client.run(line);
        assert!(!reply.is_error(), "{line}: {reply:?}");
    }
}

/// Returns a digest of all data; the server must run with `--enable-debug-command yes`.
fn digest(client: &mut RawClient) -> Value {
    client.run("DEBUG DIGEST")
}

/// Starts a server that must refuse to start in a directory, with these keys in the environment; returns its error.
fn refusal(directory: &Path, arguments: &[&str], variable: Option<&str>) -> String {
    let mut command = Command::new(program());
    command.args(["--port", "0", "--unixsocket", "s"]).args(arguments).current_dir(directory);
    command.envs(variable.map(|keys| ("EMBER_ENCRYPTION_KEY", keys)));
    ember_testkit::refusal(&mut command)
}
