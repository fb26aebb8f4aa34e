//! The heap of the process: what the allocator and the system say of it.

use super::proc_file;

/// What the allocator says about itself, in bytes; zeros for an allocator that says nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Allocator {
    /// Asked for by the program.
    pub(crate) allocated: u64,
    /// In pages that hold what was asked for.
    pub(crate) active: u64,
    /// In pages that the allocator needs for itself.
    pub(crate) metadata: u64,
    /// In the machine's memory; what is mapped by itself counts as a whole, whether it was written or not.
    pub(crate) resident: u64,
    /// Address space kept though its pages were given back.
    pub(crate) retained: u64,
}

impl Allocator {
    /// In pages without anything allocated, which have still to be given back.
    pub(crate) fn unused(&self) -> u64 {
        self.resident.saturating_sub(self.active + self.metadata)
    }
}

/// The name of the allocator.
pub(crate) const ALLOCATOR_NAME: &str = if cfg!(feature = "jemalloc") { "jemalloc-5.3.1" } else { "system" };

/// What the allocator says now.
#[cfg(feature = "jemalloc")]
pub(crate) fn allocator() -> Allocator {
    use tikv_jemalloc_ctl::{epoch, stats};

    use super::allocator::mapped_bytes;

    // The numbers are those of the last epoch: begin a new one. Should that fail they are old, no more.
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

/// The system's allocator says nothing.
#[cfg(not(feature = "jemalloc"))]
pub(crate) fn allocator() -> Allocator {
    Allocator::default()
}

/// Gives pages without anything allocated back to the system.
///
/// # Errors
/// What the allocator says.
#[cfg(feature = "jemalloc")]
pub(crate) fn purge() -> Result<(), String> {
    use tikv_jemalloc_ctl::{Access, AsName};

    let arenas: u32 = b"arenas.narenas\0".name().read().map_err(|error| error.to_string())?;
    for arena in 0..arenas {
        // A decay time of zero gives all dirty pages back at once. An arena that no thread has used does not exist.
        let name = format!("arena.{arena}.dirty_decay_ms\0");
        let before: Result<isize, _> = name.name().update(0);
        if let Ok(before) = before {
            name.name().write(before).map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

/// The system's allocator decides by itself.
///
/// # Errors
/// None.
#[cfg(not(feature = "jemalloc"))]
pub(crate) fn purge() -> Result<(), String> {
    Ok(())
}

/// The allocator's own report, in its own words.
#[cfg(feature = "jemalloc")]
pub(crate) fn allocator_statistics() -> String {
    let mut report = Vec::new();
    match tikv_jemalloc_ctl::stats_print::stats_print(&mut report, Default::default()) {
        Ok(()) => String::from_utf8_lossy(&report).into_owned(),
        Err(error) => format!("the allocator does not report: {error}\n"),
    }
}

/// The system's allocator says nothing.
#[cfg(not(feature = "jemalloc"))]
pub(crate) fn allocator_statistics() -> String {
    "Stats not supported for the current allocator".to_owned()
}

/// What the process has in the machine's memory, where the system tells.
pub(crate) fn resident_bytes() -> Option<u64> {
    Some(statm()?.0)
}

/// The same without pages of files: those the system gives back when it needs memory.
pub(crate) fn anonymous_bytes() -> Option<u64> {
    let (resident, of_files) = statm()?;
    Some(resident.saturating_sub(of_files))
}

/// What is resident, and how much of that is of files or shared.
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
    fn the_system_and_the_allocator_tell() {
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
