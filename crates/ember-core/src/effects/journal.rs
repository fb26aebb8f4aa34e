//! The journal: changes, recorded as commands whose replay makes the same changes anywhere and at any time.
//!
//! ```text
//! effect   a command in RESP and its database
//! record   the effects of one call, transaction or script: all or none of them are replayed
//! segment  the records of one worker since they were last taken
//! ```
//!
//! A record gets its number from a [`Sequence`] that all workers share, while the locks of the changed keys are still
//! held. So the records of all workers, in the order of their numbers, are one history of the keyspace: replaying it on
//! an empty keyspace leads to the same contents.
//!
//! A call that has changed something is its own effect, word for word, unless its handler records another
//! ([`Journal::record`]): effects that depend on time or chance are recorded by their outcome (EXPIRE as PEXPIREAT,
//! SPOP as SREM), blocking commands as their non-blocking forms (BLPOP as LPOP). An expiry or eviction is recorded as a
//! removal ([`Journal::record_separately`]). Effects must be replayed with the clock at [`REPLAY_TIME_MS`], so that
//! nothing expires in between.
//!
//! A script may hide the changes of its calls from some readers ([`Readers`]): these skip the effect, but its record
//! still has a number.
//!
//! While the journal has no reader, it costs one branch per call.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ember_protocol::{Args, OwnedBatch, push_word};

/// The time during a replay: before all expiries, which are recorded as removals.
pub const REPLAY_TIME_MS: i64 = 0;

/// The source of record numbers for all workers: 1, 2, 3, …, without gaps.
#[derive(Debug, Default)]
pub struct Sequence(AtomicU64);

impl Sequence {
    /// Returns the next number.
    fn next(&self) -> u64 {
        // The locks of the changed keys order the numbers of records that depend on each other.
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Returns the last number taken; 0 if none was. Exact for a worker with exclusive access.
    pub fn last(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The command that records a removal that no client requested. UNLINK makes replicas free the value in the background,
/// too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Removal {
    /// DEL.
    #[default]
    Del,
    /// UNLINK.
    Unlink,
}

impl Removal {
    /// Returns UNLINK if `is_lazy`.
    pub const fn lazy(is_lazy: bool) -> Removal {
        if is_lazy { Removal::Unlink } else { Removal::Del }
    }

    /// Returns the command's name.
    pub const fn name(self) -> &'static str {
        match self {
            Removal::Del => "DEL",
            Removal::Unlink => "UNLINK",
        }
    }
}

/// The readers that receive an effect: one bit for each reader of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readers(u8);

impl Readers {
    /// All readers of the journal.
    pub const ALL: Readers = Readers(u8::MAX);

    /// Returns the readers with these bits.
    pub const fn from_bits(bits: u8) -> Readers {
        Readers(bits)
    }

    /// Returns whether it contains one of the readers with these bits.
    pub const fn contain(self, bits: u8) -> bool {
        self.0 & bits != 0
    }
}

impl Default for Readers {
    fn default() -> Readers {
        Readers::ALL
    }
}

/// A command that is part of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effect<'s> {
    /// The readers that receive it.
    pub readers: Readers,
    /// The number of its database.
    pub database: usize,
    /// The command in RESP.
    pub command: &'s [u8],
}

#[derive(Clone, Copy, Debug)]
struct EffectEnd {
    database: u32,
    readers: Readers,
    bytes: usize,
}

#[derive(Clone, Copy, Debug)]
struct RecordEnd {
    number: u64,
    effects: usize,
}

/// Bytes of memory that an emptied segment keeps at most.
const SEGMENT_KEPT_MAX: usize = 1024 * 1024;

/// Records of one worker, in the order of their numbers.
#[derive(Debug, Default)]
pub struct Segment {
    bytes: Vec<u8>,
    effects: Vec<EffectEnd>,
    records: Vec<RecordEnd>,
}

impl Segment {
    /// Returns whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Returns the bytes of all effects.
    pub fn len_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the number of records.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Returns the number of the record at this position, if there is one.
    #[inline]
    pub fn number(&self, at: usize) -> Option<u64> {
        self.records.get(at).map(|record| record.number)
    }

    /// Returns the effects of the record at this position, at least one.
    #[inline]
    pub fn effects(&self, at: usize) -> impl ExactSizeIterator<Item = Effect<'_>> {
        let first = if at == 0 { 0 } else { self.records[at - 1].effects };
        (first..self.records[at].effects).map(|index| self.effect(index))
    }

    /// Returns the records: the number of each, and its effects, at least one.
    pub fn records(&self) -> impl Iterator<Item = (u64, impl Iterator<Item = Effect<'_>>)> {
        (0..self.len()).map(|at| (self.records[at].number, self.effects(at)))
    }

    /// Returns the commands of up to `records` consecutive records from this position on as one effect, and how many
    /// records that are. Their numbers have no gap, and each has one effect for all readers, all in one database; no
    /// more are added once there are `target` bytes. Returns no records if the first one has several effects. O(records
    /// taken).
    pub fn run(&self, at: usize, records: u64, target: usize) -> (usize, Effect<'_>) {
        let first = if at == 0 { 0 } else { self.records[at - 1].effects };
        let (number, database) = (self.records[at].number, self.effects[first].database);
        let start = if first == 0 { 0 } else { self.effects[first - 1].bytes };
        let mut end = start;
        let mut count = 0;
        for (record, effect) in self.records[at..].iter().zip(&self.effects[first..]) {
            let belongs = record.number == number + count as u64
                && record.effects == first + count + 1
                && effect.database == database
                && effect.readers == Readers::ALL;
            if !belongs || count as u64 == records || end - start >= target {
                break;
            }
            end = effect.bytes;
            count += 1;
        }
        (
            count,
            Effect { readers: Readers::ALL, database: database as usize, command: &self.bytes[start..end] },
        )
    }

    /// Removes all records. The memory is kept, unless it is unusually large.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(SEGMENT_KEPT_MAX);
        self.effects.clear();
        self.effects.shrink_to(SEGMENT_KEPT_MAX / size_of::<EffectEnd>());
        self.records.clear();
        self.records.shrink_to(SEGMENT_KEPT_MAX / size_of::<RecordEnd>());
    }

    /// Moves the records of a later segment to the end of this one. O(1) if this one was empty, otherwise O(bytes of
    /// the later one).
    fn append(&mut self, later: &mut Segment) {
        if self.is_empty() {
            std::mem::swap(self, later);
        } else {
            let effects = self.effects.len();
            self.append_effects(later);
            let moved = |end: &RecordEnd| RecordEnd { effects: end.effects + effects, ..*end };
            self.records.extend(later.records.iter().map(moved));
        }
        later.clear();
    }

    /// Moves the effects of a later segment, without their records, to the end of this one. O(1) if this one had none,
    /// otherwise O(bytes of the later one).
    fn append_effects(&mut self, later: &mut Segment) {
        if self.effects.is_empty() {
            std::mem::swap(&mut self.bytes, &mut later.bytes);
            std::mem::swap(&mut self.effects, &mut later.effects);
        } else {
            let bytes = self.bytes.len();
            self.bytes.extend_from_slice(&later.bytes);
            let moved = |end: &EffectEnd| EffectEnd { bytes: end.bytes + bytes, ..*end };
            self.effects.extend(later.effects.iter().map(moved));
        }
    }

    fn effect(&self, index: usize) -> Effect<'_> {
        let start = if index == 0 { 0 } else { self.effects[index - 1].bytes };
        let EffectEnd { database, readers, bytes } = self.effects[index];
        Effect { readers, database: database as usize, command: &self.bytes[start..bytes] }
    }

    fn sealed_effects(&self) -> usize {
        self.records.last().map_or(0, |record| record.effects)
    }
}

/// A writer of the words of an effect.
#[derive(Debug)]
pub struct Words<'j> {
    bytes: &'j mut Vec<u8>,
    count: usize,
}

impl Words<'_> {
    /// Adds a word.
    pub fn word(&mut self, word: &[u8]) -> &mut Self {
        push_word(word, self.bytes);
        self.count += 1;
        self
    }

    /// Adds the digits of a number.
    pub fn integer(&mut self, number: impl itoa::Integer) -> &mut Self {
        self.word(itoa::Buffer::new().format(number).as_bytes())
    }
}

/// The changes of a worker's calls.
#[derive(Debug, Default)]
pub struct Journal {
    /// The source of numbers; `None` while the journal has no reader.
    sequence: Option<Arc<Sequence>>,
    segment: Segment,
    /// The depth of nested calls and units.
    depth: u32,
    /// Whether the handler of the current call has recorded an effect that replaces it.
    is_recorded: bool,
    /// Changes of the current call that are recorded separately.
    recorded_separately: u64,
    /// The readers that receive the changes of calls.
    readers: Readers,
}

/// The start of a call; see [`Journal::begin_call`].
#[derive(Debug)]
pub struct CallMark {
    changes: u64,
    is_recorded: bool,
    recorded_separately: u64,
}

impl Journal {
    /// Returns a journal with a reader.
    pub fn numbered_by(sequence: Arc<Sequence>) -> Journal {
        Journal { sequence: Some(sequence), ..Journal::default() }
    }

    /// Returns whether the journal has a reader.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.sequence.is_some()
    }

    /// Starts or stops recording. Earlier records stay until they are taken. When recording starts within a unit, the
    /// record has the unit's effects from then on.
    pub fn set_sequence(&mut self, sequence: Option<Arc<Sequence>>) {
        debug_assert!(self.depth == 0 || !self.is_on(), "a record is complete or absent");
        self.sequence = sequence;
    }

    /// Takes all records.
    pub fn take(&mut self) -> Segment {
        debug_assert_eq!(self.depth, 0, "a record is whole before it is taken");
        std::mem::take(&mut self.segment)
    }

    /// Returns whether there are records to take and none is incomplete.
    #[inline]
    pub fn has_records(&self) -> bool {
        self.depth == 0 && !self.segment.is_empty()
    }

    /// Returns the number of the last record that was not taken yet.
    pub fn last_number(&self) -> Option<u64> {
        self.segment.records.last().map(|record| record.number)
    }

    /// Moves the records to the end of `to`.
    pub fn move_to(&mut self, to: &mut Segment) {
        debug_assert_eq!(self.depth, 0, "a record is whole before it is taken");
        to.append(&mut self.segment);
    }

    /// Adds the effects of an offloaded call to the current unit. O(1) if no other records are kept, otherwise
    /// O(bytes).
    pub fn adopt(&mut self, recorded: &mut Segment) {
        if self.is_on() {
            recorded.records.clear();
            self.segment.append_effects(recorded);
        }
        recorded.clear();
    }

    /// Chooses the readers that receive the changes of calls from now on. All readers receive expiries and evictions.
    pub fn choose_readers(&mut self, readers: Readers) {
        self.readers = readers;
    }

    /// Returns the readers that receive the changes of calls.
    pub fn readers(&self) -> Readers {
        self.readers
    }

    /// Begins a unit: all effects until [`Journal::end_unit`] are one record.
    pub fn begin_unit(&mut self) {
        self.depth += 1;
    }

    /// Ends a unit. The locks of everything it has changed are still held.
    pub fn end_unit(&mut self) {
        self.depth -= 1;
        self.seal();
    }

    /// Begins a call; `changes` is the current [`KeyspaceCounters::changes`].
    ///
    /// [`KeyspaceCounters::changes`]: crate::turn::KeyspaceCounters::changes
    pub fn begin_call(&mut self, changes: u64) -> CallMark {
        self.depth += 1;
        CallMark {
            changes,
            is_recorded: std::mem::take(&mut self.is_recorded),
            recorded_separately: std::mem::take(&mut self.recorded_separately),
        }
    }

    /// Ends a call. If it has changed something and its handler has recorded nothing, its effect is the call itself,
    /// word for word.
    pub fn end_call(&mut self, mark: &CallMark, changes: u64, database: usize, args: Args<'_>) {
        if changes - mark.changes > self.recorded_separately && !self.is_recorded {
            self.append_call(database, args);
        }
        (self.is_recorded, self.recorded_separately) = (mark.is_recorded, mark.recorded_separately);
        self.depth -= 1;
        self.seal();
    }

    /// Records a command that replaces the current call; several commands are replayed in order.
    pub fn record(&mut self, database: usize, write: impl FnOnce(&mut Words<'_>)) {
        if self.is_on() {
            self.is_recorded = true;
            self.append(database, self.readers, write);
        }
    }

    /// Records an effect separately from the current call, if there is one; it was counted as `changes` changes.
    pub fn record_separately(&mut self, database: usize, changes: u64, write: impl FnOnce(&mut Words<'_>)) {
        if self.is_on() {
            self.recorded_separately += changes;
            self.append(database, Readers::ALL, write);
            self.seal();
        }
    }

    /// Records that a key has expired or was evicted. In a call that has had no other effect so far, this is a separate
    /// record: the expired keys that a reader finds need not be one record.
    #[inline]
    pub fn record_removal(&mut self, database: usize, key: &[u8], removal: Removal) {
        if self.is_on() {
            let depth = self.depth;
            let is_first = self.segment.effects.len() == self.segment.sealed_effects();
            self.append(database, Readers::ALL, |words| _ = words.word(removal.name().as_bytes()).word(key));
            if is_first && depth == 1 {
                self.depth = 0;
            }
            self.seal();
            self.depth = depth;
        }
    }

    fn append(&mut self, database: usize, readers: Readers, write: impl FnOnce(&mut Words<'_>)) {
        let bytes = &mut self.segment.bytes;
        let start = bytes.len();
        // An effect nearly always has fewer than ten words.
        bytes.extend_from_slice(b"*0\r\n");
        let mut words = Words { bytes, count: 0 };
        write(&mut words);
        let mut digits = itoa::Buffer::new();
        let count = digits.format(words.count).as_bytes();
        if let [digit] = count {
            bytes[start + 1] = *digit;
        } else {
            bytes.splice(start + 1..start + 2, count.iter().copied());
        }
        self.end_effect(database, readers);
    }

    fn append_call(&mut self, database: usize, args: Args<'_>) {
        args.encode(&mut self.segment.bytes);
        self.end_effect(database, self.readers);
    }

    fn end_effect(&mut self, database: usize, readers: Readers) {
        let bytes = self.segment.bytes.len();
        self.segment.effects.push(EffectEnd { database: database as u32, readers, bytes });
    }

    /// Makes a record of the effects that are not in one yet, unless the current unit may add more.
    fn seal(&mut self) {
        let effects = self.segment.effects.len();
        if self.depth == 0
            && effects > self.segment.sealed_effects()
            && let Some(sequence) = &self.sequence
        {
            self.segment.records.push(RecordEnd { number: sequence.next(), effects });
        }
    }

    /// Records the current call, word for word, because its handler is about to release the locks of what it has
    /// changed. It is a separate record unless it is part of a unit.
    pub fn record_now(&mut self, database: usize, args: Args<'_>) {
        if !self.is_on() {
            return;
        }
        self.is_recorded = true;
        self.append_call(database, args);
        self.depth -= 1;
        self.seal();
        self.depth += 1;
    }
}

/// Names of elements that a call has removed or changed, kept only if the journal has a reader.
#[derive(Debug, Default)]
pub struct Names(Option<OwnedBatch>);

impl Names {
    /// Returns a list that keeps no names.
    pub fn unwanted() -> Names {
        Names(None)
    }

    /// Returns a list that keeps names if the journal has a reader.
    pub fn for_journal(journal: &Journal) -> Names {
        Names(journal.is_on().then(OwnedBatch::new))
    }

    /// Adds a name.
    #[inline]
    pub fn add(&mut self, name: &[u8]) {
        if let Some(names) = &mut self.0 {
            names.push(&[name]);
        }
    }

    /// Returns the number of kept names.
    pub fn len(&self) -> usize {
        self.0.as_ref().map_or(0, OwnedBatch::len)
    }

    /// Returns whether no names are kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds the names to an effect.
    pub fn write(&self, words: &mut Words<'_>) {
        let Some(names) = &self.0 else { return };
        (0..names.len()).for_each(|index| _ = words.word(names.command(index).at(0)));
    }

    /// Records that these fields of a hash have expired, which was counted as `changes` changes.
    pub fn journal_expired(&self, journal: &mut Journal, database: usize, key: &[u8], changes: u64) {
        if !self.is_empty() {
            journal.record_separately(database, changes, |words| self.write(words.word(b"HDEL").word(key)));
        }
    }
}
