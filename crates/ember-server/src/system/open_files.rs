//! The limit of open files, which bounds the number of connections.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files open besides connections: listeners, event queues, the log, files being written.
const RESERVED: u64 = 64;

/// Raises the limit so that `wanted` clients can be connected; returns how many of them can.
pub(crate) fn clients_possible(wanted: u32) -> u32 {
    let needed = u64::from(wanted) + RESERVED;
    let limit = getrlimit(Resource::Nofile);
    let is_enough = |current: Option<u64>| current.is_none_or(|current| current >= needed);
    if is_enough(limit.current) {
        return wanted;
    }
    // Without a privilege the maximum stays; first try to raise that too.
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
            u32::try_from(current.saturating_sub(RESERVED)).unwrap_or(u32::MAX).max(1)
        }
        _ => wanted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_clients_are_always_possible_and_more_than_the_kernel_allows_never() {
        assert_eq!(clients_possible(1), 1);
        assert!(clients_possible(u32::MAX) < u32::MAX);
    }
}
