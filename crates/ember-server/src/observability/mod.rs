//! Counters and logs for operators of the server.

pub(crate) mod command_log;
pub(crate) mod hot_keys;
pub(crate) mod latency;
pub(crate) mod over_limit;
pub(crate) mod own_traffic;
pub(crate) mod rates;
pub(crate) mod stats;
