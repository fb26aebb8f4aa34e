//! Orders for a subscriber, from any thread: they wait here until the journal's thread takes them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

/// Waiting orders, first in, first out.
pub(crate) struct OrderQueue<T> {
    waiting: Mutex<VecDeque<T>>,
    has_some: AtomicBool,
}

impl<T> Default for OrderQueue<T> {
    fn default() -> Self {
        OrderQueue { waiting: Mutex::default(), has_some: AtomicBool::new(false) }
    }
}

impl<T> OrderQueue<T> {
    /// Adds an order. The caller must then call the journal's thread.
    pub(crate) fn add(&self, order: T) {
        let mut waiting = self.waiting.lock();
        waiting.push_back(order);
        self.has_some.store(true, Ordering::SeqCst);
    }

    /// Whether there are any.
    pub(crate) fn has_some(&self) -> bool {
        self.has_some.load(Ordering::SeqCst)
    }

    /// Takes all of them.
    pub(crate) fn take(&self) -> VecDeque<T> {
        if !self.has_some() {
            return VecDeque::new();
        }
        let mut waiting = self.waiting.lock();
        self.has_some.store(false, Ordering::SeqCst);
        std::mem::take(&mut waiting)
    }
}
