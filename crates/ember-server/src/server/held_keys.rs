//! Held keys: keys that must not change at present, because they are being moved to another server, a long call reads
//! them, or too many of their vectors are not linked yet.
//!
//! [`Condition::KEYS_HELD`] is set while keys are held: later calls see it and wait if they name a held key and may
//! change it (`executor/conditions.rs`). A caller that must exclude calls already in progress holds keys with exclusive
//! access. A key is held in all databases, whatever the database of the call.
//!
//! [`Condition::KEYS_HELD`]: super::conditions::Condition::KEYS_HELD

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::Server;
use super::conditions::Condition;
use crate::clients::mailbox::Message;

/// The time for which a key remains reserved for calls that have waited for it, before a long call may hold it again.
/// The workers of all these calls retry within that time, unless the machine is very busy; then other calls may precede
/// them once more.
const TURN_TIME: Duration = Duration::from_millis(10);

/// A key that is held, or was held recently.
#[derive(Default)]
struct Hold {
    /// The number of holders of the key, such as long calls.
    count: usize,
    /// Whether a call that would change the key waits.
    is_awaited: bool,
    /// While the key is not held: the end of the time reserved for calls that have waited.
    turn_until: Option<Instant>,
}

/// The held keys, by name.
#[derive(Default)]
pub(crate) struct HeldKeys(Mutex<HashMap<Box<[u8]>, Hold>>);

impl Server {
    /// Returns whether a call that would change a key has to wait. If the key was released for waiting calls, this call
    /// runs first, and the others are retried.
    pub(crate) fn waits_for_held(&self, key: &[u8]) -> bool {
        let mut held = self.held_keys.0.lock();
        match held.get_mut(key) {
            None => return false,
            Some(hold) if hold.count > 0 => {
                hold.is_awaited = true;
                return true;
            }
            Some(_) => held.remove(key),
        };
        self.publish_held(&held);
        drop(held);
        self.retry_all();
        false
    }

    /// Holds keys, without regard to waiting calls.
    pub(crate) fn hold_keys(&self, keys: &[Box<[u8]>]) {
        self.hold(&mut self.held_keys.0.lock(), keys);
    }

    /// Holds keys and returns true, unless calls that would change one of the keys have precedence because they wait or
    /// have waited for it.
    pub(crate) fn hold_keys_unless_awaited(&self, keys: &[Box<[u8]>]) -> bool {
        let mut held = self.held_keys.0.lock();
        let are_free = keys.iter().all(|key| {
            held.get(key).is_none_or(|hold| {
                !hold.is_awaited && hold.turn_until.is_none_or(|until| until <= Instant::now())
            })
        });
        if are_free {
            self.hold(&mut held, keys);
        }
        are_free
    }

    fn hold(&self, held: &mut HashMap<Box<[u8]>, Hold>, keys: &[Box<[u8]>]) {
        for key in keys {
            let hold = held.entry(key.clone()).or_default();
            hold.count += 1;
            hold.turn_until = None;
        }
        self.publish_held(held);
    }

    /// Releases keys, and retries the calls that wait for them.
    pub(crate) fn release_keys(&self, keys: &[Box<[u8]>]) {
        if keys.is_empty() {
            return;
        }
        let mut held = self.held_keys.0.lock();
        for key in keys {
            let Some(hold) = held.get_mut(key) else { continue };
            hold.count -= 1;
            if hold.count == 0 && !hold.is_awaited {
                held.remove(key);
            } else if hold.count == 0 {
                (hold.is_awaited, hold.turn_until) = (false, Some(Instant::now() + TURN_TIME));
            }
        }
        self.publish_held(&held);
        drop(held);
        self.retry_all();
    }

    /// Removes expired reservations for calls that were not retried.
    pub(crate) fn forget_turns(&self) {
        if self.conditions.get().contains(Condition::KEYS_HELD) {
            let mut held = self.held_keys.0.lock();
            let now = Instant::now();
            held.retain(|_, hold| hold.turn_until.is_none_or(|until| until > now));
            self.publish_held(&held);
        }
    }

    fn publish_held(&self, held: &HashMap<Box<[u8]>, Hold>) {
        self.conditions.set(Condition::KEYS_HELD, !held.is_empty());
    }

    fn retry_all(&self) {
        self.workers.iter().for_each(|worker| worker.mailbox.send(Message::TryAgain));
    }
}
