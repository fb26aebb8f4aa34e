//! The journal of the server: the records of all workers in one order, for its subscribers.
//!
//! ```text
//! worker   records of a batch ─ its outbox                                  (Executor::publish)
//! worker   before replies: outboxes ─ stream ─ subscribers, if quick        (JournalHub::may_acknowledge)
//! thread   the same, with all slow work                                     (thread.rs)
//! worker   sends replies whose records are released, holds others           (worker/barrier.rs)
//! ```
//!
//! The AOF is such a subscriber (`aof/`). It releases a record when it is in the file, or with `appendfsync always`
//! when it is durable.
//!
//! The journal is switched on and off only while the gate is closed, and every worker re-reads the switch when it
//! enters. So exactly the records from one number up to another are journaled.

mod merge;
pub(crate) mod order_queue;
pub(crate) mod stream;
mod thread;

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::thread::Thread;

use crossbeam_utils::CachePadded;
use emberkv_core::journal::{Journal, Segment, Sequence};
use parking_lot::Mutex;

use ember_config::SYNC_REPLICAS_MAX;

use stream::{Pause, Stream};

/// The records that a worker has published, and whether it waits for records to be released or durable.
#[derive(Default)]
struct Outbox {
    segment: Mutex<Segment>,
    /// Whether it contains anything.
    has_some: AtomicBool,
    /// Bytes of its records.
    bytes: AtomicUsize,
    /// Whether the worker must be woken when more records are released or durable.
    waits: AtomicBool,
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
}

/// The state shared by all workers and the journal's thread.
pub(crate) struct JournalHub {
    sequence: Arc<Sequence>,
    /// States that were numbered while there was no reader.
    unrecorded: AtomicU64,
    /// The current [`Reader`]s.
    readers: AtomicU8,
    outboxes: Box<[CachePadded<Outbox>]>,
    /// All records up to this number are durable.
    durable: AtomicU64,
    /// Replies that acknowledge records up to this number need not be held.
    released: AtomicU64,
    /// One replica has all records up to the first number, two replicas have those up to the second, and so on.
    replicated: [AtomicU64; SYNC_REPLICAS_MAX],
    /// The records on their way to the subscribers, once there are any.
    stream: OnceLock<Mutex<Stream>>,
    /// Whether workers must leave the stream to the journal's thread. May be out of date; the stream has the current
    /// value.
    is_left_to_thread: AtomicBool,
    /// The journal's thread, once it runs.
    thread: OnceLock<Thread>,
    /// Whether the thread must be woken when an outbox has records.
    thread_sleeps: AtomicBool,
    /// Whether the thread must call its subscribers, regardless of the outboxes.
    is_called: AtomicBool,
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
        }
    }

    /// Whether the journal has a reader.
    pub(crate) fn is_on(&self) -> bool {
        self.readers.load(Ordering::Relaxed) != 0
    }

    /// Whether this reader reads it.
    pub(crate) fn is_read_by(&self, reader: Reader) -> bool {
        self.readers.load(Ordering::Relaxed) & reader as u8 != 0
    }

    /// Adds or removes a reader from here on, and returns the number of the last record before that. The gate is
    /// closed.
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

    /// Returns the number of the state that a worker sees under the locks that it holds: earlier changes of it have
    /// this number or a lower one, later changes a higher one. It is based on the number of the last record, which is
    /// also returned. States without records, while the journal has no reader, are counted separately and added,
    /// because no record number may be left out.
    pub(crate) fn state_number(&self, journal: &Journal) -> (u64, Option<u64>) {
        let record = self.sequence.last();
        // The switch changes only while the gate is closed: one of the two counters rises, the other is constant.
        if journal.is_on() {
            (record + self.unrecorded.load(Ordering::Relaxed), Some(record))
        } else {
            (record + self.unrecorded.fetch_add(1, Ordering::Relaxed) + 1, None)
        }
    }

    /// Sets a worker's journal to the server's switch. The worker has just entered the gate or closed it, possibly for
    /// a command that changes the switch.
    #[inline]
    pub(crate) fn attach(&self, journal: &mut Journal) {
        if journal.is_on() != self.is_on() {
            journal.set_sequence(self.is_on().then(|| Arc::clone(&self.sequence)));
        }
    }

    /// Moves a worker's records into its outbox.
    pub(crate) fn publish(&self, worker: usize, journal: &mut Journal) {
        let outbox = &self.outboxes[worker];
        let mut segment = outbox.segment.lock();
        journal.move_to(&mut segment);
        outbox.bytes.store(segment.len_bytes(), Ordering::Relaxed);
        // Under the lock: the records may be taken as soon as it is free, and the flag is cleared then.
        outbox.has_some.store(true, Ordering::SeqCst);
    }

    /// Whether replies that acknowledge records up to this number may be sent. If these are not released yet, the
    /// caller passes on the published records, unless the journal's thread must do that.
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
        // The holder of the lock checks the outboxes again after releasing it: here, or in the thread's `rest`.
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

    /// Wakes the journal's thread because one of its subscribers has work.
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

    /// Lets the journal's thread, which calls this, sleep while there is nothing to do.
    fn rest(&self, pause: Pause) {
        // SeqCst pairs with publishing and calling threads: either this sees their work, or they see that the thread
        // sleeps.
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

    /// Exchanges a worker's published records for an empty segment; returns false if there are none.
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

    /// Returns the number up to which replies need not wait for records.
    #[inline]
    pub(crate) fn released(&self) -> u64 {
        self.released.load(Ordering::SeqCst)
    }

    /// Returns the number up to which `replicas` replicas have all records; for 0 replicas, all records.
    #[inline]
    pub(crate) fn replicated(&self, replicas: u32) -> u64 {
        match replicas.checked_sub(1).and_then(|at| self.replicated.get(at as usize)) {
            None => u64::MAX,
            Some(record) => record.load(Ordering::SeqCst),
        }
    }

    /// Records the numbers up to which one replica, two, and so on have all records. Calls `wake` for each waiting
    /// worker.
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

    /// Requests that a worker is woken when more is released or durable than now; must be called before it reads those
    /// numbers.
    pub(crate) fn wait_for_more(&self, worker: usize) {
        self.outboxes[worker].waits.store(true, Ordering::SeqCst);
    }

    /// Releases all records up to number `released`, and marks those up to `durable` as durable: calls `wake` for each
    /// worker that waits for that.
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
