//! Reads the commands of an AOF file in order, in units: the commands of a unit apply together or not at all.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use ember_protocol::{OwnedBatch, number};
use emberkv_core::types::limits::EncodingLimits;

use super::AofError;
use super::batch::{BATCH_LINE, BATCH_LINE_BYTES, BatchLine, IDENTITY_LINE, crc, parse_identity, parse_time};
use super::tail::{self, Unreadable, Verdict};
use crate::encryption::{Ending, FileSource};
use crate::files::Reread;
use crate::origin::{ORIGIN_LINE, Origin};
use crate::rdb_file::{RdbReader, Source, VersionCheck};

/// The maximum length of a line in bytes; Redis reads 128 characters, its checker 1024.
const LINE_MAX_BYTES: usize = 1024;

/// The maximum number of words in a command, as in the protocol.
const WORDS_MAX: u64 = 1024 * 1024;

/// The maximum length of a word in bytes, as in the protocol with the highest limit that can be configured.
const WORD_MAX_BYTES: u64 = 4 * 1024 * 1024 * 1024;

/// The next part of an AOF file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A unit, which is in the given batch: a single command, or the commands of a transaction.
    Unit,
    /// A timestamp: the following commands were written at this Unix time in s or later.
    Time(i64),
    /// The position of the data in a replication stream, which is valid if no unit follows.
    Origin(Origin),
    /// The end of the file.
    End,
}

/// The torn end of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TornEnd {
    /// The end of the valid part of the file, as an offset: the file should be cut here.
    pub valid_to: u64,
    /// The number of bytes after the valid part.
    pub torn_bytes: u64,
    /// A description of why the bytes after the valid part are invalid.
    pub what: &'static str,
}

/// The reason why reading stops at an offset.
enum Stop {
    /// The input ends.
    Ends,
    /// The bytes at this offset are not valid.
    Wrong(&'static str),
    /// The bytes are complete, but differ from the bytes that were written.
    Damaged(&'static str),
    /// The bytes cannot be read.
    Io(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Stop {
        match error.kind() {
            io::ErrorKind::UnexpectedEof if error.get_ref().is_none() => Stop::Ends,
            _ => Stop::Io(error),
        }
    }
}

const CUT: &str =
    "Unexpected end of file reading the append only file: the file ends in the middle of a command or batch";
const NO_COMMAND: &str =
    "Bad file format reading the append only file: no command starts here, although one should";
const OPEN_TRANSACTION: &str =
    "Unexpected end of file reading the append only file: a transaction has no EXEC";
const OTHER_IDENTITY: &str = "the file's first line and its first batch do not belong together";
const MOVED: &str = "bytes are missing or were inserted: later batches are not where they were written";

/// A source of bytes in order: the file, or a verified batch.
trait Input {
    fn buffered(&mut self) -> io::Result<&[u8]>;
    fn advance(&mut self, count: usize);

    /// Reads a line including its line end; the line may contain any bytes.
    fn line(&mut self, line: &mut Vec<u8>) -> Result<(), Stop> {
        line.clear();
        loop {
            let buffered = self.buffered()?;
            if buffered.is_empty() {
                return Err(Stop::Ends);
            }
            let end = memchr::memchr(b'\n', buffered);
            let count = end.map_or(buffered.len(), |end| end + 1);
            if line.len() + count > LINE_MAX_BYTES {
                return Err(Stop::Wrong("a line is too long"));
            }
            line.extend_from_slice(&buffered[..count]);
            self.advance(count);
            if end.is_some() {
                return Ok(());
            }
        }
    }

    /// Reads `count` bytes and appends them to `out`.
    fn gather(&mut self, count: u64, out: &mut Vec<u8>) -> Result<(), Stop> {
        let mut rest = count;
        while rest > 0 {
            let buffered = self.buffered()?;
            if buffered.is_empty() {
                return Err(Stop::Ends);
            }
            let piece = usize::try_from(rest).map_or(buffered.len(), |rest| rest.min(buffered.len()));
            out.extend_from_slice(&buffered[..piece]);
            self.advance(piece);
            rest -= piece as u64;
        }
        Ok(())
    }
}

impl<R: Read> Input for Source<R> {
    fn buffered(&mut self) -> io::Result<&[u8]> {
        Source::buffered(self)
    }

    fn advance(&mut self, count: usize) {
        Source::advance(self, count);
    }
}

/// The bytes of a verified batch.
#[derive(Debug, Default)]
struct WholeBatch {
    bytes: Vec<u8>,
    at: usize,
}

impl WholeBatch {
    fn is_over(&self) -> bool {
        self.at == self.bytes.len()
    }
}

impl Input for WholeBatch {
    fn buffered(&mut self) -> io::Result<&[u8]> {
        Ok(&self.bytes[self.at..])
    }

    fn advance(&mut self, count: usize) {
        self.at += count;
    }
}

/// The next item of a file or of a batch.
enum Item {
    Command,
    Time(i64),
    Origin(Origin),
    Identity(u64),
    /// The line before a batch, which is in the reader's line buffer.
    BatchLine,
    Nothing,
}

/// Reads the next item. The words of a command are appended to `bytes`, and the end of each word to `ends`.
fn item(
    input: &mut impl Input,
    line: &mut Vec<u8>,
    bytes: &mut Vec<u8>,
    ends: &mut Vec<usize>,
) -> Result<Item, Stop> {
    bytes.clear();
    ends.clear();
    input.line(line)?;
    let count = match line.first() {
        Some(b'*') => counted(line, WORDS_MAX).filter(|&count| count > 0).ok_or(Stop::Wrong(NO_COMMAND))?,
        Some(b'#') if line.starts_with(BATCH_LINE) => return Ok(Item::BatchLine),
        Some(b'#') if line.starts_with(IDENTITY_LINE) => {
            return parse_identity(line)
                .map(Item::Identity)
                .ok_or(Stop::Wrong("the file's identity is invalid"));
        }
        Some(b'#') if line.starts_with(ORIGIN_LINE) => {
            return Ok(Origin::parse_line(line).map_or(Item::Nothing, Item::Origin));
        }
        Some(b'#') => return Ok(parse_time(line).map_or(Item::Nothing, Item::Time)),
        _ => return Err(Stop::Wrong(NO_COMMAND)),
    };
    for _ in 0..count {
        input.line(line)?;
        let len = line.first().filter(|&&mark| mark == b'$').and_then(|_| counted(line, WORD_MAX_BYTES));
        let len = len.ok_or(Stop::Wrong("an argument of a command has no length"))?;
        input.gather(len, bytes)?;
        ends.push(bytes.len());
        input.gather(2, bytes)?;
        if !bytes.ends_with(b"\r\n") {
            return Err(Stop::Wrong("an argument of a command is longer than its stated length"));
        }
        bytes.truncate(bytes.len() - 2);
    }
    Ok(Item::Command)
}

/// Parses the number after the first character of a line; None if it is invalid or exceeds `max`.
fn counted(line: &[u8], max: u64) -> Option<u64> {
    let digits = line.get(1..)?.strip_suffix(b"\r\n")?;
    number::parse_u64(digits).filter(|&count| count <= max)
}

/// A reader of an AOF file. The input may be hostile: no allocation exceeds a fixed multiple of the bytes received, and
/// no input causes a panic.
#[derive(Debug)]
pub struct AofReader<R> {
    source: Source<R>,
    file: PathBuf,
    ending: Ending,
    /// The file's identity, if ember wrote it.
    identity: Option<u64>,
    whole: WholeBatch,
    /// The offset after the last unit.
    valid_to: u64,
    /// The offset of the batch or command that is being read.
    item_at: u64,
    /// The end of the batch that is being read, if its line could be read.
    item_end: Option<u64>,
    /// Whether a batch was verified, which proves that the identity is that of the file.
    is_identity_proven: bool,
    /// Whether the file continues with commands outside of batches, because Redis has appended to it.
    is_unchecked: bool,
    in_transaction: bool,
    line: Vec<u8>,
    bytes: Vec<u8>,
    ends: Vec<usize>,
    torn: Option<TornEnd>,
    is_over: bool,
}

impl AofReader<FileSource> {
    /// Returns the torn end of the file, if [`Part::End`] was reached and there is one. `valid_to` is an offset in the
    /// plain contents; in an encrypted file, `torn_bytes` counts stored bytes.
    pub fn torn_end(&self) -> Option<TornEnd> {
        let stored = self.source.get_ref().torn_bytes();
        match (self.torn, stored) {
            (Some(torn), stored) => {
                Some(TornEnd { torn_bytes: torn.torn_bytes + stored.unwrap_or(0), ..torn })
            }
            (None, Some(torn_bytes)) => Some(TornEnd { valid_to: self.valid_to, torn_bytes, what: CUT }),
            (None, None) => None,
        }
    }
}

impl<R: Reread> AofReader<R> {
    /// Creates a reader of `source`, the contents of `file` after its RDB part, if any ([`AofReader::split`]).
    pub fn new(source: Source<R>, file: &Path, ending: Ending) -> AofReader<R> {
        AofReader {
            valid_to: source.offset(),
            item_at: source.offset(),
            item_end: None,
            is_identity_proven: false,
            is_unchecked: false,
            source,
            file: file.to_owned(),
            ending,
            identity: None,
            whole: WholeBatch::default(),
            in_transaction: false,
            line: Vec::new(),
            bytes: Vec::new(),
            ends: Vec::new(),
            torn: None,
            is_over: false,
        }
    }

    /// Returns a reader of the RDB part with which a file begins, or the file's bytes if it has no RDB part. After the
    /// end of the RDB part, [`RdbReader::into_source`] returns the source of the commands after it.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or its RDB part has a version that `check` does not accept.
    pub fn split(
        inner: R,
        file: &Path,
        limits: EncodingLimits,
        check: VersionCheck,
    ) -> Result<Result<RdbReader<R>, Source<R>>, AofError> {
        let mut source = Source::new(inner, 0);
        let first = source.buffered();
        let first =
            first.map_err(|cause| AofError::Unreadable { file: file.to_owned(), offset: 0, cause })?;
        if first.starts_with(b"REDIS") || first.starts_with(b"VALKEY") {
            Ok(Ok(RdbReader::from_source(source, file, limits, check)?))
        } else {
            Ok(Err(source))
        }
    }

    /// Returns the number of bytes read so far.
    pub fn offset(&self) -> u64 {
        self.source.offset()
    }

    /// Returns the offset after the last unit that was read; inside a batch, the offset after the previous batch.
    pub fn valid_to(&self) -> u64 {
        self.valid_to
    }

    /// Returns the torn end of the plain contents, if [`Part::End`] was reached and there is one. An encrypted file may
    /// have a torn end even if its plain contents have none ([`AofReader::torn_end`]).
    pub fn torn(&self) -> Option<TornEnd> {
        self.torn
    }

    /// Whether ember wrote the file, so that its batches have checksums.
    pub fn is_checked(&self) -> bool {
        self.identity.is_some()
    }

    /// Reads the next part of the file. The commands of a unit replace the contents of `unit`; MULTI and EXEC of a
    /// transaction are omitted.
    ///
    /// # Errors
    /// Returns an error if the file is damaged or cannot be read. A torn end counts as the end, unless the file must be
    /// complete. After an error, the reader must not be used again.
    pub fn next(&mut self, unit: &mut OwnedBatch) -> Result<Part, AofError> {
        unit.clear();
        while !self.is_over {
            if !self.in_transaction && self.whole.is_over() {
                self.valid_to = self.source.offset();
            }
            match self.part(unit) {
                Ok(Some(part)) => return Ok(part),
                Ok(None) => {}
                Err(stop) => {
                    unit.clear();
                    self.end(stop)?;
                    self.is_over = true;
                }
            }
        }
        Ok(Part::End)
    }

    fn part(&mut self, unit: &mut OwnedBatch) -> Result<Option<Part>, Stop> {
        let in_batch = !self.whole.is_over();
        if !in_batch {
            (self.item_at, self.item_end) = (self.source.offset(), None);
            self.is_unchecked |= self.source.buffered()?.first() == Some(&b'*');
        }
        let AofReader { source, whole, line, bytes, ends, .. } = self;
        let item = if in_batch { item(whole, line, bytes, ends) } else { item(source, line, bytes, ends) };
        match item {
            // The checksum proves that these bytes were written, so they are not a torn end.
            Err(Stop::Ends) if in_batch => Err(Stop::Damaged("a batch ends in the middle of a command")),
            Err(Stop::Wrong(what)) if in_batch => Err(Stop::Damaged(what)),
            Err(stop) => Err(stop),
            Ok(Item::Command) => Ok(self.command(unit)),
            Ok(Item::Time(_)) if self.in_transaction => Ok(None),
            Ok(Item::Time(at_s)) => Ok(Some(Part::Time(at_s))),
            Ok(Item::Origin(_)) if self.in_transaction => Ok(None),
            Ok(Item::Origin(origin)) => Ok(Some(Part::Origin(origin))),
            Ok(Item::Identity(identity)) if self.identity.is_none() && !in_batch => {
                self.identity = Some(identity);
                Ok(None)
            }
            Ok(Item::BatchLine) if self.identity.is_some() && !in_batch => {
                self.batch()?;
                Ok(None)
            }
            Ok(Item::BatchLine) if !in_batch => {
                Err(Stop::Wrong("the file's first line is missing or damaged"))
            }
            // As in Redis, all other lines are skipped, but only in files of Redis: ember writes none.
            Ok(_) if self.identity.is_none() => Ok(None),
            Ok(_) => Err(Stop::Wrong("there is an unknown line")),
        }
    }

    /// Reads the batch whose line was just read.
    fn batch(&mut self) -> Result<(), Stop> {
        const NO_LINE: Stop = Stop::Wrong("the line before a batch is damaged");
        let said = self.identity.and_then(|identity| BatchLine::parse(&self.line, identity, self.item_at));
        let Some(said) = said.filter(|_| self.line.len() == BATCH_LINE_BYTES) else {
            return Err(if self.is_of_another_identity()? { Stop::Damaged(OTHER_IDENTITY) } else { NO_LINE });
        };
        self.item_end = Some(self.source.offset() + u64::from(said.len));
        self.is_identity_proven = true;
        if !self.take_whole(said)? {
            return Err(Stop::Wrong("the checksum of a batch is wrong"));
        }
        self.is_unchecked = false;
        Ok(())
    }

    /// Reads the bytes of a batch; returns whether they match their checksum.
    fn take_whole(&mut self, said: BatchLine) -> Result<bool, Stop> {
        self.whole.bytes.clear();
        self.whole.at = 0;
        let taken = self.source.gather(said.len.into(), &mut self.whole.bytes);
        let is_whole = taken.is_ok() && crc(&self.whole.bytes) == said.crc;
        if !is_whole {
            self.whole.bytes.clear();
        }
        taken.map(|()| is_whole)
    }

    /// Whether the file's first batch is intact although its line, which was already read, does not match the identity
    /// and the offset. Then the identity is damaged, so no later batch would match it either.
    fn is_of_another_identity(&mut self) -> Result<bool, Stop> {
        if self.is_identity_proven {
            return Ok(false);
        }
        let Some(said) = BatchLine::parse_unchecked(&self.line) else { return Ok(false) };
        let is_whole = self.take_whole(said)?;
        self.whole.bytes.clear();
        Ok(is_whole)
    }

    /// Adds the command that was just read to the unit; returns the unit if it is complete.
    fn command(&mut self, unit: &mut OwnedBatch) -> Option<Part> {
        let mut words: Vec<&[u8]> = Vec::with_capacity(self.ends.len());
        let mut begin = 0;
        for &end in &self.ends {
            words.push(&self.bytes[begin..end]);
            begin = end;
        }
        if words.len() == 1 && words[0].eq_ignore_ascii_case(b"multi") {
            self.in_transaction = true;
            return None;
        }
        if words.len() == 1 && words[0].eq_ignore_ascii_case(b"exec") && self.in_transaction {
            self.in_transaction = false;
            return (!unit.is_empty()).then_some(Part::Unit);
        }
        unit.push(&words);
        (!self.in_transaction).then_some(Part::Unit)
    }

    /// Decides whether reading stopped at a torn end or at damage.
    fn end(&mut self, stop: Stop) -> Result<(), AofError> {
        let offset = self.source.offset();
        let (what, is_cut) = match stop {
            Stop::Io(cause) => return Err(self.unreadable(cause)),
            Stop::Damaged(what) => return Err(self.damaged(what)),
            Stop::Ends if offset == self.valid_to => return Ok(()),
            Stop::Ends if self.in_transaction && self.line.is_empty() => (OPEN_TRANSACTION, true),
            Stop::Ends => (CUT, true),
            Stop::Wrong(what) => (what, false),
        };
        // Without checksums, a torn end is recognizable only if bytes are missing at the end of the file.
        let is_checked = self.identity.is_some() && !self.is_unchecked;
        if self.ending == Ending::Whole || !(is_cut || is_checked) {
            return Err(self.damaged(what));
        }
        let verdict = match self.identity {
            Some(identity) => {
                let place = Unreadable { at: self.item_at, end: self.item_end };
                tail::judge(&mut self.source, identity, place).map_err(|cause| self.unreadable(cause))?
            }
            None => Verdict::Torn { file_end: offset },
        };
        match verdict {
            Verdict::Damaged => Err(self.damaged(what)),
            Verdict::Moved => Err(self.damaged(MOVED)),
            Verdict::Torn { file_end } => {
                let torn_bytes = file_end - self.valid_to;
                self.torn = Some(TornEnd { valid_to: self.valid_to, torn_bytes, what });
                Ok(())
            }
        }
    }

    fn damaged(&self, what: &'static str) -> AofError {
        AofError::damaged(&self.file, self.valid_to, what)
    }

    fn unreadable(&self, cause: io::Error) -> AofError {
        AofError::Unreadable { file: self.file.clone(), offset: self.source.offset(), cause }
    }
}
