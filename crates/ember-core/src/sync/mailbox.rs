//! A worker's mailbox: letters from other threads, and the rule by which none of them is slept through.
//!
//! The worker calls [`Mailbox::fall_asleep`] before it waits for its sockets and does not wait if that says no. Whoever
//! posts a letter must wake the worker if [`Mailbox::post`] says so. A busy worker is never woken, so that a letter to it
//! costs no system call. `tests/model/mailbox.rs` has a model checker try the schedules of workers that forward to each
//! other.

use crate::sync::{AtomicBool, Mutex, Ordering};

/// Letters of type `L` for one worker.
#[derive(Debug, Default)]
pub struct Mailbox<L> {
    letters: Mutex<Vec<L>>,
    /// Set while the worker may be waiting; whoever clears it wakes it.
    asleep: AtomicBool,
}

impl<L> Mailbox<L> {
    /// An empty mailbox of a worker that is awake.
    pub fn new() -> Mailbox<L> {
        Mailbox { letters: Mutex::new(Vec::new()), asleep: AtomicBool::new(false) }
    }

    /// Puts a letter in; true if the caller must wake the worker.
    #[must_use]
    pub fn post(&self, letter: L) -> bool {
        self.letters.lock().push(letter);
        self.rouse()
    }

    /// True if the caller must wake the worker, for something that is not in a letter.
    #[must_use]
    pub fn rouse(&self) -> bool {
        // SeqCst pairs with the store in fall_asleep: either this sees `asleep`, or the worker, which looks for letters
        // after that store, sees the letter.
        self.asleep.swap(false, Ordering::SeqCst)
    }

    /// The worker is about to wait; false if there is a letter, and it must not.
    #[must_use]
    pub fn fall_asleep(&self) -> bool {
        self.asleep.store(true, Ordering::SeqCst);
        if self.letters.lock().is_empty() {
            return true;
        }
        self.wake_up();
        false
    }

    /// The worker has waited.
    pub fn wake_up(&self) {
        // Relaxed: a sender that still sees `true` wakes a worker that is awake, which costs a turn and no letter.
        self.asleep.store(false, Ordering::Relaxed);
    }

    /// Exchanges the letters for an empty list.
    pub fn take(&self, into: &mut Vec<L>) {
        debug_assert!(into.is_empty(), "letters must not be lost");
        std::mem::swap(&mut *self.letters.lock(), into);
    }
}
