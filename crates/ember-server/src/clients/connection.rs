//! A connection: its socket, requests read and not yet run, replies written and not yet sent.
//!
//! An idle connection holds no buffers: a worker reads into its own buffer and writes replies into another one. Only
//! leftovers (a partial command, replies that the socket does not accept yet) are moved into the connection.

use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;

use ember_config::{OutputBufferLimit, OutputBufferLimits};
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
use crate::journal::JournalHub;
use crate::system::driver::Readiness;
use crate::tls::{Received, TlsStream};

/// The maximum bytes per read; a connection is read at most once per turn.
const READ_BYTES: usize = 64 * 1024;

/// The maximum bytes per read from the primary, and the number of its commands run at once: enough to occupy all
/// workers.
const PRIMARY_READ_BYTES: usize = 256 * 1024;
const PRIMARY_COMMANDS_MAX: usize = 4096;

/// The maximum size in bytes of a partial command that is copied in front of the bytes read next; longer ones grow in
/// place.
const COPIED_MAX_BYTES: usize = READ_BYTES / 2;

/// The bytes of replies above which no further commands of the connection run, because the client reads too slowly.
/// They include all bytes written since the socket last accepted everything, because the buffer frees sent bytes only
/// when all are sent.
pub(crate) const OUTPUT_HIGH_BYTES: usize = 1024 * 1024;

/// The maximum bytes of requests received while replies wait to be sent. A client may send a whole pipeline before it
/// reads the first reply; if the server received none of it, both sides would wait for each other.
const ABSORBED_MAX_BYTES: usize = 16 * 1024 * 1024;

/// The limit in bytes on unsent replies, instead of [`OUTPUT_HIGH_BYTES`], when no more requests can be received. Most
/// replies are shorter than their requests, so a client that sends even more can finish if its commands continue to
/// run.
const OUTPUT_FULL_BYTES: usize = 16 * 1024 * 1024;

/// The maximum bytes of requests discarded before the server closes a connection. If bytes are unread at the close, the
/// kernel resets the connection, and the peer may lose the last replies.
const DISCARDED_MAX_BYTES: usize = 1024 * 1024;

/// Returns the maximum bytes of requests received while replies wait, for a client whose query buffer is limited to
/// `limit` bytes.
pub(crate) fn absorbed_max(limit: u64) -> usize {
    // One more full read must not exceed `limit`.
    usize::try_from(limit).unwrap_or(usize::MAX).saturating_sub(READ_BYTES).min(ABSORBED_MAX_BYTES)
}

/// The maximum number of buffers passed to one vectored write.
const WRITE_SLICES_MAX: usize = 64;

/// The maximum bytes sent by one call of [`Connection::flush`]: the worker's other connections wait while the kernel
/// copies them.
const FLUSHED_MAX_BYTES: usize = 1024 * 1024;

/// The result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fill {
    /// This number of bytes was read.
    Bytes(usize),
    /// No bytes are available at present.
    Nothing,
    /// The peer has stopped sending; it may still receive.
    End,
    /// The connection broke.
    Broken,
}

/// The limits on requests of authenticated clients, of other clients, and of the primary.
#[derive(Clone, Copy)]
pub(crate) struct RequestLimits {
    authenticated: Limits,
    unauthenticated: Limits,
    primary: Limits,
}

impl RequestLimits {
    /// Returns the limits for arguments of at most `bulk_len_max` bytes.
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

/// The remainder of a batch that was interrupted.
pub(crate) struct Parked {
    /// The whole batch; the bytes of its commands are in the connection's input.
    pub(crate) batch: Batch,
    /// The first command that has not run.
    pub(crate) next: usize,
    /// Whether the batch waits for `CLIENT PAUSE` to end; otherwise it waits for answers of other workers, or for cold
    /// values.
    pub(crate) is_paused: bool,
}

/// A connection of a client, served by one worker.
pub(crate) struct Connection {
    socket: OwnedFd,
    /// The TLS session, if the connection is encrypted.
    tls: Option<Box<TlsStream>>,
    pub(crate) client: Client,
    pub(crate) parser: Parser,
    /// Bytes read and not yet processed, preceded by the bytes that the parser has consumed: a partial command, or
    /// whole commands while the connection waits. Nearly always empty.
    pub(crate) input: Vec<u8>,
    /// Unsent replies; nearly always empty.
    pub(crate) output: Reply,
    /// The number of bytes of `output` that are already sent.
    sent: usize,
    pub(crate) parked: Option<Box<Parked>>,
    /// Replies expected from other workers.
    pub(crate) awaiting: Option<Box<Assembly>>,
    /// The blocked call, if any.
    pub(crate) blocked: Option<Box<Blocked>>,
    /// The number of the last journal record whose changes `output` acknowledges; 0 if `output` can be sent without
    /// waiting for a record.
    pub(crate) acknowledges: u64,
    /// Whether `output` is held until the record `acknowledges` is released.
    pub(crate) is_held: bool,
    /// The time since which `output` is held, as Unix time in ms.
    pub(crate) held_since_ms: i64,
    /// Whether the socket may have bytes to read.
    pub(crate) readable: bool,
    /// Whether the peer has stopped sending: reads continue until one returns no bytes.
    pub(crate) read_closed: bool,
    /// Whether everything that the peer has sent has been read.
    pub(crate) has_ended: bool,
    /// The system's error that broke the connection.
    pub(crate) failure: Option<io::Error>,
    /// Whether the socket may accept more bytes.
    writable: bool,
    /// Whether `input` may hold whole commands that are not parsed yet.
    pub(crate) has_unparsed: bool,
    /// Whether no more commands run and the connection closes when its output is sent.
    closing: bool,
    /// Whether the connection closes only after the reply to its waiter, which was served before the closing was
    /// decided.
    pub(crate) has_last_reply: bool,
    /// Whether the peer speaks TLS although the connection is not encrypted.
    is_tls_by_mistake: bool,
    /// Whether the connection is in the worker's list of connections to serve in this turn.
    pub(crate) is_listed: bool,
    /// The maximum of unsent bytes when output was last sent: replies above a limit close the connection, however fast
    /// the socket accepts them.
    unsent_peak: usize,
    /// Bytes of pushes written since the socket last accepted all output.
    pushed: usize,
    /// The times for which the output, and the pushes in it, have been above their soft limits.
    output_excess: Excess,
    pushed_excess: Excess,
}

/// The time for which a size has been above its soft limit.
#[derive(Debug, Default)]
struct Excess {
    /// The time since which the size is above its limit, as Unix time in ms; 0 while it is not.
    since_ms: i64,
}

impl Excess {
    /// Returns whether `bytes` exceeds the hard limit, or has exceeded the soft limit for too long.
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
    /// Creates a connection that has neither read nor sent any bytes.
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

    /// Returns whether commands may run, that is, the connection neither waits nor closes.
    pub(crate) fn may_run(&self) -> bool {
        self.awaiting.is_none()
            && self.blocked.is_none()
            && self.parked.is_none()
            && !self.is_held
            && !self.closing
    }

    /// Returns whether too many bytes of replies are unsent for further commands to run.
    pub(crate) fn is_output_high(&self, absorbed_max: usize) -> bool {
        let high = if self.query_bytes() < absorbed_max { OUTPUT_HIGH_BYTES } else { OUTPUT_FULL_BYTES };
        self.output.len_bytes() > high
    }

    /// Returns whether the connection is finished: its last reply is sent.
    pub(crate) fn is_over(&self) -> bool {
        let no_more_runs = self.closing || (self.has_ended && !self.has_unparsed && self.may_run());
        no_more_runs && self.unsent_bytes() == 0 && !self.awaits_last_reply()
    }

    /// Returns whether no more commands run and the connection closes when its output is sent.
    #[inline]
    pub(crate) fn is_closing(&self) -> bool {
        self.closing
    }

    /// Stops running commands, and closes the connection once its output is sent. From now on, the client's waiting
    /// calls are not served.
    pub(crate) fn begin_closing(&mut self) {
        self.closing = true;
        self.client.view.begin_ending(EndReason::AfterReplies);
    }

    /// Returns whether the connection is closing and its blocked call is being or was served, so that one more reply
    /// follows.
    pub(crate) fn awaits_last_reply(&self) -> bool {
        let is_served = |blocked: &Blocked| !blocked.is_under_way && !blocked.waiter.is_cancelled();
        self.closing && self.blocked.as_deref().is_some_and(is_served)
    }

    /// Returns why the connection is closed, as far as this side knows.
    pub(crate) fn why_it_ends(&self) -> String {
        let by_peer = || {
            if self.has_ended {
                "the peer has closed the connection"
            } else {
                "this server has closed the connection"
            }
        };
        match (&self.failure, self.handshake_failure()) {
            (Some(error), _) => error.to_string(),
            (None, Some(why)) => why.to_owned(),
            (None, None) => match self.client.view.end_reason() {
                Some(EndReason::Killed) => "the connection was killed".to_owned(),
                Some(EndReason::Evicted) => "the connection was evicted".to_owned(),
                _ => by_peer().to_owned(),
            },
        }
    }

    /// Makes the kernel combine output into fewer and larger packets.
    pub(crate) fn gather_packets(&self) {
        // As in Redis, an error is ignored. Unix sockets do not have this option.
        let _ = SockRef::from(&self.socket).set_tcp_nodelay(false);
    }

    /// Returns the number of bytes of unsent replies; all encrypted bytes together count as one.
    pub(crate) fn unsent_bytes(&self) -> usize {
        let encrypted = self.tls.as_ref().is_some_and(|tls| tls.has_unsent());
        self.output.len_bytes() - self.sent + usize::from(encrypted)
    }

    /// Returns whether the TLS handshake is incomplete.
    pub(crate) fn is_handshaking(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_handshaking())
    }

    /// Returns why the TLS handshake failed, if that closes the connection.
    pub(crate) fn handshake_failure(&self) -> Option<&str> {
        if self.is_tls_by_mistake {
            return Some("the client uses TLS, but this port does not: connect to the port of `tls-port`");
        }
        self.tls.as_ref().and_then(|tls| tls.handshake_failure())
    }

    /// Returns a duplicate of the socket, which stays open when the connection is dropped.
    pub(crate) fn duplicate_socket(&self) -> io::Result<OwnedFd> {
        self.socket.try_clone()
    }

    /// Sends the TLS alert `close_notify`, as the last step before the connection is closed.
    pub(crate) fn send_close_notify(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify(&self.socket);
        }
    }

    /// Records the readiness that the driver reports.
    pub(crate) fn record_readiness(&mut self, readiness: &Readiness) {
        self.readable |= readiness.readable;
        self.read_closed |= readiness.read_closed;
        self.writable |= readiness.writable;
    }

    /// Reads once from the socket. The bytes are stored in the large argument that is being received, or in `scratch`,
    /// which is cleared first: a short `input` is moved in front of them, and to a long `input` they are appended.
    /// Encrypted bytes are first read into `wire`.
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
                // The last read was from the primary.
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
                // A short read has emptied the socket, and new bytes cause a new event. The end of the stream may not
                // cause one, because its event may have arrived together with that of the bytes.
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

    /// Takes the bytes to be parsed: `input`, or `scratch` if `input` is empty. The flag is true for `input`.
    pub(crate) fn take_input(&mut self, scratch: &mut Vec<u8>) -> (Vec<u8>, bool) {
        let is_own = !self.input.is_empty();
        self.has_unparsed = false;
        (std::mem::take(if is_own { &mut self.input } else { scratch }), is_own)
    }

    /// Returns the buffer from [`Connection::take_input`], and retains the bytes that are still needed. O(bytes
    /// retained), or, for the connection's own buffer, amortised O(bytes consumed).
    pub(crate) fn put_input_back(&mut self, mut input: Vec<u8>, is_own: bool, scratch: &mut Vec<u8>) {
        // The commands of a parked batch are offsets into the input, so its bytes must not be moved.
        let consumed = if self.parked.is_some() { 0 } else { self.parser.consumed() };
        if !is_own {
            self.parser.discard(consumed);
            // The capacity for a short partial command is reused for the next one.
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

    /// Parses the next commands of `input` into the empty `batch`; their arguments are offsets into `input`.
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

    /// Returns whether another batch may follow a batch that has run and whose parsing returned `status`. A parse error
    /// is answered after all commands before it.
    pub(crate) fn has_next_batch(&mut self, status: ParseStatus) -> bool {
        match status {
            _ if self.parked.is_some() || self.closing => false,
            ParseStatus::NeedMore | ParseStatus::NeedLarge => false,
            // The error is reported later: the parser returns it again.
            _ if self.awaiting.is_some() || self.blocked.is_some() => {
                self.has_unparsed = true;
                false
            }
            ParseStatus::Full => true,
            ParseStatus::Err(error) => {
                if let Some(primary) = &self.client.primary {
                    primary.link.fail(format!("invalid command at offset {}: {error}", primary.position()));
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

    /// Accepts an answer of another worker; returns the assembly when it was the last one.
    pub(crate) fn accept_answer(&mut self, answer: Box<Forwarded>) -> Option<Box<Assembly>> {
        let mut assembly = self.awaiting.take()?;
        if assembly.accept(answer) {
            return Some(assembly);
        }
        self.awaiting = Some(assembly);
        None
    }

    /// Returns whether requests may be received without running them, while replies wait for the socket. While other
    /// workers run commands of the connection, it returns false: they finish soon, whatever the client does, and the
    /// kernel buffers the bytes until then.
    pub(crate) fn may_absorb(&self, absorbed_max: usize) -> bool {
        !self.closing && self.awaiting.is_none() && self.query_bytes() < absorbed_max
    }

    /// Discards what the peer has sent after the last answered command, before the connection is closed.
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

    /// Returns the bytes held for commands that have not run.
    pub(crate) fn query_bytes(&self) -> usize {
        let held = self.tls.as_ref().map_or(0, |tls| tls.held_bytes());
        self.input.len() - self.parser.consumed() + self.parser.retained_bytes() + held
    }

    /// Records that the replies acknowledge the changes of journal records up to this number; 0 is none.
    #[inline]
    pub(crate) fn advance_record(&mut self, record: u64) {
        self.client.last_record = self.client.last_record.max(record);
        self.acknowledges = self.acknowledges.max(record);
    }

    /// Returns whether the replies may be sent: the acknowledged writes are durable as required, and `replicas`
    /// replicas have them.
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

    /// Returns the bytes of the state that the client's calls have created, including the blocked call and the parked
    /// batch.
    pub(crate) fn kept_bytes(&self) -> usize {
        let parked =
            self.parked.as_ref().map_or(0, |parked| parked.batch.wire_bytes_max(self.parser.consumed()));
        self.client.kept_bytes() + self.blocked.as_ref().map_or(0, |blocked| blocked.bytes) + parked
    }

    /// Returns the memory of the replies in bytes; it includes sent replies until all are sent.
    pub(crate) fn output_bytes(&self) -> usize {
        if self.unsent_bytes() == 0 { 0 } else { self.output.len_bytes() }
    }

    /// Writes a push to the output.
    pub(crate) fn push(&mut self, push: &Push, pattern: Option<&[u8]>) {
        let before = self.output.len_bytes();
        push.write(pattern, self.client.subscriptions.is_some(), &mut self.output);
        self.pushed += self.output.len_bytes() - before;
    }

    /// Returns whether the unsent output exceeds its limits. For subscribers, the limit applies to all output. For
    /// other clients that receive pushes, it applies to the pushes alone, because replies are subject to the limit of
    /// the class `normal`.
    pub(crate) fn has_too_much_output(&mut self, limits: &OutputBufferLimits, now_ms: i64) -> bool {
        // The output for a replica is limited when it is read from the replication stream.
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

    /// Discards the output once all of it is sent.
    fn forget_sent(&mut self) {
        self.output.clear();
        self.sent = 0;
        self.pushed = 0;
    }

    /// Returns whether [`Connection::flush`] would send more: the socket accepts bytes, and the output may be sent.
    pub(crate) fn has_to_flush(&self) -> bool {
        self.writable && self.unsent_bytes() > 0 && self.acknowledges == 0 && !self.is_handshaking()
    }

    /// Sends as much output as the socket accepts, within limits; returns the number of bytes sent and of write calls.
    /// The caller has checked [`Connection::may_send`].
    ///
    /// # Errors
    /// Returns the system's error if the connection is broken.
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
                    // A short write has filled the socket: the system reports an event when space is free.
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

    /// Does what [`Connection::flush`] does, for an encrypted connection.
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

/// Reads once into the spare capacity of `buffer`; returns the number of bytes read and of bytes requested.
fn read_spare(socket: &OwnedFd, buffer: &mut Vec<u8>) -> (Result<usize, Errno>, usize) {
    let asked = buffer.capacity() - buffer.len();
    (rustix::io::read(socket, spare_capacity(buffer)), asked)
}
