//! Merges the records of all workers into one sequence of commands, ordered by record number.

use std::collections::VecDeque;

use ember_persistence::aof::Batch;
use emberkv_core::journal::{Readers, Segment};

use super::Reader;

/// A batch ends after this number of bytes even inside a transaction, because the length field of a batch is limited to
/// 4 GiB.
const SPLIT_BYTES: usize = 1024 * 1024 * 1024;

/// The records that one worker has published and that are not merged yet.
#[derive(Default)]
struct Queue {
    segments: VecDeque<Segment>,
    /// The index of the next record in the first segment.
    at: usize,
}

impl Queue {
    /// Returns the number of the next record.
    #[inline]
    fn next(&self) -> Option<u64> {
        self.segments.front().and_then(|segment| segment.number(self.at))
    }

    /// Advances by `records` records of the first segment. Returns the segment when all its records are used.
    fn advance(&mut self, records: usize) -> Option<Segment> {
        self.at += records;
        if self.segments.front().is_some_and(|segment| self.at == segment.len()) {
            self.at = 0;
            return self.segments.pop_front();
        }
        None
    }
}

/// A record with effects that only some readers receive.
pub(super) struct RecordForSome {
    worker: usize,
    pub(super) number: u64,
}

/// Merges the published records of all workers.
pub(super) struct Merger {
    queues: Vec<Queue>,
    /// Empty segments, kept for their allocations.
    spare: Vec<Segment>,
    /// The number of the last record merged.
    last: u64,
    /// The number of effects of the next record that were already merged, because the record is too long for one batch.
    taken: usize,
    /// The database of the last command merged.
    database: Option<usize>,
    /// Bytes of the effects in the queues.
    bytes: usize,
}

impl Merger {
    /// Creates a merger for `workers` workers, starting after record `last`.
    pub(super) fn new(workers: usize, last: u64) -> Merger {
        let queues = (0..workers).map(|_| Queue::default()).collect();
        Merger { queues, spare: Vec::new(), last, taken: 0, database: None, bytes: 0 }
    }

    /// Returns the number of the last record merged.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// Returns the bytes of effects that are not merged yet.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns an empty segment, reusing an allocation if possible.
    pub(super) fn spare(&mut self) -> Segment {
        self.spare.pop().unwrap_or_default()
    }

    /// Keeps a segment's allocation for reuse.
    pub(super) fn keep(&mut self, mut segment: Segment) {
        if self.spare.len() <= self.queues.len() {
            segment.clear();
            self.spare.push(segment);
        }
    }

    /// Adds the records that a worker has published.
    pub(super) fn add(&mut self, worker: usize, segment: Segment) {
        // An empty segment at the front of a queue contains no next record and would hide the segments after it.
        if segment.is_empty() {
            return self.keep(segment);
        }
        self.bytes += segment.len_bytes();
        self.queues[worker].segments.push_back(segment);
    }

    /// Returns the database in which the next command needs no SELECT; `None` if any command needs one.
    pub(super) fn database(&self) -> Option<usize> {
        self.database
    }

    /// Sets the database in which the next command needs no SELECT.
    pub(super) fn take_for_database(&mut self, database: Option<usize>) {
        self.database = database;
    }

    /// Moves records up to number `upto` into `batch`, until the batch contains `target` bytes, or the next record is
    /// missing or has effects that only some readers receive.
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

    /// Whether a worker's next record has effects that only some readers receive.
    fn is_for_some(&self, worker: usize) -> bool {
        let Queue { segments, at } = &self.queues[worker];
        segments[0].effects(*at).any(|effect| effect.readers != Readers::ALL)
    }

    /// Returns the next record if it has arrived, its number is at most `upto`, and it has effects that only some
    /// readers receive.
    pub(super) fn next_for_some(&mut self, upto: u64) -> Option<RecordForSome> {
        let number = self.last + 1;
        if number > upto || self.taken > 0 {
            return None;
        }
        let worker = self.find(number).filter(|&worker| self.is_for_some(worker))?;
        Some(RecordForSome { worker, number })
    }

    /// Copies the effects of `record` that `reader` receives into `batch`, from effect `from` on. Returns `None` if no
    /// effects are left, otherwise the first effect of the next batch.
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
                // The readers may have different databases selected, because not all received the same records before.
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

    /// Continues after a record that only some readers received.
    pub(super) fn leave(&mut self, record: &RecordForSome) {
        self.last = record.number;
        self.database = None;
        self.advance(record.worker, 1);
    }

    /// Moves consecutive records of a worker that consist of one command each, as most do, into `batch`, so that their
    /// bytes are moved together. Returns false if the next record has more commands.
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

    /// Moves a record into `batch`: its command, or its commands between MULTI and EXEC. Returns false if the batch is
    /// full before the end of the record; the next call moves the rest.
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

    /// Returns the worker that has record number `wanted`; skips earlier records.
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

/// Appends a SELECT if the next command needs a database other than the last command's.
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
        // Both journals are emptied before they contain a record, which adds empty segments.
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
