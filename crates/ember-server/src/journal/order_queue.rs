//! A queue of orders to a subscriber: any thread adds orders, and the journal's thread takes them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

/// Orders that wait to be taken, first in, first out.
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

    /// Whether any order is waiting.
    pub(crate) fn has_some(&self) -> bool {
        self.has_some.load(Ordering::SeqCst)
    }

    /// Takes all waiting orders.
    pub(crate) fn take(&self) -> VecDeque<T> {
        if !self.has_some() {
            return VecDeque::new();
        }
        let mut waiting = self.waiting.lock();
        self.has_some.store(false, Ordering::SeqCst);
        std::mem::take(&mut waiting)
    }
}
