//! The reply writer: the bytes of a batch of replies in RESP2 or RESP3.
//!
//! Replies are appended to one byte vector. A large value is not copied: it becomes a shared segment: an `Arc` and the
//! offset in the vector at which its bytes are inserted. The vector's pieces and the segments are sent alternately, by
//! one `writev`.
//!
//! Invariant: the segments' offsets never decrease and are at most the vector's length; `shared_bytes` is the
//! sum of their lengths.

use std::io::IoSlice;
use std::ops::Range;
use std::sync::Arc;

use memchr::memchr2;

use crate::number::{write_f64, write_i64, write_u64};
use crate::parser::ProtocolError;

/// The length in bytes from which [`Reply::bulk_shared`] references the buffer instead of copying it: copying fewer
/// bytes costs no more than another entry in `writev` and two reference count updates.
pub const SHARED_LEN_MIN: usize = 32 * 1024;

/// The capacity in bytes that [`Reply::clear`] keeps for the next batch.
const CAPACITY_KEPT_MAX: usize = 1024 * 1024;

/// The number of segments for which [`Reply::clear`] keeps the capacity.
const SEGMENTS_KEPT_MAX: usize = 1024;

/// The two protocol versions; HELLO switches between them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// RESP2: strings, errors, integers, bulks and arrays.
    #[default]
    Resp2,
    /// RESP3: also maps, sets, doubles, booleans, pushes and more.
    Resp3,
}

/// A position between two replies (see [`Reply::mark`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    bytes: usize,
    segments: usize,
}

/// A large value inside the replies.
#[derive(Clone, Debug)]
struct Segment {
    /// The segment is sent before the byte at this offset of the byte vector.
    at: usize,
    bytes: Arc<Vec<u8>>,
    /// The range of `bytes` that belongs to the reply.
    part: Range<usize>,
}

impl Segment {
    /// Creates a segment of all bytes.
    fn whole(at: usize, bytes: Arc<Vec<u8>>) -> Segment {
        let part = 0..bytes.len();
        Segment { at, bytes, part }
    }
}

/// The replies of one batch, in order.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    bytes: Vec<u8>,
    segments: Vec<Segment>,
    /// The sum of the lengths of `segments`.
    shared_bytes: usize,
    protocol: Protocol,
}

impl Reply {
    /// Creates an empty reply; allocates nothing.
    pub fn new(protocol: Protocol) -> Self {
        Self { protocol, ..Self::default() }
    }

    /// Returns the protocol of the next replies.
    #[inline]
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Whether the next replies are written in RESP3.
    #[inline]
    pub fn is_resp3(&self) -> bool {
        self.protocol == Protocol::Resp3
    }

    /// Sets the protocol of the following replies.
    pub fn set_protocol(&mut self, protocol: Protocol) {
        self.protocol = protocol;
    }

    /// Writes `+OK`.
    #[inline]
    pub fn ok(&mut self) {
        self.bytes.extend_from_slice(b"+OK\r\n");
    }

    /// Writes a simple string. Line ends in it become spaces.
    #[inline]
    pub fn simple(&mut self, text: &str) {
        self.line(b'+', text.as_bytes());
    }

    /// Writes a simple string of any bytes. Line ends in it become spaces.
    pub fn simple_bytes(&mut self, text: &[u8]) {
        self.line(b'+', text);
    }

    /// Writes an error. `text` begins with its code (`ERR …`, `WRONGTYPE …`). Line ends at its beginning and end are
    /// removed, others become spaces.
    pub fn error(&mut self, text: &str) {
        self.error_bytes(text.as_bytes());
    }

    /// Writes an error that quotes bytes of a request, which may not be UTF-8 (see [`error`](Reply::error)).
    pub fn error_bytes(&mut self, text: &[u8]) {
        let is_line_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
        let start = text.iter().position(|byte| !is_line_end(byte)).unwrap_or(text.len());
        let end = text.iter().rposition(|byte| !is_line_end(byte)).map_or(start, |last| last + 1);
        self.line(b'-', &text[start..end]);
    }

    /// Writes the error for a request that violates the protocol, after which the connection must be closed.
    pub fn protocol_error(&mut self, error: ProtocolError) {
        self.error_bytes(&[b"ERR ", &*error.text()].concat());
    }

    /// Writes an integer.
    #[inline]
    pub fn integer(&mut self, number: i64) {
        if let 0..=99 = number {
            self.header(b':', number as usize);
        } else {
            self.bytes.push(b':');
            write_i64(&mut self.bytes, number);
            self.line_end();
        }
    }

    /// Writes a bulk string.
    #[inline]
    pub fn bulk(&mut self, value: &[u8]) {
        self.bytes.reserve(value.len() + HEADER_LEN_MAX + 2);
        match value.len() {
            len @ 10..=99 => self.bytes.extend_from_slice(&two_digits(b'$', len)),
            len => self.header(b'$', len),
        }
        self.bytes.extend_from_slice(value);
        self.line_end();
    }

    /// Writes a bulk string. From [`SHARED_LEN_MIN`] bytes on, the bytes are not copied; the reply references them
    /// until they are sent.
    #[inline]
    pub fn bulk_shared(&mut self, value: &Arc<Vec<u8>>) {
        if value.len() < SHARED_LEN_MIN {
            return self.bulk(value);
        }
        self.bulk_shared_part(value, 0..value.len());
    }

    /// Writes a bulk string that is a part of shared bytes, referenced as in [`Reply::bulk_shared`]; the whole buffer
    /// remains in memory until the part is sent.
    ///
    /// # Panics
    /// Panics if the part exceeds the bytes.
    pub fn bulk_shared_part(&mut self, bytes: &Arc<Vec<u8>>, part: Range<usize>) {
        assert!(part.start <= part.end && part.end <= bytes.len(), "a part is in the whole");
        if part.len() < SHARED_LEN_MIN {
            return self.bulk(&bytes[part]);
        }
        self.header(b'$', part.len());
        self.shared_bytes += part.len();
        self.segments.push(Segment { at: self.bytes.len(), bytes: Arc::clone(bytes), part });
        self.line_end();
    }

    /// Writes a bulk string with the digits of `number`.
    #[inline]
    pub fn bulk_integer(&mut self, number: i64) {
        self.bulk(itoa::Buffer::new().format(number).as_bytes());
    }

    /// Writes a null.
    #[inline]
    pub fn null(&mut self) {
        self.bytes.extend_from_slice(match self.protocol {
            Protocol::Resp2 => b"$-1\r\n",
            Protocol::Resp3 => b"_\r\n",
        });
    }

    /// Writes a null array.
    #[inline]
    pub fn null_array(&mut self) {
        self.bytes.extend_from_slice(match self.protocol {
            Protocol::Resp2 => b"*-1\r\n",
            Protocol::Resp3 => b"_\r\n",
        });
    }

    /// Writes the head of an array: `count` replies must follow.
    #[inline]
    pub fn array(&mut self, count: usize) {
        self.header(b'*', count);
    }

    /// Writes the head of a map: `count` pairs of replies must follow. In RESP2, writes the head of an array of twice
    /// as many replies.
    #[inline]
    pub fn map(&mut self, count: usize) {
        let (kind, count) = self.map_head(count);
        self.header(kind, count);
    }

    /// Writes the head of a set, in RESP2 of an array: `count` replies must follow.
    #[inline]
    pub fn set(&mut self, count: usize) {
        let kind = self.kind(b'~');
        self.header(kind, count);
    }

    /// Writes the head of an out-of-band message, in RESP2 of an array: `count` replies must follow.
    #[inline]
    pub fn push(&mut self, count: usize) {
        let kind = self.kind(b'>');
        self.header(kind, count);
    }

    /// Writes the head of attributes of the next reply. Returns true if `count` pairs of replies must follow; RESP2 has
    /// no attributes, so nothing is written and the pairs must be omitted.
    #[must_use]
    pub fn attribute(&mut self, count: usize) -> bool {
        if self.is_resp3() {
            self.header(b'|', count);
        }
        self.is_resp3()
    }

    /// Writes a double, in RESP2 a bulk string. The digits are those of [`write_f64`](crate::number::write_f64).
    pub fn double(&mut self, number: f64) {
        if self.is_resp3() {
            self.bytes.push(b',');
            write_f64(&mut self.bytes, number);
            self.line_end();
        } else {
            let mark = self.mark();
            write_f64(&mut self.bytes, number);
            self.insert_header(mark, b'$', self.bytes.len() - mark.bytes);
            self.line_end();
        }
    }

    /// Writes a double of which `text` is the text, in RESP2 a bulk string. Intended for numbers with more digits than an
    /// `f64`.
    pub fn double_text(&mut self, text: &[u8]) {
        if self.is_resp3() {
            self.bytes.push(b',');
            self.bytes.extend_from_slice(text);
            self.line_end();
        } else {
            self.bulk(text);
        }
    }

    /// Writes a boolean, in RESP2 the integer 1 or 0.
    pub fn boolean(&mut self, value: bool) {
        self.bytes.extend_from_slice(match (self.protocol, value) {
            (Protocol::Resp2, false) => b":0\r\n",
            (Protocol::Resp2, true) => b":1\r\n",
            (Protocol::Resp3, false) => b"#f\r\n",
            (Protocol::Resp3, true) => b"#t\r\n",
        });
    }

    /// Writes a text with its format (`txt`, `mkd`), in RESP2 a bulk string of the text alone.
    pub fn verbatim(&mut self, format: &[u8; 3], text: &[u8]) {
        if self.is_resp3() {
            self.header(b'=', text.len() + 4);
            self.bytes.extend_from_slice(format);
            self.bytes.push(b':');
            self.bytes.extend_from_slice(text);
            self.line_end();
        } else {
            self.bulk(text);
        }
    }

    /// Writes an integer of any size as its decimal digits, in RESP2 a bulk string.
    pub fn big_number(&mut self, digits: &str) {
        if self.is_resp3() {
            self.line(b'(', digits.as_bytes());
        } else {
            self.bulk(digits.as_bytes());
        }
    }

    /// Replies that are already encoded.
    #[inline]
    pub fn raw(&mut self, replies: &[u8]) {
        self.bytes.extend_from_slice(replies);
    }

    /// Writes encoded replies in a shared buffer. A long buffer is referenced instead of copied, as in
    /// [`Reply::bulk_shared`].
    pub fn raw_shared(&mut self, replies: &Arc<Vec<u8>>) {
        if replies.len() < SHARED_LEN_MIN {
            return self.raw(replies);
        }
        self.shared_bytes += replies.len();
        self.segments.push(Segment::whole(self.bytes.len(), Arc::clone(replies)));
    }

    /// Returns the position after the last reply: for [`truncate_to`](Reply::truncate_to), for a head inserted later,
    /// and for [`append_from`](Reply::append_from). The mark is valid until replies before it change: marks nest like
    /// brackets. The default mark is the beginning.
    #[inline]
    pub fn mark(&self) -> Mark {
        Mark { bytes: self.bytes.len(), segments: self.segments.len() }
    }

    /// Turns the `count` replies after `mark` into an array. O(bytes after the mark).
    pub fn insert_array(&mut self, mark: Mark, count: usize) {
        self.insert_header(mark, b'*', count);
    }

    /// Turns the `count` pairs of replies after `mark` into a map (see [`map`](Reply::map)). O(bytes after the mark).
    pub fn insert_map(&mut self, mark: Mark, count: usize) {
        let (kind, count) = self.map_head(count);
        self.insert_header(mark, kind, count);
    }

    /// Turns the `count` replies after `mark` into a set (see [`set`](Reply::set)). O(bytes after the mark).
    pub fn insert_set(&mut self, mark: Mark, count: usize) {
        self.insert_header(mark, self.kind(b'~'), count);
    }

    /// Turns the `count` replies after `mark` into a push (see [`push`](Reply::push)). O(bytes after the mark).
    pub fn insert_push(&mut self, mark: Mark, count: usize) {
        self.insert_header(mark, self.kind(b'>'), count);
    }

    /// Removes all replies after `mark`.
    pub fn truncate_to(&mut self, mark: Mark) {
        self.bytes.truncate(mark.bytes);
        self.shared_bytes -=
            self.segments.drain(mark.segments..).map(|segment| segment.part.len()).sum::<usize>();
    }

    /// Returns the length of all replies in bytes, shared segments included. O(1).
    #[inline]
    pub fn len_bytes(&self) -> usize {
        self.bytes.len() + self.shared_bytes
    }

    /// Whether nothing has been written.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.segments.is_empty()
    }

    /// Removes all replies. Keeps up to 1 MiB of memory for the next replies.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(CAPACITY_KEPT_MAX);
        self.segments.clear();
        self.segments.shrink_to(SEGMENTS_KEPT_MAX);
        self.shared_bytes = 0;
    }

    /// Returns the memory of these replies in bytes, including shared segments in full.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + self.segments.capacity() * size_of::<Segment>() + self.shared_bytes
    }

    /// Appends the replies of `other` between two of its marks. Large values are shared. O(bytes copied).
    ///
    /// # Panics
    /// Panics if the marks do not belong to `other` or are not in order.
    pub fn append_from(&mut self, other: &Reply, from: Mark, to: Mark) {
        let base = self.bytes.len();
        self.bytes.extend_from_slice(&other.bytes[from.bytes..to.bytes]);
        for segment in &other.segments[from.segments..to.segments] {
            self.shared_bytes += segment.part.len();
            let at = base + (segment.at - from.bytes);
            self.segments.push(Segment { at, ..segment.clone() });
        }
    }

    /// Appends all replies of `other`. Large values are shared. O(bytes copied).
    pub fn append(&mut self, other: &Reply) {
        self.append_from(other, Mark::default(), other.mark());
    }

    /// Appends all replies of `other`. If they are long and contain no shared values, they become a shared segment and
    /// are not copied. O(bytes copied).
    pub fn append_all(&mut self, other: Reply) {
        if !other.segments.is_empty() || other.bytes.len() < SHARED_LEN_MIN {
            return self.append(&other);
        }
        self.shared_bytes += other.bytes.len();
        self.segments.push(Segment::whole(self.bytes.len(), Arc::new(other.bytes)));
    }

    /// Returns the pieces of the replies in order, without the first `from` bytes (those already sent) and without
    /// empty pieces. O(pieces before the first one).
    pub fn slices(&self, from: usize) -> Slices<'_> {
        Slices { reply: self, at: 0, segment: 0, skip: from }
    }

    /// Fills `target` with the pieces of [`slices`](Reply::slices), as far as they fit; returns their number.
    pub fn io_slices<'a>(&'a self, from: usize, target: &mut [IoSlice<'a>]) -> usize {
        let mut count = 0;
        for (slot, piece) in target.iter_mut().zip(self.slices(from)) {
            *slot = IoSlice::new(piece);
            count += 1;
        }
        count
    }

    /// Returns all replies in one vector. O(bytes); for tests and for transports that need one piece.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut all = Vec::with_capacity(self.len_bytes());
        self.slices(0).for_each(|piece| all.extend_from_slice(piece));
        all
    }

    /// Returns the type byte of an aggregate: `resp3` in RESP3, that of an array in RESP2.
    #[inline]
    fn kind(&self, resp3: u8) -> u8 {
        if self.is_resp3() { resp3 } else { b'*' }
    }

    #[inline]
    fn map_head(&self, count: usize) -> (u8, usize) {
        match self.protocol {
            Protocol::Resp2 => (b'*', count * 2),
            Protocol::Resp3 => (b'%', count),
        }
    }

    #[inline]
    fn header(&mut self, kind: u8, number: usize) {
        write_header(&mut self.bytes, kind, number);
    }

    #[inline]
    fn line_end(&mut self) {
        self.bytes.extend_from_slice(b"\r\n");
    }

    #[inline]
    fn line(&mut self, kind: u8, text: &[u8]) {
        self.bytes.reserve(text.len() + 3);
        self.bytes.push(kind);
        let start = self.bytes.len();
        self.bytes.extend_from_slice(text);
        if memchr2(b'\r', b'\n', text).is_some() {
            for byte in &mut self.bytes[start..] {
                if matches!(byte, b'\r' | b'\n') {
                    *byte = b' ';
                }
            }
        }
        self.line_end();
    }

    fn insert_header(&mut self, mark: Mark, kind: u8, number: usize) {
        let end = self.bytes.len();
        self.header(kind, number);
        let len = self.bytes.len() - end;
        self.bytes[mark.bytes..].rotate_right(len);
        for segment in &mut self.segments[mark.segments..] {
            segment.at += len;
        }
    }
}

/// The maximum length of a head: a type byte, 20 digits, a line end.
const HEADER_LEN_MAX: usize = 23;

/// Returns a head with a number from 10 to 99.
#[inline(always)]
fn two_digits(kind: u8, number: usize) -> [u8; 5] {
    [kind, b'0' + (number / 10) as u8, b'0' + (number % 10) as u8, b'\r', b'\n']
}

/// Appends the type byte `kind`, the digits of `number` and a line end.
#[inline]
fn write_header(out: &mut Vec<u8>, kind: u8, number: usize) {
    let digit = |value: usize| b'0' + value as u8;
    match number {
        0..=9 => out.extend_from_slice(&[kind, digit(number), b'\r', b'\n']),
        10..=99 => out.extend_from_slice(&two_digits(kind, number)),
        100..=999 => out.extend_from_slice(&[
            kind,
            digit(number / 100),
            digit(number / 10 % 10),
            digit(number % 10),
            b'\r',
            b'\n',
        ]),
        _ => {
            out.push(kind);
            write_u64(out, number as u64);
            out.extend_from_slice(b"\r\n");
        }
    }
}

/// The pieces of a [`Reply`] in order (see [`Reply::slices`]).
#[derive(Clone, Debug)]
pub struct Slices<'a> {
    reply: &'a Reply,
    /// The number of bytes of the byte vector that have been returned.
    at: usize,
    /// The number of segments that have been returned.
    segment: usize,
    /// The number of bytes that are still to be skipped.
    skip: usize,
}

impl<'a> Slices<'a> {
    /// Returns the next piece, complete and possibly empty.
    fn next_piece(&mut self) -> Option<&'a [u8]> {
        match self.reply.segments.get(self.segment) {
            Some(segment) if segment.at == self.at => {
                self.segment += 1;
                Some(&segment.bytes[segment.part.clone()])
            }
            Some(segment) => {
                let piece = &self.reply.bytes[self.at..segment.at];
                self.at = segment.at;
                Some(piece)
            }
            None => {
                let piece = &self.reply.bytes[self.at..];
                self.at = self.reply.bytes.len();
                (!piece.is_empty()).then_some(piece)
            }
        }
    }
}

impl<'a> Iterator for Slices<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        loop {
            let piece = self.next_piece()?;
            if piece.len() > self.skip {
                return Some(&piece[std::mem::take(&mut self.skip)..]);
            }
            self.skip -= piece.len();
        }
    }
}
