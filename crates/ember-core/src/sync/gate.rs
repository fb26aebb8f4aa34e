//! The gate: keeps all workers but one away from the keyspace for as long as something must run alone.
//!
//! A transaction or script that may touch any shard closes the gate instead of taking a thousand locks: every other
//! worker finishes the batch it is in and stays outside. Who is alone then takes shard locks as usual, all of them free.
//!
//! A worker says that it is inside with a store and looks whether the gate is closed; who closes it does both the other
//! way round (Dekker, 1965). Both need sequential consistency, or the two could miss each other.

use crossbeam_utils::CachePadded;

use crate::sync::{AtomicBool, Mutex, MutexGuard, Ordering};

/// See the module.
pub struct Gate {
    /// Held by who is alone.
    alone: Mutex<()>,
    is_closed: AtomicBool,
    /// For each worker whether it is inside.
    inside: Box<[CachePadded<AtomicBool>]>,
}

/// The right to be alone, until it is dropped.
pub struct Alone<'g> {
    gate: &'g Gate,
    worker: usize,
    _alone: MutexGuard<'g, ()>,
}

impl Gate {
    /// An open gate for so many workers.
    pub fn new(workers: usize) -> Gate {
        Gate {
            alone: Mutex::new(()),
            is_closed: AtomicBool::new(false),
            inside: (0..workers).map(|_| CachePadded::new(AtomicBool::new(false))).collect(),
        }
    }

    /// Lets a worker in, when the gate is open. It holds no shard's lock. For the model checker, which knows no time;
    /// others do not wait without end.
    #[cfg(shuttle)]
    pub fn enter(&self, worker: usize) {
        loop {
            self.inside[worker].store(true, Ordering::SeqCst);
            if !self.is_closed.load(Ordering::SeqCst) {
                return;
            }
            self.leave(worker);
            // Waits for who is alone.
            drop(self.alone.lock());
        }
    }

    /// Lets a worker in, when the gate is open. It holds no shard's lock. Gives up when the gate stays closed for
    /// `patience`; false in that case.
    #[inline]
    #[cfg(not(shuttle))]
    pub fn try_enter(&self, worker: usize, patience: std::time::Duration) -> bool {
        loop {
            self.inside[worker].store(true, Ordering::SeqCst);
            if !self.is_closed.load(Ordering::SeqCst) {
                return true;
            }
            self.leave(worker);
            // Who was alone may be gone and the next one may have closed the gate already.
            if self.alone.try_lock_for(patience).is_none() {
                return false;
            }
        }
    }

    /// Lets a worker out. It holds no shard's lock.
    #[inline]
    pub fn leave(&self, worker: usize) {
        // Release: what it did inside is done for who closes the gate.
        self.inside[worker].store(false, Ordering::Release);
    }

    /// Closes the gate behind a worker that is inside and holds no shard's lock, and waits until all others are outside. As
    /// [`Gate::enter`] for the model checker.
    #[cfg(shuttle)]
    pub fn close(&self, worker: usize) -> Alone<'_> {
        self.leave(worker);
        self.close_holding(self.alone.lock(), worker)
    }

    /// Closes the gate behind a worker that is inside and holds no shard's lock, and waits until all others are outside.
    /// When somebody else keeps the gate closed, asks after each `patience` whether to wait on; `None` if not, and then the
    /// worker is outside.
    #[cfg(not(shuttle))]
    pub fn try_close(
        &self,
        worker: usize,
        patience: std::time::Duration,
        mut waits_on: impl FnMut() -> bool,
    ) -> Option<Alone<'_>> {
        self.leave(worker);
        loop {
            if let Some(alone) = self.alone.try_lock_for(patience) {
                return Some(self.close_holding(alone, worker));
            }
            if !waits_on() {
                return None;
            }
        }
    }

    fn close_holding<'g>(&'g self, alone: MutexGuard<'g, ()>, worker: usize) -> Alone<'g> {
        self.is_closed.store(true, Ordering::SeqCst);
        for other in &self.inside {
            while other.load(Ordering::SeqCst) {
                crate::sync::yield_now();
            }
        }
        Alone { gate: self, worker, _alone: alone }
    }
}

impl Gate {
    /// Calls `act` while no worker is inside; what it has done is seen by all who come inside later. The caller is none of
    /// them.
    pub fn while_empty<R>(&self, act: impl FnOnce() -> R) -> R {
        let _alone = self.alone.lock();
        self.is_closed.store(true, Ordering::SeqCst);
        for worker in &self.inside {
            while worker.load(Ordering::SeqCst) {
                crate::sync::yield_now();
            }
        }
        let result = act();
        self.is_closed.store(false, Ordering::SeqCst);
        result
    }
}

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        // The worker is inside again before others may be.
        self.gate.inside[self.worker].store(true, Ordering::SeqCst);
        self.gate.is_closed.store(false, Ordering::SeqCst);
    }
}
