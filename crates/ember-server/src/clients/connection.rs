//! A connection: its socket, what was read and not yet run, what was answered and not yet sent.
//!
//! An idle connection holds no buffers: a worker reads into one buffer of its own and answers into one, and only what
//! is left over (part of a command, replies the socket does not take) moves into the connection.

use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;

use ember_protocol::{Batch, Limits, ParseStatus, Parser, ProtocolError, Reply};
use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use socket2::SockRef;

use crate::clients::assembly::Assembly;
use crate::clients::assembly::Forwarded;
use crate::clients::blocked::Blocked;
use crate::clients::client::Client;
use crate::clients::ending::EndReason;
use crate::clients::push::Push;
use crate::config::{OutputBufferLimit, OutputBufferLimits};
use crate::journal::JournalHub;
use crate::system::driver::Readiness;
use crate::tls::{Received, TlsStream};

/// Bytes read at once: the share of a turn that one connection gets.
const READ_BYTES: usize = 64 * 1024;

/// The same of the primary's connection, and how many commands of it are run at once: enough for all workers to have their
/// part.
const PRIMARY_READ_BYTES: usize = 256 * 1024;
const PRIMARY_COMMANDS_MAX: usize = 4096;

/// The longest beginning of a command that is copied in front of the bytes read next; longer ones grow in place.
const COPIED_MAX_BYTES: usize = READ_BYTES / 2;

/// Replies made since the socket last took all of them, in bytes, above which no further commands are run: the client
/// reads too slowly. Sent bytes count too, because the buffer lets go of them only when all are sent.
pub(crate) const OUTPUT_HIGH_BYTES: usize = 1024 * 1024;

/// Requests taken in while replies wait. A client may send a whole pipeline before it reads the first reply; it
/// would wait for us while we wait for it if none of that were taken.
const ABSORBED_MAX_BYTES: usize = 16 * 1024 * 1024;

/// The bound on replies in place of [`OUTPUT_HIGH_BYTES`] when no more requests can be taken in. Most replies are
/// shorter than their requests, so running on is what lets a client that sends for longer finish.
const OUTPUT_FULL_BYTES: usize = 16 * 1024 * 1024;

/// Bytes of requests thrown away before a connection is closed by us. Closing with unread bytes makes the kernel
/// reset the connection, and the peer may lose the last replies.
const DISCARDED_MAX_BYTES: usize = 1024 * 1024;

/// Requests that are taken in while replies wait, in bytes, when the client's query buffer may have `limit`.
pub(crate) fn absorbed_max(limit: u64) -> usize {
    // A full read more must not break the limit.
    usize::try_from(limit).unwrap_or(usize::MAX).saturating_sub(READ_BYTES).min(ABSORBED_MAX_BYTES)
}

/// Pieces passed to one write call.
const WRITE_SLICES_MAX: usize = 64;

/// Bytes that one call of [`Connection::flush`] sends at most: the other connections of the worker wait for the system to
/// copy them.
const FLUSHED_MAX_BYTES: usize = 1024 * 1024;

/// What reading gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fill {
    /// This many bytes.
    Bytes(usize),
    /// Nothing for now.
    Nothing,
    /// The peer sends no more; it may still read.
    End,
    /// The connection broke.
    Broken,
}

/// The bounds on requests, of clients that have authenticated and of those that have not.
#[derive(Clone, Copy)]
pub(crate) struct RequestLimits {
    authenticated: Limits,
    unauthenticated: Limits,
    primary: Limits,
}

impl RequestLimits {
    /// Those for arguments of `bulk_len_max` bytes at most.
    pub(crate) fn new(bulk_len_max: u64) -> RequestLimits {
        let authenticated = Limits { bulk_len_max, ..Limits::default() };
        RequestLimits {
            authenticated,
            unauthenticated: Limits::unauthenticated(),
            primary: Limits { batch_commands_max: PRIMARY_COMMANDS_MAX, ..authenticated },
        }
    }

    fn of(&self, client: &Client) -> &Limits {
        match client.is_authenticated {
            true if client.primary.is_some() => &self.primary,
            true => &self.authenticated,
            false => &self.unauthenticated,
        }
    }
}

/// A batch that stopped in the middle.
pub(crate) struct Parked {
    /// The commands; their bytes are in the connection's input.
    pub(crate) batch: Batch,
    /// The first that has not run.
    pub(crate) next: usize,
    /// Whether it is `CLIENT PAUSE` that it waits for (otherwise answers of other workers, or values that are away).
    pub(crate) is_paused: bool,
}

/// A connection.
pub(crate) struct Connection {
    socket: OwnedFd,
    /// What encrypts it, if anything does.
    tls: Option<Box<TlsStream>>,
    pub(crate) client: Client,
    pub(crate) parser: Parser,
    /// Bytes read and not done with, behind those the parser has consumed: the beginning of a command, or whole
    /// commands while the connection waits. Empty nearly always.
    pub(crate) input: Vec<u8>,
    /// Replies not sent; empty nearly always.
    pub(crate) output: Reply,
    /// Bytes of `output` already sent.
    sent: usize,
    pub(crate) parked: Option<Box<Parked>>,
    /// Replies on their way from other workers.
    pub(crate) awaiting: Option<Box<Assembly>>,
    /// The call that waits for a key.
    pub(crate) blocked: Option<Box<Blocked>>,
    /// The number of the last record of what `output` acknowledges; 0 if that need not be asked.
    pub(crate) acknowledges: u64,
    /// `output` is held until that record is released.
    pub(crate) is_held: bool,
    /// Since when it is, Unix time in ms.
    pub(crate) held_since_ms: i64,
    /// There may be something to read.
    pub(crate) readable: bool,
    /// The peer sends no more: only an empty read is the last one.
    pub(crate) read_closed: bool,
    /// All that the peer will ever send was read.
    pub(crate) has_ended: bool,
    /// What the system said when it broke.
    pub(crate) failure: Option<io::Error>,
    /// The socket may take more.
    writable: bool,
    /// `input` is not empty and may hold whole commands that were not parsed yet.
    pub(crate) has_unparsed: bool,
    /// Run no more commands, and close when the output is sent.
    closing: bool,
    /// It is closed when the reply is sent that its waiter was served before the end was decided.
    pub(crate) has_last_reply: bool,
    /// The peer speaks TLS, and this is no connection for that.
    is_tls_by_mistake: bool,
    /// It is in the worker's list of connections to serve this turn.
    pub(crate) is_listed: bool,
    /// The most bytes that were unsent when output was last sent: replies above a limit end the connection however fast the
    /// socket takes them.
    unsent_peak: usize,
    /// Bytes of pushes written since the socket last took all output: what the client has not asked for.
    pushed: usize,
    /// For how long the output, and the pushes in it, are above their soft limits.
    output_excess: Excess,
    pushed_excess: Excess,
}

/// For how long something is above its soft limit.
#[derive(Debug, Default)]
struct Excess {
    /// Since when, Unix time in ms; 0 when it is not.
    since_ms: i64,
}

impl Excess {
    /// Whether `bytes` are more than the limit allows now.
    fn is_too_much(&mut self, bytes: u64, limit: &OutputBufferLimit, now_ms: i64) -> bool {
        if limit.soft_bytes == 0 || bytes <= limit.soft_bytes {
            self.since_ms = 0;
        } else if self.since_ms == 0 {
            self.since_ms = now_ms;
        }
        let soft_ms = i64::try_from(limit.soft_seconds.saturating_mul(1000)).unwrap_or(i64::MAX);
        let is_late = self.since_ms != 0 && now_ms - self.since_ms >= soft_ms;
        is_late || (limit.hard_bytes != 0 && bytes > limit.hard_bytes)
    }
}

impl Connection {
    /// A connection that has read and sent nothing.
    pub(crate) fn new(
        socket: OwnedFd,
        tls: Option<Box<TlsStream>>,
        client: Client,
        output: Reply,
    ) -> Connection {
        Connection {
            socket,
            tls,
            client,
            parser: Parser::new(),
            input: Vec::new(),
            output,
            sent: 0,
            parked: None,
            awaiting: None,
            blocked: None,
            acknowledges: 0,
            is_held: false,
            failure: None,
            held_since_ms: 0,
            readable: false,
            read_closed: false,
            has_ended: false,
            writable: true,
            has_unparsed: false,
            closing: false,
            has_last_reply: false,
            is_tls_by_mistake: false,
            is_listed: false,
            unsent_peak: 0,
            pushed: 0,
            output_excess: Excess::default(),
            pushed_excess: Excess::default(),
        }
    }

    /// Whether commands may be run: nothing is being waited for.
    pub(crate) fn may_run(&self) -> bool {
        self.awaiting.is_none()
            && self.blocked.is_none()
            && self.parked.is_none()
            && !self.is_held
            && !self.closing
    }

    /// Whether too many replies wait for the socket to make more.
    pub(crate) fn is_output_high(&self, absorbed_max: usize) -> bool {
        let high = if self.query_bytes() < absorbed_max { OUTPUT_HIGH_BYTES } else { OUTPUT_FULL_BYTES };
        self.output.len_bytes() > high
    }

    /// Whether there is nothing left to do for this connection: its last reply is sent.
    pub(crate) fn is_over(&self) -> bool {
        let no_more_runs = self.closing || (self.has_ended && !self.has_unparsed && self.may_run());
        no_more_runs && self.unsent_bytes() == 0 && !self.awaits_last_reply()
    }

    /// Whether no more commands are run, and it is closed when the output is sent.
    #[inline]
    pub(crate) fn is_closing(&self) -> bool {
        self.closing
    }

    /// Runs no more commands, and closes it when the output is sent. The client takes nothing more from now on.
    pub(crate) fn begin_closing(&mut self) {
        self.closing = true;
        self.client.view.begin_ending(EndReason::AfterReplies);
    }

    /// Whether it is closing, and its waiter is being served or was: the reply is on its way.
    pub(crate) fn awaits_last_reply(&self) -> bool {
        let is_served = |blocked: &Blocked| !blocked.is_under_way && !blocked.waiter.is_cancelled();
        self.closing && self.blocked.as_deref().is_some_and(is_served)
    }

    /// Why it is closed, as far as it knows.
    pub(crate) fn why_it_ends(&self) -> String {
        let by_peer =
            || if self.has_ended { "the other side has closed it" } else { "this server has closed it" };
        match (&self.failure, self.handshake_failure()) {
            (Some(error), _) => error.to_string(),
            (None, Some(why)) => why.to_owned(),
            (None, None) => match self.client.view.end_reason() {
                Some(EndReason::Killed) => "it was killed".to_owned(),
                Some(EndReason::Evicted) => "it was evicted".to_owned(),
                _ => by_peer().to_owned(),
            },
        }
    }

    /// Lets the system gather what is sent for fewer and larger packets.
    pub(crate) fn gather_packets(&self) {
        // As in Redis it is as good without. A unix socket knows no such thing.
        let _ = SockRef::from(&self.socket).set_tcp_nodelay(false);
    }

    /// Replies not sent, in bytes; encrypted ones count as one byte, however many they are.
    pub(crate) fn unsent_bytes(&self) -> usize {
        let encrypted = self.tls.as_ref().is_some_and(|tls| tls.wants_send());
        self.output.len_bytes() - self.sent + usize::from(encrypted)
    }

    /// Whether the two sides have not agreed on a key yet.
    pub(crate) fn is_handshaking(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_handshaking())
    }

    /// Why the two sides have not agreed on a key, if that is why it ends.
    pub(crate) fn handshake_failure(&self) -> Option<&str> {
        if self.is_tls_by_mistake {
            return Some("the client speaks TLS, and this port does not: the one that does is tls-port");
        }
        self.tls.as_ref().and_then(|tls| tls.handshake_failure())
    }

    /// Its socket once more, which stays open when the connection is dropped.
    pub(crate) fn duplicate_socket(&self) -> io::Result<OwnedFd> {
        self.socket.try_clone()
    }

    /// The last thing done to a connection before it is closed.
    pub(crate) fn say_goodbye(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.say_goodbye(&self.socket);
        }
    }

    /// Notes what the driver says of the socket.
    pub(crate) fn note(&mut self, readiness: &Readiness) {
        self.readable |= readiness.readable;
        self.read_closed |= readiness.read_closed;
        self.writable |= readiness.writable;
    }

    /// Reads once: into the large argument that is being received or into `scratch`, which is emptied first. From there
    /// the bytes go behind a long `input`; what little a short one held moves in front of them instead. Encrypted bytes
    /// are read into `wire` before.
    pub(crate) fn fill(&mut self, scratch: &mut Vec<u8>, wire: &mut Vec<u8>) -> Fill {
        let consumed = self.parser.consumed();
        let is_short = self.parked.is_none() && self.input.len() - consumed <= COPIED_MAX_BYTES;
        let mut is_large = false;
        let read_bytes = if self.client.primary.is_some() { PRIMARY_READ_BYTES } else { READ_BYTES };
        let (socket, tls, client) = (&self.socket, &mut self.tls, &mut self.client);
        let mut receive = |target: &mut Vec<u8>| match tls {
            None => receive_plain(socket, target),
            Some(tls) => {
                let received = tls.receive(socket, target, wire);
                client.log_in_as_one_of(&tls.take_users());
                received
            }
        };
        let received = if let Some(mut target) = self.parser.large_mut() {
            is_large = true;
            receive(target.buffer())
        } else {
            scratch.clear();
            if scratch.capacity() > 2 * read_bytes {
                // The last read was of what the primary sends.
                *scratch = Vec::new();
            }
            scratch.reserve_exact(read_bytes);
            if is_short {
                scratch.extend_from_slice(&self.input[consumed..]);
            }
            receive(scratch)
        };
        match received {
            Received::End => {
                self.readable = false;
                self.has_ended = true;
                Fill::End
            }
            Received::Bytes(0, is_more) => {
                self.readable = is_more || self.read_closed;
                Fill::Nothing
            }
            Received::Bytes(count, is_more) => {
                // A short read has emptied the socket: the next bytes are a new event. Except for the end, whose event
                // may have come together with the bytes'.
                self.readable = is_more || self.read_closed;
                if is_short && !is_large {
                    self.parser.discard(consumed);
                    self.input.clear();
                } else if !is_large {
                    self.input.extend_from_slice(scratch);
                }
                Fill::Bytes(count)
            }
            Received::Nothing(is_more) => {
                self.readable = is_more;
                Fill::Nothing
            }
            Received::Broken(error) => {
                self.failure = error.map(io::Error::from);
                Fill::Broken
            }
        }
    }

    /// Takes what [`Connection::fill`] left in `input` or else in `scratch`, to be parsed; true when it is the first.
    pub(crate) fn take_input(&mut self, scratch: &mut Vec<u8>) -> (Vec<u8>, bool) {
        let is_own = !self.input.is_empty();
        self.has_unparsed = false;
        (std::mem::take(if is_own { &mut self.input } else { scratch }), is_own)
    }

    /// Puts back what [`Connection::take_input`] gave, and keeps what of it is still needed. O(bytes kept), or, for
    /// bytes of its own, amortised O(bytes consumed).
    pub(crate) fn put_input_back(&mut self, mut input: Vec<u8>, is_own: bool, scratch: &mut Vec<u8>) {
        // The commands of a parked batch are offsets in the input: nothing may move then.
        let consumed = if self.parked.is_some() { 0 } else { self.parser.consumed() };
        if !is_own {
            self.parser.discard(consumed);
            // The capacity of a short beginning of a command is used again for the next.
            self.input.extend_from_slice(&input[consumed..]);
            *scratch = input;
        } else {
            if consumed * 2 >= input.len() {
                self.parser.discard(consumed);
                input.drain(..consumed);
            }
            self.input = input;
        }
        if self.input.len() <= self.input.capacity() / 4 {
            self.input.shrink_to_fit();
        }
        self.has_unparsed &= !self.input.is_empty();
    }

    /// Parses the next commands of `input` into `batch`, which is empty; their arguments are offsets in `input`.
    pub(crate) fn next_batch(
        &mut self,
        input: &mut Vec<u8>,
        batch: &mut Batch,
        limits: &RequestLimits,
    ) -> ParseStatus {
        let status = self.parser.parse(input, batch, limits.of(&self.client));
        if let ParseStatus::NeedLarge = status {
            input.truncate(input.len() - self.parser.release_tail());
        }
        status
    }

    /// Whether there may be another batch behind one that has run and was parsed with this status. An error of the parser is
    /// answered when all before it is.
    pub(crate) fn has_next_batch(&mut self, status: ParseStatus) -> bool {
        match status {
            _ if self.parked.is_some() || self.closing => false,
            ParseStatus::NeedMore | ParseStatus::NeedLarge => false,
            // Later; the parser repeats an error.
            _ if self.awaiting.is_some() || self.blocked.is_some() => {
                self.has_unparsed = true;
                false
            }
            ParseStatus::Full => true,
            ParseStatus::Err(error) => {
                if let Some(primary) = &self.client.primary {
                    primary.link.fail(format!("it is no command at offset {}: {error}", primary.position()));
                    self.begin_closing();
                    return false;
                }
                self.output.protocol_error(error);
                self.is_tls_by_mistake = error == ProtocolError::TlsHandshake;
                self.begin_closing();
                false
            }
        }
    }

    /// Takes an answer of another worker; when it is the last one, returns what makes replies of all of them.
    pub(crate) fn accept_answer(&mut self, answer: Box<Forwarded>) -> Option<Box<Assembly>> {
        let mut assembly = self.awaiting.take()?;
        if assembly.accept(answer) {
            return Some(assembly);
        }
        self.awaiting = Some(assembly);
        None
    }

    /// Whether bytes may be taken in without running anything, while replies wait for the socket. Not while other workers
    /// run commands: that is over soon, whatever the client does, and the socket keeps the bytes until then.
    pub(crate) fn may_absorb(&self, absorbed_max: usize) -> bool {
        !self.closing && self.awaiting.is_none() && self.query_bytes() < absorbed_max
    }

    /// Throws away what the peer has sent behind the last command it gets an answer to, before it is closed.
    pub(crate) fn discard_unread(&mut self, scratch: &mut Vec<u8>) {
        let mut discarded = 0;
        while self.readable && discarded < DISCARDED_MAX_BYTES {
            scratch.clear();
            scratch.reserve_exact(READ_BYTES);
            match read_spare(&self.socket, scratch) {
                (Ok(count), asked) => {
                    self.readable = count == asked;
                    discarded += count;
                }
                (Err(_), _) => self.readable = false,
            }
        }
        scratch.clear();
    }

    /// Bytes held for commands that have not run.
    pub(crate) fn query_bytes(&self) -> usize {
        let held = self.tls.as_ref().map_or(0, |tls| tls.held_bytes());
        self.input.len() - self.parser.consumed() + self.parser.retained_bytes() + held
    }

    /// Notes that its replies acknowledge what records up to this number have changed; 0 is none.
    #[inline]
    pub(crate) fn note_record(&mut self, record: u64) {
        self.client.last_record = self.client.last_record.max(record);
        self.acknowledges = self.acknowledges.max(record);
    }

    /// Whether its replies may be sent: what they acknowledge cannot be lost any more, and so many replicas have it.
    #[inline]
    pub(crate) fn may_send(&mut self, journal: &JournalHub, replicas: u32) -> bool {
        if self.acknowledges != 0
            && journal.may_acknowledge(self.acknowledges)
            && self.acknowledges <= journal.replicated(replicas)
        {
            (self.acknowledges, self.is_held) = (0, false);
        }
        self.acknowledges == 0
    }

    /// Bytes of what the client's calls have left behind, and of the call that waits.
    pub(crate) fn kept_bytes(&self) -> usize {
        let parked =
            self.parked.as_ref().map_or(0, |parked| parked.batch.wire_bytes_max(self.parser.consumed()));
        self.client.kept_bytes() + self.blocked.as_ref().map_or(0, |blocked| blocked.bytes) + parked
    }

    /// The memory in bytes of replies that wait to be sent: those sent already too, until the last one is.
    pub(crate) fn output_bytes(&self) -> usize {
        if self.unsent_bytes() == 0 { 0 } else { self.output.len_bytes() }
    }

    /// Writes a push: what the client has not asked for.
    pub(crate) fn push(&mut self, push: &Push, pattern: Option<&[u8]>) {
        let before = self.output.len_bytes();
        push.write(pattern, self.client.subscriptions.is_some(), &mut self.output);
        self.pushed += self.output.len_bytes() - before;
    }

    /// Whether more output waits than may. The limit of a subscriber is on all of it; who is sent pushes for another reason
    /// has the same limit for these alone, because replies wait for as long as the client pleases (`normal`).
    pub(crate) fn has_too_much_output(&mut self, limits: &OutputBufferLimits, now_ms: i64) -> bool {
        // What waits for a replica is bounded where it is read from the stream.
        if self.client.is_fed() {
            return false;
        }
        let output = self.unsent_bytes() as u64;
        let peak = std::mem::take(&mut self.unsent_peak) as u64;
        let is_subscribed = self.client.view.is_subscribed();
        let limit = if is_subscribed { &limits.pubsub } else { &limits.normal };
        let pushed = output.min(self.pushed as u64);
        self.output_excess.is_too_much(output, limit, now_ms)
            || (limit.hard_bytes != 0 && peak > limit.hard_bytes)
            || self.pushed_excess.is_too_much(pushed, &limits.pubsub, now_ms)
    }

    /// Lets go of output that is all sent.
    fn forget_sent(&mut self) {
        self.output.clear();
        self.sent = 0;
        self.pushed = 0;
    }

    /// Whether [`Connection::flush`] would send more: the socket takes it, and it may be sent.
    pub(crate) fn has_to_flush(&self) -> bool {
        self.writable && self.unsent_bytes() > 0 && self.acknowledges == 0 && !self.is_handshaking()
    }

    /// Sends what the socket takes, within limits; returns the bytes sent and the write calls made. [`Connection::may_send`]
    /// was true.
    ///
    /// # Errors
    /// What the system says when the connection is broken.
    pub(crate) fn flush(&mut self) -> io::Result<(usize, usize)> {
        debug_assert!(self.acknowledges == 0, "the caller asks whether it may be sent");
        self.unsent_peak = self.unsent_peak.max(self.output.len_bytes() - self.sent);
        if self.tls.is_some() {
            return self.flush_encrypted();
        }
        let (mut bytes, mut calls) = (0, 0);
        while self.writable && self.unsent_bytes() > 0 && bytes < FLUSHED_MAX_BYTES {
            let mut slices = [IoSlice::new(&[]); WRITE_SLICES_MAX];
            let (mut count, mut offered) = (0, 0);
            for (slice, piece) in slices.iter_mut().zip(self.output.slices(self.sent)) {
                let piece = &piece[..piece.len().min(FLUSHED_MAX_BYTES - bytes - offered)];
                if piece.is_empty() {
                    break;
                }
                *slice = IoSlice::new(piece);
                (count, offered) = (count + 1, offered + piece.len());
            }
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
            self.forget_sent();
        }
        Ok((bytes, calls))
    }

    /// As [`Connection::flush`] for a connection that is encrypted.
    fn flush_encrypted(&mut self) -> io::Result<(usize, usize)> {
        let (mut bytes, mut calls) = (0, 0);
        let Some(tls) = &mut self.tls else { return Ok((0, 0)) };
        while self.writable && bytes < FLUSHED_MAX_BYTES {
            let (sent, made, result) = tls.send(&self.socket);
            bytes += sent;
            calls += made;
            match result {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.writable = false,
                Err(error) => return Err(error),
            }
            if !self.writable || tls.is_handshaking() || self.sent == self.output.len_bytes() {
                break;
            }
            let mut slices = [IoSlice::new(&[]); WRITE_SLICES_MAX];
            let count = self.output.io_slices(self.sent, &mut slices);
            match tls.encrypt(&slices[..count]) {
                0 => return Err(io::ErrorKind::BrokenPipe.into()),
                taken => self.sent += taken,
            }
        }
        if self.sent == self.output.len_bytes() {
            self.forget_sent();
        }
        Ok((bytes, calls))
    }
}

/// Reads once into the spare capacity of `buffer`.
fn receive_plain(socket: &OwnedFd, buffer: &mut Vec<u8>) -> Received {
    match read_spare(socket, buffer) {
        (Ok(0), _) => Received::End,
        (Ok(count), asked) => Received::Bytes(count, count == asked),
        (Err(Errno::AGAIN), _) => Received::Nothing(false),
        (Err(Errno::INTR), _) => Received::Nothing(true),
        (Err(error), _) => Received::Broken(Some(error)),
    }
}

/// Reads once into the spare capacity of `buffer`; returns the bytes read and asked for.
fn read_spare(socket: &OwnedFd, buffer: &mut Vec<u8>) -> (Result<usize, Errno>, usize) {
    let asked = buffer.capacity() - buffer.len();
    (rustix::io::read(socket, spare_capacity(buffer)), asked)
}
