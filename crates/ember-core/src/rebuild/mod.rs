//! The commands that rebuild a key: an AOF base file written without an RDB preamble contains such commands for each
//! key.
//!
//! Each aggregate is built by commands of [`ELEMENTS_MAX`] elements, then its expiry is set. redis-server 7.0
//! understands the commands, except for hash fields with an expiry, which need HPEXPIREAT, JSON documents, which need
//! JSON.SET, and vector sets and sketches, which are built by RESTORE. State that commands cannot express is lost: the
//! eviction clock, and the times at which consumers
//! of streams were last seen.
//!
//! The commands must be run on a keyspace that does not contain the key, with the clock at
//! [`crate::journal::REPLAY_TIME_MS`].

mod stream;

use std::io;

use ember_protocol::{number, push_command_head, push_word};

use crate::entries::entry::ValueRef;
use crate::rdb::dump_value;
use crate::types::hash::{Field, Hash};
use crate::types::json;
use crate::types::sorted_set::SortedSet;
use crate::types::{Aggregate, Collection};

/// The maximum number of elements per command, as in Redis.
const ELEMENTS_MAX: usize = 64;

/// A Unix time in ms before all expiries: expired fields are written, too, because their removal is a separate journal
/// record.
const EVER_MS: i64 = i64::MIN;

/// A destination of commands, which are written one by one.
pub trait CommandSink {
    /// Returns the buffer to which the next command is appended, encoded in RESP.
    fn bytes(&mut self) -> &mut Vec<u8>;

    /// Declares that the command in the buffer is complete.
    ///
    /// # Errors
    /// Returns the errors of the sink's output.
    fn end_command(&mut self) -> io::Result<()>;
}

impl CommandSink for Vec<u8> {
    fn bytes(&mut self) -> &mut Vec<u8> {
        self
    }

    fn end_command(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes the commands that build a key with this name, value and expiry (Unix time in ms). O(bytes of the value).
///
/// # Errors
/// Returns the errors of the sink.
pub fn write_commands(
    sink: &mut impl CommandSink,
    name: &[u8],
    value: ValueRef<'_>,
    expire_at_ms: Option<i64>,
) -> io::Result<()> {
    match value {
        ValueRef::String(value) => {
            command(sink, &[b"SET", name, value.bytes(&mut itoa::Buffer::new())])?;
        }
        ValueRef::Aggregate(Aggregate::List(list)) => {
            let mut elements = Elements::new(sink, b"RPUSH", name, 1);
            list.visit(0..list.len(), |element| elements.add(&[element.bytes(&mut itoa::Buffer::new())]));
            elements.finish()?;
        }
        ValueRef::Aggregate(Aggregate::Set(set)) => {
            let mut elements = Elements::new(sink, b"SADD", name, 1);
            set.for_each(|member| elements.add(&[member.bytes(&mut itoa::Buffer::new())]));
            elements.finish()?;
        }
        ValueRef::Aggregate(Aggregate::SortedSet(set)) => write_sorted_set(sink, name, set)?,
        ValueRef::Aggregate(Aggregate::Hash(hash)) => write_hash(sink, name, hash)?,
        ValueRef::Aggregate(Aggregate::Stream(value)) => stream::write(sink, name, value)?,
        ValueRef::Aggregate(
            Aggregate::VectorSet(_)
            | Aggregate::Bloom(_)
            | Aggregate::Cuckoo(_)
            | Aggregate::CountMin(_)
            | Aggregate::TopK(_)
            | Aggregate::TDigest(_),
        ) => restore(sink, name, value)?,
        ValueRef::Aggregate(Aggregate::Json(json)) => {
            let mut text = Vec::new();
            json::print(json.packed(), 0, &mut text);
            command(sink, &[b"JSON.SET", name, b"$", &text])?;
        }
    }
    match expire_at_ms {
        Some(at_ms) => command(sink, &[b"PEXPIREAT", name, itoa::Buffer::new().format(at_ms).as_bytes()]),
        None => Ok(()),
    }
}

/// Writes the RESTORE command of a key, for types whose values no commands rebuild exactly.
fn restore(sink: &mut impl CommandSink, name: &[u8], value: ValueRef<'_>) -> io::Result<()> {
    command(sink, &[b"RESTORE", name, b"0", &dump_value(value)])
}

/// Writes one command with the given words.
///
/// # Errors
/// Returns the errors of the sink.
pub fn command(sink: &mut impl CommandSink, words: &[&[u8]]) -> io::Result<()> {
    let bytes = sink.bytes();
    push_command_head(words.len(), bytes);
    words.iter().for_each(|word| push_word(word, bytes));
    sink.end_command()
}

/// Writes the members from the lowest score to the highest, so that each member is inserted after all previous ones.
fn write_sorted_set(sink: &mut impl CommandSink, name: &[u8], set: &SortedSet) -> io::Result<()> {
    let mut elements = Elements::new(sink, b"ZADD", name, 2);
    let mut digits = Vec::new();
    for (member, score) in set.iter_all() {
        digits.clear();
        number::write_f64(&mut digits, score);
        elements.add(&[&digits, member.bytes(&mut itoa::Buffer::new())]);
    }
    elements.finish()
}

fn write_hash(sink: &mut impl CommandSink, name: &[u8], hash: &Hash) -> io::Result<()> {
    let mut elements = Elements::new(sink, b"HSET", name, 2);
    hash.for_each(EVER_MS, |field| {
        let digits = &mut [itoa::Buffer::new(), itoa::Buffer::new()];
        let [name_digits, value_digits] = digits;
        elements.add(&[field.name.bytes(name_digits), field.value.bytes(value_digits)]);
    });
    elements.finish()?;
    if hash.next_expiry_ms().is_none() {
        return Ok(());
    }
    let mut result = Ok(());
    hash.for_each(EVER_MS, |field| {
        if result.is_ok() {
            result = write_field_expiry(sink, name, field);
        }
    });
    result
}

fn write_field_expiry(sink: &mut impl CommandSink, name: &[u8], field: Field<'_>) -> io::Result<()> {
    let Some(at_ms) = field.expire_at_ms else { return Ok(()) };
    let (mut digits, mut time) = (itoa::Buffer::new(), itoa::Buffer::new());
    let at = time.format(at_ms).as_bytes();
    command(sink, &[b"HPEXPIREAT", name, at, b"FIELDS", b"1", field.name.bytes(&mut digits)])
}

/// A writer of a key's elements in commands of at most [`ELEMENTS_MAX`] elements.
struct Elements<'s, S> {
    sink: &'s mut S,
    command: &'static [u8],
    name: &'s [u8],
    /// The words of the elements that were added and not written yet.
    words: Vec<u8>,
    /// The number of words in `words`, and the maximum of that number.
    count: usize,
    count_max: usize,
    result: io::Result<()>,
}

impl<'s, S: CommandSink> Elements<'s, S> {
    /// Returns a writer of elements that have `words` words each.
    fn new(sink: &'s mut S, command: &'static [u8], name: &'s [u8], words: usize) -> Elements<'s, S> {
        let count_max = ELEMENTS_MAX * words;
        Elements { sink, command, name, words: Vec::new(), count: 0, count_max, result: Ok(()) }
    }

    /// Adds an element; does nothing if a previous write has failed.
    fn add(&mut self, words: &[&[u8]]) {
        words.iter().for_each(|word| push_word(word, &mut self.words));
        self.count += words.len();
        if self.count >= self.count_max {
            self.write();
        }
    }

    fn write(&mut self) {
        if self.result.is_ok() {
            let bytes = self.sink.bytes();
            push_command_head(2 + self.count, bytes);
            push_word(self.command, bytes);
            push_word(self.name, bytes);
            bytes.extend_from_slice(&self.words);
            self.result = self.sink.end_command();
        }
        self.words.clear();
        self.count = 0;
    }

    /// Writes the remaining elements.
    fn finish(mut self) -> io::Result<()> {
        if self.count > 0 {
            self.write();
        }
        self.result
    }
}
