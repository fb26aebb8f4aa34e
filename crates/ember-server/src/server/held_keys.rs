//! Keys that do not change for the moment, because another server is being given them or a long call looks at them.
//!
//! [`Condition::KEYS_HELD`] is there while there are some: whoever comes later sees that, and calls that may change one of
//! them and name it wait (`executor/conditions.rs`). Who must be sure that nobody comes before holds them with exclusive
//! access. A key is held in all databases, whatever that of the call.
//!
//! [`Condition::KEYS_HELD`]: super::conditions::Condition::KEYS_HELD

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::Server;
use super::conditions::Condition;
use crate::clients::mailbox::Message;

/// For how long a key that calls have waited for is theirs before a long call may hold it again. The workers of all of them
/// look within that time, unless the machine is very busy; then others go first once more.
const TURN_TIME: Duration = Duration::from_millis(10);

/// A key that is held, or was until a moment ago.
#[derive(Default)]
struct Hold {
    /// How often it is held.
    count: usize,
    /// Whether a call waits that would change it.
    is_awaited: bool,
    /// Until when it is the turn of calls that have waited, if nobody holds it.
    turn_until: Option<Instant>,
}

/// Names of keys that are held.
#[derive(Default)]
pub(crate) struct HeldKeys(Mutex<HashMap<Box<[u8]>, Hold>>);

impl Server {
    /// Whether a call that would change a key has to wait. If it has waited, it goes on now, and others after it.
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
        self.note_held(&held);
        drop(held);
        self.let_all_try_again();
        false
    }

    /// Holds keys.
    pub(crate) fn hold_keys(&self, keys: &[Box<[u8]>]) {
        self.hold(&mut self.held_keys.0.lock(), keys);
    }

    /// Holds keys, unless calls that would change one of them come first: they wait, or have waited.
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
        self.note_held(held);
    }

    /// Ends the holding of keys, and lets those go on who wait for that.
    pub(crate) fn let_keys_go(&self, keys: &[Box<[u8]>]) {
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
        self.note_held(&held);
        drop(held);
        self.let_all_try_again();
    }

    /// Forgets the turns of calls that have not come back.
    pub(crate) fn forget_turns(&self) {
        if self.conditions.get().contains(Condition::KEYS_HELD) {
            let mut held = self.held_keys.0.lock();
            let now = Instant::now();
            held.retain(|_, hold| hold.turn_until.is_none_or(|until| until > now));
            self.note_held(&held);
        }
    }

    fn note_held(&self, held: &HashMap<Box<[u8]>, Hold>) {
        self.conditions.set(Condition::KEYS_HELD, !held.is_empty());
    }

    fn let_all_try_again(&self) {
        self.workers.iter().for_each(|worker| worker.mailbox.send(Message::TryAgain));
    }
}
