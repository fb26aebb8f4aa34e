//! The topology of a cluster: its nodes, and the owner of each slot.
//!
//! This crate contains data structures and rules only: no I/O, no threads, no clocks. The server reads and writes the
//! file of the topology, and decides with it which commands it runs.
//!
//! Slots, hash tags and the form of node descriptions are those of Redis Cluster:
//! <https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/>.

pub mod node;
pub mod slots;
pub mod topology;
