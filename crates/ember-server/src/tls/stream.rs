//! The TLS part of one connection, which converts bytes of the socket to requests, and replies to bytes for the socket.
//!
//! ```text
//! socket → wire buffer of the worker → rustls → the buffer that requests are parsed from
//! replies → rustls (at most 64 KiB of records) → socket
//! ```
//!
//! No function blocks. Bytes that rustls cannot accept yet (it buffers at most 16 KiB of requests) remain in `leftover`
//! until the parser has freed space. A handshake consists of calls of [`TlsStream::receive`] and [`TlsStream::send`]
//! that transfer no requests or replies.

use std::io::{self, BufRead, IoSlice, Write};
use std::os::fd::OwnedFd;

use ember_config::TlsAuthClientsUser;
use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use rustls::{ClientConnection, Connection, ServerConnection};

use super::certificate::Certificate;
use super::failures::explain;

/// The maximum number of encrypted bytes per read.
const WIRE_BYTES: usize = 64 * 1024;

/// The result of [`TlsStream::receive`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Received {
    /// The number of request bytes received (0 for part of a record or of the handshake), and whether more may be
    /// available without a new event.
    Bytes(usize, bool),
    /// No bytes were received; whether to retry without a new event.
    Nothing(bool),
    /// The peer has closed its sending side.
    End,
    /// The connection broke, or the peer violated the protocol; with the system's error, if there is one.
    Broken(Option<Errno>),
}

/// The TLS part of a connection.
pub(crate) struct TlsStream {
    session: Connection,
    /// Encrypted bytes that rustls has not accepted yet; empty almost always.
    leftover: Vec<u8>,
    /// Whether rustls holds request bytes that did not fit into the last buffer.
    has_plaintext: bool,
    /// Whether the peer has announced that it sends no more data.
    has_ended: bool,
    /// The reason why the connection broke.
    failure: Option<String>,
    /// The field of the peer's certificate that contains its user name; `Off` once the name was read.
    user: TlsAuthClientsUser,
}

impl TlsStream {
    /// Creates the stream of an accepted connection, before its handshake.
    pub(super) fn new(session: ServerConnection, user: TlsAuthClientsUser) -> TlsStream {
        TlsStream::of(session.into(), user)
    }

    /// Creates the stream of an outgoing connection, after its handshake.
    pub(crate) fn connected(session: ClientConnection) -> TlsStream {
        TlsStream::of(session.into(), TlsAuthClientsUser::Off)
    }

    fn of(session: Connection, user: TlsAuthClientsUser) -> TlsStream {
        TlsStream {
            session,
            leftover: Vec::new(),
            has_plaintext: false,
            has_ended: false,
            failure: None,
            user,
        }
    }

    /// Returns the candidate user names of the peer's certificate, if the handshake is complete; only once per
    /// connection.
    pub(crate) fn take_users(&mut self) -> Vec<Vec<u8>> {
        if self.user == TlsAuthClientsUser::Off || self.is_handshaking() {
            return Vec::new();
        }
        let field = std::mem::replace(&mut self.user, TlsAuthClientsUser::Off);
        let shown = self.session.peer_certificates().and_then(<[_]>::first);
        shown
            .and_then(|der| Certificate::parse(der))
            .map_or_else(Vec::new, |certificate| certificate.users(field))
    }

    /// Whether the handshake is incomplete, so that no reply can be sent.
    pub(crate) fn is_handshaking(&self) -> bool {
        self.session.is_handshaking()
    }

    /// Returns the reason why the handshake failed; `None` if it succeeded, or if the peer disconnected without a
    /// reason.
    pub(crate) fn handshake_failure(&self) -> Option<&str> {
        self.failure.as_deref().filter(|_| self.is_handshaking())
    }

    /// Whether there are encrypted bytes to send.
    pub(crate) fn has_unsent(&self) -> bool {
        self.session.wants_write()
    }

    /// Returns the number of encrypted request bytes in `leftover`; the buffers of rustls are not counted.
    pub(crate) fn held_bytes(&self) -> usize {
        self.leftover.len()
    }

    /// Fills the spare capacity of `target` with request bytes: from buffered bytes, or, if there are none, from one
    /// read of the socket into `wire`.
    pub(crate) fn receive(&mut self, socket: &OwnedFd, target: &mut Vec<u8>, wire: &mut Vec<u8>) -> Received {
        let before = target.len();
        let held = std::mem::take(&mut self.leftover);
        let mut taken = self.feed(&held, target);
        let mut is_more = true;
        if taken.is_ok() && target.len() == before && self.leftover.is_empty() && !self.has_ended {
            wire.clear();
            wire.reserve_exact(WIRE_BYTES);
            let asked = wire.capacity();
            match rustix::io::read(socket, spare_capacity(wire)) {
                Ok(0) => return Received::End,
                Ok(count) => {
                    is_more = count == asked;
                    taken = self.feed(wire, target);
                }
                Err(Errno::AGAIN) => return Received::Nothing(false),
                Err(Errno::INTR) => return Received::Nothing(true),
                Err(error) => return Received::Broken(Some(error)),
            }
        }
        if let Err(error) = taken {
            tracing::debug!("a TLS connection is closed: {error}");
            self.failure = Some(explain(&error));
            // One attempt is made to send the alert with the reason.
            let _ = self.send(socket);
            return Received::Broken(None);
        }
        is_more |= self.has_plaintext || !self.leftover.is_empty();
        match target.len() - before {
            0 if self.has_ended => Received::End,
            count => Received::Bytes(count, is_more || self.has_ended),
        }
    }

    /// Decrypts `wire` into `target`, as far as it fits; the rest is stored in `leftover`.
    fn feed(&mut self, mut wire: &[u8], target: &mut Vec<u8>) -> Result<(), rustls::Error> {
        loop {
            self.take_plaintext(target);
            if wire.is_empty() || self.has_plaintext {
                break;
            }
            match self.session.read_tls(&mut wire) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) => return Err(rustls::Error::General(error.to_string())),
            }
            self.has_ended |= self.session.process_new_packets()?.peer_has_closed();
        }
        self.leftover.extend_from_slice(wire);
        Ok(())
    }

    fn take_plaintext(&mut self, target: &mut Vec<u8>) {
        self.has_plaintext = false;
        let mut reader = self.session.reader();
        // An error means that no more plaintext is available now, or at all.
        while let Ok(chunk) = reader.fill_buf()
            && !chunk.is_empty()
        {
            let count = chunk.len().min(target.capacity() - target.len());
            target.extend_from_slice(&chunk[..count]);
            if count == 0 {
                self.has_plaintext = true;
                break;
            }
            reader.consume(count);
        }
    }

    /// Encrypts as much of `replies` as fits; returns the number of encrypted bytes.
    pub(crate) fn encrypt(&mut self, replies: &[IoSlice<'_>]) -> usize {
        let mut taken = 0;
        for slice in replies {
            // A write fails only after the session has ended, which a read of the socket reports.
            let count = self.session.writer().write(slice).unwrap_or(0);
            taken += count;
            if count < slice.len() {
                break;
            }
        }
        taken
    }

    /// Sends encrypted bytes until none are left; returns their number, and the number of write calls.
    ///
    /// # Errors
    /// Returns the error of the system, including `WouldBlock`: the remaining bytes must then wait until the socket is
    /// writable.
    pub(crate) fn send(&mut self, socket: &OwnedFd) -> (usize, usize, io::Result<()>) {
        let (mut bytes, mut calls) = (0, 0);
        while self.session.wants_write() {
            calls += 1;
            match self.session.write_tls(&mut Sender(socket)) {
                Ok(count) => bytes += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return (bytes, calls, Err(error)),
            }
        }
        (bytes, calls, Ok(()))
    }

    /// Sends the close notification, unless the socket does not accept it at once.
    pub(crate) fn send_close_notify(&mut self, socket: &OwnedFd) {
        self.session.send_close_notify();
        let (_, _, sent) = self.send(socket);
        if let Err(error) = sent {
            tracing::debug!("a TLS connection is closed without a notification: {error}");
        }
    }
}

/// An adapter that implements `Write` for the socket.
struct Sender<'s>(&'s OwnedFd);

impl Write for Sender<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::io::write(self.0, bytes)?)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        Ok(rustix::io::writev(self.0, slices)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
