//! The client of a stream: a connection to a worker inside the process, which speaks RESP3.

use std::io;
use std::os::unix::net::UnixStream as StdStream;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use ember_protocol::client::{Value, encode_command, read_value};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::UnixStream;

use crate::clients::client::Peer;
use crate::clients::listener::Incoming;
use crate::clients::mailbox::Message;
use crate::server::Server;

/// The size of one read, in bytes.
const READ_BYTES: usize = 16 * 1024;

/// The number of unparsed bytes from which parsing is attempted even if more bytes are available.
const PARSED_BYTES: usize = 256 * 1024;

/// The maximum capacity of the input buffer, in bytes, while it is empty.
const KEPT_BYTES: usize = 4 * 1024;

/// A connection to a worker. Its input needs no limit here, because the worker limits the length of states.
pub(super) struct Session {
    /// The connection's client ID; 0 before HELLO.
    pub(super) client_id: u64,
    socket: UnixStream,
    input: Vec<u8>,
    /// The number of input bytes that are parsed already.
    taken: usize,
    /// Whether bytes have arrived since the last attempt to parse.
    is_fresh: bool,
}

impl Session {
    /// Opens a socket pair, and passes one end to the worker with the fewest connections.
    ///
    /// # Errors
    /// Returns the system's error if it has no sockets left.
    pub(super) fn open(server: &'static Server, peer: Peer) -> io::Result<Session> {
        let (ours, theirs) = StdStream::pair()?;
        ours.set_nonblocking(true)?;
        let socket = UnixStream::from_std(ours)?;
        let incoming = Incoming { socket: theirs.into(), peer, is_tls: false };
        server.workers[server.reserve_place()].mailbox.send(Message::Accept(incoming));
        Ok(Session { client_id: 0, socket, input: Vec::new(), taken: 0, is_fresh: false })
    }

    /// Returns the socket, and the bytes that were received after the last value.
    pub(super) fn into_parts(mut self) -> (UnixStream, Vec<u8>) {
        self.input.drain(..self.taken);
        (self.socket, self.input)
    }

    /// Sends a command.
    ///
    /// # Errors
    /// Returns the error of the socket.
    pub(super) async fn send<A: AsRef<[u8]>>(&self, words: &[A]) -> io::Result<()> {
        let mut request = Vec::new();
        encode_command(words, &mut request);
        let mut rest = request.as_slice();
        while !rest.is_empty() {
            self.socket.writable().await?;
            match self.socket.try_write(rest) {
                Ok(count) => rest = &rest[count..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Waits for a reply or a push.
    ///
    /// # Errors
    /// Returns the error of the socket; `UnexpectedEof` if the worker has closed its end.
    pub(super) async fn receive(&mut self) -> io::Result<Value> {
        std::future::poll_fn(|context| self.poll_receive(context)).await
    }

    /// Polls for a reply or a push, like [`Session::receive`].
    pub(super) fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Value>> {
        loop {
            if self.is_fresh
                && let Some(value) = self.take()?
            {
                return Poll::Ready(Ok(value));
            }
            // Several pieces are read before the next attempt, so that a long value is not parsed again for each piece.
            let until = self.input.len() + PARSED_BYTES;
            while self.input.len() < until {
                match self.poll_read(context) {
                    Poll::Ready(Ok(())) => self.is_fresh = true,
                    // Bytes before the error are parsed first; the next read returns the error again.
                    Poll::Ready(Err(_)) | Poll::Pending if self.is_fresh => break,
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                    Poll::Pending => return Poll::Pending,
                }
            }
        }
    }

    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut bytes = [0; READ_BYTES];
        let mut buffer = ReadBuf::new(&mut bytes);
        ready!(Pin::new(&mut self.socket).poll_read(context, &mut buffer))?;
        if buffer.filled().is_empty() {
            return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
        }
        self.input.extend_from_slice(buffer.filled());
        Poll::Ready(Ok(()))
    }

    /// Returns the next value; `None` if it is incomplete.
    fn take(&mut self) -> io::Result<Option<Value>> {
        let mut rest = &self.input[self.taken..];
        let value = match read_value(&mut rest) {
            Ok(value) => value,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                self.is_fresh = false;
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        self.taken = self.input.len() - rest.len();
        if rest.is_empty() {
            self.input.clear();
            self.input.shrink_to(KEPT_BYTES);
            (self.taken, self.is_fresh) = (0, false);
        } else if self.taken >= PARSED_BYTES {
            self.input.drain(..self.taken);
            self.taken = 0;
        }
        Ok(Some(value))
    }
}
