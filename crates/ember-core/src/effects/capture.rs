//! The capture of changes for the history of keys: which keys are covered, and the states of each before and after a
//! change.
//!
//! ```text
//! before an edit    mark: database, name, the state before           under the key's lock; once per key
//! end of a call     the marks of a recorded call become changes, with the states after it; others are discarded
//! record sealed     its changes receive its number and a time        (Journal::seal)
//! ```
//!
//! A change belongs to a record of the journal: a call that records nothing captures nothing. Without history, a
//! journal has no capture, and an edit costs one branch.
//!
//! A state before a change is captured only if the history may not contain it already: a bounded set contains the names
//! whose earlier states were captured ([`Covered::forget_known`]).

use std::collections::HashSet;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::algorithms::glob::{self, Case};
use crate::sync::Mutex;

/// The number of parts of the set of known names, each with its own lock: more than there are workers.
const PARTS: usize = 64;

/// The maximum number of known names in a part. A full part is emptied: then earlier states are captured again, which
/// the history ignores.
const NAMES_MAX: usize = 8192;

/// The number of a database and the name of a key.
type Name = (usize, Box<[u8]>);

/// The keys that the history covers: patterns as in `KEYS`, and with `!` before it, patterns of keys that it does not
/// cover.
#[derive(Debug, Default)]
pub struct Coverage {
    included: Vec<Box<[u8]>>,
    excluded: Vec<Box<[u8]>>,
}

impl Coverage {
    /// Returns the coverage of patterns separated by spaces; `None` if no pattern includes keys.
    pub fn parse(text: &str) -> Option<Coverage> {
        let mut coverage = Coverage::default();
        for word in text.split_ascii_whitespace() {
            match word.strip_prefix('!') {
                Some(pattern) => coverage.excluded.push(pattern.as_bytes().into()),
                None => coverage.included.push(word.as_bytes().into()),
            }
        }
        (!coverage.included.is_empty()).then_some(coverage)
    }

    /// Returns whether the history covers a key.
    pub fn covers(&self, name: &[u8]) -> bool {
        let any = |patterns: &[Box<[u8]>]| patterns.iter().any(|pattern| matches(pattern, name));
        any(&self.included) && !any(&self.excluded)
    }
}

fn matches(pattern: &[u8], name: &[u8]) -> bool {
    // `*` covers every key, also the one with the empty name, which no pattern matches otherwise.
    pattern == b"*" || glob::matches(pattern, name, Case::Sensitive)
}

/// The state of a key at a moment.
#[derive(Clone, PartialEq, Eq)]
pub enum State {
    /// The key did not exist.
    Absent,
    /// The key had this value.
    Present(Image),
    /// The state was not captured: the value was too large, or not in memory.
    Unknown,
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            State::Absent => f.write_str("Absent"),
            State::Present(image) => write!(f, "Present({} bytes)", image.bytes.len()),
            State::Unknown => f.write_str("Unknown"),
        }
    }
}

/// An encoded value with its expiry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The format of `bytes`, a `Kind` of the RDB module.
    pub kind: u8,
    /// The name of the value's encoding, as `OBJECT ENCODING` returns it.
    pub encoding_name: Box<str>,
    /// The Unix time in ms at which the key expires, if it expires.
    pub expire_at_ms: Option<i64>,
    /// The value.
    pub bytes: Box<[u8]>,
}

/// A change that the history records.
#[derive(Debug, PartialEq, Eq)]
pub enum Change {
    /// A key was created, changed or removed.
    Key {
        /// The number of the key's database when it changed.
        database: usize,
        /// The name of the key.
        name: Box<[u8]>,
        /// The name of the command, or the action of the server.
        operation: &'static str,
        /// The state before the change; `None` if an earlier change has captured it.
        before: Option<State>,
        /// The state after the change.
        after: State,
    },
    /// Two databases were exchanged.
    Swap {
        /// The number of the first database.
        one: usize,
        /// The number of the second database.
        other: usize,
    },
    /// Too many keys were removed together to record each of them: all earlier states are unknown.
    Restart,
}

/// A change with the number of its record and its time.
#[derive(Debug)]
pub struct Captured {
    /// The number of the journal's record.
    pub number: u64,
    /// The Unix time in ms of the change.
    pub at_ms: i64,
    /// The change.
    pub change: Change,
}

impl Captured {
    /// Returns the memory of the change in bytes, without its allocations' overhead.
    pub fn bytes(&self) -> usize {
        let of = |state: &State| if let State::Present(image) = state { image.bytes.len() } else { 0 };
        let of_change = match &self.change {
            Change::Key { name, before, after, .. } => name.len() + before.as_ref().map_or(0, of) + of(after),
            Change::Swap { .. } | Change::Restart => 0,
        };
        size_of::<Captured>() + of_change
    }
}

/// The parts that all workers share: the coverage, the clock of history, and the known names.
#[derive(Debug)]
pub struct Covered {
    coverage: Coverage,
    /// The size in bytes above which a value is not captured.
    value_bytes_max: usize,
    /// Whether databases were exchanged since startup.
    has_swapped: AtomicBool,
    /// The time of the last change, or the first time after the last closed moment. The time of the history never
    /// decreases.
    latest_ms: AtomicI64,
    hasher: RandomState,
    known: Box<[Mutex<HashSet<Name>>]>,
}

impl Covered {
    /// Returns the state of a server that covers these keys.
    pub fn new(coverage: Coverage, value_bytes_max: usize) -> Covered {
        Covered {
            coverage,
            value_bytes_max,
            has_swapped: AtomicBool::new(false),
            latest_ms: AtomicI64::new(0),
            hasher: RandomState::new(),
            known: (0..PARTS).map(|_| Mutex::default()).collect(),
        }
    }

    /// Returns whether the history covers a key.
    pub fn covers(&self, name: &[u8]) -> bool {
        self.coverage.covers(name)
    }

    /// Returns whether databases were exchanged since startup. The caller holds the lock of a shard.
    pub fn has_swapped(&self) -> bool {
        self.has_swapped.load(Ordering::SeqCst)
    }

    /// Returns the size in bytes above which a value is not captured.
    pub fn value_bytes_max(&self) -> usize {
        self.value_bytes_max
    }

    /// Returns the time of a change that is being made: the current time, but not before that of an earlier change and
    /// not in a closed moment.
    fn stamp(&self) -> i64 {
        let now_ms = clock_ms();
        self.latest_ms.fetch_max(now_ms, Ordering::SeqCst).max(now_ms)
    }

    /// Returns the current time of history.
    pub fn now_ms(&self) -> i64 {
        clock_ms().max(self.latest_ms.load(Ordering::SeqCst))
    }

    /// Closes the moments up to `at_ms`: later changes receive later times. The caller holds the lock of the key that it
    /// reads, so a change of this key has either happened or receives a later time.
    pub fn close(&self, at_ms: i64) {
        self.latest_ms.fetch_max(at_ms.saturating_add(1), Ordering::SeqCst);
    }

    /// Empties the set of known names. If the caller has exclusive access to the keyspace, the next change of each key
    /// captures the state before it.
    pub fn forget_known(&self) {
        self.known.iter().for_each(|part| part.lock().clear());
    }

    fn part(&self, name: &[u8]) -> &Mutex<HashSet<Name>> {
        &self.known[self.hasher.hash_one(name) as usize % PARTS]
    }

    fn is_known(&self, key: &Name) -> bool {
        self.part(&key.1).lock().contains(key)
    }

    fn remember(&self, key: Name) {
        let mut part = self.part(&key.1).lock();
        if part.len() >= NAMES_MAX {
            part.clear();
        }
        part.insert(key);
    }
}

fn clock_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// A key that the current call may have changed.
#[derive(Debug)]
struct Mark {
    key: Name,
    /// The change by the server; `None` if a call has changed the key.
    cause: Option<&'static str>,
    before: Option<State>,
    after: State,
}

/// A worker's capture: the marks of the current call, and the changes of records that are not published yet.
#[derive(Debug)]
pub struct Capture {
    covered: Arc<Covered>,
    marks: Vec<Mark>,
    /// Changes of the current record, which has no number yet.
    pending: Vec<Change>,
    sealed: Vec<Captured>,
    operation: &'static str,
    /// The number of effects by the server (expiry, eviction) in the current call.
    pub(super) by_server: usize,
}

impl Capture {
    /// Returns the capture of a worker.
    pub fn new(covered: Arc<Covered>) -> Capture {
        Capture {
            covered,
            marks: Vec::new(),
            pending: Vec::new(),
            sealed: Vec::new(),
            operation: "",
            by_server: 0,
        }
    }

    /// Returns whether the history covers a key.
    pub(super) fn covers(&self, name: &[u8]) -> bool {
        self.covered.covers(name)
    }

    /// Returns the size in bytes above which values are not captured.
    pub(super) fn value_bytes_max(&self) -> usize {
        self.covered.value_bytes_max
    }

    /// Returns the number of marks.
    pub(super) fn marks(&self) -> usize {
        self.marks.len()
    }

    /// Marks a key that is about to change. `state` returns its state if values up to a size in bytes are captured.
    pub(super) fn mark(
        &mut self,
        (database, name): (usize, &[u8]),
        cause: Option<&'static str>,
        state: impl FnOnce(usize) -> State,
    ) {
        if self.marks.last().is_some_and(|mark| mark.key.0 == database && *mark.key.1 == *name)
            || !self.covered.covers(name)
        {
            return;
        }
        let key = (database, name.into());
        let before = (!self.covered.is_known(&key)).then(|| state(self.covered.value_bytes_max));
        self.marks.push(Mark { key, cause, before, after: State::Unknown });
    }

    /// Adds the states after the call `operation` to its marks, which are those from number `from` on.
    pub(super) fn complete(
        &mut self,
        from: usize,
        operation: &'static str,
        mut state: impl FnMut(usize, &[u8], usize) -> State,
    ) {
        self.operation = operation;
        if self.marks.len() > from + 1 {
            let mut seen = HashSet::new();
            let mut at = 0;
            self.marks.retain(|mark| {
                at += 1;
                at <= from || seen.insert(mark.key.clone())
            });
        }
        for mark in &mut self.marks[from..] {
            mark.after = state(mark.key.0, &mark.key.1, self.covered.value_bytes_max);
        }
    }

    /// Turns the marks from number `from` on into changes if `is_recorded`; otherwise discards them.
    pub(super) fn settle(&mut self, from: usize, is_recorded: bool) {
        if !is_recorded {
            self.marks.truncate(from);
            return;
        }
        for mark in self.marks.split_off(from) {
            self.add(mark);
        }
    }

    /// Turns the last mark of a key that the server has removed into a change.
    pub(super) fn settle_removed(&mut self, database: usize, name: &[u8]) {
        self.settle_by_server(database, name, Some(State::Absent));
    }

    /// Turns the last mark of a key whose value the server has changed to `after` into a change; discards the mark if
    /// the value is unchanged.
    pub(super) fn settle_by_server(&mut self, database: usize, name: &[u8], after: Option<State>) {
        let is_it = |mark: &Mark| mark.key.0 == database && *mark.key.1 == *name;
        let Some(at) = self.marks.iter().rposition(is_it) else { return };
        let mut mark = self.marks.remove(at);
        if let Some(after) = after {
            mark.after = after;
            self.add(mark);
        }
    }

    fn add(&mut self, mark: Mark) {
        let Mark { key, cause, before, after } = mark;
        let (database, name) = (key.0, key.1.clone());
        if before.is_some() {
            self.covered.remember(key);
        }
        let operation = cause.unwrap_or(self.operation);
        self.pending.push(Change::Key { database, name, operation, before, after });
    }

    /// Adds the exchange of two databases. The caller holds all locks.
    pub(super) fn swap(&mut self, one: usize, other: usize) {
        // The names of keys now refer to other keys.
        self.covered.forget_known();
        self.covered.has_swapped.store(true, Ordering::SeqCst);
        self.pending.push(Change::Swap { one, other });
    }

    /// Adds the removal of more keys than are recorded one by one. The caller holds all locks.
    pub(super) fn restart(&mut self) {
        self.covered.forget_known();
        self.pending.push(Change::Restart);
    }

    /// Assigns a record's number and time to its changes.
    pub(super) fn seal(&mut self, number: u64) {
        if !self.pending.is_empty() {
            let at_ms = self.covered.stamp();
            let changes = self.pending.drain(..);
            self.sealed.extend(changes.map(|change| Captured { number, at_ms, change }));
        }
    }

    /// Moves the changes of sealed records to the end of `to`.
    pub(super) fn move_to(&mut self, to: &mut Vec<Captured>) {
        to.append(&mut self.sealed);
    }

    /// Returns whether there are changes for [`Capture::move_to`].
    pub(super) fn has_sealed(&self) -> bool {
        !self.sealed.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_cover_keys_and_exclude_keys() {
        let coverage = Coverage::parse("user:* order:? !user:tmp:*").expect("there are patterns");
        for (name, is_covered) in
            [("user:1", true), ("user:tmp:1", false), ("order:1", true), ("order:12", false), ("x", false)]
        {
            assert_eq!(coverage.covers(name.as_bytes()), is_covered, "{name}");
        }
        assert!(Coverage::parse("").is_none());
        assert!(Coverage::parse("!a").is_none(), "nothing is covered");
        assert!(Coverage::parse("*").is_some_and(|coverage| coverage.covers(b"")));
    }

    #[test]
    fn changes_after_a_closed_moment_have_later_times() {
        let covered = Covered::new(Coverage::default(), 0);
        let now_ms = covered.now_ms();
        covered.close(now_ms + 50);
        assert_eq!(covered.stamp(), now_ms + 51);
        assert!(covered.now_ms() > now_ms + 50);
    }

    #[test]
    fn only_recorded_calls_leave_changes() {
        let covered = Arc::new(Covered::new(Coverage::parse("*").expect("it is a pattern"), 100));
        let mut capture = Capture::new(Arc::clone(&covered));
        let mark = |capture: &mut Capture| capture.mark((0, b"k"), None, |_| State::Absent);
        mark(&mut capture);
        capture.complete(0, "set", |_, _, _| State::Unknown);
        capture.settle(0, false);
        assert!(capture.pending.is_empty() && capture.marks.is_empty());
        for before in [Some(State::Absent), None] {
            mark(&mut capture);
            capture.complete(0, "set", |_, _, _| State::Unknown);
            capture.settle(0, true);
            let Some(Change::Key { before: seen, operation: "set", .. }) = capture.pending.pop() else {
                panic!("the call has changed a key")
            };
            assert_eq!(seen, before, "a state is captured once");
        }
        covered.forget_known();
        mark(&mut capture);
        assert_eq!(capture.marks[0].before, Some(State::Absent));
    }
}
