//! The journal: what commands change, as commands that change the same wherever and whenever they are run again.
//!
//! ```text
//! effect   a command in RESP and the database it belongs to
//! record   the effects of one call, transaction or script: all or none of them are to be run again
//! segment  the records of one worker since it was last asked for them
//! ```
//!
//! A record gets its number from a [`Sequence`] that all workers share, while the locks of what was changed are still held.
//! So the records of all workers in the order of their numbers are one history of the keyspace: run from the beginning on an
//! empty one they lead to the same contents.
//!
//! A call that has changed something is its own effect, word by word, unless its handler records another
//! ([`Journal::record`]): what depends on the time or on chance is recorded by its outcome (EXPIRE as PEXPIREAT, SPOP as
//! SREM), what waits without waiting (BLPOP as LPOP). An expiry or eviction is recorded as a removal
//! ([`Journal::record_aside`]). Effects are to be run with the clock at [`REPLAY_TIME_MS`], so that nothing expires in
//! between.
//!
//! A script may keep what its calls change from some readers ([`Readers`]): the effect is not for them then, and its record
//! has its number all the same.
//!
//! While the journal has no reader, a call pays one branch for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ember_protocol::{Args, OwnedBatch, push_word};

/// The time of a replay: before all expiries, which are recorded as removals instead.
pub const REPLAY_TIME_MS: i64 = 0;

/// Where the records of all workers get their numbers: 1, 2, 3, …, none left out.
#[derive(Debug, Default)]
pub struct Sequence(AtomicU64);

impl Sequence {
    /// The next number.
    fn next(&self) -> u64 {
        // The locks of what was changed order numbers of records that depend on each other.
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The last number given; 0 if none was. Exact for a worker with exclusive access.
    pub fn last(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The command by which a removal is recorded that no client has asked for: what replicas free in the background, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Removal {
    /// DEL.
    #[default]
    Del,
    /// UNLINK.
    Unlink,
}

impl Removal {
    /// UNLINK if it `is_lazy`.
    pub const fn lazy(is_lazy: bool) -> Removal {
        if is_lazy { Removal::Unlink } else { Removal::Del }
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Removal::Del => "DEL",
            Removal::Unlink => "UNLINK",
        }
    }
}

/// Who is to get an effect: one bit for each reader of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readers(u8);

impl Readers {
    /// Whoever reads the journal.
    pub const ALL: Readers = Readers(u8::MAX);

    /// Those with these bits.
    pub const fn from_bits(bits: u8) -> Readers {
        Readers(bits)
    }

    /// Whether one of those with these bits is among them.
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
    /// Who is to get it.
    pub readers: Readers,
    /// The number of the database it is run in.
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

/// Bytes of an emptied segment for which memory is kept.
const SEGMENT_KEPT_MAX: usize = 1024 * 1024;

/// Records of one worker, in the order of their numbers.
#[derive(Debug, Default)]
pub struct Segment {
    bytes: Vec<u8>,
    effects: Vec<EffectEnd>,
    records: Vec<RecordEnd>,
}

impl Segment {
    /// Whether there is no record.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The bytes of all effects.
    pub fn len_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// The number of the record at this place, if there is one.
    #[inline]
    pub fn number(&self, at: usize) -> Option<u64> {
        self.records.get(at).map(|record| record.number)
    }

    /// The effects of the record at this place, one at least.
    #[inline]
    pub fn effects(&self, at: usize) -> impl ExactSizeIterator<Item = Effect<'_>> {
        let first = if at == 0 { 0 } else { self.records[at - 1].effects };
        (first..self.records[at].effects).map(|index| self.effect(index))
    }

    /// The records: the number of each, and its effects, one at least.
    pub fn records(&self) -> impl Iterator<Item = (u64, impl Iterator<Item = Effect<'_>>)> {
        (0..self.len()).map(|at| (self.records[at].number, self.effects(at)))
    }

    /// The commands of up to `records` records that follow one another, from the one at this place on, and how many records
    /// those are. Their numbers leave none out, each has one effect for all readers, all in one database; no more are taken
    /// once there are `target` bytes. None if the first record has several effects. O(records taken).
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

    /// Removes all records. The memory stays, unless it is unusually much.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(SEGMENT_KEPT_MAX);
        self.effects.clear();
        self.effects.shrink_to(SEGMENT_KEPT_MAX / size_of::<EffectEnd>());
        self.records.clear();
        self.records.shrink_to(SEGMENT_KEPT_MAX / size_of::<RecordEnd>());
    }

    /// Takes the records of a later segment, which is empty then. O(1) if there were none before, else
    /// O(bytes of the later one).
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

    /// Takes the effects of a later segment without their records. O(1) if there were none before, else O(bytes of the later
    /// one).
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

/// The words of an effect, as they are added.
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

/// What a worker's calls change.
#[derive(Debug, Default)]
pub struct Journal {
    /// Where numbers come from; `None` while the journal has no reader.
    sequence: Option<Arc<Sequence>>,
    segment: Segment,
    /// Calls and units that are under way, one in the other.
    depth: u32,
    /// The handler of the current call has recorded what replaces it.
    is_recorded: bool,
    /// Changes counted in the current call that are recorded apart from it.
    recorded_aside: u64,
    /// Who is to get what calls change.
    readers: Readers,
}

/// A call under way; see [`Journal::begin_call`].
#[derive(Debug)]
pub struct CallMark {
    changes: u64,
    is_recorded: bool,
    recorded_aside: u64,
}

impl Journal {
    /// A journal with a reader.
    pub fn numbered_by(sequence: Arc<Sequence>) -> Journal {
        Journal { sequence: Some(sequence), ..Journal::default() }
    }

    /// Whether it has a reader.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.sequence.is_some()
    }

    /// Starts or stops recording. Earlier records stay until they are taken. It may start within a unit: what the unit does
    /// from then on is its record.
    pub fn set_sequence(&mut self, sequence: Option<Arc<Sequence>>) {
        debug_assert!(self.depth == 0 || !self.is_on(), "a record is complete or absent");
        self.sequence = sequence;
    }

    /// Takes the records.
    pub fn take(&mut self) -> Segment {
        debug_assert_eq!(self.depth, 0, "a record is whole before it is taken");
        std::mem::take(&mut self.segment)
    }

    /// Whether there are records to take, and none is under way.
    #[inline]
    pub fn has_records(&self) -> bool {
        self.depth == 0 && !self.segment.is_empty()
    }

    /// The number of the last record that is not taken yet.
    pub fn last_number(&self) -> Option<u64> {
        self.segment.records.last().map(|record| record.number)
    }

    /// Moves the records behind those of `to`.
    pub fn hand_over(&mut self, to: &mut Segment) {
        debug_assert_eq!(self.depth, 0, "a record is whole before it is taken");
        to.append(&mut self.segment);
    }

    /// Takes the effects of a call that was run elsewhere into the unit under way. O(1) if no other record is kept, else
    /// O(bytes).
    pub fn adopt(&mut self, recorded: &mut Segment) {
        if self.is_on() {
            recorded.records.clear();
            self.segment.append_effects(recorded);
        }
        recorded.clear();
    }

    /// From now on these are to get what calls change; what expires or is evicted meanwhile all get.
    pub fn choose_readers(&mut self, readers: Readers) {
        self.readers = readers;
    }

    /// Who is to get what calls change.
    pub fn readers(&self) -> Readers {
        self.readers
    }

    /// All effects until [`Journal::end_unit`] are one record.
    pub fn begin_unit(&mut self) {
        self.depth += 1;
    }

    /// Ends a unit. The locks of all it has changed are still held.
    pub fn end_unit(&mut self) {
        self.depth -= 1;
        self.seal();
    }

    /// Begins a call; `changes` is what [`KeyspaceCounters::changes`] says now.
    ///
    /// [`KeyspaceCounters::changes`]: crate::turn::KeyspaceCounters::changes
    pub fn begin_call(&mut self, changes: u64) -> CallMark {
        self.depth += 1;
        CallMark {
            changes,
            is_recorded: std::mem::take(&mut self.is_recorded),
            recorded_aside: std::mem::take(&mut self.recorded_aside),
        }
    }

    /// Ends a call. If it has changed something and has not recorded what, its effect is the call itself, word by word.
    pub fn end_call(&mut self, mark: &CallMark, changes: u64, database: usize, args: Args<'_>) {
        if changes - mark.changes > self.recorded_aside && !self.is_recorded {
            self.append_call(database, args);
        }
        (self.is_recorded, self.recorded_aside) = (mark.is_recorded, mark.recorded_aside);
        self.depth -= 1;
        self.seal();
    }

    /// Records a command that replaces the current call; several are replayed in order.
    pub fn record(&mut self, database: usize, write: impl FnOnce(&mut Words<'_>)) {
        if self.is_on() {
            self.is_recorded = true;
            self.append(database, self.readers, write);
        }
    }

    /// Records an effect apart from the current call, if there is one; it was counted as `changes` changes.
    pub fn record_aside(&mut self, database: usize, changes: u64, write: impl FnOnce(&mut Words<'_>)) {
        if self.is_on() {
            self.recorded_aside += changes;
            self.append(database, Readers::ALL, write);
            self.seal();
        }
    }

    /// Records that a key has expired or was evicted. In a call that has had no other effect so far that is a record of its
    /// own: what a reader finds expired need not go as one.
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
        // Nearly always there are less than ten words.
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

    /// Makes a record of the effects that are in none, unless more may belong to it.
    fn seal(&mut self) {
        let effects = self.segment.effects.len();
        if self.depth == 0
            && effects > self.segment.sealed_effects()
            && let Some(sequence) = &self.sequence
        {
            self.segment.records.push(RecordEnd { number: sequence.next(), effects });
        }
    }

    /// Records the current call, word by word, as a record of its own unless it is part of a unit: its handler is about to
    /// release the locks of what it has changed.
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
    /// Names that are not kept.
    pub fn unwanted() -> Names {
        Names(None)
    }

    /// Names for a journal.
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

    /// How many are kept.
    pub fn len(&self) -> usize {
        self.0.as_ref().map_or(0, OwnedBatch::len)
    }

    /// Whether none is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds them to an effect.
    pub fn write(&self, words: &mut Words<'_>) {
        let Some(names) = &self.0 else { return };
        (0..names.len()).for_each(|index| _ = words.word(names.command(index).at(0)));
    }

    /// Records that these fields of a hash are gone, which was counted as `changes` changes.
    pub fn journal_expired(&self, journal: &mut Journal, database: usize, key: &[u8], changes: u64) {
        if !self.is_empty() {
            journal.record_aside(database, changes, |words| self.write(words.word(b"HDEL").word(key)));
        }
    }
}
