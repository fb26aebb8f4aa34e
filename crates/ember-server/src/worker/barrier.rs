//! The commit barrier: replies wait until what they acknowledge is durable.
//!
//! With `appendfsync always` the replies of a batch that has changed something are held until the last record it has made
//! is durable. The connection runs nothing meanwhile, and all connections that are held together share one fsync.

use std::collections::BTreeSet;

use super::waits::Ending;
use super::{Worker, list};
use crate::config::{AppendFsync, Config};
use crate::connection::Connection;
use crate::server::Server;

/// What a worker's connections wait for: numbers of records, with the token of the connection.
#[derive(Default)]
pub(crate) struct Barrier {
    /// Those whose replies are held.
    held: BTreeSet<(u64, usize)>,
    /// Those whose call waits.
    awaited: BTreeSet<(u64, usize)>,
}

impl Barrier {
    /// Notes that the replies of a connection acknowledge what the records up to number `record` have changed; 0 is none.
    #[inline]
    pub(crate) fn note(
        &mut self,
        server: &Server,
        config: &Config,
        connection: &mut Connection,
        token: usize,
        record: u64,
    ) {
        if record != 0 {
            connection.client.last_record = connection.client.last_record.max(record);
            if config.appendfsync == AppendFsync::Always && record > server.journal.released() {
                self.hold(connection, token, record);
            }
        }
    }

    /// Notes that a connection's call waits for record `record` to be durable.
    pub(super) fn wait_for(&mut self, record: u64, token: usize) {
        self.awaited.insert((record, token));
    }

    fn hold(&mut self, connection: &mut Connection, token: usize, record: u64) {
        if record > connection.held {
            if connection.held != 0 {
                self.held.remove(&(connection.held, token));
            }
            connection.held = record;
            self.held.insert((record, token));
        }
    }
}

impl Worker {
    /// Whether replies can be sent now that were held. If not, the worker will be woken when they can.
    pub(super) fn can_release(&self) -> bool {
        let Barrier { held, awaited } = &self.executor.barrier;
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
        while let Some(token) = next(&mut self.executor.barrier.held, released) {
            if let Some(connection) = self.connections[token].as_deref_mut()
                && connection.held != 0
                && connection.held <= released
            {
                connection.held = 0;
                list(&mut self.ready, connection, token);
            }
        }
        let durable = self.server.journal.durable();
        while let Some(token) = next(&mut self.executor.barrier.awaited, durable) {
            if let Some(connection) = self.connections[token].as_deref_mut()
                && let Some((record, _)) = connection.blocked.as_ref().and_then(|blocked| blocked.durable)
                && record <= durable
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
