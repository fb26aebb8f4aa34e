//! The journal of the server: how the records of all workers come into the AOF, and what replies wait for.
//!
//! ```text
//! worker   records of a batch ─ its outbox                                (Executor::publish)
//! worker   about to send replies: outboxes ─ stream ─ AOF, if it is free   (JournalHub::may_acknowledge, stream.rs)
//! writer   the same, with all that may take long                          (writer.rs, stream.rs)
//! worker   sends replies whose records are in the file, or with `always` durable; holds others  (worker/barrier.rs)
//! ```
//!
//! Whether the journal is read is switched only while the gate is closed, and every worker re-reads the switch when it
//! enters: so there is one number from which on all records are journaled, and one up to which.

pub(crate) mod loading;
mod merge;
mod orders;
pub(crate) mod rewriting;
mod state;
mod stream;
pub(crate) mod writer;

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, Thread};

use crossbeam_utils::CachePadded;
use emberkv_core::journal::{Journal, Segment, Sequence};
use parking_lot::Mutex;

use orders::{Order, Orders};
pub(crate) use state::AofState;
use stream::{Pause, Stream};

use crate::server::Server;

/// What a worker has published, and whether it waits for records to be released or durable.
#[derive(Default)]
struct Outbox {
    segment: Mutex<Segment>,
    /// Whether there is anything in it.
    has_some: AtomicBool,
    /// Whether the worker is to be woken when more is released or durable.
    waits: AtomicBool,
}

/// How often a worker that appends looks for more that others have published meanwhile, before it leaves that to the AOF
/// writer.
const APPENDS_MAX: usize = 4;

/// What all workers and the AOF writer share.
pub(crate) struct JournalHub {
    sequence: Arc<Sequence>,
    is_on: AtomicBool,
    outboxes: Box<[CachePadded<Outbox>]>,
    /// All records up to this number are durable.
    durable: AtomicU64,
    /// Replies to what made records up to this number need not be held: those are in the file, or with `always` durable, or
    /// will be only together with a base.
    released: AtomicU64,
    /// The records on their way into the file, once there is somebody who writes them.
    stream: OnceLock<Mutex<Stream>>,
    /// Whether workers are to leave it alone. It may be out of date; the stream knows.
    is_left_to_writer: AtomicBool,
    /// The AOF writer's thread, once it runs.
    writer: OnceLock<Thread>,
    /// Whether the writer is to be woken when there is something in an outbox.
    writer_sleeps: AtomicBool,
    /// What the writer is to do.
    orders: Orders,
    /// How it goes.
    pub(crate) aof: AofState,
}

impl JournalHub {
    /// A journal of so many workers that nobody reads.
    pub(crate) fn new(workers: usize) -> JournalHub {
        JournalHub {
            sequence: Arc::default(),
            is_on: AtomicBool::new(false),
            outboxes: (0..workers).map(|_| CachePadded::default()).collect(),
            durable: AtomicU64::new(0),
            released: AtomicU64::new(0),
            stream: OnceLock::new(),
            is_left_to_writer: AtomicBool::new(false),
            writer: OnceLock::new(),
            writer_sleeps: AtomicBool::new(false),
            orders: Orders::default(),
            aof: AofState::default(),
        }
    }

    /// Whether the journal is read.
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// Begins or ends the reading of the journal, and returns the number of the last record before that. The caller is alone
    /// at the keyspace.
    pub(crate) fn switch(&self, on: bool) -> u64 {
        self.is_on.store(on, Ordering::Relaxed);
        self.last_number()
    }

    /// Whether the files of an AOF are still in use although it is switched off.
    pub(crate) fn is_ending(&self) -> bool {
        !self.is_on() && self.aof.is_enabled.load(Ordering::Relaxed)
    }

    /// The number of the last record. Exact for who is alone at the keyspace.
    pub(crate) fn last_number(&self) -> u64 {
        self.sequence.last()
    }

    /// Tells a worker's journal whether it is read. The worker has just come inside the gate, or is alone.
    #[inline]
    pub(crate) fn attach(&self, journal: &mut Journal) {
        if journal.is_on() != self.is_on.load(Ordering::Relaxed) {
            journal.set_sequence(self.is_on().then(|| Arc::clone(&self.sequence)));
        }
    }

    /// Ends the AOF writer when all is written. No worker runs any more.
    pub(crate) fn stop(&self) {
        self.orders.add(Order::Stop { behind: self.last_number() });
        self.wake_writer();
    }

    /// Moves a worker's records into its outbox.
    pub(crate) fn publish(&self, worker: usize, journal: &mut Journal) {
        let outbox = &self.outboxes[worker];
        let mut segment = outbox.segment.lock();
        journal.hand_over(&mut segment);
        // Under the lock: the records may be taken as soon as it is free, and the mark is cleared then.
        outbox.has_some.store(true, Ordering::SeqCst);
    }

    /// Whether replies may be sent that acknowledge the records up to this number. If they are not in the file yet, the
    /// caller appends what has been published, unless that is to be left to the AOF writer.
    #[inline]
    pub(crate) fn may_acknowledge(&self, record: u64) -> bool {
        if record > self.released() && !self.is_left_to_writer.load(Ordering::Relaxed) {
            self.append_published();
        }
        record <= self.released()
    }

    /// Sees that what a worker has published is appended soon.
    #[inline]
    pub(crate) fn append_own(&self, worker: usize) {
        if self.outboxes[worker].has_some.load(Ordering::SeqCst) {
            self.append_published();
        }
    }

    /// Appends what workers have published, or wakes the AOF writer to do it.
    fn append_published(&self) {
        // Whoever has the lock looks at the outboxes again when it is free: here, or in the writer's `rest`.
        for _ in 0..APPENDS_MAX {
            if self.is_left_to_writer.load(Ordering::Relaxed) {
                break;
            }
            let Some(mut stream) = self.stream.get().and_then(Mutex::try_lock) else { return };
            let is_done = stream.append_published();
            drop(stream);
            if !is_done {
                break;
            }
            if !self.has_any() {
                return;
            }
        }
        if self.writer_sleeps.load(Ordering::SeqCst) {
            self.wake_writer();
        }
    }

    /// Wakes the AOF writer.
    pub(crate) fn wake_writer(&self) {
        self.writer_sleeps.store(false, Ordering::SeqCst);
        if let Some(writer) = self.writer.get() {
            writer.unpark();
        }
    }

    /// Lets the AOF writer, which calls this, sleep as long as there is nothing to do.
    fn rest(&self, pause: Pause) {
        // SeqCst pairs with those who publish: this sees their records, or they see that the writer sleeps.
        self.writer_sleeps.store(true, Ordering::SeqCst);
        match pause {
            Pause::Until(time) => thread::park_timeout(time),
            Pause::UntilPublished(time) if !self.has_any() && !self.orders.has_some() => {
                thread::park_timeout(time)
            }
            Pause::UntilPublished(_) => {}
        }
        self.writer_sleeps.store(false, Ordering::SeqCst);
    }

    /// Exchanges what a worker has published for an empty segment; false if it is nothing.
    fn collect(&self, worker: usize, into: &mut Segment) -> bool {
        let outbox = &self.outboxes[worker];
        if !outbox.has_some.load(Ordering::Acquire) {
            return false;
        }
        let mut segment = outbox.segment.lock();
        outbox.has_some.store(false, Ordering::SeqCst);
        std::mem::swap(&mut *segment, into);
        true
    }

    fn has_any(&self) -> bool {
        self.outboxes.iter().any(|outbox| outbox.has_some.load(Ordering::SeqCst))
    }

    /// Up to which number all records are durable.
    #[inline]
    pub(crate) fn durable(&self) -> u64 {
        self.durable.load(Ordering::SeqCst)
    }

    /// Up to which number records need not be waited for before replies are sent.
    #[inline]
    pub(crate) fn released(&self) -> u64 {
        self.released.load(Ordering::SeqCst)
    }

    /// A worker wants to be woken when more is durable than now; to be called before it looks at that.
    pub(crate) fn wait_for_more(&self, worker: usize) {
        self.outboxes[worker].waits.store(true, Ordering::SeqCst);
    }

    /// All records up to number `released` need not be waited for, and those up to `durable` are durable: wakes who waits
    /// for that.
    fn set_durable(&self, server: &Server, durable: u64, released: u64) {
        let before = (self.durable.load(Ordering::Relaxed), self.released.load(Ordering::Relaxed));
        if durable <= before.0 && released <= before.1 {
            return;
        }
        self.durable.store(durable.max(before.0), Ordering::SeqCst);
        self.released.store(released.max(before.1), Ordering::SeqCst);
        for (outbox, worker) in self.outboxes.iter().zip(&server.workers) {
            if outbox.waits.swap(false, Ordering::SeqCst) {
                worker.mailbox.ring();
            }
        }
    }
}
