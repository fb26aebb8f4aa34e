//! A connection to the target server: requests are sent and status replies received, each step with a timeout.
//!
//! Replies of the target are not trusted: the length of a line is limited, and only `+OK` counts as an acknowledgement.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use ember_persistence::full_path::without_directories;
use ember_protocol::push_word;

use super::order::{Credentials, Destination};

/// The maximum length in bytes of a reply line of the target.
const LINE_BYTES_MAX: usize = 4096;

/// The maximum number of bytes sent in one step.
const CHUNK_BYTES: usize = 64 * 1024;

/// The reason why a transfer failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// No connection could be established.
    Connecting,
    /// The connection broke or timed out during sending.
    Writing { is_timeout: bool },
    /// The connection broke or timed out before a reply arrived, or the reply is invalid.
    Reading { is_timeout: bool },
    /// The cold value of a key cannot be read from the disk, for this reason.
    Unreadable(String),
    /// The target replied with this error.
    Refused(Vec<u8>),
}

impl Failure {
    /// Returns the error text for the client.
    pub(super) fn text(&self) -> Vec<u8> {
        match self {
            Failure::Connecting => b"IOERR error or timeout connecting to the client".to_vec(),
            Failure::Writing { .. } => b"IOERR error or timeout writing to target instance".to_vec(),
            Failure::Reading { .. } => b"IOERR error or timeout reading to target instance".to_vec(),
            Failure::Unreadable(error) => {
                format!("IOERR a value cannot be read: {}", without_directories(error)).into_bytes()
            }
            Failure::Refused(error) => [b"ERR Target instance replied with error: ", &error[..]].concat(),
        }
    }

    /// Whether retrying over a new connection may succeed.
    pub(super) fn is_broken_connection(&self) -> bool {
        matches!(self, Failure::Writing { is_timeout: false } | Failure::Reading { is_timeout: false })
    }
}

/// A connection to a target server.
pub(super) struct Target {
    pub(super) destination: Destination,
    stream: TcpStream,
    /// The database that is selected on the target, if known.
    database: Option<i64>,
    /// Received bytes of a line that is not complete yet.
    received: Vec<u8>,
    /// When the connection was last used.
    pub(super) used_at: Instant,
}

impl Target {
    /// Connects to the target.
    ///
    /// # Errors
    /// Returns errors of the connection.
    pub(super) fn connect(destination: &Destination, timeout: Duration) -> Result<Target, Failure> {
        Ok(Target {
            destination: destination.clone(),
            stream: open(destination, timeout)?,
            database: None,
            received: Vec::new(),
            used_at: Instant::now(),
        })
    }

    /// Authenticates if the destination includes credentials. This is repeated for each transfer, because passwords can
    /// change.
    ///
    /// # Errors
    /// Returns errors of the connection and error replies of the target.
    pub(super) fn log_in(&mut self, timeout: Duration) -> Result<(), Failure> {
        let Some(Credentials { user, password }) = self.destination.credentials.clone() else {
            return Ok(());
        };
        let mut words: Vec<&[u8]> = vec![b"AUTH"];
        words.extend(user.as_deref());
        words.push(&password);
        self.ask(&words, timeout)
    }

    /// Selects a database on the target, unless it is selected already.
    ///
    /// # Errors
    /// Returns errors of the connection and error replies of the target.
    pub(super) fn select(&mut self, database: i64, timeout: Duration) -> Result<(), Failure> {
        if self.database != Some(database) {
            self.ask(&[b"SELECT", database.to_string().as_bytes()], timeout)?;
            self.database = Some(database);
        }
        Ok(())
    }

    fn ask(&mut self, words: &[&[u8]], timeout: Duration) -> Result<(), Failure> {
        let mut request = format!("*{}\r\n", words.len()).into_bytes();
        words.iter().for_each(|word| push_word(word, &mut request));
        self.send(&request, timeout)?;
        self.acknowledgement(timeout)
    }

    /// Sends bytes; `timeout` applies to each [`CHUNK_BYTES`].
    ///
    /// # Errors
    /// Returns errors of the connection.
    pub(super) fn send(&mut self, bytes: &[u8], timeout: Duration) -> Result<(), Failure> {
        for mut chunk in bytes.chunks(CHUNK_BYTES) {
            let deadline = Instant::now() + timeout;
            while !chunk.is_empty() {
                let left = time_until(deadline).ok_or(Failure::Writing { is_timeout: true })?;
                let sent = self.stream.set_write_timeout(Some(left)).and_then(|()| self.stream.write(chunk));
                match sent {
                    Ok(0) => return Err(Failure::Writing { is_timeout: false }),
                    Ok(count) => chunk = &chunk[count..],
                    Err(error) if is_transient(error.kind()) => {}
                    Err(_) => return Err(Failure::Writing { is_timeout: false }),
                }
            }
        }
        Ok(())
    }

    /// Waits for the reply to a request.
    ///
    /// # Errors
    /// Returns errors of the connection and error replies of the target; a reply that is neither `+OK` nor an error
    /// also counts as an error.
    pub(super) fn acknowledgement(&mut self, timeout: Duration) -> Result<(), Failure> {
        let line = self.line(timeout)?;
        match line.as_slice() {
            b"+OK" => Ok(()),
            [b'-', error @ ..] => Err(Failure::Refused(error.to_vec())),
            _ => Err(Failure::Reading { is_timeout: false }),
        }
    }

    /// Returns the next reply line, without its line end.
    fn line(&mut self, timeout: Duration) -> Result<Vec<u8>, Failure> {
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(end) = self.received.iter().position(|&byte| byte == b'\n') {
                let rest = self.received.split_off(end + 1);
                let mut line = std::mem::replace(&mut self.received, rest);
                line.truncate(end);
                line.pop_if(|byte| *byte == b'\r');
                return Ok(line);
            }
            if self.received.len() >= LINE_BYTES_MAX {
                return Err(Failure::Reading { is_timeout: false });
            }
            let left = time_until(deadline).ok_or(Failure::Reading { is_timeout: true })?;
            let mut buffer = [0; LINE_BYTES_MAX];
            let read = self.stream.set_read_timeout(Some(left)).and_then(|()| self.stream.read(&mut buffer));
            match read {
                Ok(0) => return Err(Failure::Reading { is_timeout: false }),
                Ok(count) => self.received.extend_from_slice(&buffer[..count]),
                Err(error) if is_transient(error.kind()) => {}
                Err(_) => return Err(Failure::Reading { is_timeout: false }),
            }
        }
    }

    /// Whether no unexpected bytes were received, so that the connection can be used again.
    pub(super) fn is_in_step(&self) -> bool {
        self.received.is_empty()
    }
}

/// Whether a step continues until its deadline after an error of this kind.
fn is_transient(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// Returns the time until the deadline; `None` if it has passed.
fn time_until(deadline: Instant) -> Option<Duration> {
    Some(deadline.saturating_duration_since(Instant::now())).filter(|left| !left.is_zero())
}

/// Connects to the first address of the host that accepts the connection. As in Redis, a refused connection is reported
/// as an error of writing.
fn open(destination: &Destination, timeout: Duration) -> Result<TcpStream, Failure> {
    let host = std::str::from_utf8(&destination.host).map_err(|_| Failure::Connecting)?;
    let port = std::str::from_utf8(&destination.port).ok().and_then(|port| port.parse().ok()).unwrap_or(0);
    let deadline = Instant::now() + timeout;
    let addresses = (host, port).to_socket_addrs().map_err(|_| Failure::Connecting)?;
    let mut failure = Failure::Connecting;
    for address in addresses {
        let Some(left) = time_until(deadline) else { return Err(Failure::Connecting) };
        match TcpStream::connect_timeout(&address, left) {
            Ok(stream) => {
                // An error is harmless: it only means that small requests may be delayed.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Err(error) if is_transient(error.kind()) => {}
            Err(_) => failure = Failure::Writing { is_timeout: false },
        }
    }
    Err(failure)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(5);

    /// Returns the result of a request to a target that replies `answer` to everything.
    fn result_of(answer: &'static [u8], timeout: Duration) -> Result<(), Failure> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port().to_string().into_bytes();
        let peer = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 1024]);
            // The target may have closed the connection before all bytes are sent.
            let _ = stream.write_all(answer);
            // Reading blocks until the other side closes the connection.
            let _ = stream.read(&mut [0; 1024]);
        });
        let destination = Destination { host: b"127.0.0.1".to_vec(), port, credentials: None };
        let result = Target::connect(&destination, TIMEOUT).and_then(|mut target| target.select(1, timeout));
        peer.join().unwrap();
        result
    }

    #[test]
    fn only_ok_is_an_acknowledgement() {
        let garbage = Err(Failure::Reading { is_timeout: false });
        assert_eq!(result_of(b"+OK\r\n", TIMEOUT), Ok(()));
        assert_eq!(result_of(b"-ERR no\r\n", TIMEOUT), Err(Failure::Refused(b"ERR no".to_vec())));
        assert_eq!(result_of(b"HTTP/1.1 200 OK\r\n", TIMEOUT), garbage);
        assert_eq!(result_of(b"\r\n+OK\r\n", TIMEOUT), garbage);
        assert_eq!(result_of(&[b'+'; 100_000], TIMEOUT), garbage, "the length of a line is limited");
    }

    #[test]
    fn waiting_for_a_silent_target_times_out() {
        let late = Err(Failure::Reading { is_timeout: true });
        assert_eq!(result_of(b"", Duration::from_millis(20)), late);
        assert_eq!(result_of(b"+O", Duration::from_millis(20)), late);
    }

    #[test]
    fn a_host_without_a_server_is_an_error() {
        let refused = Failure::Writing { is_timeout: false };
        for (host, port, failure) in [
            (&b"127.0.0.1"[..], &b"x"[..], &refused),
            (b"127.0.0.1", b"70000", &refused),
            (b"\xff", b"1", &Failure::Connecting),
            (b"no host", b"1", &Failure::Connecting),
        ] {
            let destination = Destination { host: host.to_vec(), port: port.to_vec(), credentials: None };
            assert_eq!(Target::connect(&destination, TIMEOUT).err().as_ref(), Some(failure));
        }
    }
}
