//! Huge pages: a background thread replaces the small pages of memory that is in use.
//!
//! Lookups of random keys among a million are bound by address translation; huge pages reduce the user time of a GET by
//! 20 %. But if a huge page is allocated when memory is first accessed, the accessing worker clears 2 MiB at once,
//! which delays all of its clients: the p99 of LPUSH was five times that of redis-server. So memory is first allocated
//! in small pages. This thread searches for aligned blocks of the size of a huge page whose small pages are nearly all
//! in use, and requests that the kernel collapse them (`MADV_COLLAPSE`, Linux 6.1). Blocks with fewer used pages retain
//! their small pages.
//!
//! The thread delays workers as little as possible: it walks in short steps, and while the workers occupy all processors
//! it collapses rarely (`docs/decisions/huge-pages.md`).
//!
//! `/proc/self/pagemap` reports which pages are in use, but not which are huge. So the thread records collapsed blocks
//! as long as it finds them in use. After a minute it discards these records, because parts of a block may have been
//! freed and used again since.
//!
//! On older kernels, the thread only advises the kernel to use huge pages in large mappings, even at the first access.
//! If the system provides huge pages to every process (`enabled` is `always`), it does so at the first access, and few
//! blocks remain to collapse.

use std::collections::HashSet;
use std::convert::Infallible;
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::thread;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use super::allocator::{advise, collapse, knows_collapse};

/// The minimum pause between two walks over all memory. It doubles after each walk that finds nothing to collapse.
const PAUSE_MIN: Duration = Duration::from_millis(200);

/// The maximum pause after walks that find nothing to collapse.
const IDLE_PAUSE_MAX: Duration = Duration::from_secs(3);

/// The pause after a walk as a multiple of its duration, up to [`LONG_PAUSE`], so that the thread takes 1 % of a
/// processor.
const PAUSE_FACTOR: u32 = 100;

/// The pause after a long walk over much memory, and when the kernel has no huge page available.
const LONG_PAUSE: Duration = Duration::from_secs(10);

/// The fraction of a block's small pages that may be missing from memory: one in this many. A collapse brings pages
/// that were returned back into memory, so this limit bounds its cost.
const MISSING_SHARE: usize = 16;

/// The time after which a walk pauses. A worker may share the processor, and if both have work, the kernel switches
/// between them only every few milliseconds; it switches at once to a worker when this thread sleeps.
const STEP: Duration = Duration::from_micros(100);

/// The pause after a step as a multiple of its duration.
const STEP_PAUSE_FACTOR: u32 = 9;

/// The pause after a collapse as a multiple of its duration. A collapse delays a worker that shares the processor, and
/// every thread that accesses new memory, and it cannot be divided. So collapses take at most 20 % of the time while
/// processors are idle.
const COLLAPSE_PAUSE_FACTOR: u32 = 4;

/// The same factor while the workers occupy all processors that they can use. Collapses then take 0.5 % of the time, and
/// so delay fewer than one request in a hundred.
const BUSY_PAUSE_FACTOR: u32 = 200;

/// The share of the processors' time, in percent, from which on they count as occupied.
const BUSY_PERCENT: u32 = 75;

/// The minimum interval over which that share is measured.
const BUSY_INTERVAL: Duration = Duration::from_millis(20);

/// The time for which attempted blocks are recorded.
const REMEMBERED: Duration = Duration::from_secs(60);

/// The minimum size in bytes of mappings for which older kernels are advised: larger than the stack of any thread.
const ADVISED_MIN_BYTES: usize = 16 << 20;

/// The bit of an entry of `/proc/self/pagemap` for pages that are in memory.
const PRESENT: u64 = 1 << 63;

/// The bit for pages that only this process maps, which excludes the zero page to which memory that was only read
/// refers.
const EXCLUSIVE: u64 = 1 << 56;

/// The bit for pages that belong to a file or are shared.
const OF_FILE: u64 = 1 << 61;

/// Starts the thread, unless the system has disabled huge pages or does not report their state. The server has
/// `workers` workers.
pub(crate) fn start(workers: usize) {
    let Some(finder) = Finder::new(Occupation::of(workers)) else { return };
    let run = move || {
        let Err(error) =
            if knows_collapse() { finder.collapse_used_blocks() } else { finder.advise_mappings() };
        tracing::info!("memory does not use huge pages: {error}");
    };
    // If the thread cannot be started, only speed is lost.
    let _ = thread::Builder::new().name("huge-pages".to_owned()).spawn(run);
}

/// The state of the thread, which finds blocks and collapses them.
struct Finder {
    page_bytes: usize,
    huge_bytes: usize,
    pagemap: File,
    /// Blocks for which a collapse was attempted, and which were in use at each check since then.
    tried: HashSet<usize>,
    /// A buffer for the `pagemap` entries of one block.
    entries: Vec<u8>,
    /// The start of the current step.
    step_began: Instant,
    /// The duration of the steps of the current walk, without pauses.
    walked: Duration,
    occupation: Occupation,
}

/// Measures whether this process occupies the processors that it can use.
struct Occupation {
    /// The number of processors that the workers can use.
    processors: u32,
    /// The start of the current interval, and the processor time of the process until then.
    since: (Instant, Duration),
    /// Whether the processors were occupied in the last interval.
    is_busy: bool,
}

impl Occupation {
    fn of(workers: usize) -> Occupation {
        let processors = thread::available_parallelism().map_or(1, usize::from).min(workers).max(1);
        Occupation {
            processors: processors as u32,
            since: (Instant::now(), processor_time()),
            is_busy: false,
        }
    }

    /// Returns whether the processors are occupied.
    fn is_busy(&mut self) -> bool {
        let (begun, used_before) = self.since;
        let interval = begun.elapsed();
        if interval >= BUSY_INTERVAL {
            let used = processor_time();
            self.is_busy = is_occupied(used.saturating_sub(used_before), interval, self.processors);
            self.since = (Instant::now(), used);
        }
        self.is_busy
    }
}

/// Returns the processor time that this process has used.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

/// Returns whether `used` processor time in an interval occupies this number of processors.
fn is_occupied(used: Duration, interval: Duration, processors: u32) -> bool {
    used * 100 >= interval * processors * BUSY_PERCENT
}

impl Finder {
    fn new(occupation: Occupation) -> Option<Finder> {
        const FOLDER: &str = "/sys/kernel/mm/transparent_hugepage";
        let enabled = fs::read_to_string(format!("{FOLDER}/enabled")).ok()?;
        if enabled.contains("[never]") {
            return None;
        }
        let huge_bytes = fs::read_to_string(format!("{FOLDER}/hpage_pmd_size")).ok()?.trim().parse().ok()?;
        let page_bytes = rustix::param::page_size();
        let pagemap = File::open("/proc/self/pagemap").ok()?;
        let entries = vec![0; huge_bytes / page_bytes * size_of::<u64>()];
        Some(Finder {
            page_bytes,
            huge_bytes,
            pagemap,
            tried: HashSet::new(),
            entries,
            step_began: Instant::now(),
            walked: Duration::ZERO,
            occupation,
        })
    }

    /// Walks over the memory of the process and collapses blocks, forever.
    fn collapse_used_blocks(mut self) -> io::Result<Infallible> {
        let mut remembers_since = Instant::now();
        let mut pause = PAUSE_MIN;
        loop {
            (self.step_began, self.walked) = (Instant::now(), Duration::ZERO);
            let mut found_any = false;
            for block in self.blocks()? {
                if !self.is_used(block)? {
                    self.tried.remove(&block);
                } else if self.tried.insert(block) {
                    found_any = true;
                    self.collapse(block);
                }
                self.end_step_if_due();
            }
            self.walked += self.step_began.elapsed();
            if remembers_since.elapsed() > REMEMBERED {
                self.tried.clear();
                remembers_since = Instant::now();
            }
            pause = if found_any { PAUSE_MIN } else { (pause * 2).min(IDLE_PAUSE_MAX) };
            thread::sleep(pause.max((self.walked * PAUSE_FACTOR).min(LONG_PAUSE)));
        }
    }

    /// Pauses if the current step has taken its time.
    fn end_step_if_due(&mut self) {
        let duration = self.step_began.elapsed();
        if duration >= STEP {
            self.walked += duration;
            thread::sleep(duration * STEP_PAUSE_FACTOR);
            self.step_began = Instant::now();
        }
    }

    /// Advises the kernel to use huge pages in large mappings, including new ones, forever.
    fn advise_mappings(self) -> io::Result<Infallible> {
        loop {
            let maps = fs::read_to_string("/proc/self/maps")?;
            for mapping in maps.lines().filter_map(private_mapping) {
                if mapping.len() >= ADVISED_MIN_BYTES {
                    advise(mapping.start, mapping.len());
                }
            }
            thread::sleep(PAUSE_MIN);
        }
    }

    /// Returns the addresses of all blocks in the private, anonymous mappings of this process.
    fn blocks(&self) -> io::Result<Vec<usize>> {
        let maps = fs::read_to_string("/proc/self/maps")?;
        let blocks = maps.lines().filter_map(private_mapping).flat_map(|mapping| {
            let first = mapping.start.next_multiple_of(self.huge_bytes);
            let whole = mapping.end.saturating_sub(first) / self.huge_bytes;
            (0..whole).map(move |number| first + number * self.huge_bytes)
        });
        Ok(blocks.collect())
    }

    /// Whether nearly all small pages of a block are in memory and mapped only by this process.
    fn is_used(&mut self, block: usize) -> io::Result<bool> {
        let offset = block / self.page_bytes * size_of::<u64>();
        self.pagemap.read_exact_at(&mut self.entries, offset as u64)?;
        let is_used = |entry: u64| entry & (PRESENT | EXCLUSIVE | OF_FILE) == PRESENT | EXCLUSIVE;
        let (entries, _) = self.entries.as_chunks();
        let missing = entries.iter().filter(|&&entry| !is_used(u64::from_ne_bytes(entry))).count();
        Ok(missing <= entries.len() / MISSING_SHARE)
    }

    /// Collapses a block, then pauses. A new step begins.
    fn collapse(&mut self, block: usize) {
        self.walked += self.step_began.elapsed();
        let before = Instant::now();
        match collapse(block, self.huge_bytes) {
            Ok(()) => {
                let duration = before.elapsed();
                thread::sleep(duration * COLLAPSE_PAUSE_FACTOR);
                // While the processors are occupied, the pause continues in parts, each long enough to measure that.
                let busy_until = before + duration * (1 + BUSY_PAUSE_FACTOR);
                while self.occupation.is_busy() && Instant::now() < busy_until {
                    thread::sleep(BUSY_INTERVAL);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::OutOfMemory => thread::sleep(LONG_PAUSE),
            // The block has changed since the check, or some of its pages cannot be moved at present.
            Err(_) => {}
        }
        self.step_began = Instant::now();
    }
}

/// Returns the address range of a mapping from a line of `/proc/self/maps`; `None` unless it is writable, private,
/// anonymous and not a stack.
fn private_mapping(line: &str) -> Option<Range<usize>> {
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let (permissions, inode) = (fields.next()?, fields.nth(2)?);
    if !permissions.starts_with("rw")
        || !permissions.ends_with('p')
        || inode != "0"
        || fields.next().is_some()
    {
        return None;
    }
    let address = |text| usize::from_str_radix(text, 16).ok();
    Some(address(start)?..address(end)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_mappings_are_distinguished_from_all_others() {
        let line =
            |permissions: &str, rest: &str| format!("7f0000000000-7f0000200000 {permissions} 0 00:00 {rest}");
        assert_eq!(private_mapping(&line("rw-p", "0 ")), Some(0x7f00_0000_0000..0x7f00_0020_0000));
        for (permissions, rest) in [("r--p", "0"), ("rw-s", "0"), ("rw-p", "77 /file"), ("rw-p", "0 [stack]")]
        {
            assert_eq!(private_mapping(&line(permissions, rest)), None, "{permissions} {rest}");
        }
        assert_eq!(private_mapping("nonsense"), None);
    }

    #[test]
    fn processors_are_occupied_from_three_quarters_of_their_time_on() {
        let ms = Duration::from_millis;
        for (used, interval, processors, expected) in [
            (75, 100, 1, true),
            (74, 100, 1, false),
            (75, 100, 2, false),
            (150, 100, 2, true),
            (0, 20, 1, false),
        ] {
            assert_eq!(is_occupied(ms(used), ms(interval), processors), expected, "{used} of {interval}");
        }
    }

    #[test]
    fn used_blocks_are_collapsed_unchanged_and_partial_ones_are_skipped() {
        let Some(mut finder) = Finder::new(Occupation::of(1)) else { return };
        let (huge, page) = (finder.huge_bytes, finder.page_bytes);
        // The memory contains three whole blocks at any address. Other tests may have used and freed it, so it may be
        // resident.
        let mut used_before: Vec<Vec<u8>> = Vec::new();
        let (mut memory, first) = loop {
            let memory: Vec<u8> = Vec::with_capacity(4 * huge);
            let first = memory.as_ptr().addr().next_multiple_of(huge);
            if !finder.is_used(first + 2 * huge).unwrap() {
                break (memory, first);
            }
            used_before.push(memory);
        };
        let from = first - memory.as_ptr().addr();
        // Two blocks are in use completely, and the third by three quarters.
        memory.resize(from + 3 * huge - huge / 4, 0);
        for (number, bytes) in memory[from..].chunks_mut(page).enumerate() {
            bytes.fill(number as u8);
        }
        let blocks = finder.blocks().unwrap();
        let used: Vec<bool> = (0..3).map(|block| finder.is_used(first + block * huge).unwrap()).collect();
        assert!((0..3).all(|block| blocks.contains(&(first + block * huge))));
        assert_eq!(used, [true, true, false]);
        if knows_collapse() {
            finder.collapse(first);
        }
        let is_kept = |(number, bytes): (usize, &[u8])| bytes.iter().all(|&byte| byte == number as u8);
        assert!(memory[from..].chunks(page).enumerate().all(is_kept));
        assert!(finder.is_used(first).unwrap());
    }
}
