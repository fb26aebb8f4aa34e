//! The topology of a cluster: its nodes, the owner of each slot, and how the nodes agree on changes.
//!
//! This crate contains data structures and rules only: no I/O, no threads, no clocks. The server reads and writes the
//! files, transfers the messages between nodes, and decides with the topology which commands it runs.
//!
//! Slots, hash tags and the form of node descriptions are those of Redis Cluster:
//! <https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/>.

pub mod change;
pub mod consensus;
mod failover;
pub mod in_sync;
pub mod lease;
pub mod member;
pub mod message;
pub mod node;
pub mod slots;
pub mod topology;
