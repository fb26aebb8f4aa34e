//! A connection of the dashboard: one end of a socket pair whose other end a worker serves like any client's.
//!
//! So everything that applies to clients applies here: the user's rights, `maxclients`, the logs, `MONITOR`, and
//! `CLIENT LIST`, which shows the browser's address. Replies are limited in bytes and in time; dropping a connection
//! ends anything that its last command waits for.

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

/// The time from opening a connection to its last reply.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

/// The limit on the bytes of all replies on a connection. As values and as JSON they take several times as much.
const REPLIES_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The name in `CLIENT LIST`.
const CLIENT_NAME: &str = "dashboard";

/// Why there is no reply.
#[derive(Debug)]
pub(super) enum Failure {
    /// The replies have more than [`REPLIES_BYTES_MAX`].
    TooLarge,
    /// There was no reply within [`ENDS_WITHIN`].
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

/// Why a user is refused: the server's own error.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The server's error.
    Error(String),
    /// There was no reply.
    Failure(Failure),
}

/// Closes its connection when dropped, even if a thread still waits for a reply there.
pub(super) struct Lifeline(Arc<UnixStream>);

impl Drop for Lifeline {
    fn drop(&mut self) {
        // This fails if the worker has closed its end already.
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

/// A connection after HELLO. Its calls block.
pub(super) struct Connection {
    replies: BufReader<Bounded>,
    /// The client's id.
    pub(super) id: u64,
    /// Counts the server's work for the dashboard.
    own: &'static OwnTraffic,
}

/// Opens a socket pair, and passes the other end to the worker with the fewest connections.
///
/// # Errors
/// Those of the system when it has no sockets left.
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

/// A connection before HELLO.
pub(super) struct Socket(Bounded, &'static OwnTraffic);

impl Socket {
    /// Authenticates the connection.
    ///
    /// # Errors
    /// The server's error.
    pub(super) fn introduce(self, credentials: Option<&Credentials>) -> Result<Connection, Refusal> {
        let mut words: Vec<&[u8]> = vec![b"HELLO", b"3"];
        if let Some(Credentials { user, password }) = credentials {
            words.extend([b"AUTH", user.as_slice(), password.as_slice()]);
        }
        words.extend([&b"SETNAME"[..], CLIENT_NAME.as_bytes()]);
        let mut connection = Connection { replies: BufReader::new(self.0), id: 0, own: self.1 };
        // A refused connection may be closed before the write; the error sent to it can still be read.
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
    /// Runs a command.
    ///
    /// # Errors
    /// Why there is no reply; there will then be none to later commands either.
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

/// A socket with a deadline and a limit on the bytes read.
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
