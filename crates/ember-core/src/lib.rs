//! The keyspace: shards, entries, expiry, eviction and the commands on them.
