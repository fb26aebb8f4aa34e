//! The stream merges the records of all workers in order, and passes them on to the subscribers.
//!
//! The stream is protected by a lock. A worker that is about to send replies takes the lock if it is free, and passes
//! on records that all workers have published ([`Stream::pass_on`]): one write for the replies of many connections,
//! without waking a thread. The journal's thread does all work that may take long ([`Stream::work`]).

use std::time::Duration;

use ember_persistence::aof::Batch;

use super::merge::Merger;
use super::{JournalHub, Reader};

/// The size in bytes at which a batch is passed on: small enough that the batch is still in the core's own cache when
/// it is written.
const BATCH_BYTES: usize = 256 * 1024;

/// The maximum size in bytes of an emptied batch whose allocation is kept.
const BATCH_KEPT_BYTES: usize = 16 * BATCH_BYTES;

/// The maximum number of published bytes that a worker passes on itself, which takes some tens of microseconds.
const AT_ONCE_MAX: usize = BATCH_BYTES;

/// A batch of records in order, encoded as commands.
pub(crate) struct Records<'b> {
    /// The commands, with a SELECT wherever the database changes; empty if no effect is for this subscriber. The last
    /// subscriber may take the batch.
    pub(crate) batch: &'b mut Batch,
    /// The number of the first record in the batch.
    pub(crate) first: u64,
    /// The number of the last complete record. A record that is too long for one batch is split among several batches.
    pub(crate) last: u64,
    /// The database of the last command.
    pub(crate) database: Option<usize>,
}

/// The database that the readers of a subscriber's output have selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReaderDatabase {
    /// Any database: the subscriber ignores the next record.
    Any,
    /// The database of the last record.
    OfLastRecord,
    /// The database with this number.
    Is(usize),
    /// An unknown database, so a SELECT is needed.
    Unknown,
}

/// A subscriber of the journal receives all records, in order.
///
/// The journal's thread works in rounds: [`begin_round`](Subscriber::begin_round), then
/// [`advance`](Subscriber::advance) and [`append`](Subscriber::append) alternately while there are records, then
/// [`end_round`](Subscriber::end_round). A round may block for as long as a disk takes. Workers call only
/// [`refresh`](Subscriber::refresh) and `append`, in which nothing may take longer than a write to a file.
pub(crate) trait Subscriber: Send {
    /// Returns which reader of the journal the subscriber is.
    fn reader(&self) -> Reader;

    /// Begins a round of the journal's thread.
    fn begin_round(&mut self);

    /// Executes the orders that are due after record `last`; all records up to `last` were received.
    fn advance(&mut self, last: u64);

    /// Returns the number of the last record that the subscriber accepts before it has other work; `last` is the last
    /// record that it received.
    fn limit(&self, last: u64) -> u64;

    /// Returns the database that the readers of the subscriber's output have selected, which decides whether the next
    /// record needs a SELECT; `last` is the last record that the subscriber received.
    fn database(&self, last: u64) -> ReaderDatabase;

    /// Reads the current configuration, if it has changed.
    fn refresh(&mut self);

    /// Receives records. The subscriber must keep records that it cannot write now.
    fn append(&mut self, records: Records<'_>);

    /// Ends a round of the journal's thread.
    fn end_round(&mut self);

    /// Publishes the subscriber's state; `waiting_bytes` bytes of records are waiting in the stream.
    fn report(&mut self, waiting_bytes: usize);

    /// Whether only the journal's thread may append, because appending may block or requires further work.
    fn is_left_to_thread(&self) -> bool;

    /// Whether the journal's thread must run the subscriber now, or earlier than the thread expects.
    fn has_work(&self) -> bool;

    /// Returns the number up to which all records are durable.
    fn durable(&self) -> u64;

    /// Returns the number up to which the subscriber does not delay replies.
    fn released(&self) -> u64;

    /// Returns the time until the subscriber must be called again.
    fn pause(&self) -> Pause;

    /// Whether the subscriber has stopped.
    fn is_over(&self) -> bool;
}

/// The maximum time that the journal's thread sleeps unless it is called.
#[derive(Clone, Copy)]
pub(crate) enum Pause {
    /// For this time, even if records are published.
    Until(Duration),
    /// For this time, but only until records are published.
    UntilPublished(Duration),
}

impl Pause {
    fn time(self) -> Duration {
        let (Pause::Until(time) | Pause::UntilPublished(time)) = self;
        time
    }
}

/// The stream of records from the outboxes to the subscribers.
pub(super) struct Stream {
    workers: usize,
    merger: Merger,
    /// A buffer for the next batch; empty between two uses.
    batch: Batch,
    subscribers: Vec<Box<dyn Subscriber>>,
    /// The function that wakes the worker with this number.
    wake: Box<dyn Fn(usize) + Send>,
}

impl Stream {
    /// Creates a stream for `workers` workers that begins after record `last`.
    pub(super) fn new(
        workers: usize,
        last: u64,
        subscribers: Vec<Box<dyn Subscriber>>,
        wake: Box<dyn Fn(usize) + Send>,
    ) -> Stream {
        Stream { workers, merger: Merger::new(workers, last), batch: Batch::new(), subscribers, wake }
    }

    /// Whether all subscribers have stopped.
    pub(super) fn is_over(&self) -> bool {
        self.subscribers.iter().all(|subscriber| subscriber.is_over())
    }

    /// Runs one round: collects the published records, and does all work of the subscribers that is due.
    pub(super) fn work(&mut self, hub: &JournalHub) {
        // The order of these steps matters. An order that is due after a record is added before the next record is
        // created, so collecting first ensures that later records are not appended before the order is executed;
        // likewise, a setting is changed before the first record whose reply depends on it.
        self.collect(hub);
        self.each(|subscriber| {
            subscriber.refresh();
            subscriber.begin_round();
        });
        loop {
            let last = self.merger.last();
            self.each(|subscriber| subscriber.advance(last));
            if !self.pump() {
                break;
            }
        }
        self.each(|subscriber| subscriber.end_round());
        self.settle(hub);
    }

    /// Passes on the published records, if that is fast; returns false if the journal's thread has work.
    pub(super) fn pass_on(&mut self, hub: &JournalHub) -> bool {
        self.collect(hub);
        self.each(|subscriber| subscriber.refresh());
        let is_left = self.subscribers.iter().any(|subscriber| subscriber.is_left_to_thread());
        if is_left || self.merger.bytes() > AT_ONCE_MAX {
            return false;
        }
        self.pump();
        self.settle(hub);
        !self.subscribers.iter().any(|subscriber| subscriber.has_work())
    }

    /// Returns how long the journal's thread may sleep.
    pub(super) fn pause(&self) -> Pause {
        let pauses = self.subscribers.iter().map(|subscriber| subscriber.pause());
        pauses.min_by_key(|pause| pause.time()).unwrap_or(Pause::UntilPublished(Duration::MAX))
    }

    fn each(&mut self, act: impl Fn(&mut dyn Subscriber)) {
        self.subscribers.iter_mut().for_each(|subscriber| act(&mut **subscriber));
    }

    fn collect(&mut self, hub: &JournalHub) {
        for worker in 0..self.workers {
            let mut segment = self.merger.spare();
            if hub.collect(worker, &mut segment) {
                self.merger.add(worker, segment);
            } else {
                self.merger.keep(segment);
            }
        }
    }

    /// Passes the available records on to the subscribers, as far as all of them accept records; returns false if no
    /// record is available.
    fn pump(&mut self) -> bool {
        let mut has_any = false;
        loop {
            let before = self.merger.last();
            self.agree_on_database(before);
            let limits = self.subscribers.iter().map(|subscriber| subscriber.limit(before));
            let limit = limits.min().unwrap_or(u64::MAX);
            self.merger.fill(&mut self.batch, limit, BATCH_BYTES);
            if self.batch.is_empty() {
                if !self.pass_on_for_some(limit) {
                    return has_any;
                }
                has_any = true;
                continue;
            }
            has_any = true;
            for subscriber in &mut self.subscribers {
                let (first, last) = (before + 1, self.merger.last());
                let database = self.merger.database();
                subscriber.append(Records { batch: &mut self.batch, first, last, database });
            }
            self.empty_batch();
        }
    }

    /// Makes the next record begin with a SELECT, unless all readers have selected the same database.
    fn agree_on_database(&mut self, last: u64) {
        let of_record = self.merger.database();
        let mut known = None;
        for subscriber in &self.subscribers {
            let database = match subscriber.database(last) {
                ReaderDatabase::Any => continue,
                ReaderDatabase::OfLastRecord => of_record,
                ReaderDatabase::Is(database) => Some(database),
                ReaderDatabase::Unknown => None,
            };
            if database.is_none() || known.is_some_and(|known| Some(known) != database) {
                return self.merger.take_for_database(None);
            }
            known = database;
        }
        if known.is_some() {
            self.merger.take_for_database(known);
        }
    }

    /// Passes the next record on if it has effects that only some readers receive: each subscriber receives the effects
    /// for it. Returns false if the next record has no such effects, or its number exceeds `limit`.
    fn pass_on_for_some(&mut self, limit: u64) -> bool {
        let before = self.merger.last();
        let Some(record) = self.merger.next_for_some(limit) else { return false };
        for at in 0..self.subscribers.len() {
            let mut from = Some(0);
            while let Some(effect) = from {
                from = self.merger.take_for(&record, self.subscribers[at].reader(), effect, &mut self.batch);
                let last = if from.is_some() { before } else { record.number };
                let database = self.merger.database();
                let records = Records { batch: &mut self.batch, first: record.number, last, database };
                self.subscribers[at].append(records);
                self.empty_batch();
            }
        }
        self.merger.leave(&record);
        true
    }

    fn empty_batch(&mut self) {
        if self.batch.len() > BATCH_KEPT_BYTES {
            self.batch = Batch::new();
        }
        self.batch.clear();
    }

    /// Publishes the results of a round to workers and other threads.
    fn settle(&mut self, hub: &JournalHub) {
        let waiting = self.merger.bytes();
        self.each(|subscriber| subscriber.report(waiting));
        let is_left = self.subscribers.iter().any(|subscriber| subscriber.is_left_to_thread());
        hub.is_left_to_thread.store(is_left, std::sync::atomic::Ordering::Relaxed);
        let least = |of: fn(&dyn Subscriber) -> u64| {
            self.subscribers.iter().map(|subscriber| of(&**subscriber)).min().unwrap_or(u64::MAX)
        };
        hub.release(least(|one| one.durable()), least(|one| one.released()), &*self.wake);
    }
}
