//! Tests of the keyspace: entries, expiry, eviction, iteration, events, the journal and snapshots.

#![allow(clippy::unwrap_used, reason = "the whole program is a test")]

mod cold_values;
mod defragmentation;
mod elements;
mod events;
mod eviction_quality;
mod expiry;
mod journal;
mod keyspace_model;
mod lending;
mod rebuild;
mod scan;
mod slots;
mod snapshots;
mod stress;

mod support {
    pub(crate) mod commands;
    #[path = "../../commands/support/words.rs"]
    pub(crate) mod words;
}
