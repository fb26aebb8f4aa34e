//! The log of the newest denials, which ACL LOG shows, and counters of denials, which INFO shows.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// The time in ms within which denials of the same kind are combined in one entry.
const GROUPING_MS: i64 = 60_000;

/// The maximum number of entries that are compared to find one of the same kind.
const GROUPING_ENTRIES_MAX: usize = 10;

/// The denied action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The client called a command.
    Command,
    /// The client accessed a key.
    Key,
    /// The client accessed a channel.
    Channel,
    /// The client tried to authenticate as a user.
    Auth,
}

impl Reason {
    /// All reasons, in the order of the counters.
    const ALL: [Reason; 4] = [Reason::Auth, Reason::Command, Reason::Key, Reason::Channel];

    /// Returns the reason's name in ACL LOG.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Reason::Command => "command",
            Reason::Key => "key",
            Reason::Channel => "channel",
            Reason::Auth => "auth",
        }
    }
}

/// One denial, or several of the same kind.
#[derive(Clone, Debug)]
pub(crate) struct LogEntry {
    /// The number of the entry, counted since startup.
    pub(crate) id: u64,
    /// The number of denials that the entry combines.
    pub(crate) count: u64,
    pub(crate) reason: Reason,
    /// The origin of the call: `toplevel`, `multi` or `lua`.
    pub(crate) context: &'static str,
    /// The command, key or channel; for a failed login, the command that attempted it. A long one is cut.
    pub(crate) object: Vec<u8>,
    /// The denied user; for a failed login, the user name that the client sent. A long one is cut.
    pub(crate) user: Vec<u8>,
    /// The CLIENT LIST line of the client that was denied last.
    pub(crate) client: Vec<u8>,
    /// When the first denial occurred, as Unix time in ms.
    pub(crate) created_ms: i64,
    /// When the last denial occurred, as Unix time in ms.
    pub(crate) updated_ms: i64,
}

impl LogEntry {
    fn is_like(&self, other: &LogEntry) -> bool {
        self.reason == other.reason
            && self.context == other.context
            && self.object == other.object
            && self.user == other.user
            && (self.updated_ms - other.updated_ms).abs() <= GROUPING_MS
    }
}

/// The log of denials.
#[derive(Default)]
pub(crate) struct AclLog {
    entries: Mutex<VecDeque<LogEntry>>,
    made: AtomicU64,
    /// The number of denials since startup, in the order of [`Reason::ALL`].
    counters: [AtomicU64; 4],
}

impl AclLog {
    /// Adds a denial, and sets its `id`. Retains at most `max` entries.
    pub(crate) fn enter(&self, mut entry: LogEntry, max: usize) {
        let counter = Reason::ALL.iter().position(|&reason| reason == entry.reason);
        self.counters[counter.expect("all reasons are listed")].fetch_add(1, Ordering::Relaxed);
        let mut entries = self.entries.lock();
        let known = entries.iter().take(GROUPING_ENTRIES_MAX).position(|known| known.is_like(&entry));
        match known.and_then(|at| entries.remove(at)) {
            Some(mut known) => {
                known.count += 1;
                known.client = entry.client;
                known.updated_ms = entry.updated_ms;
                entries.push_front(known);
            }
            None if max > 0 => {
                entry.id = self.made.fetch_add(1, Ordering::Relaxed);
                entries.push_front(entry);
            }
            None => {}
        }
        entries.truncate(max);
    }

    /// Returns the newest `count` entries.
    pub(crate) fn newest(&self, count: usize) -> Vec<LogEntry> {
        self.entries.lock().iter().take(count).cloned().collect()
    }

    /// Removes all entries; the counters are not reset.
    pub(crate) fn clear(&self) {
        self.entries.lock().clear();
    }

    /// Returns the number of denials since startup: of logins, commands, keys and channels.
    pub(crate) fn counts(&self) -> [u64; 4] {
        self.counters.each_ref().map(|counter| counter.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(object: &str, at_ms: i64) -> LogEntry {
        LogEntry {
            id: 0,
            count: 1,
            reason: Reason::Key,
            context: "toplevel",
            object: object.as_bytes().to_vec(),
            user: b"alice".to_vec(),
            client: Vec::new(),
            created_ms: at_ms,
            updated_ms: at_ms,
        }
    }

    fn shown(log: &AclLog) -> Vec<(u64, u64, String)> {
        let text = |entry: LogEntry| String::from_utf8(entry.object).unwrap();
        log.newest(9).into_iter().map(|entry| (entry.id, entry.count, text(entry))).collect()
    }

    #[test]
    fn denials_of_the_same_kind_within_a_minute_are_one_entry() {
        let log = AclLog::default();
        for (object, at_ms) in [("a", 0), ("b", 10), ("a", 60_000), ("b", 60_011)] {
            log.enter(entry(object, at_ms), 10);
        }
        let expected = [(2, 1, "b"), (0, 2, "a"), (1, 1, "b")];
        assert_eq!(shown(&log), expected.map(|(id, count, object)| (id, count, object.to_owned())));
        assert_eq!(log.counts(), [0, 0, 4, 0]);
    }

    #[test]
    fn the_oldest_entries_are_removed_first() {
        let log = AclLog::default();
        ["a", "b", "c"].into_iter().for_each(|object| log.enter(entry(object, 0), 2));
        assert_eq!(shown(&log), [(2, 1, "c".to_owned()), (1, 1, "b".to_owned())]);
        log.enter(entry("d", 0), 0);
        assert!(shown(&log).is_empty(), "a log with length 0 is empty");
        assert_eq!(log.counts(), [0, 0, 4, 0]);
    }
}
