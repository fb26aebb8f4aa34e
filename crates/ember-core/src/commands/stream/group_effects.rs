//! Journal records of changes of consumer groups: positions, consumers and pending entries, in the same commands
//! whichever command has changed the group.

use crate::keys::Key;
use crate::types::stream::{Pending, StreamId, Traces};

/// Records that a consumer was created and has no pending entries. The record of a pending entry creates its consumer
/// during the replay, so such a consumer needs no other record.
pub(super) fn journal_consumer(key: &mut Key<'_>, group: &[u8], consumer: &[u8]) {
    key.journal_words(|words, name| {
        words.word(b"XGROUP").word(b"CREATECONSUMER").word(name).word(group).word(consumer);
    });
}

/// Records that a group has read all entries up to `last_id`; `entries_read` is the total number of entries read, if
/// known.
pub(super) fn journal_position(
    key: &mut Key<'_>,
    group: &[u8],
    last_id: StreamId,
    entries_read: Option<i64>,
) {
    key.journal_words(|words, name| {
        words.word(b"XGROUP").word(b"SETID").word(name).word(group);
        words.word(last_id.text(&mut [0; StreamId::TEXT_BYTES_MAX]));
        words.word(b"ENTRIESREAD").integer(entries_read.unwrap_or(-1));
    });
}

/// Records that an entry is pending for a consumer.
pub(super) fn journal_pending(
    key: &mut Key<'_>,
    group: &[u8],
    consumer: &[u8],
    id: StreamId,
    pending: Pending,
) {
    key.journal("XCLAIM", |words| {
        words.word(group).word(consumer).integer(0).word(id.text(&mut [0; StreamId::TEXT_BYTES_MAX]));
        words.word(b"TIME").integer(pending.delivered_ms).word(b"RETRYCOUNT").integer(pending.deliveries);
        words.word(b"FORCE").word(b"JUSTID");
    });
}

/// Records that entries are no longer pending in a group.
pub(super) fn journal_acknowledged(key: &mut Key<'_>, group: &[u8], ids: &[StreamId]) {
    if ids.is_empty() {
        return;
    }
    key.journal("XACK", |words| {
        words.word(group);
        ids.iter().for_each(|id| _ = words.word(id.text(&mut [0; StreamId::TEXT_BYTES_MAX])));
    });
}

/// Records that entries were deleted, and that references to them were removed from the groups.
pub(super) fn journal_traces(key: &mut Key<'_>, traces: &Traces) {
    if !traces.deleted().is_empty() {
        key.journal("XDEL", |words| {
            let ids = traces.deleted().iter();
            ids.for_each(|id| _ = words.word(id.text(&mut [0; StreamId::TEXT_BYTES_MAX])));
        });
    }
    traces.acknowledged().for_each(|(group, ids)| journal_acknowledged(key, group, ids));
}

/// The entries that a call has claimed: their number and, if the journal has a reader, their new pending state.
pub(super) struct Claimed {
    count: usize,
    journaled: Option<Vec<(StreamId, Pending)>>,
}

impl Claimed {
    /// Returns an empty list of claimed entries of this key's stream.
    pub(super) fn of(key: &Key<'_>) -> Claimed {
        Claimed { count: 0, journaled: key.is_journaled().then(Vec::new) }
    }

    /// Adds a claimed entry.
    pub(super) fn add(&mut self, id: StreamId, pending: Pending) {
        self.count += 1;
        if let Some(journaled) = &mut self.journaled {
            journaled.push((id, pending));
        }
    }

    /// Returns the number of claimed entries.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Returns whether the records of the entries create their consumer during a replay.
    pub(super) fn creates_consumer(&self) -> bool {
        self.journaled.as_ref().is_some_and(|claimed| !claimed.is_empty())
    }

    /// Records the claimed entries in the journal.
    pub(super) fn journal(self, key: &mut Key<'_>, group: &[u8], consumer: &[u8]) {
        for (id, pending) in self.journaled.into_iter().flatten() {
            journal_pending(key, group, consumer, id, pending);
        }
    }
}
