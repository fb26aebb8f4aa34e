//! The limit of open files, which bounds the number of connections.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The number of open files reserved in addition to connections: listeners, event queues, the log, files being written.
const RESERVED: u64 = 64;

/// The number of open files of a browser's stream in addition to its client: the browser's connection, and the other
/// end of the client's socket pair.
const FILES_OF_A_STREAM: u64 = 2;

/// Raises the limit of open files for `wanted` clients and `streams` browser streams. Returns the number of clients
/// that the limit allows.
pub(crate) fn clients_possible(wanted: u32, streams: u64) -> u32 {
    let reserved = RESERVED + streams * FILES_OF_A_STREAM;
    let needed = u64::from(wanted) + reserved;
    let limit = getrlimit(Resource::Nofile);
    let is_enough = |current: Option<u64>| current.is_none_or(|current| current >= needed);
    if is_enough(limit.current) {
        return wanted;
    }
    // Raising the hard limit requires a privilege, so it is tried first; otherwise the limit is raised to the hard
    // limit.
    let raised_maximum =
        Rlimit { current: Some(needed), maximum: limit.maximum.map(|maximum| maximum.max(needed)) };
    let to_maximum =
        Rlimit { current: limit.maximum.map(|maximum| maximum.min(needed)), maximum: limit.maximum };
    if setrlimit(Resource::Nofile, raised_maximum).is_err()
        && setrlimit(Resource::Nofile, to_maximum).is_err()
    {
        tracing::debug!("the limit of open files cannot be raised");
    }
    match getrlimit(Resource::Nofile).current {
        Some(current) if current < needed => {
            u32::try_from(current.saturating_sub(reserved)).unwrap_or(u32::MAX).max(1)
        }
        _ => wanted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_clients_are_always_possible_and_more_than_the_kernel_allows_never() {
        assert_eq!(clients_possible(1, 0), 1);
        assert!(clients_possible(u32::MAX, 0) < u32::MAX);
    }
}
