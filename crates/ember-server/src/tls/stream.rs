//! The TLS part of one connection: bytes of the socket in, requests out; replies in, bytes for the socket out.
//!
//! ```text
//! socket → wire buffer of the worker → rustls → the buffer that requests are parsed from
//! replies → rustls (at most 64 KiB of records) → socket
//! ```
//!
//! Nothing here waits. What rustls cannot take at once (it holds 16 KiB of requests at most) stays in `leftover` until the
//! parser has made room; a handshake is nothing but calls of [`TlsStream::receive`] and [`TlsStream::send`] without requests
//! and replies.

use std::io::{self, BufRead, IoSlice, Write};
use std::os::fd::OwnedFd;

use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use rustls::{ClientConnection, Connection, ServerConnection};

use super::certificate::Certificate;
use super::failures::explain;
use crate::config::TlsAuthClientsUser;

/// Encrypted bytes read at once.
const WIRE_BYTES: usize = 64 * 1024;

/// What receiving gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Received {
    /// So many bytes of requests (none: it was a part of a record or of the handshake); whether there may be more without a
    /// new event.
    Bytes(usize, bool),
    /// Nothing was there; whether that must be tried again without a new event.
    Nothing(bool),
    /// The peer sends no more.
    End,
    /// The connection broke, or the peer broke the rules: what the system says, if it does.
    Broken(Option<Errno>),
}

/// The TLS part of a connection.
pub(crate) struct TlsStream {
    session: Connection,
    /// Encrypted bytes that rustls has not taken; empty nearly always.
    leftover: Vec<u8>,
    /// rustls holds requests that the last buffer had no room for.
    has_plaintext: bool,
    /// The peer has said that it sends no more.
    has_ended: bool,
    /// Why it broke.
    failure: Option<String>,
    /// Who its certificate makes the peer, until that was asked for.
    user: TlsAuthClientsUser,
}

impl TlsStream {
    /// A stream before its handshake.
    pub(super) fn new(session: ServerConnection, user: TlsAuthClientsUser) -> TlsStream {
        TlsStream::of(session.into(), user)
    }

    /// The stream of a connection that this server has made; its handshake is over.
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

    /// The names of the users that the peer's certificate says it is, once, when the handshake is over.
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

    /// Whether the handshake is not over: no reply can be sent.
    pub(crate) fn is_handshaking(&self) -> bool {
        self.session.is_handshaking()
    }

    /// Why the peer and this server have not agreed on a key; `None` if they have, or the peer has gone without a reason.
    pub(crate) fn handshake_failure(&self) -> Option<&str> {
        self.failure.as_deref().filter(|_| self.is_handshaking())
    }

    /// Whether there are encrypted bytes to send.
    pub(crate) fn wants_send(&self) -> bool {
        self.session.wants_write()
    }

    /// Bytes held for the peer's requests, as far as they are counted.
    pub(crate) fn held_bytes(&self) -> usize {
        self.leftover.len()
    }

    /// Fills the spare capacity of `target`, with what is held or else with one read of the socket, through `wire`.
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
            // The alert that says why is worth one try.
            let _ = self.send(socket);
            return Received::Broken(None);
        }
        is_more |= self.has_plaintext || !self.leftover.is_empty();
        match target.len() - before {
            0 if self.has_ended => Received::End,
            count => Received::Bytes(count, is_more || self.has_ended),
        }
    }

    /// Lets rustls take `wire`, as far as there is room for the requests in it.
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
        // An error is that there is nothing, or nothing more ever.
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

    /// Encrypts replies, as many as there is room for; returns how many bytes of them.
    pub(crate) fn encrypt(&mut self, replies: &[IoSlice<'_>]) -> usize {
        let mut taken = 0;
        for slice in replies {
            // Writing fails only when the session is over, which the socket will tell.
            let count = self.session.writer().write(slice).unwrap_or(0);
            taken += count;
            if count < slice.len() {
                break;
            }
        }
        taken
    }

    /// Sends encrypted bytes until there are none left; returns how many, and the write calls made.
    ///
    /// # Errors
    /// What the system says, `WouldBlock` among it: the bytes left wait for the socket then.
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

    /// Says that nothing more comes, if the socket takes it.
    pub(crate) fn say_goodbye(&mut self, socket: &OwnedFd) {
        self.session.send_close_notify();
        let (_, _, sent) = self.send(socket);
        if let Err(error) = sent {
            tracing::debug!("a TLS connection is closed without a word: {error}");
        }
    }
}

/// The socket as something to write to.
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
