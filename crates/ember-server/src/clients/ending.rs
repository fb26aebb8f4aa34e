//! Clients that are being disconnected: their workers have not closed the connections yet.
//!
//! ```text
//! decided, on any worker ─ the client's view is marked ─ its wait is ended, and it is listed here
//!                        ─ from now on it is not served, PUBLISH does not count it, its commands do not run
//! its worker is notified ─ a pending reply to its blocked call is delivered ─ the connection is closed
//! ```
//!
//! Every decision follows this path, so a client that is being disconnected never removes another element from a key.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use parking_lot::{RwLock, RwLockReadGuard};

/// The reason for which the server closes a client's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum EndReason {
    /// The connection is closed once its replies are sent: `QUIT`, a request that cannot be parsed, a transaction that
    /// kills its caller.
    AfterReplies = 1,
    /// Another client, a change of users, or a change of the server's role has killed the connection.
    Killed,
    /// The client was evicted because all clients together use too much memory.
    Evicted,
    /// A push to the client was dropped because too many are queued for its worker.
    PushDropped,
    /// The client exceeded a limit, its peer has stopped sending, the server shuts down, or the connection is already
    /// closed.
    Over,
}

impl EndReason {
    /// Returns the reason that has this number; `None` for 0.
    pub(crate) fn from_number(number: u8) -> Option<EndReason> {
        use EndReason::{AfterReplies, Evicted, Killed, Over, PushDropped};
        [AfterReplies, Killed, Evicted, PushDropped, Over].into_iter().find(|&reason| reason as u8 == number)
    }

    /// Returns whether the connection is closed immediately, without sending pending replies.
    pub(crate) fn is_immediate(self) -> bool {
        self != EndReason::AfterReplies
    }
}

/// The clients that are being disconnected.
#[derive(Debug, Default)]
pub(crate) struct EndingClients {
    count: AtomicUsize,
    by_id: RwLock<HashMap<u64, EndReason>>,
}

impl EndingClients {
    /// Enters a client with this reason, unless it was already entered or closed for an equally strong one; `state`
    /// holds the number of the client's reason. Returns whether the client was entered.
    pub(crate) fn enter(&self, id: u64, state: &AtomicU8, reason: EndReason) -> bool {
        let mut by_id = self.by_id.write();
        let outranks = |before: u8| {
            let before = EndReason::from_number(before);
            let is_stronger = before.is_none_or(|it| !it.is_immediate() && reason.is_immediate());
            is_stronger.then_some(reason as u8)
        };
        if state.fetch_update(Ordering::SeqCst, Ordering::SeqCst, outranks).is_err() {
            return false;
        }
        by_id.insert(id, reason);
        // SeqCst, here and in `get`: a command that is sent after the reply to the deciding command finds the client
        // entered, on any worker.
        self.count.store(by_id.len(), Ordering::SeqCst);
        true
    }

    /// Removes a client whose connection is closed, if it was entered; the client is never entered again. Returns
    /// whether the connection was to be closed immediately.
    pub(crate) fn leave(&self, id: u64, state: &AtomicU8) -> bool {
        let over = EndReason::Over as u8;
        // The usual case: the peer has closed the connection. A thread that enters the client concurrently changes the
        // state first.
        if state.compare_exchange(0, over, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            return false;
        }
        let mut by_id = self.by_id.write();
        state.store(over, Ordering::SeqCst);
        let removed = by_id.remove(&id);
        self.count.store(by_id.len(), Ordering::SeqCst);
        removed.is_some_and(EndReason::is_immediate)
    }

    /// Returns the entered clients by id; `None` if there are none, which costs one load.
    #[inline]
    pub(crate) fn get(&self) -> Option<RwLockReadGuard<'_, HashMap<u64, EndReason>>> {
        (self.count.load(Ordering::SeqCst) != 0).then(|| self.by_id.read())
    }

    /// Calls `act` with whether any client's connection is to be closed immediately; during the call, no client is
    /// entered or removed.
    pub(crate) fn with_any_immediate(&self, act: impl FnOnce(bool)) {
        let by_id = self.by_id.write();
        act(by_id.values().any(|reason| reason.is_immediate()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_immediate_end_replaces_only_an_end_after_the_replies() {
        let (ending, state) = (EndingClients::default(), AtomicU8::new(0));
        assert!(ending.get().is_none());
        assert!(ending.enter(7, &state, EndReason::AfterReplies));
        assert!(!ending.enter(7, &state, EndReason::AfterReplies));
        ending.with_any_immediate(|is_any| assert!(!is_any));
        assert!(ending.enter(7, &state, EndReason::Killed));
        assert!(!ending.enter(7, &state, EndReason::Evicted));
        ending.with_any_immediate(|is_any| assert!(is_any));
        assert!(ending.get().is_some_and(|ending| ending.contains_key(&7)));
        assert!(ending.leave(7, &state) && ending.get().is_none());
    }

    #[test]
    fn closed_clients_are_not_added() {
        let (ending, state) = (EndingClients::default(), AtomicU8::new(0));
        assert!(!ending.leave(7, &state));
        assert!(!ending.enter(7, &state, EndReason::Killed) && ending.get().is_none());
    }
}
