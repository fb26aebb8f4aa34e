//! The memory of the process, as the allocator and the system report it, and as the keyspace counts it.

use std::fs;
use std::sync::LazyLock;
use std::sync::atomic::Ordering;

use super::system_figures::SystemFigures;
use crate::server::Server;
use crate::system::heap::Allocator;

/// The memory figures of `INFO memory` and `MEMORY`, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemoryReport {
    /// Bytes allocated now: the allocator's last figure, corrected by what the server itself has counted since.
    pub(crate) allocated: u64,
    /// The figures of the allocator, at most 100 ms old.
    pub(crate) allocator: Allocator,
    /// The resident size of the whole process.
    pub(crate) resident: u64,
    /// The maximum of the allocated bytes measured so far.
    pub(crate) peak: u64,
    /// The bytes allocated when the server began to accept commands.
    pub(crate) startup: u64,
    /// The part of `startup` that counts against `maxmemory`.
    counted_startup: u64,
    /// The memory of entries, and of the structures that find and expire them.
    pub(crate) dataset: u64,
    /// The memory of clients.
    pub(crate) clients: u64,
    /// The part of the memory of clients that replicas use.
    pub(crate) replicas: u64,
    /// The memory of values that a running snapshot keeps from being freed.
    pub(crate) held_back: u64,
}

impl MemoryReport {
    /// Collects the current figures.
    pub(crate) fn of(server: &Server) -> MemoryReport {
        let figures = SystemFigures::recent(server);
        let dataset = server.keyspace.used_bytes() as u64;
        let is_known = figures.allocator.allocated > 0;
        let allocated = if is_known { figures.allocated_now(server) } else { dataset };
        MemoryReport {
            allocated,
            allocator: Allocator {
                allocated: if is_known { figures.allocator.allocated } else { dataset },
                ..figures.allocator
            },
            resident: figures.resident.unwrap_or(figures.allocator.resident),
            peak: update_peak(server, allocated),
            startup: server.startup_memory_bytes.load(Ordering::Relaxed),
            counted_startup: server.counted_startup_bytes(server.config.snapshot().maxmemory),
            dataset,
            clients: server.client_memory() + server.push_memory(),
            replicas: server.clients.replica_memory(),
            held_back: server.keyspace.held_back().bytes() as u64,
        }
    }

    /// Returns the allocated bytes that are not part of the data set.
    pub(crate) fn overhead(&self) -> u64 {
        self.allocated.saturating_sub(self.dataset)
    }

    /// Returns the memory of clients that are not replicas.
    pub(crate) fn other_clients(&self) -> u64 {
        self.clients.saturating_sub(self.replicas)
    }

    /// Returns the allocated bytes to which `maxmemory` does not apply: all except the data set, the memory of clients,
    /// values that a snapshot keeps, and, if there is a limit, the memory of the started server.
    pub(crate) fn not_counted(&self) -> u64 {
        let counted = self.dataset + self.clients + self.held_back + self.counted_startup;
        self.allocated.saturating_sub(counted)
    }

    /// Returns the data set as a percentage of the bytes allocated since startup.
    pub(crate) fn dataset_percentage(&self) -> f64 {
        (100.0 * ratio(self.dataset, self.allocated.saturating_sub(self.startup))).min(100.0)
    }

    /// Returns the allocated bytes as a percentage of the peak.
    pub(crate) fn peak_percentage(&self) -> f64 {
        100.0 * ratio(self.allocated, self.peak)
    }
}

/// Updates the peak with the bytes allocated now; returns the peak.
pub(crate) fn update_peak(server: &Server, allocated: u64) -> u64 {
    server.peak_memory_bytes.fetch_max(allocated, Ordering::Relaxed).max(allocated)
}

/// Returns the quotient of `part` and `whole`, or 0 if `whole` is 0.
pub(crate) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Returns the memory of the machine in bytes, if the system reports it.
pub(crate) fn system_bytes() -> Option<u64> {
    static BYTES: LazyLock<Option<u64>> = LazyLock::new(|| {
        let meminfo = fs::read_to_string("/proc/meminfo").ok()?;
        let line = meminfo.lines().find(|line| line.starts_with("MemTotal:"))?;
        let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
        Some(kilobytes * 1024)
    });
    *BYTES
}

/// Formats a number of bytes for human readers, such as `1.50M`.
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
    fn the_system_reports_memory() {
        assert!(system_bytes().is_some_and(|bytes| bytes > 1 << 20));
    }
}
