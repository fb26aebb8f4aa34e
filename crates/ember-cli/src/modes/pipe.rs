//! Bulk loading (`--pipe`): sends requests unchanged, and counts replies as they arrive.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Read};
use std::time::Duration;

use ember_protocol::client::{Value, encode_command, read_value};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::failure::Failure;
use ember_client::put;
use ember_client::{Connection, cause};

/// Bytes read from standard input at a time.
const INPUT_BYTES: usize = 64 * 1024;

/// Sends all of standard input to the server and counts the replies.
pub(super) fn run(connection: &mut Connection, timeout_s: u64) -> Result<(), Failure> {
    connection.set_nonblocking()?;
    let mark = mark();
    let mut outgoing = Outgoing { bytes: Vec::new(), sent: 0, is_over: false };
    let mut incoming = Incoming { buffer: Vec::new(), retry_at: 0, errors: 0, answers: 0, is_marked: false };
    while !incoming.is_marked {
        if outgoing.is_sent() && !outgoing.is_over {
            outgoing.refill(&mark)?;
        }
        let wanted = if outgoing.is_sent() { PollFlags::IN } else { PollFlags::IN | PollFlags::OUT };
        if !wait(connection, wanted, if outgoing.is_over { timeout_s } else { 0 })? {
            eprintln!("No replies for {timeout_s} seconds: exiting.");
            incoming.errors += 1;
            break;
        }
        incoming.receive(connection, &mark)?;
        outgoing.send(connection)?;
    }
    put(format!("errors: {}, replies: {}\n", incoming.errors, incoming.answers).as_bytes());
    if incoming.errors == 0 { Ok(()) } else { Err(Failure::Known) }
}

/// Returns a random string for the final ECHO, which no other reply contains.
fn mark() -> String {
    let random = || RandomState::new().build_hasher().finish();
    let digits = format!("{:016x}{:016x}", random(), random());
    digits[..20].to_owned()
}

/// Waits until the socket is ready; returns `false` after the timeout. 0 means no timeout.
pub(super) fn wait(connection: &Connection, wanted: PollFlags, timeout_s: u64) -> io::Result<bool> {
    if connection.has_input() {
        return Ok(true);
    }
    let socket = connection.socket();
    let mut fds = [PollFd::new(&socket, wanted)];
    let seconds = Timespec::try_from(Duration::from_secs(timeout_s)).ok();
    loop {
        match poll(&mut fds, seconds.as_ref().filter(|_| timeout_s > 0)) {
            Ok(ready) => return Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Outgoing data.
struct Outgoing {
    bytes: Vec<u8>,
    sent: usize,
    /// Whether standard input has ended, and the mark has been appended to `bytes`.
    is_over: bool,
}

impl Outgoing {
    fn is_sent(&self) -> bool {
        self.sent == self.bytes.len()
    }

    /// Reads more input. Appends the mark after the end of the input.
    fn refill(&mut self, mark: &str) -> Result<(), Failure> {
        self.sent = 0;
        self.bytes.resize(INPUT_BYTES, 0);
        let count = loop {
            match io::stdin().read(&mut self.bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => {
                    break read.map_err(|error| {
                        Failure::Said(format!("Error reading from stdin: {}", cause(&error)))
                    })?;
                }
            }
        };
        self.bytes.truncate(count);
        if count == 0 {
            self.is_over = true;
            // The line end terminates a command in inline form.
            self.bytes.extend_from_slice(b"\r\n");
            encode_command(&["ECHO", mark], &mut self.bytes);
            put(b"All data transferred. Waiting for the last reply...\n");
        }
        Ok(())
    }

    fn send(&mut self, connection: &mut Connection) -> Result<(), Failure> {
        while !self.is_sent() {
            match connection.write_some(&self.bytes[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if is_later(&error) => return Ok(()),
                Err(error) => {
                    return Err(Failure::Said(format!("Error writing to the server: {}", cause(&error))));
                }
            }
        }
        Ok(())
    }
}

/// Incoming data.
struct Incoming {
    /// Received bytes that are not counted yet: the beginning of a reply.
    buffer: Vec<u8>,
    /// The minimum number of bytes in the buffer before the incomplete reply is parsed again.
    retry_at: usize,
    errors: u64,
    answers: u64,
    /// Whether the mark has been echoed.
    is_marked: bool,
}

impl Incoming {
    fn receive(&mut self, connection: &mut Connection, mark: &str) -> Result<(), Failure> {
        loop {
            match connection.read_some(&mut self.buffer) {
                Ok(0) => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                Ok(_) if self.buffer.len() < self.retry_at => {}
                Ok(_) => self.count(mark)?,
                Err(error) if is_later(&error) => return self.count_if_complete(mark),
                Err(error) => {
                    return Err(Failure::Said(format!("Error reading from the server: {}", cause(&error))));
                }
            }
        }
    }

    /// Like [`Incoming::count`], but does nothing while the end of an incomplete string cannot have arrived, which
    /// avoids parsing it repeatedly.
    fn count_if_complete(&mut self, mark: &str) -> Result<(), Failure> {
        let line = self.buffer.strip_prefix(b"$").unwrap_or_default();
        let digits = line.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let length =
            std::str::from_utf8(&line[..digits]).ok().and_then(|digits| digits.parse::<usize>().ok());
        match length {
            Some(length) if self.buffer.len() <= length => Ok(()),
            _ => self.count(mark),
        }
    }

    /// Counts the complete replies.
    fn count(&mut self, mark: &str) -> Result<(), Failure> {
        let mut rest = self.buffer.as_slice();
        while !rest.is_empty() && !self.is_marked {
            let mut at = rest;
            match read_value(&mut at) {
                Ok(Value::Error(text)) => {
                    eprintln!("{}", String::from_utf8_lossy(&text));
                    self.errors += 1;
                    self.answers += 1;
                }
                Ok(Value::Bulk(text)) if text == mark.as_bytes() => {
                    put(b"Last reply received from server.\n");
                    self.is_marked = true;
                }
                Ok(_) => self.answers += 1,
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break,
                Err(error) => return Err(error.into()),
            }
            rest = at;
        }
        let counted = self.buffer.len() - rest.len();
        self.buffer.drain(..counted);
        self.retry_at = 2 * self.buffer.len();
        Ok(())
    }
}

fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
