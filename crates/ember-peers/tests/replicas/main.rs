//! Replication between ember, redis-server and valkey-server.

#![allow(clippy::unwrap_used, reason = "the whole program is a test")]

mod failover;
mod replica;
mod sentinel;
