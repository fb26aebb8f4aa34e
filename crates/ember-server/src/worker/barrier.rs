//! The commit barrier: replies are held until what they acknowledge cannot be lost any more.
//!
//! The replies of a batch that has changed something are sent when the last record it has made is in the append-only file;
//! with `appendfsync always` when it is durable. A worker that is about to send tries to append first, so that with the
//! other policies replies are seldom held (`journal/stream.rs`). With `sync-replicas` so many replicas have confirmed it,
//! too. A connection whose replies are held runs nothing meanwhile, and all connections that are held together share one
//! write and one fsync, and one question to the replicas.

use std::collections::BTreeSet;

use super::waits::Ending;
use super::{Worker, list};
use crate::clients::connection::Connection;
use crate::config::SYNC_REPLICAS_MAX;
use crate::executor::Executor;
use crate::journal::JournalHub;

/// What a worker's connections wait for: numbers of records, with the token of the connection.
#[derive(Default)]
pub(crate) struct Barrier {
    /// Those whose replies are held, by the number of replicas that are to have the record.
    held: [BTreeSet<(u64, usize)>; SYNC_REPLICAS_MAX + 1],
    /// Those whose call waits.
    awaited: BTreeSet<(u64, usize)>,
}

impl Barrier {
    /// Holds the replies of a connection until the records that they acknowledge are released. Called again when there are
    /// more of them: a call that waited for a key may be served meanwhile.
    fn hold(&mut self, connection: &mut Connection, token: usize, replicas: u32, now_ms: i64) {
        if !connection.is_held {
            (connection.is_held, connection.held_since_ms) = (true, now_ms);
        }
        self.held[replicas as usize].insert((connection.acknowledges, token));
    }

    /// Notes that a connection's call waits for record `record` to be durable.
    pub(super) fn wait_for(&mut self, record: u64, token: usize) {
        self.awaited.insert((record, token));
    }
}

impl Worker {
    /// Whether replies of a connection may be sent now; if not, they are held.
    pub(super) fn may_send(&mut self, token: usize) -> bool {
        let Some(connection) = self.connections[token].as_deref_mut() else { return false };
        let replicas = replicas_for(&self.executor, connection);
        let may_send = connection.may_send(&self.server.journal, replicas);
        if !may_send {
            self.executor.stats.sync_waits.add(u64::from(replicas > 0 && !connection.is_held));
            self.barrier.hold(connection, token, replicas, self.executor.turn.now_ms);
        }
        may_send
    }

    /// Whether a connection's replies are held for replicas, and have been for too long.
    pub(super) fn waits_too_long_for_replicas(&self, connection: &Connection) -> bool {
        let (executor, journal) = (&self.executor, &self.server.journal);
        connection.is_held
            && connection.acknowledges <= journal.released()
            && connection.acknowledges > journal.replicated(replicas_for(executor, connection))
            && executor.turn.now_ms - connection.held_since_ms > i64::from(executor.config.sync_timeout)
    }

    /// Looks again at all connections whose replies are held: they may wait for other replicas now.
    pub(super) fn hold_anew(&mut self) {
        for token in self.barrier.held.iter_mut().flat_map(std::mem::take).map(|(_, token)| token) {
            if let Some(connection) = self.connections[token].as_deref_mut() {
                connection.is_held = false;
                list(&mut self.ready, connection, token);
            }
        }
    }

    /// Whether replies can be sent now that were held. If not, the worker will be woken when they can.
    pub(super) fn can_release(&self) -> bool {
        let Barrier { held, awaited } = &self.barrier;
        if held.iter().all(BTreeSet::is_empty) && awaited.is_empty() {
            return false;
        }
        let journal = &self.server.journal;
        journal.wait_for_more(self.executor.index);
        (0..).zip(held).any(|(replicas, held)| {
            held.first().is_some_and(|&(record, _)| record <= releasable(journal, replicas))
        }) || awaited.first().is_some_and(|&(record, _)| record <= journal.durable())
    }

    /// Lets those connections go on that need not wait any more.
    pub(super) fn release_held(&mut self) {
        for (replicas, held) in (0..).zip(&mut self.barrier.held) {
            if held.is_empty() {
                continue;
            }
            let released = releasable(&self.server.journal, replicas);
            while let Some(token) = next(held, released) {
                if let Some(connection) = self.connections[token].as_deref_mut()
                    && connection.is_held
                    && connection.acknowledges <= released
                {
                    (connection.is_held, connection.acknowledges) = (false, 0);
                    list(&mut self.ready, connection, token);
                }
            }
        }
        let durable = self.server.journal.durable();
        while let Some(token) = next(&mut self.barrier.awaited, durable) {
            if let Some(connection) = self.connections[token].as_deref_mut()
                && let Some((record, _)) =
                    connection.blocked.as_ref().and_then(|blocked| blocked.durable.as_ref())
                && *record <= durable
            {
                let client_id = connection.client.view.id;
                self.end_waiting(token, client_id, Ending::Durable);
            }
        }
    }
}

/// Up to which record replies may be sent that so many replicas are to have.
fn releasable(journal: &JournalHub, replicas: u32) -> u64 {
    journal.released().min(journal.replicated(replicas))
}

/// How many replicas are to have what a connection has written before it is answered.
pub(super) fn replicas_for(executor: &Executor, connection: &Connection) -> u32 {
    // What the primary sends others have before.
    if connection.client.primary.is_some() { 0 } else { executor.sync_replicas(Some(&connection.client)) }
}

/// Takes the first connection that waits for a record up to this number.
fn next(waiting: &mut BTreeSet<(u64, usize)>, upto: u64) -> Option<usize> {
    let &(record, token) = waiting.first().filter(|(record, _)| *record <= upto)?;
    waiting.remove(&(record, token));
    Some(token)
}
