//! Replication: this server's data on others, and the data of another server here.

pub(crate) mod failover;
pub(crate) mod link;
pub(crate) mod primary;
pub(crate) mod shutdown;
