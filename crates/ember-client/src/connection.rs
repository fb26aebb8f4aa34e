//! A connection to a server over TCP, TLS or a unix socket, which sends commands and receives replies.

use std::fmt::{self, Display};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use ember_protocol::client::{Value, encode_command, read_value};

use crate::address::{Address, Place};
use crate::tls::{self, TlsError};

const READ_BUFFER_BYTES: usize = 64 * 1024;

/// The first byte of a TLS alert, which a server that requires TLS sends to a client without TLS. No reply begins with
/// this byte.
const TLS_ALERT: u8 = 0x15;

/// The reason why a connection failed.
#[derive(Debug)]
pub enum ConnectError {
    /// The server is unreachable or does not respond.
    Io(io::Error),
    /// The TLS settings are invalid.
    Tls(TlsError),
}

impl Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectError::Io(error) => f.write_str(&cause(error)),
            ConnectError::Tls(error) => write!(f, "{error}"),
        }
    }
}

/// Describes the error without the system's error number; for TLS errors, with advice.
pub fn cause(error: &io::Error) -> String {
    if let Some(error) = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        return tls::explain(error);
    }
    let text = error.to_string();
    match text.rsplit_once(" (os error ") {
        Some((words, _)) => words.to_owned(),
        None => match text.strip_prefix("failed to lookup address information: ") {
            Some(words) => words.to_owned(),
            None => text,
        },
    }
}

/// An open connection.
pub struct Connection {
    stream: BufReader<Stream>,
}

enum Stream {
    /// A TCP connection; the flag is true until the first data arrives.
    Tcp(TcpStream, bool),
    Unix(UnixStream),
    Tls(Box<rustls::StreamOwned<rustls::ClientConnection, TcpStream>>),
}

impl Connection {
    /// Opens a connection.
    ///
    /// # Errors
    /// Returns the errors of the system, and an error for invalid certificates and keys.
    pub fn open(address: &Address) -> Result<Connection, ConnectError> {
        let stream = match &address.place {
            Place::Unix(path) => Stream::Unix(UnixStream::connect(path).map_err(ConnectError::Io)?),
            Place::Tcp { host, port } => {
                let stream = connect_tcp(host, *port).map_err(ConnectError::Io)?;
                match &address.tls {
                    None => Stream::Tcp(stream, true),
                    Some(settings) => Stream::Tls(Box::new(tls::handshake(settings, host, stream)?)),
                }
            }
        };
        Ok(Connection { stream: BufReader::with_capacity(READ_BUFFER_BYTES, stream) })
    }

    /// Sends a command.
    ///
    /// # Errors
    /// Returns the errors of the socket.
    pub fn send<A: AsRef<[u8]>>(&mut self, command: &[A]) -> io::Result<()> {
        let mut bytes = Vec::new();
        encode_command(command, &mut bytes);
        self.send_bytes(&bytes)
    }

    /// Sends encoded requests.
    ///
    /// # Errors
    /// Returns the errors of the socket.
    pub fn send_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        let stream = self.stream.get_mut();
        stream.write_all(bytes)?;
        stream.flush()
    }

    /// Waits for the next reply.
    ///
    /// # Errors
    /// Returns the errors of the socket; `UnexpectedEof` if the server has closed the connection, `InvalidData` if the
    /// data is not RESP.
    pub fn receive(&mut self) -> io::Result<Value> {
        read_value(&mut self.stream)
    }

    /// Sends a command and waits for its reply.
    ///
    /// # Errors
    /// Returns the errors of [`Connection::send`] and [`Connection::receive`].
    pub fn ask<A: AsRef<[u8]>>(&mut self, command: &[A]) -> io::Result<Value> {
        self.send(command)?;
        self.receive()
    }

    /// Sends commands together and waits for all their replies. The commands must be few, so that neither side blocks
    /// while the other is not reading.
    ///
    /// # Errors
    /// Returns the errors of [`Connection::ask`].
    pub fn ask_all<A: AsRef<[u8]>>(&mut self, commands: &[Vec<A>]) -> io::Result<Vec<Value>> {
        let mut bytes = Vec::new();
        commands.iter().for_each(|command| encode_command(command, &mut bytes));
        self.send_bytes(&bytes)?;
        commands.iter().map(|_| self.receive()).collect()
    }

    /// Whether a reply, or part of one, has already been read.
    pub fn has_input(&self) -> bool {
        !self.stream.buffer().is_empty()
    }

    /// Returns the socket, for polling.
    pub fn socket(&self) -> BorrowedFd<'_> {
        match self.stream.get_ref() {
            Stream::Tcp(stream, _) => stream.as_fd(),
            Stream::Unix(stream) => stream.as_fd(),
            Stream::Tls(stream) => stream.sock.as_fd(),
        }
    }

    /// Makes the connection non-blocking: operations return `WouldBlock` ([`Connection::write_some`],
    /// [`Connection::read_some`]).
    ///
    /// # Errors
    /// Returns the errors of the system.
    pub fn set_nonblocking(&mut self) -> io::Result<()> {
        match self.stream.get_ref() {
            Stream::Tcp(stream, _) => stream.set_nonblocking(true),
            Stream::Unix(stream) => stream.set_nonblocking(true),
            Stream::Tls(stream) => stream.sock.set_nonblocking(true),
        }
    }

    /// Writes as much as the socket accepts, and returns the number of bytes.
    ///
    /// # Errors
    /// Returns the errors of the socket.
    pub fn write_some(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.get_mut().write(bytes)
    }

    /// Sends data buffered by TLS, the only layer that buffers.
    ///
    /// # Errors
    /// Returns the errors of the socket; `WouldBlock` if the socket has not accepted all data.
    pub fn flush_some(&mut self) -> io::Result<()> {
        self.stream.get_mut().flush()
    }

    /// Reads available data into `buffer` and returns the number of bytes, 0 at the end. Buffers of 64 KiB or more are
    /// filled directly.
    ///
    /// # Errors
    /// Returns the errors of the socket.
    pub fn read_into(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.read(buffer)
    }

    /// Whether the connection is encrypted.
    pub fn is_tls(&self) -> bool {
        matches!(self.stream.get_ref(), Stream::Tls(_))
    }

    /// Returns the version and cipher suite of an encrypted connection, for display.
    pub fn tls_shown(&self) -> Option<String> {
        let Stream::Tls(stream) = self.stream.get_ref() else { return None };
        let version = stream.conn.protocol_version().map(|version| format!("{version:?}").replace('_', "."));
        let suite = stream.conn.negotiated_cipher_suite().map(|suite| format!("{:?}", suite.suite()));
        Some(format!("{} {}", version.unwrap_or_default(), suite.unwrap_or_default()))
    }

    /// Appends available data to `buffer` and returns the number of bytes, 0 at the end.
    ///
    /// # Errors
    /// Returns the errors of the socket.
    pub fn read_some(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        let bytes = self.stream.fill_buf()?;
        let count = bytes.len();
        buffer.extend_from_slice(bytes);
        self.stream.consume(count);
        Ok(count)
    }
}

/// Tries the addresses of a name in order.
fn connect_tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect(address) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream, is_first) => {
                let count = stream.read(buffer)?;
                check_first(buffer[..count].first().filter(|_| std::mem::take(is_first)))?;
                Ok(count)
            }
            Stream::Unix(stream) => stream.read(buffer),
            Stream::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream, _) => stream.write(bytes),
            Stream::Unix(stream) => stream.write(bytes),
            Stream::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Tls(stream) => stream.flush(),
            Stream::Tcp(..) | Stream::Unix(_) => Ok(()),
        }
    }
}

/// Checks the first byte that a server sends.
fn check_first(byte: Option<&u8>) -> io::Result<()> {
    if byte == Some(&TLS_ALERT) {
        let text = "this port requires TLS: add --tls, or use the server's port without TLS";
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    Ok(())
}

/// Converts seconds from the command line to a duration; zero for NaN and negative numbers.
pub fn seconds(number: f64) -> Duration {
    Duration::try_from_secs_f64(number).unwrap_or(Duration::ZERO)
}
