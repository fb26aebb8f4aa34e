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

/// What a worker's connections wait for.
#[derive(Default)]
pub(crate) struct Barrier {
    /// Numbers of records, with the token of the connection that waits for it.
    held: BTreeSet<(u64, usize)>,
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
            if config.appendfsync == AppendFsync::Always && record > server.journal.durable() {
                self.hold(connection, token, record);
            }
        }
    }

    /// Notes that a connection is to be looked at when record `record` is durable: its call waits for that.
    pub(super) fn wait_for(&mut self, record: u64, token: usize) {
        self.held.insert((record, token));
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
        let Some(&(first, _)) = self.executor.barrier.held.first() else { return false };
        self.server.journal.wait_for_more(self.executor.index);
        first <= self.server.journal.durable()
    }

    /// Lets those connections go on whose replies need not be held any more.
    pub(super) fn release_held(&mut self) {
        let durable = self.server.journal.durable();
        while let Some(&(record, token)) = self.executor.barrier.held.first()
            && record <= durable
        {
            self.executor.barrier.held.pop_first();
            let Some(connection) = self.connections[token].as_deref_mut() else { continue };
            if connection.held == record {
                connection.held = 0;
                list(&mut self.ready, connection, token);
            }
            let waits_for = connection.blocked.as_ref().and_then(|blocked| blocked.durable);
            if waits_for.is_some_and(|(awaited, _)| awaited == record) {
                let client_id = connection.client.view.id;
                self.end_waiting(token, client_id, Ending::Durable);
            }
        }
    }
}
