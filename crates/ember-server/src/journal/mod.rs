//! The journal of the server: the records of all workers in one order, for its subscribers.
//!
//! ```text
//! worker   records of a batch ─ its outbox                                  (Executor::publish)
//! worker   before replies: outboxes ─ stream ─ subscribers, if fast         (JournalHub::may_acknowledge)
//! thread   the same, with all slow work                                     (thread.rs)
//! worker   sends replies whose records are released, holds others           (worker/barrier.rs)
//! ```
//!
//! The AOF is one of the subscribers (`aof/`). It releases a record when the record is in the file, or with
//! `appendfsync always` when the record is durable.
//!
//! The journal is enabled and disabled only while the gate is closed, and every worker reads again whether it is
//! enabled when it enters the gate. So the journaled records are a range of numbers without gaps.

mod merge;
pub(crate) mod order_queue;
pub(crate) mod stream;
mod thread;

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::thread::Thread;

use crossbeam_utils::CachePadded;
use ember_config::SYNC_REPLICAS_MAX;
use emberkv_core::capture::{Capture, Captured, Covered};
use emberkv_core::journal::{Journal, Segment, Sequence};
use parking_lot::Mutex;

use stream::{Pause, Stream};

/// The records that a worker has published, and whether the worker waits until records are released or durable.
#[derive(Default)]
struct Outbox {
    segment: Mutex<Segment>,
    /// Whether the outbox contains any record.
    has_some: AtomicBool,
    /// Bytes of the records in the outbox.
    bytes: AtomicUsize,
    /// Whether the worker must be woken when more records are released or durable.
    waits: AtomicBool,
    /// The captured changes of the published records, for the history.
    captured: Mutex<Vec<Captured>>,
}

/// The maximum number of rounds in which a worker passes on newly published records before it leaves them to the
/// journal's thread.
const ROUNDS_MAX: usize = 4;

/// The readers of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Reader {
    /// The append-only file.
    Aof = 1,
    /// The stream for replicas.
    Replicas = 2,
    /// The history of keys.
    History = 4,
}

/// The state of the journal that all workers and the journal's thread share.
pub(crate) struct JournalHub {
    sequence: Arc<Sequence>,
    /// The number of states that were numbered while the journal had no reader.
    unrecorded: AtomicU64,
    /// The current readers: the union of the bits of [`Reader`].
    readers: AtomicU8,
    outboxes: Box<[CachePadded<Outbox>]>,
    /// The number of the last durable record: all earlier records are durable, too.
    durable: AtomicU64,
    /// The number up to which records are released: replies that acknowledge them need not be held.
    released: AtomicU64,
    /// The numbers up to which replicas have all records: element 0 for at least one replica, element 1 for at least
    /// two, and so on.
    replicated: [AtomicU64; SYNC_REPLICAS_MAX],
    /// The stream that passes records to the subscribers, once the journal is started.
    stream: OnceLock<Mutex<Stream>>,
    /// Whether workers must leave passing on records to the journal's thread. May be out of date; the stream determines
    /// the current value.
    is_left_to_thread: AtomicBool,
    /// The journal's thread, once it is started.
    thread: OnceLock<Thread>,
    /// Whether the thread sleeps, so that it must be woken when an outbox contains records.
    thread_sleeps: AtomicBool,
    /// Whether the thread was called: it must run its subscribers even if the outboxes are empty.
    is_called: AtomicBool,
    /// The coverage of the history; set before the journal has a reader, if there is a history.
    covered: OnceLock<Arc<Covered>>,
    /// The number of captured changes that the history has not taken yet.
    captured: AtomicUsize,
    /// The bytes of captured changes that the history has not stored yet.
    captured_bytes: AtomicUsize,
}

impl JournalHub {
    /// Creates the journal of `workers` workers, without readers.
    pub(crate) fn new(workers: usize) -> JournalHub {
        JournalHub {
            sequence: Arc::default(),
            unrecorded: AtomicU64::new(0),
            readers: AtomicU8::new(0),
            outboxes: (0..workers).map(|_| CachePadded::default()).collect(),
            durable: AtomicU64::new(0),
            released: AtomicU64::new(0),
            replicated: Default::default(),
            stream: OnceLock::new(),
            is_left_to_thread: AtomicBool::new(false),
            thread: OnceLock::new(),
            thread_sleeps: AtomicBool::new(false),
            is_called: AtomicBool::new(false),
            covered: OnceLock::new(),
            captured: AtomicUsize::new(0),
            captured_bytes: AtomicUsize::new(0),
        }
    }

    /// Whether the journal has a reader, so that records are journaled.
    pub(crate) fn is_on(&self) -> bool {
        self.readers.load(Ordering::Relaxed) != 0
    }

    /// Whether `reader` currently reads the journal.
    pub(crate) fn is_read_by(&self, reader: Reader) -> bool {
        self.readers.load(Ordering::Relaxed) & reader as u8 != 0
    }

    /// Adds or removes a reader, and returns the number of the last record before the change. The gate must be closed.
    pub(crate) fn switch(&self, reader: Reader, on: bool) -> u64 {
        match on {
            true => self.readers.fetch_or(reader as u8, Ordering::Relaxed),
            false => self.readers.fetch_and(!(reader as u8), Ordering::Relaxed),
        };
        self.last_number()
    }

    /// Returns the number of the last record. Exact while the gate is closed.
    pub(crate) fn last_number(&self) -> u64 {
        self.sequence.last()
    }

    /// Returns the number of the state that a worker sees under the locks that it holds: earlier changes of that state
    /// have at most this number, later changes have a greater one. The number is derived from the number of the last
    /// record, which is also returned if the journal has a reader. While it has none, states are counted separately and
    /// that count is added, because record numbers must not have gaps.
    pub(crate) fn state_number(&self, journal: &Journal) -> (u64, Option<u64>) {
        let record = self.sequence.last();
        // The journal is enabled or disabled only while the gate is closed, so one of the two counters increases while
        // the other is constant.
        if journal.is_on() {
            (record + self.unrecorded.load(Ordering::Relaxed), Some(record))
        } else {
            (record + self.unrecorded.fetch_add(1, Ordering::Relaxed) + 1, None)
        }
    }

    /// Enables or disables a worker's journal to match the server's journal. The worker has just entered the gate, or
    /// has closed it, possibly for a command that changes this setting.
    #[inline]
    pub(crate) fn attach(&self, journal: &mut Journal) {
        if journal.is_on() != self.is_on() {
            journal.set_sequence(self.is_on().then(|| Arc::clone(&self.sequence)));
            let covered = self.covered.get().filter(|_| self.is_read_by(Reader::History));
            journal.set_capture(covered.map(|covered| Box::new(Capture::new(Arc::clone(covered)))));
        }
    }

    /// Sets the coverage of the history. The journal has no reader yet.
    pub(crate) fn cover(&self, covered: Arc<Covered>) {
        self.covered.get_or_init(|| covered);
    }

    /// Takes the captured changes of all workers. A worker publishes the changes of a record before the record itself,
    /// so once a record was passed on, its changes can be taken.
    pub(crate) fn take_captured(&self, to: &mut Vec<Captured>) {
        if self.captured.load(Ordering::SeqCst) == 0 {
            return;
        }
        let before = to.len();
        self.outboxes.iter().for_each(|outbox| to.append(&mut outbox.captured.lock()));
        self.captured.fetch_sub(to.len() - before, Ordering::SeqCst);
    }

    /// Returns the bytes of captured changes that the history has not stored yet.
    pub(crate) fn captured_bytes(&self) -> usize {
        self.captured_bytes.load(Ordering::SeqCst)
    }

    /// Counts this many bytes of captured changes as stored.
    pub(crate) fn release_captured(&self, bytes: usize) {
        self.captured_bytes.fetch_sub(bytes, Ordering::SeqCst);
    }

    /// Returns whether there are captured changes that the history has not taken.
    pub(crate) fn has_captured(&self) -> bool {
        self.captured.load(Ordering::SeqCst) > 0
    }

    /// Moves a worker's records into its outbox.
    pub(crate) fn publish(&self, worker: usize, journal: &mut Journal) {
        let outbox = &self.outboxes[worker];
        if journal.has_captured() {
            let mut captured = outbox.captured.lock();
            let before = captured.len();
            journal.move_captured_to(&mut captured);
            let bytes = captured[before..].iter().map(Captured::bytes).sum();
            self.captured_bytes.fetch_add(bytes, Ordering::SeqCst);
            self.captured.fetch_add(captured.len() - before, Ordering::SeqCst);
        }
        let mut segment = outbox.segment.lock();
        journal.move_to(&mut segment);
        outbox.bytes.store(segment.len_bytes(), Ordering::Relaxed);
        // The flag is set under the lock: as soon as the lock is released, another thread may take the records and
        // clear the flag.
        outbox.has_some.store(true, Ordering::SeqCst);
    }

    /// Whether replies that acknowledge records up to number `record` may be sent. If `record` is not released yet,
    /// first passes on the published records, unless only the journal's thread may do that.
    #[inline]
    pub(crate) fn may_acknowledge(&self, record: u64) -> bool {
        if record > self.released() && !self.is_left_to_thread.load(Ordering::Relaxed) {
            self.pass_on_published();
        }
        record <= self.released()
    }

    /// Ensures that a worker's published records are passed on soon.
    #[inline]
    pub(crate) fn pass_on_own(&self, worker: usize) {
        if self.outboxes[worker].has_some.load(Ordering::SeqCst) {
            self.pass_on_published();
        }
    }

    /// Passes on records that workers have published, or wakes the journal's thread to do it.
    pub(crate) fn pass_on_published(&self) {
        // If another thread holds the lock, it checks the outboxes again after releasing it: in this loop, or in `rest`
        // of the journal's thread.
        for _ in 0..ROUNDS_MAX {
            if self.is_left_to_thread.load(Ordering::Relaxed) {
                break;
            }
            let Some(mut stream) = self.stream.get().and_then(Mutex::try_lock) else { return };
            let is_done = stream.pass_on(self);
            drop(stream);
            if !is_done {
                break;
            }
            if !self.has_any() {
                return;
            }
        }
        if self.thread_sleeps.load(Ordering::SeqCst) {
            self.wake_thread();
        }
    }

    /// Calls the journal's thread, because one of its subscribers has work.
    pub(crate) fn call_thread(&self) {
        self.is_called.store(true, Ordering::SeqCst);
        self.wake_thread();
    }

    fn wake_thread(&self) {
        self.thread_sleeps.store(false, Ordering::SeqCst);
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    /// Puts the calling thread, which is the journal's thread, to sleep until `pause` has passed or there is work.
    fn rest(&self, pause: Pause) {
        // SeqCst orders this store against publishing records and calling the thread: either this thread sees that
        // work, or the other threads see that this thread sleeps.
        self.thread_sleeps.store(true, Ordering::SeqCst);
        match pause {
            Pause::Until(time) => std::thread::park_timeout(time),
            Pause::UntilPublished(time) if !self.has_any() && !self.is_called.load(Ordering::SeqCst) => {
                std::thread::park_timeout(time);
            }
            Pause::UntilPublished(_) => {}
        }
        self.thread_sleeps.store(false, Ordering::SeqCst);
    }

    /// Swaps a worker's published records with the empty segment `into`; returns false if there are none.
    fn collect(&self, worker: usize, into: &mut Segment) -> bool {
        let outbox = &self.outboxes[worker];
        if !outbox.has_some.load(Ordering::Acquire) {
            return false;
        }
        let mut segment = outbox.segment.lock();
        outbox.has_some.store(false, Ordering::SeqCst);
        outbox.bytes.store(0, Ordering::Relaxed);
        std::mem::swap(&mut *segment, into);
        true
    }

    /// Returns the bytes of published records that no subscriber has taken yet. O(workers).
    pub(crate) fn published_bytes(&self) -> u64 {
        self.outboxes.iter().map(|outbox| outbox.bytes.load(Ordering::Relaxed) as u64).sum()
    }

    fn has_any(&self) -> bool {
        self.outboxes.iter().any(|outbox| outbox.has_some.load(Ordering::SeqCst))
    }

    /// Returns the number up to which all records are durable.
    #[inline]
    pub(crate) fn durable(&self) -> u64 {
        self.durable.load(Ordering::SeqCst)
    }

    /// Returns the number up to which replies need not be held.
    #[inline]
    pub(crate) fn released(&self) -> u64 {
        self.released.load(Ordering::SeqCst)
    }

    /// Returns the number up to which at least `replicas` replicas have all records; if `replicas` is 0, the maximum
    /// number.
    #[inline]
    pub(crate) fn replicated(&self, replicas: u32) -> u64 {
        match replicas.checked_sub(1).and_then(|at| self.replicated.get(at as usize)) {
            None => u64::MAX,
            Some(record) => record.load(Ordering::SeqCst),
        }
    }

    /// Records the numbers up to which one replica, two replicas, and so on have all records. Calls `wake` for each
    /// waiting worker.
    pub(crate) fn publish_replicated(&self, records: [u64; SYNC_REPLICAS_MAX], wake: impl Fn(usize)) {
        let mut is_more = false;
        for (known, record) in self.replicated.iter().zip(records) {
            is_more |= known.fetch_max(record, Ordering::SeqCst) < record;
        }
        if is_more {
            self.wake_waiting(&wake);
        }
    }

    fn wake_waiting(&self, wake: &dyn Fn(usize)) {
        for (worker, outbox) in self.outboxes.iter().enumerate() {
            if outbox.waits.swap(false, Ordering::SeqCst) {
                wake(worker);
            }
        }
    }

    /// Requests that a worker is woken when more records are released or durable than now. Must be called before the
    /// worker reads those numbers.
    pub(crate) fn wait_for_more(&self, worker: usize) {
        self.outboxes[worker].waits.store(true, Ordering::SeqCst);
    }

    /// Releases all records up to number `released`, and marks records up to number `durable` as durable. Calls `wake`
    /// for each worker that waits for either.
    fn release(&self, durable: u64, released: u64, wake: &dyn Fn(usize)) {
        let before = (self.durable.load(Ordering::Relaxed), self.released.load(Ordering::Relaxed));
        if durable <= before.0 && released <= before.1 {
            return;
        }
        self.durable.store(durable.max(before.0), Ordering::SeqCst);
        self.released.store(released.max(before.1), Ordering::SeqCst);
        self.wake_waiting(wake);
    }
}
