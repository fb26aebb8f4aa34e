//! Replication: this server's data on other servers, and another server's data here.

pub(crate) mod failover;
pub(crate) mod link;
pub(crate) mod primary;
pub(crate) mod shutdown;
