//! Starts a server for a measurement in a new folder, and stops it afterwards.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::failure::Failure;

/// Texts in the log of a server that accepts connections.
const READY: [&str; 2] = ["listening", "eady to accept connections"];

/// The maximum time until a server is ready. The server has no data to load.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// The interval of polling a server that is loading.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// The number of log lines shown for a server that does not start.
const LINES_SHOWN: usize = 3;

/// A running server.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    folder: PathBuf,
    pub(super) port: u16,
}

impl Process {
    /// Starts `program` in a new folder below `parent` and waits until it accepts commands.
    ///
    /// # Errors
    /// Returns a message with the end of the server's log, if the server does not start.
    pub(super) fn start(
        program: &Path,
        arguments: &[&str],
        parent: &Path,
        name: &str,
    ) -> Result<Process, Failure> {
        let failed = |error: io::Error| Failure(format!("{}: {error}", program.display()));
        let folder = parent.join(format!("ember-matrix-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).map_err(|error| Failure(format!("{}: {error}", folder.display())))?;
        // A port that was just free is unlikely to be assigned to another process before the server binds it.
        let listener = TcpListener::bind("127.0.0.1:0").map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        drop(listener);
        let (reader, writer) = io::pipe().map_err(failed)?;
        let other = writer.try_clone().map_err(failed)?;
        let child = Command::new(program)
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
            .args(arguments)
            .current_dir(&folder)
            .stdin(Stdio::null())
            .stdout(writer)
            .stderr(other)
            .spawn()
            .map_err(failed)?;
        let process = Process { child, folder, port };
        let (line_read, lines) = channel();
        // Reads the output to its end; otherwise the server would block on a full pipe.
        thread::spawn(move || {
            for line in BufReader::new(reader).lines().map_while(Result::ok) {
                let _ = line_read.send(line);
            }
        });
        let mut last = Vec::new();
        loop {
            match lines.recv_timeout(START_TIMEOUT) {
                Ok(line) if READY.iter().any(|ready| line.contains(ready)) => break,
                Ok(line) => last.push(line),
                Err(RecvTimeoutError::Timeout) => {
                    return Err(Failure("it does not accept connections".to_owned()));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let first = last.len().saturating_sub(LINES_SHOWN);
                    return Err(Failure(last[first..].join("; ")));
                }
            }
        }
        // A server listens before its data is loaded, to report its state.
        while is_loading(port).map_err(failed)? {
            let _ = lines.recv_timeout(CHECK_INTERVAL);
        }
        Ok(process)
    }

    /// Returns the number of bytes that the server has caused to be written to disks, if the system reports it.
    pub(super) fn written_bytes(&self) -> Option<u64> {
        let text = fs::read_to_string(format!("/proc/{}/io", self.child.id())).ok()?;
        text.lines().find_map(|line| line.strip_prefix("write_bytes: ")?.parse().ok())
    }

    /// Returns the size of the server's files in bytes.
    pub(super) fn file_bytes(&self) -> u64 {
        bytes_below(&self.folder)
    }
}

/// Whether the server reports that it is loading.
fn is_loading(port: u16) -> io::Result<bool> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(START_TIMEOUT))?;
    stream.write_all(b"PING\r\n")?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer)?;
    Ok(answer.starts_with("-LOADING"))
}

fn bytes_below(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => bytes_below(&entry.path()),
            Ok(metadata) => metadata.len(),
            // The file has been removed since the folder was listed.
            Err(_) => 0,
        })
        .sum()
}

impl Drop for Process {
    fn drop(&mut self) {
        // The server is asked to stop first, since it may have threads that write to the folder.
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if pid.is_none_or(|pid| kill_process(pid, Signal::TERM).is_err()) {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}
