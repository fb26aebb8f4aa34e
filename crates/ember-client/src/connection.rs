//! A connection to a server: over TCP, TLS or a unix socket; commands go out, answers come in.

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

/// The first byte of what a server that wants TLS answers to somebody who does not speak it: the record of an alert. No
/// reply begins with it.
const TLS_ALERT: u8 = 0x15;

/// Why there is no connection.
#[derive(Debug)]
pub enum ConnectError {
    /// Nobody is there, or does not speak.
    Io(io::Error),
    /// The settings of TLS are wrong.
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

/// What the system says, without the number of the error; what is wrong with TLS, and what can be done.
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
    /// And whether nothing has come yet.
    Tcp(TcpStream, bool),
    Unix(UnixStream),
    Tls(Box<rustls::StreamOwned<rustls::ClientConnection, TcpStream>>),
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    /// Those of the system; what is wrong with certificates and keys.
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
    /// Those of the socket.
    pub fn send<A: AsRef<[u8]>>(&mut self, command: &[A]) -> io::Result<()> {
        let mut bytes = Vec::new();
        encode_command(command, &mut bytes);
        self.send_bytes(&bytes)
    }

    /// Sends requests that are encoded.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn send_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        let stream = self.stream.get_mut();
        stream.write_all(bytes)?;
        stream.flush()
    }

    /// Waits for the next answer.
    ///
    /// # Errors
    /// Those of the socket; `UnexpectedEof` when the server has closed it, `InvalidData` when it speaks something else.
    pub fn receive(&mut self) -> io::Result<Value> {
        read_value(&mut self.stream)
    }

    /// Sends a command and waits for its answer.
    ///
    /// # Errors
    /// Those of [`Connection::send`] and [`Connection::receive`].
    pub fn ask<A: AsRef<[u8]>>(&mut self, command: &[A]) -> io::Result<Value> {
        self.send(command)?;
        self.receive()
    }

    /// Sends commands together and waits for all their answers. The commands are few, so that no side waits for the other
    /// to read.
    ///
    /// # Errors
    /// Those of [`Connection::ask`].
    pub fn ask_all<A: AsRef<[u8]>>(&mut self, commands: &[Vec<A>]) -> io::Result<Vec<Value>> {
        let mut bytes = Vec::new();
        commands.iter().for_each(|command| encode_command(command, &mut bytes));
        self.send_bytes(&bytes)?;
        commands.iter().map(|_| self.receive()).collect()
    }

    /// Whether an answer, or a part of one, is here already.
    pub fn has_input(&self) -> bool {
        !self.stream.buffer().is_empty()
    }

    /// The socket, to wait for it.
    pub fn socket(&self) -> BorrowedFd<'_> {
        match self.stream.get_ref() {
            Stream::Tcp(stream, _) => stream.as_fd(),
            Stream::Unix(stream) => stream.as_fd(),
            Stream::Tls(stream) => stream.sock.as_fd(),
        }
    }

    /// From now on nothing waits: `WouldBlock` instead ([`Connection::write_some`], [`Connection::read_some`]).
    ///
    /// # Errors
    /// Those of the system.
    pub fn set_nonblocking(&mut self) -> io::Result<()> {
        match self.stream.get_ref() {
            Stream::Tcp(stream, _) => stream.set_nonblocking(true),
            Stream::Unix(stream) => stream.set_nonblocking(true),
            Stream::Tls(stream) => stream.sock.set_nonblocking(true),
        }
    }

    /// Writes what there is room for; how many bytes.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn write_some(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.get_mut().write(bytes)
    }

    /// Sends what TLS has kept; nothing else is kept.
    ///
    /// # Errors
    /// Those of the socket; `WouldBlock` when not all is sent.
    pub fn flush_some(&mut self) -> io::Result<()> {
        self.stream.get_mut().flush()
    }

    /// Reads what has come into `buffer`; how many bytes, 0 at the end. A buffer of 64 KiB or more is read into directly.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn read_into(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.read(buffer)
    }

    /// Whether it is encrypted.
    pub fn is_tls(&self) -> bool {
        matches!(self.stream.get_ref(), Stream::Tls(_))
    }

    /// Version and cipher suite of an encrypted connection, to be read by people.
    pub fn tls_shown(&self) -> Option<String> {
        let Stream::Tls(stream) = self.stream.get_ref() else { return None };
        let version = stream.conn.protocol_version().map(|version| format!("{version:?}").replace('_', "."));
        let suite = stream.conn.negotiated_cipher_suite().map(|suite| format!("{:?}", suite.suite()));
        Some(format!("{} {}", version.unwrap_or_default(), suite.unwrap_or_default()))
    }

    /// Appends what has come to `buffer`; how many bytes, 0 at the end.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn read_some(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        let bytes = self.stream.fill_buf()?;
        let count = bytes.len();
        buffer.extend_from_slice(bytes);
        self.stream.consume(count);
        Ok(count)
    }
}

/// Tries the addresses of a name one after the other.
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

/// Judges the first byte that a server sends.
fn check_first(byte: Option<&u8>) -> io::Result<()> {
    if byte == Some(&TLS_ALERT) {
        let text = "the server wants TLS on this port: add --tls, or name its port for connections without";
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    Ok(())
}

/// Seconds as they are written on the command line; nothing for numbers that are none, or negative.
pub fn seconds(number: f64) -> Duration {
    Duration::try_from_secs_f64(number).unwrap_or(Duration::ZERO)
}
