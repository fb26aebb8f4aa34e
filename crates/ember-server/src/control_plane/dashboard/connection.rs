//! A connection of the dashboard to the server: a socket pair, one end of which a worker serves like the connection of
//! any client.
//!
//! So everything that applies to clients also applies to the dashboard: the user's permissions, `maxclients`, the logs,
//! `MONITOR`, and `CLIENT LIST`, which shows the browser's address. The size and the time of replies are limited.
//! Dropping a connection aborts whatever its last command waits for.

use std::fmt;
use std::io::{self, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ember_protocol::client::{Value, encode_command, read_value};

use crate::clients::client::Peer;
use crate::clients::listener::Incoming;
use crate::clients::mailbox::Message;
use crate::control_plane::door::Credentials;
use crate::observability::own_traffic::OwnTraffic;
use crate::server::Server;

/// The maximum time from opening a connection to its last reply.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

/// The maximum total size of the replies on a connection, in bytes. As values and as JSON, replies take several times
/// as much memory.
const REPLIES_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The dashboard's connection name in `CLIENT LIST`.
const CLIENT_NAME: &str = "dashboard";

/// The reason why a command has no reply.
#[derive(Debug)]
pub(super) enum Failure {
    /// The replies are larger than [`REPLIES_BYTES_MAX`].
    TooLarge,
    /// The reply did not arrive within [`ENDS_WITHIN`].
    Timeout,
    /// The command replies with push messages, which requires a permanent connection.
    Pushes,
    /// The server closed the connection, or could not open one.
    Closed(io::Error),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::TooLarge => write!(f, "the reply has more than {REPLIES_BYTES_MAX} bytes"),
            Failure::Timeout => {
                write!(f, "there was no reply within {} seconds", ENDS_WITHIN.as_secs())
            }
            Failure::Pushes => f.write_str("this command needs a permanent connection"),
            Failure::Closed(error) => write!(f, "the connection was closed: {error}"),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Failure::Timeout,
            io::ErrorKind::FileTooLarge => Failure::TooLarge,
            _ => Failure::Closed(error),
        }
    }
}

/// The reason why a connection cannot be authenticated.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The server's error reply.
    Error(String),
    /// The reply is missing.
    Failure(Failure),
}

/// A handle that closes the connection when it is dropped, even while a thread waits for a reply on the connection.
pub(super) struct Lifeline(Arc<UnixStream>);

impl Drop for Lifeline {
    fn drop(&mut self) {
        // An error means that the worker has already closed its end.
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

/// An authenticated connection, after HELLO. Its calls block the thread.
pub(super) struct Connection {
    replies: BufReader<Bounded>,
    /// The connection's client ID.
    pub(super) id: u64,
    /// The counters of the load that the dashboard causes.
    own: &'static OwnTraffic,
}

/// Opens a socket pair, and passes one end to the worker with the fewest connections.
///
/// # Errors
/// Returns the system's error if it has no sockets left.
pub(super) fn open(server: &'static Server, peer: Peer) -> io::Result<(Socket, Lifeline)> {
    let (ours, theirs) = UnixStream::pair()?;
    let incoming = Incoming { socket: theirs.into(), peer, is_tls: false };
    server.workers[server.reserve_place()].mailbox.send(Message::Accept(incoming));
    let ours = Arc::new(ours);
    let lifeline = Lifeline(Arc::clone(&ours));
    server.own_traffic.count_connection();
    let deadline = Instant::now() + ENDS_WITHIN;
    let bounded = Bounded { socket: ours, deadline, left: REPLIES_BYTES_MAX };
    Ok((Socket(bounded, &server.own_traffic), lifeline))
}

/// An unauthenticated connection, before HELLO.
pub(super) struct Socket(Bounded, &'static OwnTraffic);

impl Socket {
    /// Authenticates the connection with HELLO.
    ///
    /// # Errors
    /// Returns the server's error reply, or the reason why the reply is missing.
    pub(super) fn introduce(self, credentials: Option<&Credentials>) -> Result<Connection, Refusal> {
        let mut words: Vec<&[u8]> = vec![b"HELLO", b"3"];
        if let Some(Credentials { user, password }) = credentials {
            words.extend([b"AUTH", user.as_slice(), password.as_slice()]);
        }
        words.extend([&b"SETNAME"[..], CLIENT_NAME.as_bytes()]);
        let mut connection = Connection { replies: BufReader::new(self.0), id: 0, own: self.1 };
        // The worker may close a refused connection before the write, which then fails; its error reply can still be
        // read.
        let asked = connection.send(&words);
        let reply = match (connection.receive(), asked) {
            (Ok(reply), _) => reply,
            (Err(_), Err(failure)) | (Err(failure), Ok(())) => return Err(Refusal::Failure(failure)),
        };
        if reply.is_error() {
            return Err(Refusal::Error(reply.text()));
        }
        let id = reply.get("id").and_then(|id| id.integer()).and_then(|id| u64::try_from(id).ok());
        connection.id = id.expect("HELLO returns the client's number, which is positive");
        Ok(connection)
    }
}

impl Connection {
    /// Runs a command and returns its reply.
    ///
    /// # Errors
    /// Returns the reason why there is no reply. Later commands on the connection fail, too.
    pub(super) fn run<A: AsRef<[u8]>>(&mut self, words: &[A]) -> Result<Value, Failure> {
        self.send(words)?;
        match self.receive()? {
            Value::Push(_) => Err(Failure::Pushes),
            reply => Ok(reply),
        }
    }

    fn send<A: AsRef<[u8]>>(&mut self, words: &[A]) -> Result<(), Failure> {
        let mut request = Vec::new();
        encode_command(words, &mut request);
        self.own.count_command(words.first().map_or(&[], AsRef::as_ref), request.len());
        self.replies.get_mut().write_all(&request).map_err(Failure::from)
    }

    fn receive(&mut self) -> Result<Value, Failure> {
        let before = self.replies.get_ref().left;
        let read = read_value(&mut self.replies);
        self.own.count_reply_bytes(before - self.replies.get_ref().left);
        Ok(read?)
    }
}

/// A socket with a deadline and a limit on the number of bytes read.
struct Bounded {
    socket: Arc<UnixStream>,
    deadline: Instant,
    left: usize,
}

impl Bounded {
    fn time_left(&self) -> io::Result<Option<Duration>> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
    }
}

impl Read for Bounded {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.socket.set_read_timeout(self.time_left()?)?;
        let wanted = buffer.len().min(self.left);
        let count = (&*self.socket).read(&mut buffer[..wanted])?;
        self.left -= count;
        Ok(count)
    }
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.set_write_timeout(self.time_left()?)?;
        (&*self.socket).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (Bounded, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let deadline = Instant::now() + Duration::from_millis(50);
        (Bounded { socket: Arc::new(ours), deadline, left: 10 }, theirs)
    }

    #[test]
    fn reads_are_limited_to_the_allowed_size() {
        let (bounded, mut other) = pair();
        other.write_all(b"$20\r\naaaaaaaaaaaaaaaaaaaa\r\n").unwrap();
        let failure = Failure::from(read_value(&mut BufReader::new(bounded)).unwrap_err());
        assert!(matches!(failure, Failure::TooLarge), "{failure}");
    }

    #[test]
    fn waiting_is_limited_by_a_deadline() {
        let (bounded, _other) = pair();
        let failure = Failure::from(read_value(&mut BufReader::new(bounded)).unwrap_err());
        assert!(matches!(failure, Failure::Timeout), "{failure}");
    }

    #[test]
    fn dropping_a_lifeline_ends_the_wait_of_another_thread() {
        let (mut bounded, other) = pair();
        bounded.deadline += Duration::from_secs(60);
        let lifeline = Lifeline(Arc::clone(&bounded.socket));
        let waiting = std::thread::spawn(move || read_value(&mut BufReader::new(bounded)));
        drop(lifeline);
        assert_eq!(waiting.join().unwrap().unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        drop(other);
    }
}
