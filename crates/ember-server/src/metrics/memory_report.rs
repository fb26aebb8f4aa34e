//! What memory the process uses: what the allocator says, what the system says, what the keyspace counts.

use std::fs;
use std::sync::LazyLock;
use std::sync::atomic::Ordering;

use super::system_figures::SystemFigures;
use crate::server::Server;
use crate::system::heap::Allocator;

/// What `INFO memory` and `MEMORY` tell, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemoryReport {
    /// Allocated now, as far as the server counts what has changed since the allocator was asked.
    pub(crate) allocated: u64,
    /// What the allocator and the system said, at most 100 ms ago.
    pub(crate) allocator: Allocator,
    /// Of the whole process in the machine's memory.
    pub(crate) resident: u64,
    /// The most that was ever allocated, as far as looked at.
    pub(crate) peak: u64,
    /// Allocated when the server began to serve.
    pub(crate) startup: u64,
    /// Entries, and what finds and expires them.
    pub(crate) dataset: u64,
    /// What clients make the server keep.
    pub(crate) clients: u64,
    /// Of that, for replicas.
    pub(crate) replicas: u64,
    /// What a snapshot under way holds back.
    pub(crate) held_back: u64,
}

impl MemoryReport {
    /// The state now.
    pub(crate) fn of(server: &Server) -> MemoryReport {
        let figures = SystemFigures::recent(server);
        let dataset = server.keyspace.used_bytes() as u64;
        let is_told = figures.allocator.allocated > 0;
        let allocated = if is_told { figures.allocated_now(server) } else { dataset };
        MemoryReport {
            allocated,
            allocator: Allocator {
                allocated: if is_told { figures.allocator.allocated } else { dataset },
                ..figures.allocator
            },
            resident: figures.resident.unwrap_or(figures.allocator.resident),
            peak: note_peak(server, allocated),
            startup: server.startup_memory_bytes.load(Ordering::Relaxed),
            dataset,
            clients: server.client_memory() + server.push_memory(),
            replicas: server.clients.replica_memory(),
            held_back: server.keyspace.held_back().bytes() as u64,
        }
    }

    /// Allocated for anything but the data.
    pub(crate) fn overhead(&self) -> u64 {
        self.allocated.saturating_sub(self.dataset)
    }

    /// What clients make the server keep that are no replicas.
    pub(crate) fn other_clients(&self) -> u64 {
        self.clients.saturating_sub(self.replicas)
    }

    /// Allocated for what `maxmemory` does not limit: neither data, nor kept for clients, nor held back by a snapshot.
    pub(crate) fn not_counted(&self) -> u64 {
        self.allocated.saturating_sub(self.dataset + self.clients + self.held_back)
    }

    /// The data's part of what was allocated since the start.
    pub(crate) fn dataset_percentage(&self) -> f64 {
        (100.0 * ratio(self.dataset, self.allocated.saturating_sub(self.startup))).min(100.0)
    }

    /// What is allocated as a part of the peak.
    pub(crate) fn peak_percentage(&self) -> f64 {
        100.0 * ratio(self.allocated, self.peak)
    }
}

/// Takes note of how much is allocated now; the most that ever was.
pub(crate) fn note_peak(server: &Server, allocated: u64) -> u64 {
    server.peak_memory_bytes.fetch_max(allocated, Ordering::Relaxed).max(allocated)
}

/// A quotient; 0 when there is nothing to divide by.
pub(crate) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// The machine's memory, where the system tells.
pub(crate) fn system_bytes() -> Option<u64> {
    static BYTES: LazyLock<Option<u64>> = LazyLock::new(|| {
        let meminfo = fs::read_to_string("/proc/meminfo").ok()?;
        let line = meminfo.lines().find(|line| line.starts_with("MemTotal:"))?;
        let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
        Some(kilobytes * 1024)
    });
    *BYTES
}

/// A number of bytes as people read it: `1.50M`.
pub(crate) fn human(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["K", "M", "G", "T", "P"];
    if bytes < 1024 {
        return format!("{bytes}B");
    }
    let mut amount = bytes as f64 / 1024.0;
    let mut unit = 0;
    while amount >= 1024.0 && unit + 1 < UNITS.len() {
        amount /= 1024.0;
        unit += 1;
    }
    format!("{amount:.2}{}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_readable() {
        for (bytes, text) in
            [(0, "0B"), (1023, "1023B"), (1024, "1.00K"), (1536 * 1024, "1.50M"), (5 << 30, "5.00G")]
        {
            assert_eq!(human(bytes), text);
        }
    }

    #[test]
    fn the_system_tells() {
        assert!(system_bytes().is_some_and(|bytes| bytes > 1 << 20));
    }
}
