//! A connection: its socket, what was read and not yet run, what was answered and not yet sent.
//!
//! An idle connection holds no buffers: a worker reads into one buffer of its own and answers into one, and only what
//! is left over (part of a command, replies the socket does not take) moves into the connection.

use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;

use ember_protocol::{Batch, Parser, Reply};
use rustix::buffer::spare_capacity;
use rustix::io::Errno;

use crate::client::Client;
use crate::executor::Assembly;

/// Bytes read at once: the share of a turn that one connection gets.
pub(crate) const READ_BYTES: usize = 64 * 1024;

/// Replies waiting for the socket above which no further commands are run: the client reads too slowly.
pub(crate) const OUTPUT_HIGH_BYTES: usize = 1024 * 1024;

/// Requests taken in while replies wait. A client may send a whole pipeline before it reads the first reply; it
/// would wait for us while we wait for it if none of that were taken.
const ABSORBED_MAX_BYTES: usize = 16 * 1024 * 1024;

/// Pieces passed to one write call.
const WRITE_SLICES_MAX: usize = 64;

/// What reading gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fill {
    /// This many bytes.
    Bytes(usize),
    /// Nothing for now.
    Nothing,
    /// The end: the peer has closed, or the connection broke.
    End,
}

/// A batch that stopped in the middle.
pub(crate) struct Parked {
    /// The commands; their bytes are in the connection's input.
    pub(crate) batch: Batch,
    /// The first that has not run.
    pub(crate) next: usize,
    /// Whether it is `CLIENT PAUSE` that it waits for (otherwise answers of other workers).
    pub(crate) is_paused: bool,
}

/// A connection.
pub(crate) struct Connection {
    socket: OwnedFd,
    pub(crate) client: Client,
    pub(crate) parser: Parser,
    /// Bytes read and not done with: the beginning of a command, or whole commands while the connection waits.
    pub(crate) input: Vec<u8>,
    /// Replies not sent; empty nearly always.
    pub(crate) output: Reply,
    /// Bytes of `output` already sent.
    sent: usize,
    pub(crate) parked: Option<Box<Parked>>,
    /// Replies on their way from other workers.
    pub(crate) awaiting: Option<Box<Assembly>>,
    /// There may be something to read.
    pub(crate) readable: bool,
    /// The peer sends no more: only an empty read is the last one.
    pub(crate) read_closed: bool,
    /// The socket may take more.
    writable: bool,
    /// `input` may hold whole commands that were not parsed yet.
    pub(crate) has_unparsed: bool,
    /// Run no more commands, and close when the output is sent.
    pub(crate) closing: bool,
    /// It is in the worker's list of connections to serve this turn.
    pub(crate) is_listed: bool,
    /// Since when, Unix time in ms, the output is above the soft limit; 0 when it is not.
    pub(crate) soft_since_ms: i64,
}

impl Connection {
    /// A connection that has read and sent nothing.
    pub(crate) fn new(socket: OwnedFd, client: Client, output: Reply) -> Connection {
        Connection {
            socket,
            client,
            parser: Parser::new(),
            input: Vec::new(),
            output,
            sent: 0,
            parked: None,
            awaiting: None,
            readable: false,
            read_closed: false,
            writable: true,
            has_unparsed: false,
            closing: false,
            is_listed: false,
            soft_since_ms: 0,
        }
    }

    /// Whether commands may be run: nothing is being waited for.
    pub(crate) fn may_run(&self) -> bool {
        self.awaiting.is_none() && self.parked.is_none() && !self.closing
    }

    /// Whether so many replies wait for the socket that no more are to be made.
    pub(crate) fn is_output_high(&self) -> bool {
        self.unsent_bytes() > OUTPUT_HIGH_BYTES
    }

    /// Replies not sent, in bytes.
    pub(crate) fn unsent_bytes(&self) -> usize {
        self.output.len_bytes() - self.sent
    }

    /// The socket can take more, as the driver says.
    pub(crate) fn set_writable(&mut self) {
        self.writable = true;
    }

    /// Reads once: into the argument that is being received, or behind what the connection holds, or, when it holds
    /// nothing, into `scratch`, which is emptied first.
    pub(crate) fn fill(&mut self, scratch: &mut Vec<u8>) -> Fill {
        let (result, asked) = if let Some(mut target) = self.parser.large_mut() {
            read_spare(&self.socket, target.buffer())
        } else if self.input.is_empty() {
            scratch.clear();
            scratch.reserve_exact(READ_BYTES);
            read_spare(&self.socket, scratch)
        } else {
            self.input.reserve(READ_BYTES);
            read_spare(&self.socket, &mut self.input)
        };
        match result {
            Ok(0) => Fill::End,
            Ok(count) => {
                // A short read has emptied the socket: the next bytes are a new event. Except for the end, whose event
                // may have come together with the bytes'.
                self.readable = count == asked || self.read_closed;
                Fill::Bytes(count)
            }
            Err(Errno::AGAIN) => {
                self.readable = false;
                Fill::Nothing
            }
            Err(Errno::INTR) => Fill::Nothing,
            Err(_) => Fill::End,
        }
    }

    /// Takes bytes in without running anything, while replies wait for the socket; false when enough were taken in.
    pub(crate) fn may_absorb(&mut self) -> bool {
        self.input.len() < ABSORBED_MAX_BYTES && self.parser.large_mut().is_none()
    }

    /// Bytes held for commands that have not run.
    pub(crate) fn query_bytes(&self) -> usize {
        self.input.len() + self.parser.retained_bytes()
    }

    /// Sends what the socket takes; returns the bytes sent and the write calls made.
    ///
    /// # Errors
    /// What the system says when the connection is broken.
    pub(crate) fn flush(&mut self) -> io::Result<(usize, usize)> {
        let (mut bytes, mut calls) = (0, 0);
        while self.writable && self.unsent_bytes() > 0 {
            let mut slices = [IoSlice::new(&[]); WRITE_SLICES_MAX];
            let count = self.output.io_slices(self.sent, &mut slices);
            let offered: usize = slices[..count].iter().map(|slice| slice.len()).sum();
            let result = match &slices[..count] {
                [one] => rustix::io::write(&self.socket, one),
                many => rustix::io::writev(&self.socket, many),
            };
            calls += 1;
            match result {
                Ok(written) => {
                    self.sent += written;
                    bytes += written;
                    // A short write has filled the socket: room is a new event.
                    self.writable = written == offered;
                }
                Err(Errno::AGAIN) => self.writable = false,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if self.unsent_bytes() == 0 {
            self.output.clear();
            self.sent = 0;
        }
        Ok((bytes, calls))
    }
}

/// Reads once into the spare capacity of `buffer`; returns the bytes read and asked for.
fn read_spare(socket: &OwnedFd, buffer: &mut Vec<u8>) -> (Result<usize, Errno>, usize) {
    let asked = buffer.capacity() - buffer.len();
    (rustix::io::read(socket, spare_capacity(buffer)), asked)
}
