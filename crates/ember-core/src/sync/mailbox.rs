//! A worker's mailbox: messages from other threads, and the protocol that prevents lost wake-ups.
//!
//! The worker calls [`Mailbox::fall_asleep`] before it waits for its sockets, and does not wait if that returns false.
//! A sender must wake the worker if [`Mailbox::post`] returns true. A busy worker is never woken, so a message to it
//! costs no system call. In `tests/model/mailbox.rs`, a model checker tries the schedules of workers that send messages
//! to each other.

use crate::sync::{AtomicBool, Mutex, Ordering};

/// A mailbox of messages of type `M` for one worker.
#[derive(Debug, Default)]
pub struct Mailbox<M> {
    messages: Mutex<Vec<M>>,
    /// True while the worker may be waiting for its sockets; the thread that clears the flag wakes the worker.
    asleep: AtomicBool,
}

impl<M> Mailbox<M> {
    /// Returns an empty mailbox of a worker that is awake.
    pub fn new() -> Mailbox<M> {
        Mailbox { messages: Mutex::new(Vec::new()), asleep: AtomicBool::new(false) }
    }

    /// Adds a message; returns whether the caller must wake the worker.
    #[must_use]
    pub fn post(&self, message: M) -> bool {
        self.messages.lock().push(message);
        self.rouse()
    }

    /// Returns whether the caller must wake the worker; for work that is not passed as a message.
    #[must_use]
    pub fn rouse(&self) -> bool {
        // SeqCst pairs with the store in `fall_asleep`: either this swap sees `asleep`, or the worker, which checks for
        // messages after that store, sees the message.
        self.asleep.swap(false, Ordering::SeqCst)
    }

    /// Marks the worker as waiting, before it waits for its sockets; returns false if there is a message, so that the
    /// worker must not wait.
    #[must_use]
    pub fn fall_asleep(&self) -> bool {
        self.asleep.store(true, Ordering::SeqCst);
        if self.messages.lock().is_empty() {
            return true;
        }
        self.wake_up();
        false
    }

    /// Marks the worker as awake, after it has waited for its sockets.
    pub fn wake_up(&self) {
        // Relaxed: a sender that still sees `true` wakes a worker that is awake, which costs one turn of its loop and
        // loses no message.
        self.asleep.store(false, Ordering::Relaxed);
    }

    /// Exchanges the list of messages for the empty list `into`.
    pub fn take(&self, into: &mut Vec<M>) {
        debug_assert!(into.is_empty(), "messages must not be lost");
        std::mem::swap(&mut *self.messages.lock(), into);
    }
}
