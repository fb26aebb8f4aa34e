//! The programs the tests start: ember in each execution mode, redis-server, and what drives the clients.

use std::path::{Path, PathBuf};

use ember_testkit::{Server, ServerBuilder, find_ember_server};

/// Which worker runs a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The worker that read it.
    Concurrent,
    /// The worker that owns the shard of its key.
    Sharded,
}

/// What both servers are told, so that nothing but the keyspace decides the replies: no snapshots, no slow log (how
/// long a command took is nobody's promise), DEBUG allowed.
const COMMON_ARGUMENTS: [&str; 6] =
    ["--save", "", "--slowlog-log-slower-than", "-1", "--enable-debug-command", "yes"];

/// ember with two workers, so that commands do cross workers even on a machine with one core.
pub fn start_ember(mode: Mode) -> Server {
    let concurrent = if mode == Mode::Concurrent { "yes" } else { "no" };
    let builder =
        Server::builder(find_ember_server()).arguments(&["--concurrent", concurrent, "--shards", "2"]);
    start(builder)
}

/// The redis-server found in `PATH`.
pub fn start_redis() -> Server {
    start(Server::builder(require_program("redis-server")))
}

fn start(builder: ServerBuilder) -> Server {
    builder.arguments(&COMMON_ARGUMENTS).unix_socket().start()
}

/// The path of a program in `PATH`.
///
/// # Panics
/// When it is not installed: tests that need it must not pass without it.
pub fn require_program(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|candidate| candidate.is_file())
        .unwrap_or_else(|| panic!("{name} is not installed: run scripts/setup-peers.sh"))
}

/// Where the client programs of this crate are.
pub fn clients_directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("clients")
}

/// Where `scripts/setup-peers.sh` puts what it installs: `$PEERS_TOOLS`, or `target/peers` of this repository.
pub fn tools_directory() -> PathBuf {
    std::env::var_os("PEERS_TOOLS")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/peers"), PathBuf::from)
}
