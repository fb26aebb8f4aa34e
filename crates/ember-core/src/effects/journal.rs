//! The journal: records of all changes as commands. A replay of the commands makes the same changes on any server and
//! at any time.
//!
//! ```text
//! effect   a command in RESP and its database
//! record   the effects of one call, transaction or script: all or none of them are replayed
//! segment  the records of one worker since they were last taken
//! ```
//!
//! A worker takes the number of a record from a [`Sequence`] that all workers share, while it still holds the locks of
//! the changed keys. So the records of all workers, ordered by number, are one history of the keyspace: replaying this
//! history on an empty keyspace produces the same contents.
//!
//! A call that has changed something is recorded word for word, unless its handler records another command instead
//! ([`Journal::record`]): a command that depends on time or chance is recorded by its outcome (EXPIRE as PEXPIREAT,
//! SPOP as SREM), and a blocking command as its non-blocking form (BLPOP as LPOP). An expiry or eviction is recorded as
//! a removal ([`Journal::record_separately`]). Effects must be replayed with the clock at [`REPLAY_TIME_MS`], so that
//! nothing expires during the replay.
//!
//! A script may hide the changes of its calls from some readers ([`Readers`]): these readers skip the effect, but its
//! record still has a number.
//!
//! While the journal has no reader, its cost is one branch per call.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ember_protocol::{Args, OwnedBatch, push_word};

use super::capture::{Capture, Captured, State};

/// The Unix time in ms at which the journal is replayed: before all expiries, because removals of expired data are
/// recorded.
pub const REPLAY_TIME_MS: i64 = 0;

/// The source of record numbers, shared by all workers: 1, 2, 3, …, without gaps.
#[derive(Debug, Default)]
pub struct Sequence(AtomicU64);

impl Sequence {
    /// Takes the next number.
    fn next(&self) -> u64 {
        // The locks of the changed keys order the numbers of records that depend on each other.
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Returns the last number taken; 0 if none was. The result is exact if the caller has exclusive access to the
    /// keyspace.
    pub fn last(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The command that records a removal that no client requested. With UNLINK, replicas free the value in the background,
/// as this server does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Removal {
    /// `DEL`: replicas free the value at once.
    #[default]
    Del,
    /// `UNLINK`: replicas free the value in the background.
    Unlink,
}

impl Removal {
    /// Returns `Unlink` if `is_lazy`, otherwise `Del`.
    pub const fn lazy(is_lazy: bool) -> Removal {
        if is_lazy { Removal::Unlink } else { Removal::Del }
    }

    /// Returns the name of the command.
    pub const fn name(self) -> &'static str {
        match self {
            Removal::Del => "DEL",
            Removal::Unlink => "UNLINK",
        }
    }
}

/// The readers of the journal that receive an effect, as a set of bits, one for each reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readers(u8);

impl Readers {
    /// All readers of the journal.
    pub const ALL: Readers = Readers(u8::MAX);

    /// Returns the set of the readers with these bits.
    pub const fn from_bits(bits: u8) -> Readers {
        Readers(bits)
    }

    /// Returns whether the set contains a reader with one of these bits.
    pub const fn contain(self, bits: u8) -> bool {
        self.0 & bits != 0
    }
}

impl Default for Readers {
    fn default() -> Readers {
        Readers::ALL
    }
}

/// A command of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effect<'s> {
    /// The readers that receive the effect.
    pub readers: Readers,
    /// The number of the database in which the command runs.
    pub database: usize,
    /// The command, encoded in RESP.
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

/// The maximum number of bytes that an emptied segment keeps allocated.
const SEGMENT_KEPT_MAX: usize = 1024 * 1024;

/// The records of one worker, in the order of their numbers.
#[derive(Debug, Default)]
pub struct Segment {
    bytes: Vec<u8>,
    effects: Vec<EffectEnd>,
    records: Vec<RecordEnd>,
}

impl Segment {
    /// Returns whether the segment contains no records.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Returns the total bytes of all effects.
    pub fn len_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the number of records.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Returns the number of the record at this position; `None` if there is no such record.
    #[inline]
    pub fn number(&self, at: usize) -> Option<u64> {
        self.records.get(at).map(|record| record.number)
    }

    /// Returns the effects of the record at this position; a record has at least one effect.
    #[inline]
    pub fn effects(&self, at: usize) -> impl ExactSizeIterator<Item = Effect<'_>> {
        let first = if at == 0 { 0 } else { self.records[at - 1].effects };
        (first..self.records[at].effects).map(|index| self.effect(index))
    }

    /// Returns the records, each as its number and its effects; a record has at least one effect.
    pub fn records(&self) -> impl Iterator<Item = (u64, impl Iterator<Item = Effect<'_>>)> {
        (0..self.len()).map(|at| (self.records[at].number, self.effects(at)))
    }

    /// Returns the commands of up to `records` consecutive records from position `at` on as one effect, and the number
    /// of these records.
    ///
    /// The numbers of these records have no gap, and each record has one effect, for all readers; all effects are in
    /// one database. No record is added after their commands have reached `target` bytes. If the first record has
    /// several effects, or not all readers receive its effect, the result has no records. O(records in the result).
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

    /// Removes all records. Keeps the allocated memory, up to 1 MiB each for bytes, effects and records.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(SEGMENT_KEPT_MAX);
        self.effects.clear();
        self.effects.shrink_to(SEGMENT_KEPT_MAX / size_of::<EffectEnd>());
        self.records.clear();
        self.records.shrink_to(SEGMENT_KEPT_MAX / size_of::<RecordEnd>());
    }

    /// Moves the records of a later segment to the end of this one. O(1) if this segment was empty, otherwise O(bytes
    /// of the later segment).
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

    /// Moves the effects of a later segment, without their records, to the end of this one. O(1) if this segment had no
    /// effects, otherwise O(bytes of the later segment).
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

/// Appends the words of an effect's command to a segment.
#[derive(Debug)]
pub struct Words<'j> {
    bytes: &'j mut Vec<u8>,
    count: usize,
}

impl Words<'_> {
    /// Appends a word.
    pub fn word(&mut self, word: &[u8]) -> &mut Self {
        push_word(word, self.bytes);
        self.count += 1;
        self
    }

    /// Appends a number as decimal digits.
    pub fn integer(&mut self, number: impl itoa::Integer) -> &mut Self {
        self.word(itoa::Buffer::new().format(number).as_bytes())
    }
}

/// A worker's part of the journal: the records of its calls that the worker has not published yet.
#[derive(Debug, Default)]
pub struct Journal {
    /// The source of record numbers; `None` while the journal has no reader.
    sequence: Option<Arc<Sequence>>,
    segment: Segment,
    /// The depth of nested calls and units.
    depth: u32,
    /// Whether the handler of the current call has recorded an effect that replaces the call.
    is_recorded: bool,
    /// The number of changes of the current call that are recorded separately.
    recorded_separately: u64,
    /// The readers that receive the effects of calls.
    readers: Readers,
    /// The capture of changes for the history; `None` without history.
    capture: Option<Box<Capture>>,
}

/// The state of the journal when a call begins; see [`Journal::begin_call`].
#[derive(Debug)]
pub struct CallMark {
    changes: u64,
    is_recorded: bool,
    recorded_separately: u64,
    effects: usize,
    by_server: usize,
    marks: usize,
}

impl Journal {
    /// Returns a journal that has a reader and takes record numbers from `sequence`.
    pub fn numbered_by(sequence: Arc<Sequence>) -> Journal {
        Journal { sequence: Some(sequence), ..Journal::default() }
    }

    /// Returns whether the journal has a reader.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.sequence.is_some()
    }

    /// Starts or stops recording. Earlier records remain until [`Journal::take`]. If recording starts within a unit,
    /// the record contains only the unit's later effects.
    pub fn set_sequence(&mut self, sequence: Option<Arc<Sequence>>) {
        debug_assert!(self.depth == 0 || !self.is_on(), "a record is complete or absent");
        self.sequence = sequence;
    }

    /// Removes and returns all records.
    pub fn take(&mut self) -> Segment {
        debug_assert_eq!(self.depth, 0, "a record is whole before it is taken");
        std::mem::take(&mut self.segment)
    }

    /// Returns whether there are records for [`Journal::take`], all of them complete.
    #[inline]
    pub fn has_records(&self) -> bool {
        self.depth == 0 && !self.segment.is_empty()
    }

    /// Returns the number of the last record; `None` if the journal contains no records.
    pub fn last_number(&self) -> Option<u64> {
        self.segment.records.last().map(|record| record.number)
    }

    /// Moves all records to the end of the segment `to`.
    pub fn move_to(&mut self, to: &mut Segment) {
        debug_assert_eq!(self.depth, 0, "a record is whole before it is taken");
        to.append(&mut self.segment);
    }

    /// Adds the effects of an offloaded call to the current unit. O(1) if the journal contains no effects, otherwise
    /// O(bytes of these effects).
    pub fn adopt(&mut self, recorded: &mut Segment) {
        if self.is_on() {
            recorded.records.clear();
            self.segment.append_effects(recorded);
        }
        recorded.clear();
    }

    /// Sets the readers that receive the effects of calls from now on. All readers receive the removals by expiry and
    /// eviction.
    pub fn choose_readers(&mut self, readers: Readers) {
        self.readers = readers;
    }

    /// Returns the readers that receive the effects of calls.
    pub fn readers(&self) -> Readers {
        self.readers
    }

    /// Begins a unit: all effects until [`Journal::end_unit`] form one record.
    pub fn begin_unit(&mut self) {
        self.depth += 1;
    }

    /// Ends a unit. The caller still holds the locks of all keys that the unit has changed.
    pub fn end_unit(&mut self) {
        self.depth -= 1;
        self.seal();
    }

    /// Begins a call; `changes` is the current [`KeyspaceCounters::changes`].
    ///
    /// [`KeyspaceCounters::changes`]: crate::turn::KeyspaceCounters::changes
    pub fn begin_call(&mut self, changes: u64) -> CallMark {
        self.depth += 1;
        let (by_server, marks) =
            self.capture.as_ref().map_or((0, 0), |capture| (capture.by_server, capture.marks()));
        CallMark {
            changes,
            is_recorded: std::mem::take(&mut self.is_recorded),
            recorded_separately: std::mem::take(&mut self.recorded_separately),
            effects: self.segment.effects.len(),
            by_server,
            marks,
        }
    }

    /// Ends a call. If the call has changed something and its handler has recorded no other effect, the call is
    /// recorded word for word.
    pub fn end_call(&mut self, mark: &CallMark, changes: u64, database: usize, args: Args<'_>) {
        if changes - mark.changes > self.recorded_separately && !self.is_recorded {
            self.append_call(database, args);
        }
        if let Some(capture) = &mut self.capture {
            let by_server = capture.by_server - mark.by_server;
            capture.settle(mark.marks, self.segment.effects.len() - mark.effects > by_server);
        }
        (self.is_recorded, self.recorded_separately) = (mark.is_recorded, mark.recorded_separately);
        self.depth -= 1;
        self.seal();
    }

    /// Records a command that replaces the current call. If the handler records several commands, they are replayed in
    /// their order.
    pub fn record(&mut self, database: usize, write: impl FnOnce(&mut Words<'_>)) {
        if self.is_on() {
            self.is_recorded = true;
            self.append(database, self.readers, write);
        }
    }

    /// Records an effect in addition to that of the current call, if any. `changes` is the number of counted changes
    /// that this effect covers.
    pub fn record_separately(&mut self, database: usize, changes: u64, write: impl FnOnce(&mut Words<'_>)) {
        if self.is_on() {
            self.recorded_separately += changes;
            self.append(database, Readers::ALL, write);
            self.seal();
        }
    }

    /// Records that a key has expired or was evicted. If the current call has had no other effect so far, the removal
    /// becomes a separate record: the removals of several expired keys by one reading call need not be atomic.
    #[inline]
    pub fn record_removal(&mut self, database: usize, key: &[u8], removal: Removal) {
        if self.is_on() {
            let depth = self.depth;
            let is_first = self.segment.effects.len() == self.segment.sealed_effects();
            if let Some(capture) = &mut self.capture {
                capture.settle_removed(database, key);
                capture.by_server += 1;
            }
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
        // Reserves one digit for the number of words, because nearly every effect has fewer than ten.
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

    /// Makes one record of the effects that are not part of a record yet, unless the current unit may still add
    /// effects.
    fn seal(&mut self) {
        let effects = self.segment.effects.len();
        if self.depth == 0
            && effects > self.segment.sealed_effects()
            && let Some(sequence) = &self.sequence
        {
            let number = sequence.next();
            self.segment.records.push(RecordEnd { number, effects });
            if let Some(capture) = &mut self.capture {
                capture.seal(number);
            }
        }
    }

    /// Sets the capture of changes for the history.
    pub fn set_capture(&mut self, capture: Option<Box<Capture>>) {
        self.capture = capture;
    }

    /// Returns whether changes are captured for the history.
    #[inline]
    pub fn captures(&self) -> bool {
        self.capture.is_some()
    }

    /// Returns whether the history covers a key.
    pub fn covers(&self, name: &[u8]) -> bool {
        self.capture.as_ref().is_some_and(|capture| capture.covers(name))
    }

    /// Marks a key that is about to change. `cause` is the action of the server if no call changes the key; `state`
    /// returns the state of the key if values up to a size in bytes are captured.
    pub fn mark(
        &mut self,
        key: (usize, &[u8]),
        cause: Option<&'static str>,
        state: impl FnOnce(usize) -> State,
    ) {
        if let Some(capture) = &mut self.capture {
            capture.mark(key, cause, state);
        }
    }

    /// Returns whether the current call has marked keys.
    #[inline]
    pub fn has_marks(&self) -> bool {
        self.capture.as_ref().is_some_and(|capture| capture.marks() > 0)
    }

    /// Adds the states after the call `operation` to the marks that the call has set. `state` returns the state of a
    /// key if values up to a size in bytes are captured.
    pub fn complete_marks(
        &mut self,
        from: &CallMark,
        operation: &'static str,
        state: impl FnMut(usize, &[u8], usize) -> State,
    ) {
        if let Some(capture) = &mut self.capture {
            capture.complete(from.marks, operation, state);
        }
    }

    /// Like [`Journal::complete_marks`], for all marks, which are those of a unit without calls: they become changes if
    /// `is_recorded`, and are discarded otherwise.
    pub fn settle_marks(
        &mut self,
        operation: &'static str,
        is_recorded: bool,
        state: impl FnMut(usize, &[u8], usize) -> State,
    ) {
        if let Some(capture) = &mut self.capture {
            capture.complete(0, operation, state);
            capture.settle(0, is_recorded);
        }
    }

    /// Turns the mark of a key into a change by the server, which is recorded next; `after` is the state after the
    /// change if values up to a size in bytes are captured. Without `after`, the mark is discarded.
    pub fn settle_by_server(&mut self, (database, name): (usize, &[u8]), after: Option<State>) {
        if let Some(capture) = &mut self.capture {
            capture.by_server += usize::from(after.is_some());
            capture.settle_by_server(database, name, after);
        }
    }

    /// Captures the exchange of two databases, which is recorded next. The caller holds all locks.
    pub fn capture_swap(&mut self, one: usize, other: usize) {
        if let Some(capture) = &mut self.capture {
            capture.swap(one, other);
        }
    }

    /// Captures the removal of too many keys to record each of them. The caller holds all locks.
    pub fn capture_restart(&mut self) {
        if let Some(capture) = &mut self.capture {
            capture.restart();
        }
    }

    /// Returns the size in bytes above which values are not captured; `None` without history.
    pub fn captured_bytes_max(&self) -> Option<usize> {
        self.capture.as_ref().map(|capture| capture.value_bytes_max())
    }

    /// Returns whether there are changes for [`Journal::move_captured_to`].
    pub fn has_captured(&self) -> bool {
        self.capture.as_ref().is_some_and(|capture| capture.has_sealed())
    }

    /// Moves the captured changes of sealed records to the end of `to`.
    pub fn move_captured_to(&mut self, to: &mut Vec<Captured>) {
        if let Some(capture) = &mut self.capture {
            capture.move_to(to);
        }
    }

    /// Records the current call word for word, because its handler is about to release the locks of the changed keys.
    /// The call becomes a separate record unless it is part of a unit.
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

/// The names of elements that a call has removed or changed; stored only if the journal has a reader.
#[derive(Debug, Default)]
pub struct Names(Option<OwnedBatch>);

impl Names {
    /// Returns a list that ignores added names.
    pub fn unwanted() -> Names {
        Names(None)
    }

    /// Returns a list that stores added names only if the journal has a reader.
    pub fn for_journal(journal: &Journal) -> Names {
        Names(journal.is_on().then(OwnedBatch::new))
    }

    /// Adds a name if the list stores names.
    #[inline]
    pub fn add(&mut self, name: &[u8]) {
        if let Some(names) = &mut self.0 {
            names.push(&[name]);
        }
    }

    /// Returns the number of stored names.
    pub fn len(&self) -> usize {
        self.0.as_ref().map_or(0, OwnedBatch::len)
    }

    /// Returns whether the list contains no names.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends the names to an effect's command.
    pub fn write(&self, words: &mut Words<'_>) {
        let Some(names) = &self.0 else { return };
        (0..names.len()).for_each(|index| _ = words.word(names.command(index).at(0)));
    }

    /// Records the removal of these hash fields by expiry, which was counted as `changes` changes.
    pub fn journal_expired(&self, journal: &mut Journal, database: usize, key: &[u8], changes: u64) {
        if !self.is_empty() {
            journal.record_separately(database, changes, |words| self.write(words.word(b"HDEL").word(key)));
        }
    }
}
