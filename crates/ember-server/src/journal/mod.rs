//! The journal of the server: how the records of all workers come to the thread that keeps them, and back that they are
//! kept.
//!
//! ```text
//! worker   effects of a batch ─ outbox of the worker                      (Executor::publish)
//! keeper   outboxes ─ records in the order of their numbers ─ AOF          (merge.rs, keeper.rs)
//! worker   replies of the batch wait until its last record is durable      (appendfsync always: worker/barrier.rs)
//! ```
//!
//! Whether the journal is read is changed only by who is alone at the keyspace, and every worker looks when it comes inside
//! the gate: so there is one number from which on all records are told, and one up to which.

pub(crate) mod keeper;
pub(crate) mod loading;
mod merge;
mod orders;
pub(crate) mod rewriting;
mod state;

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::Thread;

use crossbeam_utils::CachePadded;
use emberkv_core::journal::{Journal, Segment, Sequence};
use parking_lot::Mutex;

use orders::{Order, Orders};
pub(crate) use state::AofState;

use crate::server::Server;

/// What a worker hands over, and whether it waits for some of it to be durable.
#[derive(Default)]
struct Outbox {
    segment: Mutex<Segment>,
    /// Whether there is anything in it.
    has_some: AtomicBool,
    /// Whether the worker is to be woken when more has become durable.
    waits: AtomicBool,
}

/// What all workers and the keeper share.
pub(crate) struct JournalHub {
    sequence: Arc<Sequence>,
    is_on: AtomicBool,
    outboxes: Box<[CachePadded<Outbox>]>,
    /// All records up to this number are durable.
    durable: AtomicU64,
    /// Nobody is to wait for records up to this number: they are durable, or will be only together with a base.
    released: AtomicU64,
    /// The keeper's thread, once it runs.
    keeper: OnceLock<Thread>,
    /// Whether the keeper is to be woken when there is something in an outbox.
    keeper_sleeps: AtomicBool,
    /// What the keeper is to do.
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
            keeper: OnceLock::new(),
            keeper_sleeps: AtomicBool::new(false),
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

    /// Ends the keeper's thread when all is written. No worker runs any more.
    pub(crate) fn stop(&self) {
        self.orders.add(Order::Stop { behind: self.last_number() });
        self.wake_keeper();
    }

    /// Takes a worker's records.
    pub(crate) fn hand_over(&self, worker: usize, journal: &mut Journal) {
        let outbox = &self.outboxes[worker];
        let mut segment = outbox.segment.lock();
        journal.hand_over(&mut segment);
        // Under the lock: the keeper may take the records as soon as it is free, and clears the mark then.
        outbox.has_some.store(true, Ordering::SeqCst);
    }

    /// Wakes the keeper if it sleeps and a worker has handed something over.
    #[inline]
    pub(crate) fn notify(&self, worker: usize) {
        // SeqCst pairs with the keeper's going to sleep: it sees the records, or is seen asleep.
        if self.outboxes[worker].has_some.load(Ordering::SeqCst) && self.keeper_sleeps.load(Ordering::SeqCst)
        {
            self.wake_keeper();
        }
    }

    /// Wakes the keeper.
    pub(crate) fn wake_keeper(&self) {
        self.keeper_sleeps.store(false, Ordering::SeqCst);
        if let Some(keeper) = self.keeper.get() {
            keeper.unpark();
        }
    }

    /// Exchanges what a worker has handed over for an empty segment; false if it is nothing.
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

    /// Up to which number records need not be waited for.
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
