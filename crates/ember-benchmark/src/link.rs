//! A connection of the load generator and its requests in flight.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use ember_protocol::client::Value;

use super::failure::Failure;
use super::key_patterns::KeySequence;
use super::replies::{ReplyCounter, Tally};
use ember_client::{Address, Connection};

/// Opens an authenticated connection.
///
/// # Errors
/// Returns a message if the server is unreachable, or the password or the database is invalid.
pub(super) fn connect(address: &Address, is_resp3: bool) -> Result<Connection, Failure> {
    let mut connection = Connection::open(address).map_err(|error| {
        Failure(format!("Could not connect to the server at {}: {error}", address.shown_in_errors()))
    })?;
    let database = address.database.to_string();
    let mut introduction: Vec<(&str, Vec<&[u8]>)> = Vec::new();
    introduction.extend(address.credentials.as_ref().map(|credentials| ("AUTH", credentials.command())));
    if address.database != 0 {
        introduction.push(("SELECT", vec![b"SELECT", database.as_bytes()]));
    }
    if is_resp3 {
        introduction.push(("HELLO 3", vec![b"HELLO", b"3"]));
    }
    for (name, words) in introduction {
        let answer = connection.ask(&words).map_err(|error| Failure::lost(address, &error))?;
        if let Value::Error(text) = answer {
            return Err(Failure(format!("{name} failed: {}", String::from_utf8_lossy(&text))));
        }
    }
    Ok(connection)
}

/// A connection with requests in flight. No operation on it blocks.
pub(super) struct Link {
    connection: Connection,
    counter: ReplyCounter,
    /// The sequence from which the connection's requests take their keys.
    pub(super) keys: KeySequence,
    /// The number of requests sent so far.
    pub(super) turn: u64,
    /// The number of requests that have no reply yet.
    pub(super) in_flight: u32,
    /// The due time of the first request in flight, in nanoseconds since the start.
    pub(super) due_ns: f64,
    /// The interval between the due times of the requests in flight, in nanoseconds.
    pub(super) step_ns: f64,
    /// Bytes of requests that the socket has not accepted yet.
    unsent: Vec<u8>,
    /// The number of bytes of `unsent` that have been sent.
    sent: usize,
    /// Whether the TLS layer has buffered data to send.
    is_unflushed: bool,
    /// Whether write readiness was requested from the event queue.
    pub(super) is_watched_for_writable: bool,
}

impl Link {
    /// # Errors
    /// Returns the errors of the system.
    pub(super) fn new(mut connection: Connection, keys: KeySequence) -> io::Result<Link> {
        connection.set_nonblocking()?;
        Ok(Link {
            connection,
            counter: ReplyCounter::default(),
            keys,
            turn: 0,
            in_flight: 0,
            due_ns: 0.0,
            step_ns: 0.0,
            unsent: Vec::new(),
            sent: 0,
            is_unflushed: false,
            is_watched_for_writable: false,
        })
    }

    /// Continues with a new connection. No request may be in flight on the old one.
    ///
    /// # Errors
    /// Returns the errors of the system.
    pub(super) fn replace(&mut self, mut connection: Connection) -> io::Result<()> {
        connection.set_nonblocking()?;
        self.connection = connection;
        self.is_watched_for_writable = false;
        Ok(())
    }

    /// Whether the socket was full, so that data is still to be sent.
    pub(super) fn is_full(&self) -> bool {
        self.sent < self.unsent.len() || self.is_unflushed
    }

    /// Sends bytes and buffers those that the socket does not accept. No other bytes may be buffered.
    ///
    /// # Errors
    /// Returns the errors of the socket.
    pub(super) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let count = write_all(&mut self.connection, bytes)?;
        if count < bytes.len() {
            self.unsent.clear();
            self.unsent.extend_from_slice(&bytes[count..]);
            self.sent = 0;
        }
        self.flush()
    }

    /// Sends buffered bytes.
    ///
    /// # Errors
    /// Returns the errors of the socket.
    pub(super) fn send_rest(&mut self) -> io::Result<()> {
        self.sent += write_all(&mut self.connection, &self.unsent[self.sent..])?;
        if self.sent == self.unsent.len() {
            self.unsent.clear();
            self.sent = 0;
        }
        self.flush()
    }

    fn flush(&mut self) -> io::Result<()> {
        self.is_unflushed = match self.connection.flush_some() {
            Ok(()) => false,
            Err(error) if is_later(&error) => true,
            Err(error) => return Err(error),
        };
        Ok(())
    }

    /// Reads available data once and counts its replies; returns whether more data may be available without waiting.
    ///
    /// # Errors
    /// Returns the errors of the socket, and an error if the data is not a reply.
    pub(super) fn receive(&mut self, buffer: &mut [u8], tally: &mut Tally) -> Result<bool, LinkError> {
        match self.connection.read_into(buffer) {
            Ok(0) => Err(LinkError::Io(io::ErrorKind::UnexpectedEof.into())),
            Ok(count) => {
                self.counter
                    .feed(&buffer[..count], tally)
                    .map_err(|no_reply| LinkError::NoReply(no_reply.0))?;
                // The event queue reports more data of a plain socket, but not data that TLS has already decrypted.
                Ok(self.connection.is_tls())
            }
            Err(error) if is_later(&error) => Ok(false),
            Err(error) => Err(LinkError::Io(error)),
        }
    }

    /// Returns the text of the first error reply.
    pub(super) fn take_first_error(&mut self) -> Option<String> {
        self.counter.first_error.take()
    }

    /// Whether no incomplete reply has been received.
    pub(super) fn is_between_replies(&self) -> bool {
        self.counter.is_between()
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.connection.socket()
    }
}

/// The error of a connection.
#[derive(Debug)]
pub(super) enum LinkError {
    Io(io::Error),
    /// A new connection could not be opened.
    NotConnected(Failure),
    /// The data is not a reply; contains its beginning.
    NoReply(String),
}

/// Writes until the socket is full; returns the number of bytes written.
fn write_all(connection: &mut Connection, bytes: &[u8]) -> io::Result<usize> {
    let mut count = 0;
    while count < bytes.len() {
        match connection.write_some(&bytes[count..]) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => count += written,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        }
    }
    Ok(count)
}

fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
