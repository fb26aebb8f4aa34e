//! The commit barrier: replies are held until the writes that they acknowledge are safe.
//!
//! The replies to a batch with changes are sent when its last record is in the append-only file; with
//! `appendfsync always` when it is durable. A worker that is about to send first tries to append the records itself, so
//! that replies are seldom held with the other policies (`journal/stream.rs`). With `sync-replicas`, that number of
//! replicas must also have confirmed the record. A connection whose replies are held does not run commands. All
//! connections whose replies are held at the same time share one write and one fsync, and one request to the replicas.

use std::collections::BTreeSet;

use ember_config::SYNC_REPLICAS_MAX;

use super::Worker;
use super::connections::list;
use super::waits::Ending;
use crate::clients::connection::Connection;
use crate::executor::Executor;
use crate::journal::JournalHub;

/// The records that a worker's connections wait for, each with the token of the connection.
#[derive(Default)]
pub(crate) struct Barrier {
    /// Connections whose replies are held, indexed by the number of replicas that must have the record.
    held: [BTreeSet<(u64, usize)>; SYNC_REPLICAS_MAX + 1],
    /// Connections whose blocked call waits for a record to be durable.
    awaited: BTreeSet<(u64, usize)>,
}

impl Barrier {
    /// Holds the replies of a connection until the records that they acknowledge are released. Called again when
    /// replies are added, because a blocked call may be served in the meantime.
    fn hold(&mut self, connection: &mut Connection, token: usize, replicas: u32, now_ms: i64) {
        if !connection.is_held {
            (connection.is_held, connection.held_since_ms) = (true, now_ms);
        }
        self.held[replicas as usize].insert((connection.acknowledges, token));
    }

    /// Records that a connection's blocked call waits for `record` to be durable.
    pub(super) fn wait_for(&mut self, record: u64, token: usize) {
        self.awaited.insert((record, token));
    }
}

impl Worker {
    /// Returns whether the replies of a connection may be sent now; if not, holds them.
    pub(super) fn may_send(&mut self, token: usize) -> bool {
        let Some(connection) = self.connections.all[token].as_deref_mut() else { return false };
        let replicas = replicas_for(&self.executor, connection);
        let may_send = connection.may_send(&self.server.journal, replicas);
        if !may_send {
            self.executor.stats.sync_waits.add(u64::from(replicas > 0 && !connection.is_held));
            self.barrier.hold(connection, token, replicas, self.executor.turn.now_ms);
        }
        may_send
    }

    /// Returns whether a connection's replies wait for replicas.
    pub(super) fn waits_for_replicas(&self, connection: &Connection) -> bool {
        let replicas = replicas_for(&self.executor, connection);
        connection.is_held && connection.acknowledges > self.server.journal.replicated(replicas)
    }

    /// Returns whether a connection's replies have waited for replicas longer than `sync-timeout`.
    pub(super) fn waits_too_long_for_replicas(&self, connection: &Connection) -> bool {
        let executor = &self.executor;
        self.waits_for_replicas(connection)
            && connection.acknowledges <= self.server.journal.released()
            && executor.turn.now_ms - connection.held_since_ms > i64::from(executor.config.sync_timeout)
    }

    /// Checks all connections with held replies again, because the required number of replicas may have changed.
    pub(super) fn recheck_held(&mut self) {
        for token in self.barrier.held.iter_mut().flat_map(std::mem::take).map(|(_, token)| token) {
            if let Some(connection) = self.connections.all[token].as_deref_mut() {
                connection.is_held = false;
                list(&mut self.connections.ready, connection, token);
            }
        }
    }

    /// Returns whether held replies can be sent now. If not, the journal wakes the worker when they can.
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

    /// Resumes the connections whose records are released or durable.
    pub(super) fn release_held(&mut self) {
        for (replicas, held) in (0..).zip(&mut self.barrier.held) {
            if held.is_empty() {
                continue;
            }
            let released = releasable(&self.server.journal, replicas);
            while let Some(token) = next(held, released) {
                if let Some(connection) = self.connections.all[token].as_deref_mut()
                    && connection.is_held
                    && connection.acknowledges <= released
                {
                    (connection.is_held, connection.acknowledges) = (false, 0);
                    list(&mut self.connections.ready, connection, token);
                }
            }
        }
        let durable = self.server.journal.durable();
        while let Some(token) = next(&mut self.barrier.awaited, durable) {
            if let Some(connection) = self.connections.all[token].as_deref_mut()
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

/// Returns the number of the record up to which replies that require this number of replicas may be sent.
fn releasable(journal: &JournalHub, replicas: u32) -> u64 {
    journal.released().min(journal.replicated(replicas))
}

/// Returns the number of replicas that must have a connection's writes before the reply is sent.
pub(super) fn replicas_for(executor: &Executor, connection: &Connection) -> u32 {
    // Writes of the primary are already safe on the primary.
    if connection.client.primary.is_some() { 0 } else { executor.sync_replicas(Some(&connection.client)) }
}

/// Removes and returns the first connection that waits for a record up to number `upto`.
fn next(waiting: &mut BTreeSet<(u64, usize)>, upto: u64) -> Option<usize> {
    let &(record, token) = waiting.first().filter(|(record, _)| *record <= upto)?;
    waiting.remove(&(record, token));
    Some(token)
}
