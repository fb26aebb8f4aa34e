//! Sends marked live queries to the workers that evaluate them.

use std::sync::Arc;
use std::time::Instant;

use emberkv_core::keyspace::SHARDS;
use emberkv_core::live_query::LiveQuery;
use emberkv_core::observers::Observers;

use super::Executor;
use crate::clients::mailbox::Message;
use crate::clients::watchers::Marked;
use crate::server::Server;

impl Executor {
    /// Sends the live queries that the last command has marked to their owners. The caller holds no lock.
    pub(super) fn send_marked(&mut self) {
        let mut queries = std::mem::take(&mut self.turn.notices.queries);
        queries.drain(..).for_each(|query| self.send_to_owner(query));
        self.turn.notices.queries = queries;
    }

    /// Sends a marked query to its owner. The caller holds no lock.
    pub(crate) fn send_to_owner(&mut self, query: Arc<LiveQuery>) {
        let (owner, since) = (query.owner(), self.clock);
        let marked = Marked { query, since };
        if owner == self.index {
            self.marked.push(marked);
        } else {
            self.server.workers[owner].mailbox.send(Message::Evaluate(marked));
        }
    }
}

impl Server {
    /// Marks all live queries for evaluation, because loading may have changed keys without notifications. The caller
    /// holds no lock. O(shards + queries).
    pub(crate) fn renew_queries(&self) {
        for shard in 0..SHARDS {
            let data = self.keyspace.lock(shard);
            let queries: Vec<Arc<LiveQuery>> =
                data.observers().into_iter().flat_map(Observers::all_queries).cloned().collect();
            // A query that was already marked may have been dropped with the notices of the loading thread.
            queries.iter().for_each(|query| _ = query.mark());
            drop(data);
            let since = Instant::now();
            for query in queries {
                self.workers[query.owner()].mailbox.send(Message::Evaluate(Marked { query, since }));
            }
        }
    }
}
