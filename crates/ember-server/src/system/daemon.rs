//! Daemon mode: the program starts itself again in its own session, without a terminal, and exits.
//!
//! A fork is not necessary: the new process needs only the arguments, the environment and the standard input that the
//! first process has read.

use std::env;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use ember_config::{Config, Supervised};

/// The environment variable that marks the background process.
const VARIABLE: &str = "EMBER_IN_BACKGROUND";

/// Whether this process should start the background process. If a supervisor is configured, the program stays in the
/// foreground.
pub(crate) fn is_wanted(config: &Config) -> bool {
    config.daemonize && config.supervised == Supervised::No && !is_there()
}

fn is_there() -> bool {
    env::var_os(VARIABLE).is_some()
}

/// Starts the background process, whose standard input is `input`.
///
/// # Errors
/// Returns the error of the system.
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

/// Detaches the background process from the session and the terminal of its parent.
///
/// # Errors
/// Returns the error of the system.
pub(crate) fn detach() -> io::Result<()> {
    if is_there() {
        rustix::process::setsid()?;
    }
    Ok(())
}

/// A reader that stores all bytes that were read.
pub(crate) struct Kept<R> {
    inner: R,
    /// The bytes read so far.
    pub(crate) bytes: Vec<u8>,
}

impl<R> Kept<R> {
    /// Wraps `inner`, before anything was read.
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
