//! Parsed commands: spans into the input bytes, a reusable batch of them, and the view that a handler receives.
//!
//! An argument is one 8-byte [`Span`]. Nearly always the span refers to the input that the command was parsed from. An
//! argument with a separate buffer (a large bulk, or a quoted word of an inline command) is marked in the span's length
//! and its offset is the index of that buffer.

use std::fmt;
use std::ops::Index;
use std::sync::Arc;

use crate::request::{begin_word, push_command_head, push_word};

/// Marks a span whose offset is the index of a large argument, whose buffer may be shared with the keyspace.
const SHARED: u32 = u32::MAX;
/// Marks a span whose offset is the index of a small buffer used only by this command.
const OWNED: u32 = u32::MAX - 1;
/// The maximum length of an argument that a span can refer to in place.
pub(crate) const SPAN_LEN_MAX: u32 = u32::MAX - 2;

/// The number of spans for which [`Batch::clear`] retains memory (512 KiB): enough for several full batches of ordinary
/// commands.
const SPANS_KEPT_MAX: usize = 64 * 1024;
/// The number of buffer handles for which [`Batch::clear`] retains memory.
const BUFFERS_KEPT_MAX: usize = 1024;
/// The number of copied bytes for which [`OwnedBatch::clear`] retains memory.
const BYTES_KEPT_MAX: usize = 1024 * 1024;

/// The number of bytes between two arguments in RESP, excluding the digits of the length: two line ends and a dollar
/// sign.
const HEAD_BYTES: u32 = 5;

/// The location of one argument.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    offset: u32,
    len: u32,
}

const _: () = assert!(size_of::<Span>() == 8);

impl Span {
    /// Creates the span of `len` bytes at `offset` of the input; `len` is at most [`SPAN_LEN_MAX`].
    #[inline]
    pub(crate) fn new(offset: u32, len: u32) -> Self {
        Self { offset, len }
    }

    fn shared(index: usize) -> Self {
        Self { offset: buffer_index(index), len: SHARED }
    }

    fn owned(index: usize) -> Self {
        Self { offset: buffer_index(index), len: OWNED }
    }

    #[inline]
    fn has_buffer(self) -> bool {
        self.len >= OWNED
    }

    /// Returns the end of the argument, if it is in the input.
    fn end(self) -> Option<u32> {
        if self.has_buffer() { None } else { self.offset.checked_add(self.len) }
    }

    /// Returns the span of the same argument after its bytes have moved by `input_offset` and its buffer index by
    /// `buffer_offset`.
    pub(crate) fn rebased(self, input_offset: u32, buffer_offset: u32) -> Self {
        let by = if self.has_buffer() { buffer_offset } else { input_offset };
        Self { offset: self.offset + by, len: self.len }
    }

    /// Returns the span of the same argument relative to `start`, an earlier offset of the input.
    pub(crate) fn relative_to(self, start: u32) -> Self {
        debug_assert!(!self.has_buffer());
        Self { offset: self.offset - start, len: self.len }
    }
}

fn buffer_index(index: usize) -> u32 {
    u32::try_from(index).expect("every buffer took at least one argument of an input below 4 GiB")
}

/// Adds a large argument to `spans` and its bytes to `buffers`.
pub(crate) fn push_shared(spans: &mut Vec<Span>, buffers: &mut Vec<Arc<Vec<u8>>>, bytes: Arc<Vec<u8>>) {
    spans.push(Span::shared(buffers.len()));
    buffers.push(bytes);
}

/// Adds an argument whose bytes are not in the input to `spans` and its bytes to `buffers`.
pub(crate) fn push_owned(spans: &mut Vec<Span>, buffers: &mut Vec<Arc<Vec<u8>>>, bytes: Vec<u8>) {
    spans.push(Span::owned(buffers.len()));
    buffers.push(Arc::new(bytes));
}

/// Complete commands, in order. Filled by [`Parser::parse`](crate::Parser::parse), read with
/// [`command`](Batch::command), emptied with [`clear`](Batch::clear) and then reused without allocation.
#[derive(Debug, Default)]
pub struct Batch {
    pub(crate) spans: Vec<Span>,
    /// For each command, the index in `spans` after its last span.
    pub(crate) ends: Vec<usize>,
    pub(crate) buffers: Vec<Arc<Vec<u8>>>,
}

impl Batch {
    /// Creates an empty batch; allocates nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of commands.
    #[inline]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no command.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Removes all commands and releases their large arguments. Keeps the memory for the next batch unless an unusual
    /// batch made it large.
    pub fn clear(&mut self) {
        self.spans.clear();
        self.spans.shrink_to(SPANS_KEPT_MAX);
        self.ends.clear();
        self.buffers.clear();
        self.buffers.shrink_to(BUFFERS_KEPT_MAX);
    }

    /// Returns the arguments of command `index`, the command name first. `input` must be the bytes that the command was
    /// parsed from (or copied to, see [`append_copy`](Batch::append_copy)).
    ///
    /// # Panics
    /// Panics if there is no such command. With a different `input`, reading an argument may panic or return wrong
    /// bytes.
    #[inline]
    pub fn command<'a>(&'a self, index: usize, input: &'a [u8]) -> Args<'a> {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        Args { spans: &self.spans[start..self.ends[index]], input, buffers: &self.buffers }
    }

    /// Returns an upper limit for the size in bytes of any command of this batch in RESP, if all commands were parsed
    /// from `input_bytes` bytes of input. O(large arguments).
    pub fn wire_bytes_max(&self, input_bytes: usize) -> usize {
        /// The maximum size of the head of an argument or a command, in bytes: a type byte, up to 12 digits, line ends.
        const HEAD_BYTES_MAX: usize = 17;
        let heads = (self.spans.len() + self.ends.len()) * HEAD_BYTES_MAX;
        self.buffers.iter().map(|buffer| buffer.len()).sum::<usize>() + heads + input_bytes
    }

    /// Adds a copy of `args` as a new command of this batch: small arguments are copied to the end of `bytes`, which
    /// become the input of the new command; large ones are shared. O(bytes copied).
    pub fn append_copy(&mut self, args: Args<'_>, bytes: &mut Vec<u8>) {
        self.spans.reserve(args.len());
        for index in 0..args.len() {
            match args.shared(index) {
                Some(large) => push_shared(&mut self.spans, &mut self.buffers, Arc::clone(large)),
                None => self.push_argument(args.at(index), bytes),
            }
        }
        self.ends.push(self.spans.len());
    }

    /// Adds the command with these `arguments`, whose bytes are copied to the end of `bytes` as in
    /// [`append_copy`](Batch::append_copy).
    pub fn push_command(&mut self, arguments: &[&[u8]], bytes: &mut Vec<u8>) {
        self.spans.reserve(arguments.len());
        for argument in arguments {
            self.push_argument(argument, bytes);
        }
        self.ends.push(self.spans.len());
    }

    fn push_argument(&mut self, argument: &[u8], bytes: &mut Vec<u8>) {
        match (u32::try_from(bytes.len()), u32::try_from(argument.len())) {
            (Ok(offset), Ok(len)) if len <= SPAN_LEN_MAX => {
                bytes.extend_from_slice(argument);
                self.spans.push(Span::new(offset, len));
            }
            _ => push_owned(&mut self.spans, &mut self.buffers, argument.to_vec()),
        }
    }
}

/// The arguments of one command, or the last of them. A cheap view, passed by value.
#[derive(Clone, Copy)]
pub struct Args<'a> {
    spans: &'a [Span],
    input: &'a [u8],
    buffers: &'a [Arc<Vec<u8>>],
}

impl<'a> Args<'a> {
    /// Returns the number of arguments in this view.
    #[inline]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there is no argument.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Returns argument `index`; the slice is valid as long as the input and the batch.
    ///
    /// # Panics
    /// Panics if `index` is not below [`len`](Args::len).
    #[inline]
    pub fn at(&self, index: usize) -> &'a [u8] {
        self.resolve(self.spans[index])
    }

    /// Returns argument `index`, if there is one.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&'a [u8]> {
        self.spans.get(index).map(|&span| self.resolve(span))
    }

    /// Returns the buffer of argument `index` if it is a large one: the buffer can become the stored value without a
    /// copy.
    #[inline]
    pub fn shared(&self, index: usize) -> Option<&'a Arc<Vec<u8>>> {
        let span = self.spans.get(index)?;
        if span.len == SHARED { self.buffers.get(span.offset as usize) } else { None }
    }

    /// Returns the view without its first `count` arguments; empty if there are at most `count` arguments.
    #[inline]
    pub fn skip(self, count: usize) -> Self {
        Self { spans: self.spans.get(count..).unwrap_or_default(), ..self }
    }

    /// Returns the arguments in order.
    #[inline]
    pub fn iter(&self) -> ArgsIter<'a> {
        ArgsIter { args: *self }
    }

    /// Returns the sum of the lengths of all arguments in bytes. O(arguments).
    pub fn total_bytes(&self) -> usize {
        self.iter().map(<[u8]>::len).sum()
    }

    /// Returns the number of bytes that [`encode`](Args::encode) would append. O(arguments).
    pub fn wire_bytes(&self) -> usize {
        // A prefix, a number and its line end; an argument is followed by another line end.
        let line = |number: usize| number.checked_ilog10().unwrap_or(0) as usize + 4;
        line(self.len())
            + self.iter().map(|argument| line(argument.len()) + argument.len() + 2).sum::<usize>()
    }

    /// Appends the command as clients send it: a RESP array of bulk strings. A single copy suffices if the input
    /// already has this form. O(bytes).
    pub fn encode(&self, to: &mut Vec<u8>) {
        push_command_head(self.len(), to);
        if let Some(sent) = self.as_sent() {
            begin_word(self[0].len(), to);
            to.extend_from_slice(sent);
            to.extend_from_slice(b"\r\n");
        } else {
            self.iter().for_each(|argument| push_word(argument, to));
        }
    }

    /// Returns the input from the first byte of the first argument to the last byte of the last, if
    /// [`encode`](Args::encode) would write the same bytes between any two arguments.
    fn as_sent(&self) -> Option<&'a [u8]> {
        let (&first, rest) = self.spans.split_first()?;
        let mut end = first.end()?;
        for span in rest {
            let digits = span.len.checked_ilog10().unwrap_or(0) + 1;
            if span.offset != end.checked_add(HEAD_BYTES + digits)? {
                return None;
            }
            // In RESP, the bytes between two arguments are the head of the second one. Their number permits only one
            // spelling of its length, but the parser has not checked the line ends. Words of an inline command have no
            // line end between them.
            match &self.input[end as usize..span.offset as usize] {
                [b'\r', b'\n', b'$', .., b'\r', b'\n'] => end = span.end()?,
                _ => return None,
            }
        }
        Some(&self.input[first.offset as usize..end as usize])
    }

    #[inline]
    fn resolve(&self, span: Span) -> &'a [u8] {
        let offset = span.offset as usize;
        if span.has_buffer() {
            &self.buffers[offset]
        } else {
            &self.input[offset..offset + span.len as usize]
        }
    }
}

impl Index<usize> for Args<'_> {
    type Output = [u8];

    #[inline]
    fn index(&self, index: usize) -> &[u8] {
        self.at(index)
    }
}

impl<'a> IntoIterator for Args<'a> {
    type Item = &'a [u8];
    type IntoIter = ArgsIter<'a>;

    fn into_iter(self) -> ArgsIter<'a> {
        self.iter()
    }
}

impl fmt::Debug for Args<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(String::from_utf8_lossy)).finish()
    }
}

/// The arguments of an [`Args`] in order.
#[derive(Clone, Debug)]
pub struct ArgsIter<'a> {
    args: Args<'a>,
}

impl<'a> Iterator for ArgsIter<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let (&span, rest) = self.args.spans.split_first()?;
        self.args.spans = rest;
        Some(self.args.resolve(span))
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.args.len(), Some(self.args.len()))
    }
}

impl DoubleEndedIterator for ArgsIter<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        let (&span, rest) = self.args.spans.split_last()?;
        self.args.spans = rest;
        Some(self.args.resolve(span))
    }
}

impl ExactSizeIterator for ArgsIter<'_> {}

/// A command that is stored for a long time, in as little memory as possible.
#[derive(Debug)]
pub struct StoredCommand {
    spans: Box<[Span]>,
    bytes: Box<[u8]>,
}

impl StoredCommand {
    /// Copies a command; `None` if it has 4 GiB or more.
    pub fn new(args: Args<'_>) -> Option<StoredCommand> {
        let mut spans = Vec::with_capacity(args.len());
        let mut bytes = Vec::with_capacity(args.total_bytes());
        for argument in args {
            let (offset, len) = (u32::try_from(bytes.len()).ok()?, u32::try_from(argument.len()).ok()?);
            if len > SPAN_LEN_MAX {
                return None;
            }
            spans.push(Span::new(offset, len));
            bytes.extend_from_slice(argument);
        }
        Some(StoredCommand { spans: spans.into(), bytes: bytes.into() })
    }

    /// Returns the command's arguments.
    pub fn args(&self) -> Args<'_> {
        Args { spans: &self.spans, input: &self.bytes, buffers: &[] }
    }

    /// Returns the size of each of its allocations in bytes.
    pub fn allocations(&self) -> [usize; 2] {
        [size_of_val(&self.spans[..]), self.bytes.len()]
    }
}

/// Commands together with their bytes, for passing them to another thread or building them in a test.
#[derive(Debug, Default)]
pub struct OwnedBatch {
    batch: Batch,
    bytes: Vec<u8>,
    /// The total size of the arguments with separate buffers, in bytes.
    buffers_bytes: usize,
}

impl OwnedBatch {
    /// Creates an empty batch; allocates nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of commands.
    pub fn len(&self) -> usize {
        self.batch.len()
    }

    /// Whether there is no command.
    pub fn is_empty(&self) -> bool {
        self.batch.is_empty()
    }

    /// Returns the number of copied bytes in this batch, excluding large arguments.
    pub fn len_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the memory of the commands in bytes: copied bytes, large arguments in full although they may be shared,
    /// and the locations of arguments.
    pub fn memory_bytes(&self) -> usize {
        let Batch { spans, ends, buffers } = &self.batch;
        let places = size_of_val(&spans[..]) + size_of_val(&ends[..]) + size_of_val(&buffers[..]);
        self.bytes.len() + self.buffers_bytes + places
    }

    /// Returns an upper limit for the size in bytes of any command in RESP, see [`Batch::wire_bytes_max`].
    pub fn wire_bytes_max(&self) -> usize {
        self.batch.wire_bytes_max(self.bytes.len())
    }

    /// Adds the command with these `arguments`.
    pub fn push(&mut self, arguments: &[&[u8]]) {
        let buffers = self.batch.buffers.len();
        self.batch.push_command(arguments, &mut self.bytes);
        self.count_buffers_from(buffers);
    }

    /// Adds a copy of `args`; large arguments are shared, not copied.
    pub fn append(&mut self, args: Args<'_>) {
        let buffers = self.batch.buffers.len();
        self.batch.append_copy(args, &mut self.bytes);
        self.count_buffers_from(buffers);
    }

    fn count_buffers_from(&mut self, first: usize) {
        self.buffers_bytes += self.batch.buffers[first..].iter().map(|buffer| buffer.len()).sum::<usize>();
    }

    /// Returns the arguments of command `index`.
    ///
    /// # Panics
    /// Panics if there is no such command.
    pub fn command(&self, index: usize) -> Args<'_> {
        self.batch.command(index, &self.bytes)
    }

    /// Removes all commands, keeping a bounded amount of memory for the next ones.
    pub fn clear(&mut self) {
        self.batch.clear();
        self.bytes.clear();
        self.bytes.shrink_to(BYTES_KEPT_MAX);
        self.buffers_bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch_with_large() -> (Batch, Vec<u8>) {
        let mut batch = Batch::new();
        push_shared(&mut batch.spans, &mut batch.buffers, Arc::new(b"large".to_vec()));
        push_owned(&mut batch.spans, &mut batch.buffers, b"quoted".to_vec());
        batch.spans.push(Span::new(1, 3));
        batch.ends.push(3);
        (batch, b"-key-".to_vec())
    }

    #[test]
    fn arguments_are_found_in_input_and_in_buffers() {
        let (batch, input) = batch_with_large();
        let args = batch.command(0, &input);
        assert_eq!(args.iter().collect::<Vec<_>>(), [&b"large"[..], b"quoted", b"key"]);
        assert_eq!(args.iter().rev().collect::<Vec<_>>(), [&b"key"[..], b"quoted", b"large"]);
        assert_eq!(args.total_bytes(), 14);
        assert_eq!(&args[2], b"key");
        assert_eq!(args.get(3), None);
        assert!(args.shared(0).is_some());
        assert!(args.shared(1).is_none(), "a quoted word is not worth sharing");
        assert!(args.shared(2).is_none());
        assert!(args.shared(3).is_none());
        assert_eq!(format!("{args:?}"), r#"["large", "quoted", "key"]"#);
    }

    #[test]
    fn skip_returns_the_rest_and_outlives_the_view() {
        let (batch, input) = batch_with_large();
        let first = {
            let args = batch.command(0, &input).skip(1);
            assert_eq!(args.len(), 2);
            args.at(0)
        };
        assert_eq!(first, b"quoted");
        assert!(batch.command(0, &input).skip(3).is_empty());
        assert!(batch.command(0, &input).skip(9).is_empty());
    }

    #[test]
    fn a_copied_command_shares_large_arguments_only() {
        let (batch, input) = batch_with_large();
        let mut copy = OwnedBatch::new();
        copy.push(&[b"PING"]);
        copy.append(batch.command(0, &input));
        drop(input);
        assert_eq!(copy.len(), 2);
        assert_eq!(copy.len_bytes(), 4 + 6 + 3);
        let places = 4 * size_of::<Span>() + 2 * size_of::<usize>() + size_of::<Arc<Vec<u8>>>();
        assert_eq!(copy.memory_bytes(), 4 + 6 + 3 + b"large".len() + places);
        let args = copy.command(1);
        assert_eq!(args.iter().collect::<Vec<_>>(), [&b"large"[..], b"quoted", b"key"]);
        assert!(Arc::ptr_eq(args.shared(0).unwrap(), batch.command(0, b"").shared(0).unwrap()));
        assert_eq!(copy.command(0).at(0), b"PING");
        copy.clear();
        assert!(copy.is_empty());
        assert_eq!(copy.memory_bytes(), 0);
    }

    #[test]
    fn clear_drops_large_arguments_and_oversized_memory() {
        let mut batch = Batch::new();
        let large = Arc::new(vec![0; 10]);
        push_shared(&mut batch.spans, &mut batch.buffers, Arc::clone(&large));
        batch.spans.resize(SPANS_KEPT_MAX * 2, Span::new(0, 0));
        batch.ends.push(batch.spans.len());
        batch.clear();
        assert_eq!(Arc::strong_count(&large), 1);
        assert!(batch.is_empty());
        assert!(batch.spans.capacity() < SPANS_KEPT_MAX * 2);
    }
}
