//! One connection of the load: what is under way on it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use ember_protocol::client::Value;

use super::failure::Failure;
use super::keys::KeySequence;
use super::replies::{ReplyCounter, Tally};
use ember_client::{Address, Connection};

/// A connection that has said who it is.
///
/// # Errors
/// In words: nobody listens, the password is wrong, the database is none.
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

/// A connection with requests and replies under way. Nothing on it waits.
pub(super) struct Link {
    connection: Connection,
    counter: ReplyCounter,
    /// The keys of its requests.
    pub(super) keys: KeySequence,
    /// Requests it was given so far.
    pub(super) turn: u64,
    /// Requests without a reply.
    pub(super) in_flight: u32,
    /// When the first of those was due, in nanoseconds since the start.
    pub(super) due_ns: f64,
    /// How much later each of the others was due.
    pub(super) step_ns: f64,
    /// What there was no room for in the socket.
    unsent: Vec<u8>,
    /// How much of that is sent by now.
    sent: usize,
    /// The TLS layer has kept something that is to be sent.
    is_unflushed: bool,
    /// Whether the event queue was asked to tell when there is room.
    pub(super) is_watched_for_room: bool,
}

impl Link {
    /// # Errors
    /// Those of the system.
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
            is_watched_for_room: false,
        })
    }

    /// Goes on with another connection. Nothing is under way on this one.
    ///
    /// # Errors
    /// Those of the system.
    pub(super) fn replace(&mut self, mut connection: Connection) -> io::Result<()> {
        connection.set_nonblocking()?;
        self.connection = connection;
        self.is_watched_for_room = false;
        Ok(())
    }

    /// Whether something is still to be sent.
    pub(super) fn is_full(&self) -> bool {
        self.sent < self.unsent.len() || self.is_unflushed
    }

    /// Sends bytes; what there is no room for is kept. Nothing else is waiting to be sent.
    ///
    /// # Errors
    /// Those of the socket.
    pub(super) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let count = write_all(&mut self.connection, bytes)?;
        if count < bytes.len() {
            self.unsent.clear();
            self.unsent.extend_from_slice(&bytes[count..]);
            self.sent = 0;
        }
        self.flush()
    }

    /// Sends what was kept.
    ///
    /// # Errors
    /// Those of the socket.
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

    /// Takes one portion of what has come, and whether there may be more at once.
    ///
    /// # Errors
    /// Those of the socket, and what is no reply.
    pub(super) fn receive(&mut self, buffer: &mut [u8], tally: &mut Tally) -> Result<bool, LinkError> {
        match self.connection.read_into(buffer) {
            Ok(0) => Err(LinkError::Io(io::ErrorKind::UnexpectedEof.into())),
            Ok(count) => {
                self.counter
                    .feed(&buffer[..count], tally)
                    .map_err(|no_reply| LinkError::NoReply(no_reply.0))?;
                // Of a plain socket the event queue tells again; what TLS has deciphered only TLS knows of.
                Ok(self.connection.is_tls())
            }
            Err(error) if is_later(&error) => Ok(false),
            Err(error) => Err(LinkError::Io(error)),
        }
    }

    /// The text of the first error that was a reply.
    pub(super) fn take_first_error(&mut self) -> Option<String> {
        self.counter.first_error.take()
    }

    /// Whether bytes have come that belong to no request.
    pub(super) fn is_between_replies(&self) -> bool {
        self.counter.is_between()
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.connection.socket()
    }
}

/// What is wrong with a connection.
#[derive(Debug)]
pub(super) enum LinkError {
    Io(io::Error),
    /// There is no new one.
    NotConnected(Failure),
    /// What came is no reply; the beginning of it.
    NoReply(String),
}

/// Writes until there is no room; how much.
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
