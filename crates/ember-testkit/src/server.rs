//! A server as a child process: started on a free loopback port, polled with PING until it responds, killed when
//! dropped.

use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use ember_protocol::client::Value;

use crate::client::RawClient;
use crate::demotion_targets;
use crate::ports::free_port;
use crate::waiting::PATIENCE;

/// The interval of polling for state changes that a process does not announce.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// The number of ports to try: another process can take a free port before the server binds it.
const PORT_ATTEMPTS: usize = 5;

/// Clock ticks per second in `/proc/<pid>/stat`: `USER_HZ`, 100 in Linux's interface to user space on every
/// architecture.
const TICKS_PER_SECOND: u64 = 100;

/// A running server. Dropping it kills the process and removes its directory.
#[derive(Debug)]
pub struct Server {
    child: Child,
    address: SocketAddr,
    directory: PathBuf,
    owns_directory: bool,
    unix_socket: Option<PathBuf>,
    metrics_address: Option<SocketAddr>,
    watch_address: Option<SocketAddr>,
}

/// The options with which a [`Server`] is started.
#[derive(Debug)]
pub struct ServerBuilder {
    program: PathBuf,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    directory: Option<PathBuf>,
    unix_socket: bool,
    has_metrics: bool,
    has_watch: bool,
    keeps_values: bool,
    port: Option<u16>,
}

/// Resource usage of a process so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Current resident memory, in bytes.
    pub rss_bytes: u64,
    /// Peak resident memory, in bytes.
    pub peak_rss_bytes: u64,
    /// CPU time in user mode, all threads, in units of 10 ms.
    pub user_time: Duration,
    /// CPU time in the kernel, all threads, in units of 10 ms.
    pub system_time: Duration,
}

impl Server {
    /// Starts `program` with `arguments` after `--port … --bind 127.0.0.1`, in a separate directory.
    ///
    /// # Panics
    /// Panics if the server does not start or respond; the message contains its log.
    pub fn start(program: impl AsRef<Path>, arguments: &[&str]) -> Server {
        Server::builder(program).arguments(arguments).start()
    }

    /// Returns a builder with more options.
    pub fn builder(program: impl AsRef<Path>) -> ServerBuilder {
        ServerBuilder {
            program: program.as_ref().to_owned(),
            arguments: Vec::new(),
            environment: Vec::new(),
            directory: None,
            unix_socket: false,
            has_metrics: false,
            has_watch: false,
            keeps_values: false,
            port: None,
        }
    }

    /// Returns the address on which the server listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the port on which the server listens.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns the server's process ID.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the server's working directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the path of the unix socket, if requested.
    pub fn unix_socket(&self) -> Option<&Path> {
        self.unix_socket.as_deref()
    }

    /// Returns the address of the server's metrics.
    ///
    /// # Panics
    /// Panics if metrics were not requested ([`ServerBuilder::metrics`]).
    pub fn metrics_address(&self) -> SocketAddr {
        self.metrics_address.expect("the server was started with a port for metrics")
    }

    /// Returns the address for browsers that watch live queries.
    ///
    /// # Panics
    /// Panics if it was not requested ([`ServerBuilder::http_watch`]).
    pub fn watch_address(&self) -> SocketAddr {
        self.watch_address.expect("the server was started with a port for browsers")
    }

    /// Opens a new connection over TCP.
    ///
    /// # Panics
    /// Panics if the server does not accept it.
    pub fn client(&self) -> RawClient {
        RawClient::connect(self.address)
            .unwrap_or_else(|error| panic!("cannot connect to {}: {error}\n{}", self.address, self.log()))
    }

    /// Opens a new connection over the unix socket.
    ///
    /// # Panics
    /// Panics if no socket was requested or the server does not accept it.
    pub fn unix_client(&self) -> RawClient {
        let path = self.unix_socket().expect("the server was started with a unix socket");
        RawClient::connect_unix(path)
            .unwrap_or_else(|error| panic!("cannot connect to {}: {error}\n{}", path.display(), self.log()))
    }

    /// Returns everything that the server has written to standard output and standard error.
    pub fn log(&self) -> String {
        read_log(&self.directory)
    }

    /// Returns the memory and CPU time that the server has used so far.
    ///
    /// # Errors
    /// Returns an error if the process has ended, or the system does not provide Linux's `/proc`.
    pub fn usage(&self) -> io::Result<Usage> {
        usage(self.pid())
    }

    /// Sends a signal by name (`TERM`, `INT`, `HUP`, `STOP`, …). After `STOP`, returns once all threads of the process
    /// are stopped.
    ///
    /// # Panics
    /// Panics if the signal cannot be sent, or the process does not stop.
    pub fn signal(&self, name: &str) {
        let status = Command::new("sh")
            .args(["-c", "kill -s \"$1\" \"$2\"", "sh", name, &self.pid().to_string()])
            .status();
        assert!(status.is_ok_and(|status| status.success()), "cannot send SIG{name} to {}", self.pid());
        let deadline = Instant::now() + PATIENCE;
        while name == "STOP" && !is_stopped(self.pid()) {
            assert!(Instant::now() < deadline, "process {} has not stopped", self.pid());
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Waits until the process has ended.
    ///
    /// # Panics
    /// Panics if the process does not end in time; the message contains the server's log.
    pub fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().expect("a child can be waited for") {
                return status;
            }
            assert!(Instant::now() < deadline, "the server does not stop:\n{}", self.log());
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Kills the process, as a crash would, and returns its directory, which is not removed.
    pub fn crash(mut self) -> PathBuf {
        self.owns_directory = false;
        self.directory.clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both calls fail only if the process has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if self.owns_directory && !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.directory);
        }
    }
}

impl ServerBuilder {
    /// Appends arguments for the server.
    pub fn arguments<A: AsRef<str>>(mut self, arguments: &[A]) -> Self {
        self.arguments.extend(arguments.iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    /// Sets an environment variable of the server.
    pub fn environment(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Runs in this directory, which is not removed when the server is dropped.
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// Listens on this port instead of a free one, for example the port of a server that has ended.
    pub fn port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }

    /// Makes the server also listen on a unix socket ([`Server::unix_socket`]).
    pub fn unix_socket(mut self) -> Self {
        self.unix_socket = true;
        self
    }

    /// Makes the server also serve HTTP ([`Server::metrics_address`]).
    pub fn metrics(mut self) -> Self {
        self.has_metrics = true;
        self
    }

    /// Makes the server also serve live queries over HTTP, for browsers ([`Server::watch_address`]).
    pub fn http_watch(mut self) -> Self {
        self.has_watch = true;
        self
    }

    /// Disables demotion for this server even if the other servers of tests demote values
    /// ([`crate::DEMOTION_TARGETS`]). Intended for tests of memory usage.
    pub fn keeps_values(mut self) -> Self {
        self.keeps_values = true;
        self
    }

    /// Starts the server and waits for its reply to PING.
    ///
    /// # Panics
    /// Panics if the server does not start or respond; the message contains its log.
    pub fn start(self) -> Server {
        let mut failure = String::new();
        for _ in 0..PORT_ATTEMPTS {
            match self.try_start() {
                Ok(server) => return server,
                Err(log) => failure = log,
            }
            if !failure.contains("in use") {
                break;
            }
        }
        panic!("{} {} does not start:\n{failure}", self.program.display(), self.arguments.join(" "));
    }

    fn try_start(&self) -> Result<Server, String> {
        let (directory, owns_directory) = match &self.directory {
            Some(directory) => (directory.clone(), false),
            None => (fresh_directory().map_err(|error| format!("no directory: {error}"))?, true),
        };
        let free = free_address();
        let address = self.port.map_or(free, |port| SocketAddr::new(free.ip(), port));
        let unix_socket = self.unix_socket.then(|| directory.join("server.sock"));
        let log = File::create(directory.join(LOG_FILE)).map_err(|error| format!("no log file: {error}"))?;
        let mut command = Command::new(&self.program);
        // Automatic snapshots are disabled unless a test enables them.
        command.args(["--port", &address.port().to_string(), "--bind", "127.0.0.1", "--save", ""]);
        if let Some(path) = &unix_socket {
            command.arg("--unixsocket").arg(path);
        }
        let metrics_address = self.has_metrics.then(free_address);
        if let Some(address) = metrics_address {
            command.args(["--metrics-port", &address.port().to_string()]);
        }
        let watch_address = self.has_watch.then(free_address);
        if let Some(address) = watch_address {
            command.args(["--http-watch-port", &address.port().to_string()]);
        }
        let child = log
            .try_clone()
            .and_then(|copy| {
                if !self.keeps_values {
                    command.args(demotion_targets::arguments(&self.program, &self.arguments));
                }
                command.args(&self.arguments).current_dir(&directory);
                command.envs(self.environment.iter().map(|(name, value)| (name, value)));
                command.stdin(Stdio::null()).stdout(copy).stderr(log).spawn()
            })
            .map_err(|error| error.to_string())?;
        let mut server =
            Server { child, address, directory, owns_directory, unix_socket, metrics_address, watch_address };
        server.wait_for_ping().map(|()| server)
    }
}

impl Server {
    fn wait_for_ping(&mut self) -> Result<(), String> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(format!("it ended with {status}\n{}", self.log()));
            }
            let answer = RawClient::connect(self.address).and_then(|mut client| {
                client.send_command(&["PING"])?;
                client.read_value()
            });
            // The server may require a password, or refuse writes: such error replies also mean that it has started.
            let has_answered = match &answer {
                Ok(Value::Simple(text)) => text == b"PONG",
                Ok(Value::Error(text)) => text.starts_with(b"NOAUTH") || text.starts_with(b"MISCONF"),
                _ => false,
            };
            // Another test's server may have bound the port first and sent this reply.
            let is_ours = || listens(self.child.id(), self.address.port());
            match answer {
                Ok(_) if has_answered && is_ours().map_err(|error| error.to_string())? => return Ok(()),
                _ if Instant::now() > deadline => return Err(format!("no PONG: {answer:?}\n{}", self.log())),
                _ => std::thread::sleep(POLL_INTERVAL),
            }
        }
    }
}

/// Returns the output of a server that refuses to start, from standard output and standard error.
///
/// # Panics
/// Panics if the server starts, or exits with a status other than 1.
pub fn refusal(command: &mut Command) -> String {
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the server can be run");
    let deadline = Instant::now() + PATIENCE;
    while child.try_wait().expect("a child can be waited for").is_none() && Instant::now() < deadline {
        std::thread::sleep(POLL_INTERVAL);
    }
    // This fails only if the process has already ended.
    let _ = child.kill();
    let ended = child.wait_with_output().expect("the output of a child can be read");
    let said = String::from_utf8_lossy(&[ended.stdout, ended.stderr].concat()).into_owned();
    assert_eq!(ended.status.code(), Some(1), "{command:?}: {said}");
    said
}

/// Returns the path of the ember server for tests outside its own crate: `$EMBER_SERVER`, or `ember-server` in the
/// build directory of the running test (`target/<profile>/`).
///
/// # Panics
/// Panics if there is no such program; the message contains advice.
pub fn find_ember_server() -> PathBuf {
    find_program("ember-server", "EMBER_SERVER")
}

/// Returns the path of `ember-cli` for tests outside its own crate: `$EMBER_CLI`, or `ember-cli` in the build directory
/// of the running test.
///
/// # Panics
/// Panics if there is no such program; the message contains advice.
pub fn find_ember_cli() -> PathBuf {
    find_program("ember-cli", "EMBER_CLI")
}

fn find_program(name: &str, variable: &str) -> PathBuf {
    if let Some(path) = std::env::var_os(variable) {
        let path = PathBuf::from(path);
        assert!(path.is_file(), "{variable} is not an existing file: {}", path.display());
        return path;
    }
    let test = std::env::current_exe().expect("a running test has a path");
    let found = test.ancestors().skip(1).take(3).map(|folder| folder.join(name)).find(|path| path.is_file());
    found.unwrap_or_else(|| panic!("{name} not found: run `cargo build -p {name}` first, or set {variable}"))
}

const LOG_FILE: &str = "server.log";

/// Whether all threads of a process are stopped (proc_pid_stat(5)).
fn is_stopped(pid: u32) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return false };
    threads.flatten().all(|thread| {
        let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, fields)| fields.starts_with('T'))
    })
}

fn read_log(directory: &Path) -> String {
    fs::read(directory.join(LOG_FILE))
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .unwrap_or_default()
}

/// Creates an unused directory. Its path is short, because the path of a unix socket may have at most 107 bytes.
fn fresh_directory() -> io::Result<PathBuf> {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("ember-test-{}-{number}", std::process::id()));
        match fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

fn free_address() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, free_port()).into()
}

/// Whether a process listens on a TCP port.
fn listens(pid: u32, port: u16) -> io::Result<bool> {
    let wanted = format!(":{port:04X}");
    let mut listeners = Vec::new();
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        for line in fs::read_to_string(table).unwrap_or_default().lines() {
            // Number, local address, remote address, state (0A: listens), queues, timer, retransmits, user, timeout,
            // inode.
            let words: Vec<&str> = line.split_whitespace().collect();
            if words.len() > 9 && words[1].ends_with(&wanted) && words[3] == "0A" {
                listeners.push(PathBuf::from(format!("socket:[{}]", words[9])));
            }
        }
    }
    let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else { return Ok(false) };
    for descriptor in descriptors {
        // The descriptor may have been closed since the directory was listed.
        if fs::read_link(descriptor?.path()).is_ok_and(|target| listeners.contains(&target)) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn usage(pid: u32) -> io::Result<Usage> {
    let broken = || io::Error::new(io::ErrorKind::InvalidData, "unexpected text in /proc");
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let kib = |name: &str| -> io::Result<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|rest| rest.trim().strip_suffix(" kB")?.trim().parse().ok()).ok_or_else(broken)
    };
    let (rss_kib, peak_rss_kib) = (kib("VmRSS:")?, kib("VmHWM:")?);
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The command name is in parentheses and may contain blanks; utime and stime are the 12th and 13th words after it.
    let words: Vec<&str> = stat.rsplit_once(')').ok_or_else(broken)?.1.split_whitespace().collect();
    let ticks = |index: usize| words.get(index).and_then(|word| word.parse::<u64>().ok()).ok_or_else(broken);
    let time = |ticks: u64| Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND);
    let (rss_bytes, peak_rss_bytes) = (rss_kib * 1024, peak_rss_kib * 1024);
    Ok(Usage { rss_bytes, peak_rss_bytes, user_time: time(ticks(11)?), system_time: time(ticks(12)?) })
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn the_process_that_listens_on_a_port_is_found() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(listens(std::process::id(), port).unwrap());
        assert!(!listens(std::os::unix::process::parent_id(), port).unwrap());
        drop(listener);
        assert!(!listens(std::process::id(), port).unwrap());
    }

    #[test]
    fn the_usage_of_this_process_can_be_read() {
        let used = usage(std::process::id()).unwrap();
        assert!(used.rss_bytes > 100 * 1024, "{used:?}");
        assert!(usage(u32::MAX).is_err());
    }

    #[test]
    fn a_program_that_ends_at_once_is_reported_with_its_log() {
        let start = std::panic::catch_unwind(|| Server::start("/bin/echo", &["goodbye"]));
        let message = *start.unwrap_err().downcast::<String>().unwrap();
        assert!(message.contains("it ended with exit status: 0") && message.contains("goodbye"), "{message}");
    }
}
