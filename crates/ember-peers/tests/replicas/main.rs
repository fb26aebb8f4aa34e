//! Replication between ember and redis-server.

#![allow(clippy::unwrap_used, reason = "the whole program is a test")]

mod replica;
