//! Merges the records of all workers in the order of their numbers, as commands.

use std::collections::VecDeque;

use ember_persistence::aof::Batch;
use emberkv_core::journal::{Readers, Segment};

use super::Reader;

/// Bytes of one transaction after which a batch ends in the middle of it: the length that a batch can describe ends
/// above that.
const SPLIT_BYTES: usize = 1024 * 1024 * 1024;

/// The records that one worker has published and that are not passed on yet.
#[derive(Default)]
struct Queue {
    segments: VecDeque<Segment>,
    /// The next record of the first segment.
    at: usize,
}

impl Queue {
    /// Returns the number of the next record.
    #[inline]
    fn next(&self) -> Option<u64> {
        self.segments.front().and_then(|segment| segment.number(self.at))
    }

    /// Advances by this many records of the first segment. Returns the segment when it is used up.
    fn advance(&mut self, records: usize) -> Option<Segment> {
        self.at += records;
        if self.segments.front().is_some_and(|segment| self.at == segment.len()) {
            self.at = 0;
            return self.segments.pop_front();
        }
        None
    }
}

/// A record with effects that are not for all readers.
pub(super) struct RecordForSome {
    worker: usize,
    pub(super) number: u64,
}

/// Puts records in order.
pub(super) struct Merger {
    queues: Vec<Queue>,
    /// Used segments, kept for their memory.
    spare: Vec<Segment>,
    /// The number of the last record taken.
    last: u64,
    /// Effects of the next record that were already taken: it is too long for one batch.
    taken: usize,
    /// The database of the last command taken.
    database: Option<usize>,
    /// Bytes of effects in the queues.
    bytes: usize,
}

impl Merger {
    /// Creates a merger for this many workers, starting after record `last`.
    pub(super) fn new(workers: usize, last: u64) -> Merger {
        let queues = (0..workers).map(|_| Queue::default()).collect();
        Merger { queues, spare: Vec::new(), last, taken: 0, database: None, bytes: 0 }
    }

    /// Returns the number of the last record taken.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// Returns the bytes of effects that were not taken yet.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns an empty segment.
    pub(super) fn spare(&mut self) -> Segment {
        self.spare.pop().unwrap_or_default()
    }

    /// Takes an empty segment back.
    pub(super) fn keep(&mut self, mut segment: Segment) {
        if self.spare.len() <= self.queues.len() {
            segment.clear();
            self.spare.push(segment);
        }
    }

    /// Adds the records that a worker has published.
    pub(super) fn add(&mut self, worker: usize, segment: Segment) {
        // An empty segment at the front of a queue would have no next record and hide those after it.
        if segment.is_empty() {
            return self.keep(segment);
        }
        self.bytes += segment.len_bytes();
        self.queues[worker].segments.push_back(segment);
    }

    /// Returns the database for which the next command needs no SELECT; `None` if one is needed.
    pub(super) fn database(&self) -> Option<usize> {
        self.database
    }

    /// Sets the database for which the next command needs no SELECT.
    pub(super) fn take_for_database(&mut self, database: Option<usize>) {
        self.database = database;
    }

    /// Moves records up to number `upto` into `batch`, until it has `target` bytes, or the next record is missing or is
    /// not for all readers alike.
    pub(super) fn fill(&mut self, batch: &mut Batch, upto: u64, target: usize) {
        while self.last < upto && batch.len() < target {
            let Some(worker) = self.find(self.last + 1) else { return };
            if self.taken == 0 && self.take_run(worker, batch, upto, target) {
                continue;
            }
            if self.is_for_some(worker) || !self.take_record(worker, batch) {
                return;
            }
            self.last += 1;
            self.advance(worker, 1);
        }
    }

    /// Whether a worker's next record has effects that are not for all readers.
    fn is_for_some(&self, worker: usize) -> bool {
        let Queue { segments, at } = &self.queues[worker];
        segments[0].effects(*at).any(|effect| effect.readers != Readers::ALL)
    }

    /// Returns the next record if it has arrived, is not after number `upto`, and is not for all readers alike.
    pub(super) fn next_for_some(&mut self, upto: u64) -> Option<RecordForSome> {
        let number = self.last + 1;
        if number > upto || self.taken > 0 {
            return None;
        }
        let worker = self.find(number).filter(|&worker| self.is_for_some(worker))?;
        Some(RecordForSome { worker, number })
    }

    /// Moves the effects of such a record that are for `reader` into `batch`, from effect `from` on. Returns `None` if
    /// that is all of it, otherwise the effect with which the next batch begins.
    pub(super) fn take_for(
        &mut self,
        record: &RecordForSome,
        reader: Reader,
        from: usize,
        batch: &mut Batch,
    ) -> Option<usize> {
        let Queue { segments, at } = &self.queues[record.worker];
        let own = || segments[0].effects(*at).filter(|effect| effect.readers.contain(reader as u8));
        let is_unit = own().nth(1).is_some();
        for (number, effect) in own().enumerate().skip(from) {
            if batch.len() > SPLIT_BYTES {
                return Some(number);
            }
            if number == 0 {
                // Readers that received the previous record may have selected another database.
                self.database = None;
                if is_unit {
                    batch.command(&[b"MULTI"]);
                }
            }
            choose_database(&mut self.database, effect.database, batch);
            batch.encoded(effect.command);
        }
        if is_unit {
            batch.command(&[b"EXEC"]);
        }
        None
    }

    /// Continues after such a record.
    pub(super) fn leave(&mut self, record: &RecordForSome) {
        self.last = record.number;
        self.database = None;
        self.advance(record.worker, 1);
    }

    /// Adds consecutive records of a worker that are one command each: most are, so their bytes are moved at once.
    /// Returns false if the next record is not like that.
    fn take_run(&mut self, worker: usize, batch: &mut Batch, upto: u64, target: usize) -> bool {
        let Queue { segments, at } = &self.queues[worker];
        let (records, run) = segments[0].run(*at, upto - self.last, target - batch.len());
        if records == 0 {
            return false;
        }
        choose_database(&mut self.database, run.database, batch);
        batch.encoded(run.command);
        self.last += records as u64;
        self.advance(worker, records);
        true
    }

    /// Adds a record: its command, or its commands between MULTI and EXEC. Returns false if the batch is full before
    /// its end; the next call takes the rest.
    fn take_record(&mut self, worker: usize, batch: &mut Batch) -> bool {
        let Queue { segments, at } = &self.queues[worker];
        let effects = segments[0].effects(*at);
        let is_unit = effects.len() > 1;
        for effect in effects.skip(self.taken) {
            if batch.len() > SPLIT_BYTES {
                return false;
            }
            if is_unit && self.taken == 0 {
                batch.command(&[b"MULTI"]);
            }
            choose_database(&mut self.database, effect.database, batch);
            batch.encoded(effect.command);
            self.taken += 1;
        }
        if is_unit {
            batch.command(&[b"EXEC"]);
        }
        self.taken = 0;
        true
    }

    /// Returns the worker that has a record; skips records before it.
    fn find(&mut self, wanted: u64) -> Option<usize> {
        for worker in 0..self.queues.len() {
            while let Some(number) = self.queues[worker].next() {
                if number >= wanted {
                    break;
                }
                self.advance(worker, 1);
            }
            if self.queues[worker].next() == Some(wanted) {
                return Some(worker);
            }
        }
        None
    }

    fn advance(&mut self, worker: usize, records: usize) {
        if let Some(used) = self.queues[worker].advance(records) {
            self.bytes -= used.len_bytes();
            self.keep(used);
        }
    }
}

/// Adds a SELECT if the database of the next command is not that of the last.
fn choose_database(chosen: &mut Option<usize>, database: usize, batch: &mut Batch) {
    if *chosen != Some(database) {
        *chosen = Some(database);
        batch.command(&[b"SELECT", itoa::Buffer::new().format(database).as_bytes()]);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use emberkv_core::journal::Journal;

    use super::*;

    #[test]
    fn records_are_merged_in_order_across_empty_segments() {
        let sequence = Arc::default();
        let [mut first, mut second] = [(); 2].map(|()| Journal::numbered_by(Arc::clone(&sequence)));
        let set = |journal: &mut Journal, key: &str| {
            journal.record_separately(0, 0, |words| _ = words.word(b"SET").word(key.as_bytes()).word(b"x"));
        };
        let mut merger = Merger::new(2, 0);
        // Both may publish again, and the stream collect again, before there is a record.
        merger.add(0, first.take());
        merger.add(1, second.take());
        set(&mut second, "one");
        set(&mut first, "two");
        merger.add(0, first.take());
        merger.add(0, first.take());
        set(&mut first, "three");
        merger.add(0, first.take());
        let (mut batch, mut expected) = (Batch::new(), Batch::new());
        merger.fill(&mut batch, u64::MAX, usize::MAX);
        assert_eq!((merger.last(), batch.len()), (0, 0), "the first record is missing");
        merger.add(1, second.take());
        merger.fill(&mut batch, u64::MAX, usize::MAX);
        assert_eq!((merger.last(), merger.bytes()), (3, 0));
        expected.command(&[b"SELECT", b"0"]);
        ["one", "two", "three"].iter().for_each(|key| expected.command(&[b"SET", key.as_bytes(), b"x"]));
        assert_eq!(batch.len(), expected.len());
    }
}
