//! Replication between ember, redis-server and valkey-server.

#![allow(clippy::unwrap_used, reason = "the whole program is a test")]

mod busy;
mod chains;
mod cuts;
mod effects;
mod encrypted;
mod failover;
mod fields;
mod matrix;
mod older;
mod replica;
mod restarts;
mod sentinel;
