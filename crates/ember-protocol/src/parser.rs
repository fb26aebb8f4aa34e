//! The request parser: parses bytes into commands, which are spans of those bytes. It copies no bytes and reads none
//! twice.
//!
//! ```text
//! *3\r\n $3\r\n SET\r\n $3\r\n key\r\n $5\r\n value\r\n
//! ^start                     ^cursor (relative to start)
//! ```
//!
//! Two paths, one grammar. Commands that are complete in the input are parsed by [`bulk_arguments`], which keeps its
//! state in registers and writes only spans. Anything else (a command cut by the end of the input, an inline command, a
//! large argument, an error) is parsed by [`Parser::advance`], which can stop at any byte and resumes there at the next
//! call.
//!
//! As in Redis, only `\r` ends a length line and the byte after it is skipped unchecked, as are the two bytes after a
//! bulk; a command without arguments (`*0`, `*-1`) is ignored. One difference: a NUL byte in a line is an ordinary byte
//! here, whereas Redis stops searching for the line's end at a NUL.
//!
//! Invariants: `start + cursor <= input.len()`; `spans` and `buffers` contain the arguments of the incomplete command
//! before `cursor`, with offsets relative to `start`, and are empty between commands.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use memchr::memchr;

use crate::arguments::{Batch, SPAN_LEN_MAX, Span, push_shared};
use crate::inline;
use crate::limits::{Limits, UNAUTHENTICATED_BULK_LEN_MAX, UNAUTHENTICATED_MULTIBULK_COUNT_MAX};
use crate::number::parse_i64;

/// Spans are 32-bit: an incomplete command may have at most this many bytes of input.
const INPUT_LEN_MAX: usize = u32::MAX as usize;

/// The maximum size of the first allocation for a large argument, in bytes. After that the buffer grows as bytes
/// arrive, so that an announced length alone costs at most this much memory. (With 1 MiB and huge pages, ten thousand
/// peers could occupy 10 GB by announcing.)
const LARGE_CAPACITY_FIRST: usize = 64 * 1024;

/// The maximum growth of a large argument's buffer, in bytes: a single read may fill the buffer, and other clients of
/// the same thread wait during that read.
const LARGE_GROWTH_MAX: usize = 8 * 1024 * 1024;

/// The number of spans that an idle parser keeps allocated (512 bytes), for the next command that is incomplete at the
/// end of the input.
const SPANS_KEPT_MAX: usize = 64;

/// The reason why [`Parser::parse`] stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum ParseStatus {
    /// The batch is full; the input may contain more commands.
    Full,
    /// All input has been read.
    NeedMore,
    /// All input has been read and the next bytes belong to a large argument: read them into [`Parser::large_mut`].
    NeedLarge,
    /// The bytes at [`Parser::position`] are not a command. The commands before that position are in the batch and must
    /// be run first; then the error must be sent and the connection closed. Another call returns the same error.
    Err(ProtocolError),
}

/// The first bytes of a TLS connection: a handshake record of a version 3.x. No command name begins with them.
const TLS_HANDSHAKE: [u8; 2] = [0x16, 0x03];

/// A request that violates the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolError {
    /// The argument count is not a number, or exceeds its limit.
    InvalidMultibulkLength,
    /// The line with the argument count is too long.
    TooBigMultibulkCount,
    /// More arguments than a peer may send before authentication.
    UnauthenticatedMultibulkLength,
    /// An argument begins with this byte instead of `$`.
    ExpectedDollar(u8),
    /// The line with an argument's length is too long.
    TooBigBulkCount,
    /// An argument's length is not a number, is negative, or exceeds its limit.
    InvalidBulkLength,
    /// An argument is longer than allowed before authentication.
    UnauthenticatedBulkLength,
    /// The line of an inline command is too long.
    TooBigInline,
    /// An inline command's quotes do not match.
    UnbalancedQuotes,
    /// The input of one incomplete command reaches 4 GiB, excluding large arguments.
    TooBigRequest,
    /// The bytes are the beginning of a TLS handshake.
    TlsHandshake,
}

impl ProtocolError {
    /// Returns the error text for the client, without the leading `ERR `. The text is not always UTF-8: it may quote a
    /// byte of the request.
    pub fn text(&self) -> Cow<'static, [u8]> {
        Cow::Borrowed(match self {
            Self::InvalidMultibulkLength => b"Protocol error: invalid multibulk length",
            Self::TooBigMultibulkCount => b"Protocol error: too big mbulk count string",
            Self::UnauthenticatedMultibulkLength => b"Protocol error: unauthenticated multibulk length",
            Self::ExpectedDollar(got) => {
                let mut text = b"Protocol error: expected '$', got '".to_vec();
                text.extend_from_slice(&[*got, b'\'']);
                return Cow::Owned(text);
            }
            Self::TooBigBulkCount => b"Protocol error: too big bulk count string",
            Self::InvalidBulkLength => b"Protocol error: invalid bulk length",
            Self::UnauthenticatedBulkLength => b"Protocol error: unauthenticated bulk length",
            Self::TooBigInline => b"Protocol error: too big inline request",
            Self::UnbalancedQuotes => b"Protocol error: unbalanced quotes in request",
            Self::TooBigRequest => b"Protocol error: too big request",
            Self::TlsHandshake => b"Protocol error: this port does not speak TLS",
        })
    }
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.text()))
    }
}

impl std::error::Error for ProtocolError {}

/// The part of the incomplete command that has not arrived.
#[derive(Clone, Copy, Debug, Default)]
enum Stage {
    /// The end of the command's first line; `cursor` is 0.
    #[default]
    Command,
    /// The end of the next argument's length line.
    Length,
    /// The rest of an argument of this many bytes, excluding its line end.
    Bulk(u32),
    /// The rest of the large argument.
    Large,
    /// The line end after a large argument.
    LineEnd,
}

/// The outcome of the slow path.
enum Progress {
    NeedMore,
    NeedLarge,
    /// The command is complete; it ends at `cursor`.
    Complete,
    /// Bytes that form no command, such as an empty line or `*0`, end at `cursor`.
    Nothing,
}

/// The state of one connection's requests across reads. The caller owns the input bytes and may move or drop them
/// according to [`consumed`](Parser::consumed) and [`discard`](Parser::discard).
#[derive(Debug, Default)]
pub struct Parser {
    /// The offset of the incomplete command in the input.
    start: usize,
    /// The offset to continue at, relative to `start`.
    cursor: usize,
    /// The number of bytes after `cursor` that are known to contain no line end.
    searched: usize,
    stage: Stage,
    /// Arguments of the incomplete command that are still to come. The number is announced by the peer, so nothing is
    /// allocated for it.
    arguments_left: usize,
    spans: Vec<Span>,
    buffers: Vec<Arc<Vec<u8>>>,
    /// The sum of the lengths of `buffers`, in bytes.
    buffered_bytes: usize,
    /// The large argument being received, in [`Stage::Large`] only. Boxed because few connections receive one.
    large: Option<Box<Large>>,
}

/// A large argument being received.
#[derive(Debug)]
struct Large {
    /// The bytes received so far.
    bytes: Vec<u8>,
    /// The number of bytes when complete.
    len: usize,
    /// The number of input bytes before the parser's cursor that were moved into `bytes`.
    moved: usize,
}

impl Parser {
    /// Creates a parser at the start of an input; allocates nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the offset in the input of the first byte not read yet.
    #[inline]
    pub fn position(&self) -> usize {
        self.start + self.cursor
    }

    /// Returns the number of leading input bytes that are no longer needed once the commands in the batch have run: all
    /// before the incomplete command.
    #[inline]
    pub fn consumed(&self) -> usize {
        self.start
    }

    /// Whether no part of another command has been read after the last complete command.
    pub fn is_between_commands(&self, input: &[u8]) -> bool {
        matches!(self.stage, Stage::Command) && self.start == input.len()
    }

    /// Records that the caller has dropped the first `count` bytes of the input, so that the offsets of all other bytes
    /// are now smaller by `count` (in the same memory or elsewhere). O(1).
    ///
    /// # Panics
    /// Panics if `count` is more than [`consumed`](Parser::consumed).
    #[inline]
    pub fn discard(&mut self, count: usize) {
        assert!(count <= self.start, "bytes of the incomplete command are still needed");
        self.start -= count;
    }

    /// Returns how many bytes at the end of the input have been moved into the large argument, after
    /// [`ParseStatus::NeedLarge`]. The parser no longer counts these bytes, so the caller must truncate the input by
    /// exactly this number. A caller that does not call this function must keep the bytes until the command is
    /// complete.
    pub fn release_tail(&mut self) -> usize {
        let moved = self.large.as_mut().map_or(0, |large| std::mem::take(&mut large.moved));
        self.cursor -= moved;
        moved
    }

    /// Returns the memory in bytes for the incomplete command in addition to the input: received bytes of large
    /// arguments, and spans. Counts against the client's query buffer limit. O(1).
    pub fn retained_bytes(&self) -> usize {
        let large = self.large.as_ref().map_or(0, |large| large.bytes.len());
        self.buffered_bytes + large + self.spans.capacity() * size_of::<Span>()
    }

    /// Returns the large argument that is waiting for bytes, with space for at least one; `None` if no large argument
    /// is being received, or it is complete (then call [`parse`](Parser::parse)).
    pub fn large_mut(&mut self) -> Option<LargeTarget<'_>> {
        let Large { bytes, len, .. } = &mut **self.large.as_mut()?;
        if bytes.len() == *len {
            return None;
        }
        reserve_large(bytes, *len);
        Some(LargeTarget { bytes, len: *len })
    }

    /// Parses the commands that begin at [`position`](Parser::position) of `input` and adds the complete ones to
    /// `batch`, until the batch contains [`Limits::batch_commands_max`] commands (one, while the peer has not
    /// authenticated) or all input is read. The arguments are offsets in `input`, so the commands must run before these
    /// bytes are dropped or moved.
    ///
    /// `input` must be the input of the last call without the discarded bytes, with new bytes at its end. O(new bytes).
    pub fn parse(&mut self, input: &[u8], batch: &mut Batch, limits: &Limits) -> ParseStatus {
        self.parse_bounded(input, batch, limits, INPUT_LEN_MAX)
    }

    fn parse_bounded(
        &mut self,
        input: &[u8],
        batch: &mut Batch,
        limits: &Limits,
        input_len_max: usize,
    ) -> ParseStatus {
        let input = &input[..input.len().min(input_len_max)];
        let bounds = Bounds::new(limits);
        loop {
            if matches!(self.stage, Stage::Command) && self.searched == 0 {
                self.parse_whole(input, batch, &bounds);
            }
            if batch.len() >= bounds.commands_max {
                return ParseStatus::Full;
            }
            match self.advance(&input[self.start..], &bounds) {
                Ok(Progress::Complete) => self.commit(batch),
                Ok(Progress::Nothing) => self.next_command(),
                Ok(Progress::NeedLarge) => return ParseStatus::NeedLarge,
                Ok(Progress::NeedMore) if input.len() == input_len_max && self.start == 0 => {
                    return ParseStatus::Err(ProtocolError::TooBigRequest);
                }
                Ok(Progress::NeedMore) => return ParseStatus::NeedMore,
                Err(error) => return ParseStatus::Err(error),
            }
        }
    }

    /// Parses complete, ordinary commands (the fast path). Stops before the first other command, whose complete
    /// arguments become the arguments of the incomplete command.
    fn parse_whole(&mut self, input: &[u8], batch: &mut Batch, bounds: &Bounds) {
        let mut rest = &input[self.start..];
        while batch.ends.len() < bounds.commands_max {
            let Some((count, arguments)) = count_line(rest) else { break };
            if count > bounds.multibulk_count_max {
                break;
            }
            let first = batch.spans.len();
            let (left, after) =
                bulk_arguments(arguments, input.len(), count, bounds.in_place_len_max, &mut batch.spans);
            if left > 0 {
                self.start = input.len() - rest.len();
                self.cursor = rest.len() - after.len();
                self.arguments_left = left;
                self.stage = Stage::Length;
                let start = self.start as u32;
                self.spans.extend(batch.spans.drain(first..).map(|span| span.relative_to(start)));
                return;
            }
            batch.ends.push(batch.spans.len());
            rest = after;
        }
        self.start = input.len() - rest.len();
    }

    /// Continues to parse the incomplete command (the slow path); `command` is the input from the command's start on.
    fn advance(&mut self, command: &[u8], bounds: &Bounds) -> Result<Progress, ProtocolError> {
        loop {
            match self.stage {
                Stage::Command => match command.first() {
                    None => return Ok(Progress::NeedMore),
                    Some(b'*') => {
                        let too_long = ProtocolError::TooBigMultibulkCount;
                        let Some(line) = self.next_line(command, bounds, too_long)? else {
                            return Ok(Progress::NeedMore);
                        };
                        let count = bounds.multibulk_count(line)?;
                        self.end_line(line);
                        if count == 0 {
                            return Ok(Progress::Nothing);
                        }
                        self.arguments_left = count;
                        self.stage = Stage::Length;
                    }
                    // The first line of a TLS handshake may never end, so the handshake is detected before the line is
                    // complete.
                    Some(_) if command.starts_with(&TLS_HANDSHAKE) => {
                        return Err(ProtocolError::TlsHandshake);
                    }
                    Some(_) => return self.inline_command(command, bounds),
                },
                Stage::Length => {
                    let (left, rest) = bulk_arguments(
                        &command[self.cursor..],
                        command.len(),
                        self.arguments_left,
                        bounds.in_place_len_max,
                        &mut self.spans,
                    );
                    if left < self.arguments_left {
                        self.searched = 0;
                        self.arguments_left = left;
                        self.cursor = command.len() - rest.len();
                    }
                    if left == 0 {
                        return Ok(Progress::Complete);
                    }
                    let Some(line) = self.next_line(command, bounds, ProtocolError::TooBigBulkCount)? else {
                        return Ok(Progress::NeedMore);
                    };
                    let len = bounds.bulk_len(line)?;
                    self.end_line(line);
                    self.stage = match u32::try_from(len) {
                        Ok(len) if len <= bounds.in_place_len_max => Stage::Bulk(len),
                        _ => {
                            self.large = Some(Box::new(Large { bytes: Vec::new(), len, moved: 0 }));
                            Stage::Large
                        }
                    };
                }
                Stage::Bulk(len) => {
                    let after = self.cursor + len as usize + 2;
                    if command.len() < after {
                        return Ok(Progress::NeedMore);
                    }
                    self.spans.push(Span::new(self.cursor as u32, len));
                    self.cursor = after;
                    self.arguments_left -= 1;
                    self.stage = Stage::Length;
                }
                Stage::Large => {
                    if let Some(large) = &mut self.large {
                        self.cursor += large.append(&command[self.cursor..]);
                    }
                    let Some(large) = self.large.take_if(|large| large.bytes.len() == large.len) else {
                        return Ok(Progress::NeedLarge);
                    };
                    self.buffered_bytes += large.len;
                    push_shared(&mut self.spans, &mut self.buffers, Arc::new(large.bytes));
                    self.stage = Stage::LineEnd;
                }
                Stage::LineEnd => {
                    if command.len() < self.cursor + 2 {
                        return Ok(Progress::NeedMore);
                    }
                    self.cursor += 2;
                    self.arguments_left -= 1;
                    self.stage = Stage::Length;
                }
            }
        }
    }

    /// Returns the line at `cursor` up to its `\r`, if the `\r` and the byte after it have arrived.
    fn next_line<'a>(
        &mut self,
        command: &'a [u8],
        bounds: &Bounds,
        too_long: ProtocolError,
    ) -> Result<Option<&'a [u8]>, ProtocolError> {
        let line = &command[self.cursor..];
        match self.search(b'\r', line, bounds.inline_len_max) {
            Some(len) if len + 1 < line.len() => Ok(Some(&line[..len])),
            Some(len) => {
                self.searched = len;
                Ok(None)
            }
            None if line.len() > bounds.inline_len_max => Err(too_long),
            None => Ok(None),
        }
    }

    /// Moves `cursor` after `line` and its two line end bytes.
    fn end_line(&mut self, line: &[u8]) {
        self.cursor += line.len() + 2;
        self.searched = 0;
    }

    /// Returns the offset of the byte `end` in `line`, if that offset is at most `len_max`. Reads no byte twice.
    fn search(&mut self, end: u8, line: &[u8], len_max: usize) -> Option<usize> {
        let window = &line[..line.len().min(len_max.saturating_add(1))];
        let found = memchr(end, &window[self.searched.min(window.len())..]);
        match found {
            Some(offset) => Some(self.searched + offset),
            None => {
                self.searched = window.len();
                None
            }
        }
    }

    fn inline_command(&mut self, command: &[u8], bounds: &Bounds) -> Result<Progress, ProtocolError> {
        let Some(len) = self.search(b'\n', command, bounds.inline_len_max) else {
            if command.len() > bounds.inline_len_max {
                return Err(ProtocolError::TooBigInline);
            }
            return Ok(Progress::NeedMore);
        };
        let line = &command[..len];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if inline::split(line, &mut self.spans, &mut self.buffers).is_err() {
            self.spans.clear();
            self.buffers.clear();
            self.searched = len;
            return Err(ProtocolError::UnbalancedQuotes);
        }
        self.cursor = len + 1;
        Ok(if self.spans.is_empty() { Progress::Nothing } else { Progress::Complete })
    }

    /// Moves the complete command to `batch`.
    fn commit(&mut self, batch: &mut Batch) {
        let start = self.start as u32;
        let buffers = batch.buffers.len() as u32;
        batch.spans.extend(self.spans.drain(..).map(|span| span.rebased(start, buffers)));
        batch.buffers.append(&mut self.buffers);
        batch.ends.push(batch.spans.len());
        self.spans.shrink_to(SPANS_KEPT_MAX);
        self.buffers = Vec::new();
        self.buffered_bytes = 0;
        self.next_command();
    }

    fn next_command(&mut self) {
        self.start += self.cursor;
        self.cursor = 0;
        self.searched = 0;
        self.stage = Stage::Command;
    }
}

impl Large {
    /// Appends as many of `available` as the argument is missing, and returns that number.
    fn append(&mut self, available: &[u8]) -> usize {
        assert!(self.bytes.len() <= self.len, "a read into a large argument went past its end");
        let count = available.len().min(self.len - self.bytes.len());
        let received = self.bytes.len() + count;
        if self.bytes.capacity() < received {
            let capacity = large_capacity(received, self.len);
            self.bytes.reserve_exact(capacity - self.bytes.len());
        }
        self.bytes.extend_from_slice(&available[..count]);
        self.moved += count;
        count
    }
}

/// The buffer of a large argument that is waiting for bytes (see [`Parser::large_mut`]).
#[derive(Debug)]
pub struct LargeTarget<'a> {
    bytes: &'a mut Vec<u8>,
    len: usize,
}

impl LargeTarget<'_> {
    /// Returns the number of missing bytes of the argument, at least 1.
    pub fn missing(&self) -> usize {
        self.len - self.bytes.len()
    }

    /// Returns the bytes received so far; the caller must append further bytes. The spare capacity is at least 1 byte
    /// and at most [`missing`](LargeTarget::missing), so a read that fills it does not read beyond the argument. The
    /// vector must not be shortened or reallocated.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        self.bytes
    }

    /// Appends as many of `bytes` as the argument is missing, and returns that number. Intended for bytes that were not
    /// read directly from a socket, such as decrypted ones.
    pub fn extend(&mut self, bytes: &[u8]) -> usize {
        let count = bytes.len().min(self.missing());
        let mut rest = &bytes[..count];
        while !rest.is_empty() {
            reserve_large(self.bytes, self.len);
            let spare = self.bytes.capacity() - self.bytes.len();
            let (piece, after) = rest.split_at(rest.len().min(spare));
            self.bytes.extend_from_slice(piece);
            rest = after;
        }
        count
    }
}

/// Reserves space for at least one byte of a large argument of `len` bytes in total.
fn reserve_large(bytes: &mut Vec<u8>, len: usize) {
    if bytes.capacity() == bytes.len() {
        bytes.reserve_exact(large_capacity(bytes.len(), len) - bytes.len());
    }
}

/// Returns the capacity for a large argument of `len` bytes of which `received` have arrived: it doubles within limits,
/// up to exactly `len`.
fn large_capacity(received: usize, len: usize) -> usize {
    len.min(received.saturating_add(received.clamp(LARGE_CAPACITY_FIRST, LARGE_GROWTH_MAX)))
}

/// The [`Limits`], converted to the form with which the parser compares.
struct Bounds {
    commands_max: usize,
    /// The maximum length of an argument that is referenced in the input, in bytes.
    in_place_len_max: u32,
    multibulk_count_max: usize,
    inline_len_max: usize,
    limits: Limits,
}

impl Bounds {
    fn new(limits: &Limits) -> Self {
        let mut bulk_len_max = limits.bulk_len_max.min(limits.large_argument_min.saturating_sub(1));
        let mut multibulk_count_max = limits.multibulk_count_max;
        if !limits.authenticated {
            bulk_len_max = bulk_len_max.min(UNAUTHENTICATED_BULK_LEN_MAX);
            multibulk_count_max = multibulk_count_max.min(UNAUTHENTICATED_MULTIBULK_COUNT_MAX);
        }
        Self {
            commands_max: if limits.authenticated { limits.batch_commands_max } else { 1 },
            in_place_len_max: bulk_len_max.min(u64::from(SPAN_LEN_MAX)) as u32,
            multibulk_count_max: usize::try_from(multibulk_count_max).unwrap_or(usize::MAX),
            inline_len_max: limits.inline_len_max,
            limits: *limits,
        }
    }

    /// Parses the argument count in `line`, which includes the `*`; 0 for a command without arguments.
    fn multibulk_count(&self, line: &[u8]) -> Result<usize, ProtocolError> {
        let count = line.get(1..).and_then(parse_i64).ok_or(ProtocolError::InvalidMultibulkLength)?;
        let count = u64::try_from(count).unwrap_or(0);
        if count > self.limits.multibulk_count_max {
            return Err(ProtocolError::InvalidMultibulkLength);
        }
        if !self.limits.authenticated && count > UNAUTHENTICATED_MULTIBULK_COUNT_MAX {
            return Err(ProtocolError::UnauthenticatedMultibulkLength);
        }
        usize::try_from(count).map_err(|_| ProtocolError::InvalidMultibulkLength)
    }

    /// Parses the length in an argument's first line, which includes the `$`.
    fn bulk_len(&self, line: &[u8]) -> Result<usize, ProtocolError> {
        let digits = match line {
            [b'$', digits @ ..] => digits,
            [other, ..] => return Err(ProtocolError::ExpectedDollar(*other)),
            // The line is empty: its end replaces the dollar sign.
            [] => return Err(ProtocolError::ExpectedDollar(b'\r')),
        };
        let len = parse_i64(digits).and_then(|len| u64::try_from(len).ok());
        let len =
            len.filter(|&len| len <= self.limits.bulk_len_max).ok_or(ProtocolError::InvalidBulkLength)?;
        if !self.limits.authenticated && len > UNAUTHENTICATED_BULK_LEN_MAX {
            return Err(ProtocolError::UnauthenticatedBulkLength);
        }
        usize::try_from(len).map_err(|_| ProtocolError::InvalidBulkLength)
    }
}

/// Parses the complete arguments at the beginning of `rest`, which is the end of an input of `input_len` bytes, but at
/// most `left` of them, and adds them to `spans`. Returns how many arguments are still missing, and the bytes after the
/// last parsed one. Stops before an argument that is cut off, longer than `len_max`, or malformed.
#[inline(always)]
fn bulk_arguments<'a>(
    mut rest: &'a [u8],
    input_len: usize,
    mut left: usize,
    len_max: u32,
    spans: &mut Vec<Span>,
) -> (usize, &'a [u8]) {
    while left > 0 {
        let Some((len, payload)) = length_line(rest) else { break };
        if len > len_max {
            break;
        }
        let Some(after) = payload.get(len as usize + 2..) else { break };
        spans.push(Span::new((input_len - payload.len()) as u32, len));
        rest = after;
        left -= 1;
    }
    (left, rest)
}

/// Parses `*N\r\n` with N above 0; returns N and the rest.
#[inline(always)]
fn count_line(rest: &[u8]) -> Option<(usize, &[u8])> {
    match rest {
        [b'*', digit @ b'1'..=b'9', b'\r', _, after @ ..] => Some((usize::from(digit - b'0'), after)),
        [b'*', digits @ ..] => long_line(digits).map(|(count, after)| (count as usize, after)),
        _ => None,
    }
}

/// Parses `$N\r\n`; returns N and the rest.
#[inline(always)]
fn length_line(rest: &[u8]) -> Option<(u32, &[u8])> {
    match rest {
        [b'$', digit @ b'0'..=b'9', b'\r', _, after @ ..] => Some((u32::from(digit - b'0'), after)),
        [b'$', tens @ b'1'..=b'9', ones @ b'0'..=b'9', b'\r', _, after @ ..] => {
            Some((u32::from(tens - b'0') * 10 + u32::from(ones - b'0'), after))
        }
        [b'$', digits @ ..] => long_line(digits),
        _ => None,
    }
}

/// Parses a number of one to nine digits without leading zeros; returns the number and the bytes after its line end.
/// `None` for all other forms, valid or not, which the slow path parses.
fn long_line(digits: &[u8]) -> Option<(u32, &[u8])> {
    let first = *digits.first()?;
    if !matches!(first, b'1'..=b'9') {
        return None;
    }
    let mut number = u32::from(first - b'0');
    for (index, &byte) in digits.iter().enumerate().take(10).skip(1) {
        match byte {
            b'0'..=b'9' if index < 9 => number = number * 10 + u32::from(byte - b'0'),
            b'\r' => return digits.get(index + 2..).map(|after| (number, after)),
            _ => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_parser_is_small() {
        assert!(size_of::<Parser>() <= 192, "{}", size_of::<Parser>());
        assert_eq!(Parser::new().retained_bytes(), 0);
    }

    #[test]
    fn a_command_that_outgrows_its_offsets_is_refused() {
        let mut batch = Batch::new();
        let limits = Limits::default();
        let input = b"PING\n*9\r\n$4\r\nabcd\r\n$4\r\nabcd\r\n$4\r\nabcd\r\n$4\r\nabcd\r\n";
        let mut parser = Parser::new();
        assert_eq!(parser.parse_bounded(input, &mut batch, &limits, 32), ParseStatus::NeedMore);
        assert_eq!((batch.len(), parser.consumed()), (1, 5));
        parser.discard(5);
        let status = parser.parse_bounded(&input[5..], &mut batch, &limits, 32);
        assert_eq!(status, ParseStatus::Err(ProtocolError::TooBigRequest));
        let status = parser.parse_bounded(&input[5..], &mut batch, &limits, 64);
        assert_eq!(status, ParseStatus::NeedMore);
    }

    #[test]
    fn searched_bytes_are_not_searched_again_for_a_line_end() {
        let mut batch = Batch::new();
        let limits = Limits::default();
        for head in [&b"*1"[..], b"*1\r\n$1", b"SET a"] {
            let mut parser = Parser::new();
            assert_eq!(parser.parse(head, &mut batch, &limits), ParseStatus::NeedMore);
            assert_eq!(parser.cursor + parser.searched, head.len());
        }
    }

    #[test]
    fn whole_arguments_of_a_cut_command_are_kept() {
        let mut batch = Batch::new();
        let mut parser = Parser::new();
        let input = b"*1\r\n$4\r\nPING\r\n*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$5\r\nval";
        assert_eq!(parser.parse(input, &mut batch, &Limits::default()), ParseStatus::NeedMore);
        assert_eq!((parser.spans.len(), parser.arguments_left), (2, 1));
        assert!(matches!(parser.stage, Stage::Bulk(5)));
        assert_eq!((batch.len(), batch.spans.len()), (1, 1));
    }

    #[test]
    fn the_fast_path_accepts_numbers_of_every_width() {
        for number in [1u32, 9, 10, 99, 100, 12345, 999_999_999] {
            let text = format!("${number}\r\nrest");
            assert_eq!(length_line(text.as_bytes()), Some((number, &b"rest"[..])));
            let text = format!("*{number}\r\nrest");
            assert_eq!(count_line(text.as_bytes()), Some((number as usize, &b"rest"[..])));
        }
        assert_eq!(length_line(b"$0\r\n"), Some((0, &b""[..])));
        for text in
            ["", "$", "$1", "$1\r", "$12\r", "$123\r", "$01\r\n", "$-1\r\n", "$1a\r\n", "$1000000000\r\n"]
        {
            assert_eq!(length_line(text.as_bytes()), None, "{text}");
        }
        for text in ["*0\r\n", "*-1\r\n", "*01\r\n", "$1\r\n", "*1000000000\r\n"] {
            assert_eq!(count_line(text.as_bytes()), None, "{text}");
        }
    }
}
