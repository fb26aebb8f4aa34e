//! Executes the commands of a document as a reader would: shell commands run in order, and servers run in the
//! background until they are stopped.
//!
//! A server that a line starts (`ember-server …`, `redis-server …`, `make run …`) keeps running during the following
//! lines, as in a separate terminal. The server is stopped, as by Ctrl-C, when another server is started on its port,
//! and at the end. The ports of the document, [`PORTS`], are replaced by free ones; everything else runs as written.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use ember_testkit::{RawClient, code_blocks, free_port, run_session, session_exchanges};

use crate::programs::require_program;

/// The ports used in documents. Programs without a port argument use the first one.
pub const PORTS: [&str; 2] = ["6379", "6380"];

/// The timeout from starting a server to its first reply.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// The timeout for a server that must be built before it starts.
const BUILD_TIMEOUT: Duration = Duration::from_secs(3600);

/// The timeout for a server to save its data and shut down.
const STOP_TIMEOUT: Duration = Duration::from_secs(60);

/// The interval of polling for state changes that a process does not announce.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Variables that are set for the build of the test, and would redirect the builds that the document runs.
const CARGO_VARIABLES: [&str; 3] = ["CARGO_TARGET_DIR", "CARGO_BUILD_TARGET_DIR", "CARGO_MANIFEST_DIR"];

/// A working folder, its programs, and the running servers.
#[derive(Debug)]
pub struct Walk {
    folder: PathBuf,
    /// A separate folder for the programs and the logs of servers.
    programs: PathBuf,
    environment: Vec<(String, String)>,
    ports: [u16; 2],
    servers: Vec<Started>,
}

#[derive(Debug)]
struct Started {
    /// The child process: the server, or the program that has started it.
    child: Child,
    port: u16,
    line: String,
    log: PathBuf,
}

impl Started {
    /// Returns the process ID of the server. (Redis may have child processes.)
    fn pid(&self) -> u32 {
        let pid = self.child.id();
        if self.line.starts_with("make ") { last_descendant(pid) } else { pid }
    }
}

impl Walk {
    /// Creates a walk in `folder`, which is emptied first. Commands find `programs` under the given names.
    ///
    /// # Panics
    /// Panics if the folder cannot be written.
    pub fn new(folder: PathBuf, programs: &[(&str, PathBuf)]) -> Walk {
        let _ = fs::remove_dir_all(&folder);
        let place = folder.with_extension("programs");
        let _ = fs::remove_dir_all(&place);
        fs::create_dir_all(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        fs::create_dir_all(&place).unwrap_or_else(|error| panic!("{}: {error}", place.display()));
        let mut walk = Walk {
            folder,
            programs: place,
            environment: Vec::new(),
            ports: [(); 2].map(|()| free_port()),
            servers: Vec::new(),
        };
        for (name, path) in programs {
            walk.add_program(name, path);
        }
        let path = std::env::var("PATH").unwrap_or_default();
        walk.set("PATH", &format!("{}:{path}", walk.programs.display()));
        // Command-line arguments have priority over this variable.
        walk.set("EMBER_PORT", &walk.ports[0].to_string());
        walk
    }

    /// Adds a program under `name`. Client programs use the first port by default, and redis-server listens on the
    /// loopback address, like ember.
    fn add_program(&self, name: &str, path: &Path) {
        let arguments = match name {
            "ember-cli" | "redis-cli" => {
                format!("case $1 in check|repair|convert) ;; *) set -- -p {} \"$@\" ;; esac\n", self.ports[0])
            }
            "redis-server" => "set -- \"$@\" --bind 127.0.0.1\n".to_owned(),
            _ => String::new(),
        };
        let script = format!("#!/bin/sh\n{arguments}exec {} \"$@\"\n", path.display());
        let place = self.programs.join(name);
        let written = fs::write(&place, script)
            .and_then(|()| fs::set_permissions(&place, fs::Permissions::from_mode(0o755)));
        written.unwrap_or_else(|error| panic!("{}: {error}", place.display()));
    }

    /// Sets an environment variable for all commands.
    pub fn set(&mut self, name: &str, value: &str) {
        self.environment.push((name.to_owned(), value.to_owned()));
    }

    /// Returns the folder the commands are run in.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the address of a port of [`PORTS`] in the document.
    pub fn address(&self, port: &str) -> SocketAddr {
        address(self.port(port))
    }

    /// Opens a connection to the server on a port of [`PORTS`] in the document.
    ///
    /// # Panics
    /// Panics if nothing listens there.
    pub fn client(&self, port: &str) -> RawClient {
        RawClient::connect(self.address(port))
            .unwrap_or_else(|error| panic!("nothing on port {port}: {error}"))
    }

    /// Executes all blocks of a document in order: `sh` blocks line by line, `bash` and `python` blocks as a whole, and
    /// sessions. Lines for which `is_left_out` returns true are skipped. Returns the number of lines, texts and
    /// sessions that were run.
    ///
    /// # Panics
    /// Panics if a command fails, a server does not start or a session prints something else.
    pub fn follow(&mut self, document: &str, is_left_out: impl Fn(&str) -> bool) -> usize {
        let mut count = 0;
        for block in code_blocks(document) {
            match block.language.as_str() {
                "sh" => {
                    for line in block.text.lines().filter(|line| !is_left_out(line)) {
                        self.run(line);
                        count += 1;
                    }
                }
                "bash" => {
                    self.run(&block.text);
                    count += 1;
                }
                "python" => {
                    let path = self.folder.join("example.py");
                    let written = fs::write(&path, self.translated(&block.text));
                    written.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
                    self.run("python example.py");
                    count += 1;
                }
                "session" => {
                    let port = PORTS.into_iter().find(|port| block.text.contains(&format!(":{port}")));
                    let mut client = self.client(port.expect("a prompt has one of the ports"));
                    let differences = run_session(&mut client, &session_exchanges(&block));
                    assert!(differences.is_empty(), "{}", differences.join("\n"));
                    count += 1;
                }
                _ => {}
            }
        }
        count
    }

    /// Runs one command line; if it is a server, starts the server in the background. Returns the output.
    ///
    /// # Panics
    /// Panics if the command fails.
    pub fn run(&mut self, line: &str) -> String {
        if is_server(line) {
            self.start(line);
            return String::new();
        }
        let output = self.shell(&self.translated(line)).output();
        let output = output.unwrap_or_else(|error| panic!("no shell: {error}"));
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}: {}\n{printed}{errors}\n{}", output.status, self.logs());
        if line.contains(" SHUTDOWN") {
            let port = self.port_of(line);
            self.wait_for_end(port);
        }
        printed
    }

    fn start(&mut self, line: &str) {
        let port = self.port_of(line);
        self.stop(port);
        let log =
            self.programs.join(format!("{}.log", fs::read_dir(&self.programs).map_or(0, Iterator::count)));
        let file = File::create(&log).unwrap_or_else(|error| panic!("{}: {error}", log.display()));
        let errors = file.try_clone().unwrap_or_else(|error| panic!("{}: {error}", log.display()));
        let child =
            self.shell(&format!("exec {}", self.translated(line))).stdout(file).stderr(errors).spawn();
        let child = child.unwrap_or_else(|error| panic!("no shell: {error}"));
        self.servers.push(Started { child, port, line: line.to_owned(), log });
        let deadline = Instant::now() + if line.starts_with("make ") { BUILD_TIMEOUT } else { START_TIMEOUT };
        loop {
            let started = self.servers.last_mut().expect("it was added above");
            // A server with TLS replies to no client without a certificate.
            let is_encrypted = line.contains(" --tls-port ");
            if listens(started.pid(), port) && (is_encrypted || answers(port)) {
                return;
            }
            let ended = started.child.try_wait().unwrap_or_else(|error| panic!("{line}: {error}"));
            assert!(ended.is_none() && Instant::now() < deadline, "{line} has not started\n{}", self.logs());
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Stops the server on a port, if there is one, as by Ctrl-C. The server must exit successfully.
    fn stop(&mut self, port: u16) {
        if let Some(started) = self.servers.iter().find(|started| started.port == port) {
            signal("INT", started.pid());
            self.wait_for_end(port);
        }
    }

    /// Stops all servers. Each must exit successfully.
    pub fn stop_all(&mut self) {
        for port in self.ports {
            self.stop(port);
        }
    }

    fn wait_for_end(&mut self, port: u16) {
        let Some(index) = self.servers.iter().position(|started| started.port == port) else { return };
        let deadline = Instant::now() + STOP_TIMEOUT;
        loop {
            let ended = self.servers[index].child.try_wait();
            match ended.unwrap_or_else(|error| panic!("a child can be waited for: {error}")) {
                Some(status) => {
                    assert!(status.success(), "{}: {status}\n{}", self.servers[index].line, self.logs());
                    self.servers.remove(index);
                    return;
                }
                None => {
                    assert!(Instant::now() < deadline, "{} has not ended", self.servers[index].line);
                    std::thread::sleep(POLL_INTERVAL);
                }
            }
        }
    }

    fn shell(&self, text: &str) -> Command {
        let mut command = Command::new(require_program("bash"));
        command.args(["-euo", "pipefail", "-c", text]).current_dir(&self.folder);
        for name in CARGO_VARIABLES {
            command.env_remove(name);
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(std::process::Stdio::null());
        command
    }

    fn logs(&self) -> String {
        let log = |started: &Started| {
            format!("{}:\n{}", started.line, fs::read_to_string(&started.log).unwrap_or_default())
        };
        self.servers.iter().map(log).collect()
    }

    /// Replaces the ports in a line by the ports of this test. A built program receives an explicit port argument.
    fn translated(&self, line: &str) -> String {
        const BUILT: &str = "./target/release/ember-cli";
        // Replaces in two steps, since a free port may contain the digits of the other port.
        let line = line.replace(PORTS[0], "<first>").replace(PORTS[1], "<second>");
        let line = line.replace("<first>", &self.ports[0].to_string());
        let line = line.replace("<second>", &self.ports[1].to_string());
        line.replace(BUILT, &format!("{BUILT} -p {}", self.ports[0]))
    }

    /// Returns the port in a line, or the first port if the line contains none.
    fn port_of(&self, line: &str) -> u16 {
        let named = PORTS.into_iter().find(|port| line.contains(port));
        self.port(named.unwrap_or(PORTS[0]))
    }

    fn port(&self, name: &str) -> u16 {
        let index = PORTS.iter().position(|port| *port == name);
        self.ports[index.unwrap_or_else(|| panic!("documents use {PORTS:?}, not {name}"))]
    }
}

impl Drop for Walk {
    fn drop(&mut self) {
        for started in &mut self.servers {
            signal("KILL", started.pid());
            // This fails only if the process has already ended.
            let _ = started.child.wait();
        }
        let _ = fs::remove_dir_all(&self.programs);
    }
}

fn is_server(line: &str) -> bool {
    let is_assignment =
        |word: &&str| word.split_once('=').is_some_and(|(name, _)| name == name.to_uppercase());
    let mut words = line.split(' ').skip_while(is_assignment);
    match (words.next(), words.next()) {
        (Some("make"), Some("run")) => true,
        (Some(program), _) => program.ends_with("ember-server") || program.ends_with("redis-server"),
        _ => false,
    }
}

/// Whether a given process listens on a port; the port may also be used by another process.
fn listens(pid: u32, port: u16) -> bool {
    /// The state of a listening socket in the tables of Linux.
    const LISTENING: &str = "0A";
    let table = fs::read_to_string("/proc/net/tcp").unwrap_or_default();
    let place = format!("0100007F:{port:04X}");
    let socket = table.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let is_ours = fields.get(1) == Some(&place.as_str()) && fields.get(3) == Some(&LISTENING);
        if is_ours { fields.get(9).map(|inode| format!("socket:[{inode}]")) } else { None }
    });
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let mut targets = descriptors.filter_map(|descriptor| fs::read_link(descriptor.path()).ok());
    socket.is_some_and(|socket| targets.any(|target| target == Path::new(&socket)))
}

fn address(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

/// Whether a server is ready: it sends any reply except LOADING. It may require a password.
fn answers(port: u16) -> bool {
    let Ok(mut client) = RawClient::connect(address(port)) else { return false };
    let sent = client.send_command(&["PING"]).and_then(|()| client.read_value());
    sent.is_ok_and(|reply| !reply.text().starts_with("LOADING"))
}

/// Returns the last process of a chain of child processes, as started by a shell or make.
fn last_descendant(pid: u32) -> u32 {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    match children.split(' ').next().and_then(|child| child.parse().ok()) {
        Some(child) => last_descendant(child),
        None => pid,
    }
}

fn signal(name: &str, pid: u32) {
    // This fails only if the process has already ended, which a later wait reports.
    let _ = Command::new("sh").args(["-c", "kill -s \"$1\" \"$2\"", "sh", name, &pid.to_string()]).status();
}
