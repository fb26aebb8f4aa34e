//! Running in the background: the program starts itself again, without a terminal and in a session of its own, and ends.
//!
//! What a fork does is done without one: nothing of the first process is needed but its arguments, its environment and what
//! it has read of its standard input.

use std::env;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use crate::config::{Config, Supervised};

/// Set for the process in the background.
const VARIABLE: &str = "EMBER_IN_BACKGROUND";

/// Whether this process is to start the one in the background. A supervisor runs its programs in the foreground.
pub(crate) fn is_wanted(config: &Config) -> bool {
    config.daemonize && config.supervised == Supervised::No && !is_there()
}

fn is_there() -> bool {
    env::var_os(VARIABLE).is_some()
}

/// Starts the process in the background, which reads `input` from its standard input.
///
/// # Errors
/// What the system says.
pub(crate) fn start(input: &[u8]) -> io::Result<()> {
    let mut arguments = env::args_os();
    let mut command = Command::new(env::current_exe()?);
    if let Some(name) = arguments.next() {
        command.arg0(name);
    }
    command.args(arguments).env(VARIABLE, "yes").stdout(Stdio::null()).stderr(Stdio::null());
    command.stdin(if input.is_empty() { Stdio::null() } else { Stdio::piped() });
    let mut child = command.spawn()?;
    match child.stdin.take() {
        Some(mut pipe) => pipe.write_all(input),
        None => Ok(()),
    }
}

/// Leaves the session and the terminal of whoever has started the process, in the one in the background.
///
/// # Errors
/// What the system says.
pub(crate) fn detach() -> io::Result<()> {
    if is_there() {
        rustix::process::setsid()?;
    }
    Ok(())
}

/// Reads, and keeps what was read.
pub(crate) struct Kept<R> {
    inner: R,
    /// All that was read.
    pub(crate) bytes: Vec<u8>,
}

impl<R> Kept<R> {
    /// Nothing yet.
    pub(crate) fn new(inner: R) -> Kept<R> {
        Kept { inner, bytes: Vec::new() }
    }
}

impl<R: Read> Read for Kept<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.bytes.extend_from_slice(&buffer[..count]);
        Ok(count)
    }
}
