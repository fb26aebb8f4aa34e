//! Data structures and decisions that servers share, without sockets, threads or clocks.

pub mod replication;
