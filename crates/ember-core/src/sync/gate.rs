//! The gate: gives one worker exclusive access to the keyspace, by making all other workers wait outside.
//!
//! A transaction or script that may access any shard closes the gate instead of taking a thousand locks: every other
//! worker finishes its current batch and then waits outside. The worker inside takes shard locks as usual; all locks
//! are free.
//!
//! A worker that enters stores that it is inside, then loads whether the gate is closed. A worker that closes the gate
//! stores that the gate is closed, then loads which workers are inside (Dekker, 1965). Both need sequential
//! consistency; otherwise each could miss the other's store.

use crossbeam_utils::CachePadded;

use crate::sync::{AtomicBool, Mutex, MutexGuard, Ordering};

/// The gate of a keyspace; see the module documentation.
pub struct Gate {
    /// The lock that the worker inside holds while the gate is closed.
    exclusive: Mutex<()>,
    is_closed: AtomicBool,
    /// Whether each worker is inside the gate, by its number.
    inside: Box<[CachePadded<AtomicBool>]>,
}

/// Exclusive access to the keyspace; dropping it opens the gate.
pub struct ExclusiveAccess<'g> {
    gate: &'g Gate,
    worker: usize,
    _exclusive: MutexGuard<'g, ()>,
}

impl Gate {
    /// Returns an open gate for workers `0..workers`.
    pub fn new(workers: usize) -> Gate {
        Gate {
            exclusive: Mutex::new(()),
            is_closed: AtomicBool::new(false),
            inside: (0..workers).map(|_| CachePadded::new(AtomicBool::new(false))).collect(),
        }
    }

    /// Waits until the gate is open and lets a worker enter. The worker holds no shard lock. Only for the model
    /// checker, which has no clock: waits without a timeout.
    #[cfg(shuttle)]
    pub fn enter(&self, worker: usize) {
        while !self.enter_open(worker) {
            // Waits until the gate opens.
            drop(self.exclusive.lock());
        }
    }

    /// Waits until the gate is open and lets a worker enter. The worker holds no shard lock. Returns false if the gate
    /// has remained closed for `timeout`.
    #[cfg(not(shuttle))]
    pub fn try_enter(&self, worker: usize, timeout: std::time::Duration) -> bool {
        loop {
            if self.enter_open(worker) {
                return true;
            }
            // Another worker may have closed the gate again meanwhile.
            if self.exclusive.try_lock_for(timeout).is_none() {
                return false;
            }
        }
    }

    /// Lets a worker enter if the gate is open. The worker holds no shard lock. Returns false if the gate is closed.
    #[inline(always)]
    pub fn enter_open(&self, worker: usize) -> bool {
        self.inside[worker].store(true, Ordering::SeqCst);
        let is_open = !self.is_closed.load(Ordering::SeqCst);
        if !is_open {
            self.leave(worker);
        }
        is_open
    }

    /// Lets a worker leave. The worker holds no shard lock.
    #[inline]
    pub fn leave(&self, worker: usize) {
        // Release: the worker that closes the gate sees the effects of this worker.
        self.inside[worker].store(false, Ordering::Release);
    }

    /// Closes the gate for a worker that is inside and holds no shard lock, and waits until all others are outside.
    /// Only for the model checker, like [`Gate::enter`].
    #[cfg(shuttle)]
    pub fn close(&self, worker: usize) -> ExclusiveAccess<'_> {
        self.leave(worker);
        self.close_holding(self.exclusive.lock(), worker)
    }

    /// Closes the gate for a worker that is inside and holds no shard lock, and waits until all others are outside.
    /// While another worker keeps the gate closed, calls `waits_on` after each `timeout`. When `waits_on` returns
    /// false, this function returns `None` and the worker is outside.
    #[cfg(not(shuttle))]
    pub fn try_close(
        &self,
        worker: usize,
        timeout: std::time::Duration,
        mut waits_on: impl FnMut() -> bool,
    ) -> Option<ExclusiveAccess<'_>> {
        self.leave(worker);
        loop {
            if let Some(exclusive) = self.exclusive.try_lock_for(timeout) {
                return Some(self.close_holding(exclusive, worker));
            }
            if !waits_on() {
                return None;
            }
        }
    }

    fn close_holding<'g>(&'g self, exclusive: MutexGuard<'g, ()>, worker: usize) -> ExclusiveAccess<'g> {
        self.is_closed.store(true, Ordering::SeqCst);
        for other in &self.inside {
            while other.load(Ordering::SeqCst) {
                crate::sync::yield_now();
            }
        }
        ExclusiveAccess { gate: self, worker, _exclusive: exclusive }
    }
}

impl Gate {
    /// Calls `act` while no worker is inside. Workers that enter later see the effects of `act`. The calling thread is
    /// not inside.
    pub fn while_empty<R>(&self, act: impl FnOnce() -> R) -> R {
        let _exclusive = self.exclusive.lock();
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

impl Drop for ExclusiveAccess<'_> {
    fn drop(&mut self) {
        // The worker is marked as inside before the gate opens for others.
        self.gate.inside[self.worker].store(true, Ordering::SeqCst);
        self.gate.is_closed.store(false, Ordering::SeqCst);
    }
}
