//! The intake of the history: changes become versions of the index, and their values records of the log. Old records
//! are removed here, too.
//!
//! Any thread may take changes in; a thread that would have to wait leaves them to the history's thread, which writes
//! buffers and removes segments.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::Ordering;

use ember_storage::segments::{AppendSource, Location, LogFull, SegmentNumber, Which};
use emberkv_core::capture::{Captured, Change, State};

use super::index::{Key, Moment, SegmentStart, Stored, Version};
use super::{Active, BACKLOG_BYTES_MAX, stored};
use crate::server::Server;

/// An open segment is closed after this part of `history-max-age`, so that few records are kept longer than that.
const AGE_PARTS: i64 = 8;

/// The number of attempts to make space for one record.
const ATTEMPTS_MAX: usize = 64;

/// The changes that are not in the index yet.
#[derive(Default)]
pub(super) struct Inbox {
    /// In the order of their numbers.
    changes: VecDeque<Captured>,
    /// The number of the record after which the history starts again, and its time.
    restart: Option<(u64, i64)>,
    /// Whether a segment was removed since the last [`Inbox::take_retired`].
    is_retired: bool,
    /// The number of the last record when the set of known names was last emptied.
    forgotten_at: u64,
}

impl Inbox {
    /// Returns whether a segment was removed since the last call.
    pub(super) fn take_retired(&mut self) -> bool {
        std::mem::take(&mut self.is_retired)
    }

    /// Records that each change after `number` captures the state before it if it is the first of its key.
    pub(super) fn forget_up_to(&mut self, number: u64) {
        self.forgotten_at = number;
    }
}

/// The calling thread cannot take a change in without waiting.
struct MustWait;

impl Active {
    /// Starts the history again after the record `number`, at `at_ms`.
    pub(super) fn restart_after(&self, number: u64, at_ms: i64) {
        let mut inbox = self.inbox.lock();
        inbox.restart = Some((number, at_ms));
        if self.taken_in() >= number {
            self.restart_now(&mut inbox);
        }
    }

    /// Takes in the changes of the records that were passed on. The calling thread waits for the lock and for the disk
    /// only with `may_wait`. Returns whether all changes were taken in.
    pub(super) fn take_in(&self, server: &Server, may_wait: bool) -> bool {
        let inbox = if may_wait { Some(self.inbox.lock()) } else { self.inbox.try_lock() };
        let Some(mut inbox) = inbox else { return false };
        let is_behind = server.journal.captured_bytes() > BACKLOG_BYTES_MAX;
        let passed = self.passed.load(Ordering::SeqCst);
        let mut taken = Vec::new();
        server.journal.take_captured(&mut taken);
        if !taken.is_empty() {
            inbox.changes.extend(taken);
            // Stable: changes of one record are in order.
            inbox.changes.make_contiguous().sort_by_key(|captured| captured.number);
        }
        let mut is_done = true;
        while let Some(captured) = inbox.changes.front() {
            if inbox.restart.is_some_and(|(after, _)| after < captured.number) {
                self.restart_now(&mut inbox);
                continue;
            }
            if captured.number > passed {
                break;
            }
            let Some(captured) = inbox.changes.pop_front() else { break };
            if let Err(MustWait) = self.add(&captured, &mut inbox, may_wait) {
                inbox.changes.push_front(captured);
                is_done = false;
                break;
            }
            server.journal.release_captured(captured.bytes());
        }
        if is_done {
            if inbox.restart.is_some_and(|(after, _)| after <= passed) {
                self.restart_now(&mut inbox);
            }
            self.taken_in.store(passed, Ordering::SeqCst);
        }
        drop(inbox);
        let guard = self.has_taken.0.lock();
        self.has_taken.1.notify_all();
        drop(guard);
        if !is_done {
            self.wake();
        } else if is_behind {
            // Replies that have waited for the history can be sent.
            server.journal.call_thread();
        }
        is_done
    }

    fn restart_now(&self, inbox: &mut Inbox) {
        if let Some((after, at_ms)) = inbox.restart.take() {
            self.start_again(Moment { number: after + 1, at_ms });
        }
    }

    fn start_again(&self, oldest: Moment) {
        self.index.write().restart(oldest);
        if let Err(error) = self.log.clear() {
            tracing::warn!("history: a segment cannot be removed: {error}");
        }
    }

    /// Adds a change to the index. If it fails, it may be repeated.
    fn add(&self, captured: &Captured, inbox: &mut Inbox, may_wait: bool) -> Result<(), MustWait> {
        let last = self.index.read().last;
        // Times rise with numbers.
        let moment = Moment { number: captured.number, at_ms: captured.at_ms.max(last.at_ms) };
        let (name, operation, before, after) = match &captured.change {
            Change::Swap { one, other } => {
                self.index.write().swap(moment, *one, *other);
                return Ok(());
            }
            Change::Restart => {
                // The keys were removed at this moment, so all states after it are known.
                self.start_again(moment);
                return Ok(());
            }
            Change::Key { database, name, operation, before, after } => {
                let named = self.index.read().names()[*database];
                ((named, name.clone()), *operation, before.as_ref(), after)
            }
        };
        if !self.index.read().has(&name) {
            let base = before
                .map_or(Ok(Stored::Lost), |state| self.append(&name, state, moment, inbox, may_wait))?;
            self.index.write().add_base(&name, base);
        }
        let state = self.append(&name, after, moment, inbox, may_wait)?;
        self.counters.changes.fetch_add(1, Ordering::Relaxed);
        let version = Version { number: moment.number, at_ms: moment.at_ms, operation, stored: state };
        self.index.write().add(&name, version);
        Ok(())
    }

    /// Appends a state to the log.
    fn append(
        &self,
        key: &Key,
        state: &State,
        moment: Moment,
        inbox: &mut Inbox,
        may_wait: bool,
    ) -> Result<Stored, MustWait> {
        let image = match state {
            State::Absent => return Ok(Stored::Absent),
            State::Unknown => return Ok(self.lose()),
            State::Present(image) => image,
        };
        let (head, value) = stored::encode(key, image);
        for _ in 0..ATTEMPTS_MAX {
            let full = match self.log.append(&head, &value, AppendSource::Demoted) {
                Ok(location) => {
                    self.begin_segment_of(location, moment);
                    return Ok(Stored::At(location));
                }
                Err(full) => full,
            };
            if full == LogFull::TooLarge {
                break;
            }
            if !may_wait {
                return Err(MustWait);
            }
            let has_space = match full {
                LogFull::Limit => self.retire(inbox),
                LogFull::Buffers | LogFull::Failing => self.write_full(),
                LogFull::TooLarge => false,
            };
            if !has_space {
                break;
            }
        }
        Ok(self.lose())
    }

    fn lose(&self) -> Stored {
        self.counters.lost.fetch_add(1, Ordering::Relaxed);
        Stored::Lost
    }

    /// Writes full buffers; returns whether that has succeeded.
    fn write_full(&self) -> bool {
        match self.log.write_buffers(Which::Full) {
            Ok(_) => true,
            Err(error) => {
                if self.counters.write_errors.fetch_add(1, Ordering::Relaxed) == 0 {
                    tracing::warn!("history: states are lost until the disk accepts writes: {error}");
                }
                false
            }
        }
    }

    fn begin_segment_of(&self, location: Location, first: Moment) {
        let segment = location.segment();
        let is_last = |start: &SegmentStart| start.segment == segment;
        if !self.index.read().segments.back().is_some_and(is_last) {
            self.index.write().segments.push_back(SegmentStart { segment, first });
        }
    }

    /// Removes states older than `history-max-age`, and the oldest segments while the index needs more memory than
    /// `history-max-memory`. Writes full buffers. Returns whether a segment was removed.
    pub(super) fn apply_retention(&self, server: &Server) -> bool {
        let config = server.config.snapshot();
        self.log.set_limit(config.history_max_size);
        if self.log.has_full_buffer() {
            self.write_full();
        }
        let max_age_ms = i64::try_from(config.history_max_age).unwrap_or(i64::MAX).saturating_mul(1000);
        let now_ms = self.covered.now_ms();
        let mut inbox = self.inbox.lock();
        let mut is_retired = false;
        loop {
            let (second, open, is_large) = {
                let index = self.index.read();
                let second = index.segments.get(1).map(|start| start.first.at_ms);
                let open = index.segments.back().map(|start| start.first.at_ms);
                (second, open, index.bytes() as u64 > config.history_max_memory)
            };
            let Some(open_ms) = open else { break };
            if now_ms.saturating_sub(open_ms) >= max_age_ms / AGE_PARTS {
                self.log.seal();
            }
            let last_ms = second.unwrap_or(self.index.read().last.at_ms);
            let is_old = now_ms.saturating_sub(last_ms) > max_age_ms;
            if !(is_old || is_large) || !self.retire(&mut inbox) {
                break;
            }
            is_retired = true;
        }
        is_retired
    }

    /// Removes the oldest segment; the states that are still needed are appended again. Returns whether a segment was
    /// removed.
    fn retire(&self, inbox: &mut Inbox) -> bool {
        let (leaving, oldest, kept, forgettable) = {
            let index = self.index.read();
            let Some(first) = index.segments.front() else { return false };
            let after_last = Moment { number: index.last.number + 1, at_ms: index.last.at_ms };
            let oldest = index.segments.get(1).map_or(after_last, |start| start.first);
            // A change that was captured before the set of names was emptied may arrive later, without the state
            // before it.
            let forgettable = if self.taken_in() >= inbox.forgotten_at { inbox.forgotten_at } else { 0 };
            (first.segment, oldest, index.kept_in(first.segment, oldest, forgettable), forgettable)
        };
        let (carried, segments) = self.carry(leaving, &kept);
        {
            let mut index = self.index.write();
            index.retire(oldest, leaving, forgettable, &carried);
            let after_last = Moment { number: index.last.number + 1, at_ms: index.last.at_ms };
            for segment in segments {
                if !index.segments.iter().any(|start| start.segment == segment) {
                    index.segments.push_back(SegmentStart { segment, first: after_last });
                }
            }
        }
        inbox.is_retired = true;
        if let Err(error) = self.log.remove(leaving) {
            tracing::warn!("history: a segment cannot be removed: {error}");
        }
        true
    }

    /// Erases the past of a key up to now from the index and from all files. The changes before this call are already
    /// taken in.
    pub(super) fn forget(&self, database: usize, name: &[u8]) {
        let inbox = self.inbox.lock();
        let at_ms = self.covered.now_ms();
        self.covered.close(at_ms);
        {
            let mut index = self.index.write();
            let named = index.names()[database];
            index.forget((named, name.into()), at_ms + 1);
        }
        self.log.seal();
        for segment in self.log.segments() {
            let segment = segment.number;
            if !self.has_key(segment, name) {
                continue;
            }
            let kept = self.index.read().kept_in(segment, Moment { number: 0, at_ms: 0 }, 0);
            let (carried, segments) = self.carry(segment, &kept);
            self.index.write().relocate(segment, &carried, segments);
            if let Err(error) = self.log.remove(segment) {
                tracing::warn!("history: a segment cannot be removed: {error}");
            }
            // The records that were moved are not read again for this key.
            self.log.seal();
        }
        drop(inbox);
    }

    /// Returns whether a segment contains a record of a key, referenced or not.
    fn has_key(&self, segment: SegmentNumber, name: &[u8]) -> bool {
        let Ok(mut records) = self.log.records(segment) else { return false };
        while let Some(record) = records.next_record() {
            match record {
                Ok((_, record)) if record.head.key == name => return true,
                Ok(_) => {}
                // An unreadable record may belong to any key.
                Err(_) => return true,
            }
        }
        false
    }

    /// Appends the records of a segment at the locations `kept` again; returns where they are stored now, and the
    /// segments of these places in their order. The segment is sealed first: nothing is appended to it.
    fn carry(
        &self,
        leaving: SegmentNumber,
        kept: &HashSet<u64>,
    ) -> (HashMap<u64, Stored>, Vec<SegmentNumber>) {
        let (mut carried, mut segments) = (HashMap::new(), Vec::new());
        if self.log.segments().iter().any(|segment| segment.number == leaving && !segment.is_sealed) {
            self.log.seal();
        }
        let records = if kept.is_empty() { None } else { self.log.records(leaving).ok() };
        let Some(mut records) = records else { return (carried, segments) };
        while let Some(record) = records.next_record() {
            let (location, record) = match record {
                Ok(record) => record,
                Err(error) => {
                    tracing::warn!("history: the states of a segment are lost: {error}");
                    break;
                }
            };
            if !kept.contains(&location.to_bits()) {
                continue;
            }
            let mut stored = Stored::Lost;
            for _ in 0..2 {
                match self.log.append(&record.head, record.value, AppendSource::Moved) {
                    Ok(location) => {
                        stored = Stored::At(location);
                        if segments.last() != Some(&location.segment()) {
                            segments.push(location.segment());
                        }
                    }
                    Err(LogFull::Buffers) if self.log.write_buffers(Which::Full).is_ok() => continue,
                    Err(_) => _ = self.lose(),
                }
                break;
            }
            carried.insert(location.to_bits(), stored);
        }
        (carried, segments)
    }
}
