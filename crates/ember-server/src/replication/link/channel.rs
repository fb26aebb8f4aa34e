//! The connection to the primary before it moves to a worker: blocking, with timeouts.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use ember_config::Config;
use ember_protocol::push_word;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use socket2::{Domain, Protocol, Type};

use super::Link;
use crate::clients::client::Peer;
use crate::tls::{TlsStream, client_config, explain_primary};

/// The maximum length of a reply line in bytes.
const LINE_BYTES_MAX: usize = 16 * 1024;

/// The maximum number of bytes per read.
const READ_BYTES: usize = 16 * 1024;

enum Socket {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

/// A blocking connection to the primary.
pub(super) struct Channel {
    socket: Socket,
    /// Received bytes; the bytes from `at` on are not consumed yet.
    buffer: Vec<u8>,
    at: usize,
    peer: Peer,
    timeout: Duration,
}

/// The parts of a channel that a worker receives.
pub(super) struct Parts {
    pub(super) socket: OwnedFd,
    pub(super) tls: Option<Box<TlsStream>>,
    pub(super) peer: Peer,
}

impl Channel {
    /// Connects to the primary, as long as `change` is the number of the latest role change.
    ///
    /// # Errors
    /// Returns why no connection was established.
    pub(super) fn connect(
        link: &Link,
        change: u64,
        config: &Config,
        (host, port): (&str, u16),
    ) -> Result<Channel, String> {
        let timeout = Duration::from_secs(u64::from(config.repl_timeout));
        let failed = |error: &dyn std::fmt::Display| format!("cannot connect to {host}:{port}: {error}");
        let stream =
            connect_tcp((host, port), &config.bind_source_addr, timeout).map_err(|error| failed(&error))?;
        let prepared = prepare(&stream, timeout).and_then(|(peer, copy)| Ok((peer, copy?)));
        let (peer, copy) = prepared.map_err(|error| failed(&error))?;
        if !link.edit(change, |state| state.socket = Some(copy)) {
            return Err("the role has changed".to_owned());
        }
        let socket = if config.tls_replication {
            Socket::Tls(Box::new(encrypt(config, host, stream).map_err(|error| failed(&error))?))
        } else {
            Socket::Plain(stream)
        };
        Ok(Channel { socket, buffer: Vec::new(), at: 0, peer, timeout })
    }

    /// Returns the maximum time for which the primary may be silent.
    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Sends a command.
    ///
    /// # Errors
    /// Returns errors of the system.
    pub(super) fn send(&mut self, words: &[&[u8]]) -> io::Result<()> {
        let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
        words.iter().for_each(|word| push_word(word, &mut bytes));
        match &mut self.socket {
            Socket::Plain(stream) => stream.write_all(&bytes),
            Socket::Tls(stream) => {
                stream.write_all(&bytes)?;
                stream.flush()
            }
        }
    }

    /// Returns the next non-empty line without its line end: empty lines are keepalives of the primary.
    ///
    /// # Errors
    /// Returns an error if the connection ends, no line arrives before `until` or the timeout, or the line is too long.
    pub(super) fn line(&mut self, until: Option<Instant>) -> io::Result<Vec<u8>> {
        let mut line = Vec::new();
        loop {
            let unread = &self.buffer[self.at..];
            let end = memchr::memchr(b'\n', unread);
            let taken = end.map_or(unread.len(), |end| end + 1);
            line.extend_from_slice(&unread[..taken]);
            self.at += taken;
            if end.is_some() {
                let whole = line.trim_ascii_end().len();
                line.truncate(whole);
                if !line.is_empty() {
                    return Ok(line);
                }
            }
            if line.len() > LINE_BYTES_MAX {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "its reply is too long"));
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                return Err(io::ErrorKind::TimedOut.into());
            }
            if self.at == self.buffer.len() {
                let mut bytes = vec![0; READ_BYTES];
                let count = self.read_socket(&mut bytes)?;
                if count == 0 {
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it has closed the connection"));
                }
                bytes.truncate(count);
                (self.buffer, self.at) = (bytes, 0);
            }
        }
    }

    fn read_socket(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = match &mut self.socket {
                Socket::Plain(stream) => stream.read(bytes),
                Socket::Tls(stream) => stream.read(bytes),
            };
            match read {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The error kind of a timeout depends on the system.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Err(io::Error::new(io::ErrorKind::TimedOut, "no data within repl-timeout"));
                }
                other => return other,
            }
        }
    }

    /// Returns the received bytes that are not consumed yet, and consumes them.
    pub(super) fn take_unread(&mut self) -> Vec<u8> {
        let unread = self.buffer.split_off(self.at);
        self.buffer.clear();
        self.at = 0;
        unread
    }

    /// Returns the parts with which a worker continues the connection.
    pub(super) fn into_parts(self) -> Parts {
        let Channel { socket, peer, .. } = self;
        let (socket, tls) = match socket {
            Socket::Plain(stream) => (stream, None),
            Socket::Tls(stream) => {
                let (session, stream) = stream.into_parts();
                (stream, Some(Box::new(TlsStream::connected(session))))
            }
        };
        Parts { socket: socket.into(), tls, peer }
    }
}

impl Read for Channel {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let unread = &self.buffer[self.at..];
        if unread.is_empty() {
            return self.read_socket(out);
        }
        let count = unread.len().min(out.len());
        out[..count].copy_from_slice(&unread[..count]);
        self.at += count;
        Ok(count)
    }
}

/// Tries the addresses of a host name one after the other. A non-empty `source` is the local address to connect from.
fn connect_tcp(primary: (&str, u16), source: &str, timeout: Duration) -> io::Result<TcpStream> {
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "the host name has no address");
    let addresses: Vec<SocketAddr> = primary.to_socket_addrs()?.collect();
    let sources: Vec<SocketAddr> = match source {
        "" => Vec::new(),
        source => (source, 0).to_socket_addrs().map(Iterator::collect).unwrap_or_default(),
    };
    for address in addresses {
        let source = sources.iter().find(|source| source.is_ipv4() == address.is_ipv4());
        match connect_from(source, address, timeout) {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// Connects to one address. As in Redis, the source address is optional: if it is not available, the system chooses.
fn connect_from(
    source: Option<&SocketAddr>,
    address: SocketAddr,
    timeout: Duration,
) -> io::Result<TcpStream> {
    let Some(source) = source else { return TcpStream::connect_timeout(&address, timeout) };
    let socket = socket2::Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if let Err(error) = socket.bind(&(*source).into()) {
        tracing::warn!("the connection to the primary cannot use bind-source-addr: {error}");
    }
    socket.connect_timeout(&address.into(), timeout)?;
    Ok(socket.into())
}

fn prepare(stream: &TcpStream, timeout: Duration) -> io::Result<(Peer, io::Result<TcpStream>)> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(timeout))?;
    stream.set_write_timeout(Some(timeout))?;
    let peer = Peer::Tcp { remote: stream.peer_addr()?, local: stream.local_addr()? };
    Ok((peer, stream.try_clone()))
}

fn encrypt(
    config: &Config,
    host: &str,
    stream: TcpStream,
) -> Result<StreamOwned<ClientConnection, TcpStream>, String> {
    let name =
        ServerName::try_from(host.to_owned()).map_err(|_| "its host name is not valid for TLS".to_owned())?;
    let session = ClientConnection::new(client_config(config)?, name).map_err(|error| error.to_string())?;
    let mut stream = StreamOwned::new(session, stream);
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock).map_err(|error| explain_primary(&error))?;
    }
    Ok(stream)
}
