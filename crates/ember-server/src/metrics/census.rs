//! A census of the keyspace: the counts of its databases, and of watched and awaited keys, in one walk over all shards.

use std::collections::HashSet;
use std::sync::Arc;

use emberkv_core::keyspace::SHARDS;
use emberkv_core::observers::{Observers, Waiter};

use crate::server::Server;

/// The number of keys of a database that are sampled for its mean time to live.
const TTL_SAMPLES: i64 = 1000;

/// The maximum number of keys of one shard that are sampled for the mean time to live.
const TTL_SAMPLES_OF_SHARD: usize = 64;

/// The counts of keys in a database.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DatabaseCounts {
    pub(crate) keys: usize,
    /// The number of keys that expire.
    pub(crate) volatile: usize,
    /// The number of keys whose values have elements that expire.
    pub(crate) expiring: usize,
    ttl_sum_ms: i64,
    sampled: i64,
}

impl DatabaseCounts {
    /// Returns the mean time to live in ms of the keys that expire, estimated from a sample; 0 if no key expires.
    pub(crate) fn mean_ttl_ms(&self) -> i64 {
        self.ttl_sum_ms / self.sampled.max(1)
    }
}

/// The counts of all databases; each shard is counted at a different moment.
#[derive(Debug, Default)]
pub(crate) struct Census {
    /// The counts of each database, indexed by database number.
    pub(crate) databases: Vec<DatabaseCounts>,
    pub(crate) watching_clients: usize,
    pub(crate) watched_keys: usize,
    /// The number of keys that blocked clients wait for.
    pub(crate) awaited_keys: usize,
    /// The number of awaited keys with a waiter that is also notified when the key is removed.
    pub(crate) awaited_keys_or_none: usize,
    /// The number of keys that clients may have cached.
    pub(crate) tracked_keys: usize,
    /// The number of copies of these keys that clients may have cached.
    pub(crate) tracked_copies: usize,
}

impl Census {
    /// Walks all shards, one at a time, and locks only the shards whose published counts do not suffice. O(shards +
    /// observed keys).
    pub(crate) fn of(server: &Server, now_ms: i64) -> Census {
        let keyspace = &server.keyspace;
        let mut census =
            Census { databases: vec![DatabaseCounts::default(); keyspace.databases()], ..Census::default() };
        let mut watches = HashSet::new();
        for shard in 0..SHARDS {
            let counts = keyspace.counts(shard);
            let first = &mut census.databases[0];
            if counts.is_all && (counts.volatile == 0 || first.sampled >= TTL_SAMPLES) {
                first.keys += counts.keys;
                first.volatile += counts.volatile;
                continue;
            }
            let data = keyspace.lock(shard);
            for (index, counts) in census.databases.iter_mut().take(data.databases_used()).enumerate() {
                let database = data.database(index);
                counts.keys += database.table().len();
                counts.volatile += database.volatile();
                counts.expiring += database.expiring();
                if database.volatile() > 0 && counts.sampled < TTL_SAMPLES {
                    let entries = database.table().iter().take(TTL_SAMPLES_OF_SHARD);
                    for expire_at_ms in entries.filter_map(|entry| entry.expire_at_ms()) {
                        counts.ttl_sum_ms = counts.ttl_sum_ms.saturating_add((expire_at_ms - now_ms).max(0));
                        counts.sampled += 1;
                    }
                }
            }
            let Some(observers) = data.observers() else { continue };
            for watches_of_key in observers.all_watches() {
                census.watched_keys += 1;
                watches.extend(watches_of_key.iter().map(Arc::as_ptr));
            }
            census.count_observed(server, observers);
        }
        census.watching_clients = watches.len();
        census
    }

    fn count_observed(&mut self, server: &Server, observers: &Observers) {
        let ends_without_key =
            |waiter: &Arc<Waiter>| server.registry.get(waiter.command).spec.name == "xreadgroup";
        for waiters in observers.all_waiters() {
            self.awaited_keys += 1;
            self.awaited_keys_or_none += usize::from(waiters.iter().any(ends_without_key));
        }
        self.tracked_keys += observers.tracked_keys();
        self.tracked_copies += observers.tracked_copies();
    }
}
