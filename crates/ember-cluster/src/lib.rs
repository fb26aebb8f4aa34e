//! What several servers agree on: data structures and decisions without sockets, threads or clocks.

pub mod replication;
