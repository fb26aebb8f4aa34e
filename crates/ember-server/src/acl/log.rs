//! The newest denials, newest first: the entries of ACL LOG, and the counters of INFO.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// Denials of the same kind within this time are one entry.
const GROUPING_MS: i64 = 60_000;

/// Entries compared when searching for one of the same kind.
const GROUPING_ENTRIES_MAX: usize = 10;

/// Bytes of a key or channel that an entry keeps, so that large arguments do not fill the log.
const OBJECT_BYTES_MAX: usize = 16 * 1024;

/// The kind of a denial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// Running a command.
    Command,
    /// Using a key.
    Key,
    /// Using a channel.
    Channel,
    /// Authenticating as a user.
    Auth,
}

impl Reason {
    /// All reasons, in the order of the counters.
    const ALL: [Reason; 4] = [Reason::Auth, Reason::Command, Reason::Key, Reason::Channel];

    /// Returns the name in ACL LOG.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Reason::Command => "command",
            Reason::Key => "key",
            Reason::Channel => "channel",
            Reason::Auth => "auth",
        }
    }
}

/// A denial, or several of the same kind.
#[derive(Clone, Debug)]
pub(crate) struct LogEntry {
    /// The number of the entry since startup.
    pub(crate) id: u64,
    /// The number of denials.
    pub(crate) count: u64,
    pub(crate) reason: Reason,
    /// The origin of the call: `toplevel`, `multi` or `lua`.
    pub(crate) context: &'static str,
    /// The command, key or channel; for a failed login, the command that attempted it.
    pub(crate) object: Vec<u8>,
    /// The denied user; for a failed login, the named user.
    pub(crate) user: Box<[u8]>,
    /// The CLIENT LIST line of the last caller.
    pub(crate) client: Vec<u8>,
    /// Unix time in ms.
    pub(crate) created_ms: i64,
    /// Unix time in ms of the last denial.
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

/// The log.
#[derive(Default)]
pub(crate) struct AclLog {
    entries: Mutex<VecDeque<LogEntry>>,
    made: AtomicU64,
    /// Denials since startup, in the order of [`Reason::ALL`].
    counters: [AtomicU64; 4],
}

impl AclLog {
    /// Adds a denial, and sets its `id`. At most `max` entries are kept.
    pub(crate) fn enter(&self, mut entry: LogEntry, max: usize) {
        let counter = Reason::ALL.iter().position(|&reason| reason == entry.reason);
        self.counters[counter.expect("all reasons are listed")].fetch_add(1, Ordering::Relaxed);
        entry.object.truncate(OBJECT_BYTES_MAX);
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

    /// Removes all entries; the counters stay.
    pub(crate) fn clear(&self) {
        self.entries.lock().clear();
    }

    /// Denials since startup: of logins, commands, keys and channels.
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
            user: b"alice"[..].into(),
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
