//! Keys that do not change for the moment, because another server is being given them.
//!
//! They are held while one worker has exclusive access, and [`Condition::KEYS_HELD`] is there from then on: whoever comes
//! later sees that, and calls that may change one of them and name it wait (`executor/conditions.rs`). A key is held in all
//! databases, whatever that of the call.
//!
//! [`Condition::KEYS_HELD`]: super::conditions::Condition::KEYS_HELD

use std::collections::HashMap;

use parking_lot::Mutex;

use super::Server;
use super::conditions::Condition;
use crate::clients::mailbox::Message;

/// Names of keys, and how often each is held.
#[derive(Default)]
pub(crate) struct HeldKeys(Mutex<HashMap<Box<[u8]>, usize>>);

impl HeldKeys {
    /// Whether a key is held.
    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        self.0.lock().contains_key(key)
    }
}

impl Server {
    /// Holds keys. The worker has exclusive access.
    pub(crate) fn hold_keys(&self, keys: &[Box<[u8]>]) {
        let mut held = self.held_keys.0.lock();
        keys.iter().for_each(|key| *held.entry(key.clone()).or_default() += 1);
        self.conditions.set(Condition::KEYS_HELD, !held.is_empty());
    }

    /// Ends the holding of keys, and lets those go on who wait for that.
    pub(crate) fn let_keys_go(&self, keys: &[Box<[u8]>]) {
        let mut held = self.held_keys.0.lock();
        for key in keys {
            if let Some(count) = held.get_mut(key) {
                *count -= 1;
                if *count == 0 {
                    held.remove(key);
                }
            }
        }
        self.conditions.set(Condition::KEYS_HELD, !held.is_empty());
        drop(held);
        self.workers.iter().for_each(|worker| worker.mailbox.send(Message::TryAgain));
    }
}
