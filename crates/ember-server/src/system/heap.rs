//! The heap of the process, as reported by the allocator and the system.

use super::proc_file;

/// The allocator's statistics in bytes; zeros if it has none.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Allocator {
    /// Bytes allocated by the program.
    pub(crate) allocated: u64,
    /// Bytes in pages that contain allocations.
    pub(crate) active: u64,
    /// Bytes of the allocator's own data.
    pub(crate) metadata: u64,
    /// Bytes in physical memory. Direct mappings count with their full size, even if they are not completely written.
    pub(crate) resident: u64,
    /// Bytes of address space that the allocator retains although their pages were returned.
    pub(crate) retained: u64,
}

impl Allocator {
    /// Returns the bytes in pages that contain no allocations and are not returned yet.
    pub(crate) fn unused(&self) -> u64 {
        self.resident.saturating_sub(self.active + self.metadata)
    }
}

/// The name of the allocator.
pub(crate) const ALLOCATOR_NAME: &str = if cfg!(feature = "jemalloc") { "jemalloc-5.3.1" } else { "system" };

/// Returns the allocator's current statistics.
#[cfg(feature = "jemalloc")]
pub(crate) fn allocator() -> Allocator {
    use tikv_jemalloc_ctl::{epoch, stats};

    use super::allocator::mapped_bytes;

    // The statistics are those of the last epoch, so a new one is started. If that fails, the figures are only
    // outdated.
    let _ = epoch::advance();
    let bytes = |read: Result<usize, tikv_jemalloc_ctl::Error>| read.unwrap_or(0) as u64;
    let mapped = mapped_bytes() as u64;
    Allocator {
        allocated: bytes(stats::allocated::read()) + mapped,
        active: bytes(stats::active::read()) + mapped,
        metadata: bytes(stats::metadata::read()),
        resident: bytes(stats::resident::read()) + mapped,
        retained: bytes(stats::retained::read()),
    }
}

/// Returns zeros, because the system's allocator has no statistics.
#[cfg(not(feature = "jemalloc"))]
pub(crate) fn allocator() -> Allocator {
    Allocator::default()
}

/// Returns pages without allocations to the system.
///
/// # Errors
/// Returns the error of the allocator.
#[cfg(feature = "jemalloc")]
pub(crate) fn purge() -> Result<(), String> {
    use tikv_jemalloc_ctl::{Access, AsName};

    let arenas: u32 = b"arenas.narenas\0".name().read().map_err(|error| error.to_string())?;
    for arena in 0..arenas {
        // A decay time of zero returns all dirty pages at once. Arenas that no thread has used do not exist, so errors
        // are ignored.
        let name = format!("arena.{arena}.dirty_decay_ms\0");
        let before: Result<isize, _> = name.name().update(0);
        if let Ok(before) = before {
            name.name().write(before).map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

/// Does nothing, because the system's allocator returns pages on its own.
///
/// # Errors
/// Never returns an error.
#[cfg(not(feature = "jemalloc"))]
pub(crate) fn purge() -> Result<(), String> {
    Ok(())
}

/// Returns the allocator's report as text.
#[cfg(feature = "jemalloc")]
pub(crate) fn allocator_statistics() -> String {
    let mut report = Vec::new();
    match tikv_jemalloc_ctl::stats_print::stats_print(&mut report, Default::default()) {
        Ok(()) => String::from_utf8_lossy(&report).into_owned(),
        Err(error) => format!("the allocator does not report: {error}\n"),
    }
}

/// Returns a message, because the system's allocator has no report.
#[cfg(not(feature = "jemalloc"))]
pub(crate) fn allocator_statistics() -> String {
    "Stats not supported for the current allocator".to_owned()
}

/// Returns the physical memory of the process in bytes, if the system reports it.
pub(crate) fn resident_bytes() -> Option<u64> {
    Some(statm()?.0)
}

/// Returns the physical memory in bytes without file pages, which the system reclaims when it needs memory.
pub(crate) fn anonymous_bytes() -> Option<u64> {
    let (resident, of_files) = statm()?;
    Some(resident.saturating_sub(of_files))
}

/// Returns the resident bytes, and how many of them belong to files or are shared.
fn statm() -> Option<(u64, u64)> {
    let line = proc_file::read_line("/proc/self/statm")?;
    let mut numbers = line.split(' ').skip(1).map(|pages| pages.parse::<u64>());
    let mut bytes = || Some(numbers.next()?.ok()? * rustix::param::page_size() as u64);
    Some((bytes()?, bytes()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_and_the_allocator_report_memory() {
        let resident = resident_bytes().unwrap();
        assert!(resident > 100_000);
        assert!(anonymous_bytes().is_some_and(|bytes| bytes > 10_000 && bytes < resident));
        assert_eq!(purge(), Ok(()));
        assert!(!allocator_statistics().is_empty());
        #[cfg(feature = "jemalloc")]
        {
            let now = allocator();
            assert!(now.unused() < now.resident);
        }
    }
}
