//! A server that is started to be measured, in a folder of its own, and stopped behind it.

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

/// What the log of a server that serves says.
const READY: [&str; 2] = ["listening", "eady to accept connections"];

/// How long a server may take to say so: what it loads is empty.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// How often one that loads is asked again.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// Lines of the log that are told of a server that does not start.
const LINES_TOLD: usize = 3;

/// A server that runs.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    folder: PathBuf,
    pub(super) port: u16,
}

impl Process {
    /// Starts `program` in a new folder below `parent` and waits until it serves.
    ///
    /// # Errors
    /// In words: what its log says, if it does not.
    pub(super) fn start(
        program: &Path,
        arguments: &[&str],
        parent: &Path,
        name: &str,
    ) -> Result<Process, Failure> {
        let failed = |error: io::Error| Failure(format!("{}: {error}", program.display()));
        let folder = parent.join(format!("ember-matrix-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).map_err(|error| Failure(format!("{}: {error}", folder.display())))?;
        // Nobody else is given a port that was free a moment ago so soon again.
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
        // It reads to the end, or the server would wait for room in the pipe.
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
                Err(RecvTimeoutError::Timeout) => return Err(Failure("it does not serve".to_owned())),
                Err(RecvTimeoutError::Disconnected) => {
                    let told = last.len().saturating_sub(LINES_TOLD);
                    return Err(Failure(last[told..].join("; ")));
                }
            }
        }
        // It listens before it has loaded, if only to say so.
        while is_loading(port).map_err(failed)? {
            let _ = lines.recv_timeout(LOOK_INTERVAL);
        }
        Ok(process)
    }

    /// Bytes it has had written to disks, if the system says so.
    pub(super) fn written_bytes(&self) -> Option<u64> {
        let text = fs::read_to_string(format!("/proc/{}/io", self.child.id())).ok()?;
        text.lines().find_map(|line| line.strip_prefix("write_bytes: ")?.parse().ok())
    }

    /// Bytes of its files.
    pub(super) fn file_bytes(&self) -> u64 {
        bytes_below(&self.folder)
    }
}

/// Whether the server says that it loads its data.
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
            // It has gone meanwhile.
            Err(_) => 0,
        })
        .sum()
}

impl Drop for Process {
    fn drop(&mut self) {
        // Asked first, since a server may have threads that write to the folder.
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if pid.is_none_or(|pid| kill_process(pid, Signal::TERM).is_err()) {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}
