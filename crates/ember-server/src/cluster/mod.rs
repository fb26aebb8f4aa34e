//! This server as a node of a cluster: the file of the topology, and changes of the topology.
//!
//! The topology is fixed: nodes exchange no messages, so each node knows what its file says. A node that knows no other
//! node assigns slots to itself.

pub(crate) mod changing;
pub(crate) mod starting;
mod store;
