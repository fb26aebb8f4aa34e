//! The load that the dashboard itself causes, which is excluded from its figures.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of the dashboard's load since startup or `CONFIG RESETSTAT`.
#[derive(Debug, Default)]
pub(crate) struct OwnTraffic {
    connections: AtomicU64,
    commands: AtomicU64,
    input_bytes: AtomicU64,
    output_bytes: AtomicU64,
    /// HELLO commands, which an open page repeats.
    hello: AtomicU64,
    /// INFO commands, which an open page repeats.
    info: AtomicU64,
}

/// The values of the counters at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OwnCounts {
    pub(crate) connections: u64,
    pub(crate) commands: u64,
    /// The number of bytes that the server has received from the dashboard.
    pub(crate) input_bytes: u64,
    /// The number of bytes that the server has sent to the dashboard.
    pub(crate) output_bytes: u64,
    /// The number of HELLO commands among `commands`.
    pub(crate) hello: u64,
    /// The number of INFO commands among `commands`.
    pub(crate) info: u64,
}

impl OwnTraffic {
    pub(crate) fn count_connection(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a command with this name and size in bytes.
    pub(crate) fn count_command(&self, name: &[u8], bytes: usize) {
        for (known, counter) in [(&b"hello"[..], &self.hello), (b"info", &self.info)] {
            counter.fetch_add(u64::from(name.eq_ignore_ascii_case(known)), Ordering::Relaxed);
        }
        self.commands.fetch_add(1, Ordering::Relaxed);
        self.input_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Counts the bytes of a reply.
    pub(crate) fn count_reply_bytes(&self, bytes: usize) {
        self.output_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn counts(&self) -> OwnCounts {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        OwnCounts {
            connections: of(&self.connections),
            commands: of(&self.commands),
            input_bytes: of(&self.input_bytes),
            output_bytes: of(&self.output_bytes),
            hello: of(&self.hello),
            info: of(&self.info),
        }
    }

    pub(crate) fn reset(&self) {
        let sums = [&self.connections, &self.commands, &self.input_bytes, &self.output_bytes];
        for counter in sums.into_iter().chain([&self.hello, &self.info]) {
            counter.store(0, Ordering::Relaxed);
        }
    }
}
