//! Replication: sending this server's data to replicas, and following another server's data.

pub(crate) mod failover;
pub(crate) mod link;
pub(crate) mod primary;
pub(crate) mod shutdown;
