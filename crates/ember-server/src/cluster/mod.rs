//! This server as a node of a cluster: the files of the topology, and changes of the topology.
//!
//! A node in no group assigns slots to itself. The nodes of a group agree on changes (`bus`, and the crate
//! `ember-cluster`); each stores the topology on which they have agreed.

pub(crate) mod bus;
pub(crate) mod calls;
pub(crate) mod changing;
mod checked_lines;
mod files;
pub(crate) mod shard;
pub(crate) mod starting;
mod store;
