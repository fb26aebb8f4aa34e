//! The commit barrier: replies are held until what they acknowledge cannot be lost any more.
//!
//! The replies of a batch that has changed something are sent when the last record it has made is in the append-only file;
//! with `appendfsync always` when it is durable. A worker that is about to send tries to append first, so that with the
//! other policies replies are seldom held (`journal/stream.rs`). A connection whose replies are held runs nothing meanwhile,
//! and all connections that are held together share one write and one fsync.

use std::collections::BTreeSet;

use super::waits::Ending;
use super::{Worker, list};
use crate::clients::connection::Connection;

/// What a worker's connections wait for: numbers of records, with the token of the connection.
#[derive(Default)]
pub(crate) struct Barrier {
    /// Those whose replies are held.
    held: BTreeSet<(u64, usize)>,
    /// Those whose call waits.
    awaited: BTreeSet<(u64, usize)>,
}

impl Barrier {
    /// Holds the replies of a connection until the records that they acknowledge are released. Called again when there are
    /// more of them: a call that waited for a key may be served meanwhile.
    fn hold(&mut self, connection: &mut Connection, token: usize) {
        connection.is_held = true;
        self.held.insert((connection.acknowledges, token));
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
        let may_send = connection.may_send(&self.server.journal);
        if !may_send {
            self.barrier.hold(connection, token);
        }
        may_send
    }

    /// Whether replies can be sent now that were held. If not, the worker will be woken when they can.
    pub(super) fn can_release(&self) -> bool {
        let Barrier { held, awaited } = &self.barrier;
        if held.is_empty() && awaited.is_empty() {
            return false;
        }
        let journal = &self.server.journal;
        journal.wait_for_more(self.executor.index);
        held.first().is_some_and(|&(record, _)| record <= journal.released())
            || awaited.first().is_some_and(|&(record, _)| record <= journal.durable())
    }

    /// Lets those connections go on that need not wait any more.
    pub(super) fn release_held(&mut self) {
        let released = self.server.journal.released();
        while let Some(token) = next(&mut self.barrier.held, released) {
            if let Some(connection) = self.connections[token].as_deref_mut()
                && connection.is_held
                && connection.acknowledges <= released
            {
                (connection.is_held, connection.acknowledges) = (false, 0);
                list(&mut self.ready, connection, token);
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

/// Takes the first connection that waits for a record up to this number.
fn next(waiting: &mut BTreeSet<(u64, usize)>, upto: u64) -> Option<usize> {
    let &(record, token) = waiting.first().filter(|(record, _)| *record <= upto)?;
    waiting.remove(&(record, token));
    Some(token)
}
