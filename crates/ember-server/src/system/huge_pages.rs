//! Huge pages for memory that is in use, which a background thread substitutes for small pages.
//!
//! Lookups of random keys among a million are bound by address translation; huge pages reduce the user time of a GET by
//! 20 %. But a huge page allocated at first touch is then cleared, 2 MiB at once, by the worker that touches it, which
//! delays everything that waits for it: p99 of LPUSH was five times that of redis-server. So memory comes in small
//! pages. This thread searches for aligned blocks of the size of a huge page whose small pages are nearly all in use,
//! and has the kernel collapse them (`MADV_COLLAPSE`, Linux 6.1). Blocks with fewer used pages keep their small pages.
//!
//! `/proc/self/pagemap` says which pages are in use. It does not say which are huge, so collapsed blocks are remembered
//! while they are seen in use, and forgotten after a minute, because parts may have been freed meanwhile and used
//! again.
//!
//! Older kernels are only advised that large mappings may have huge pages, even at first touch. If the system gives
//! huge pages to every process (`enabled` is `always`), it does so at first touch, and little is left to do.

use std::collections::HashSet;
use std::convert::Infallible;
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::thread;
use std::time::{Duration, Instant};

use super::allocator::{advise, collapse, knows_collapse};

/// The shortest pause between two walks over all memory. It doubles while there is nothing to collapse.
const PAUSE_MIN: Duration = Duration::from_millis(200);

/// The longest pause while there is nothing to collapse.
const IDLE_PAUSE_MAX: Duration = Duration::from_secs(3);

/// The pause after a walk as a multiple of its duration, up to [`LONG_PAUSE`]: the thread may take 1 % of a processor.
const PAUSE_FACTOR: u32 = 100;

/// The pause after a walk over very much memory, and when the kernel has no huge page to give.
const LONG_PAUSE: Duration = Duration::from_secs(10);

/// One in this many small pages of a block may be missing. Pages that were returned are in memory again after a
/// collapse, so this bounds its cost.
const MISSING_SHARE: usize = 16;

/// The pause after a collapse as a multiple of its duration: workers may share its processor.
const COLLAPSE_PAUSE_FACTOR: u32 = 4;

/// How long attempted blocks are remembered.
const REMEMBERED: Duration = Duration::from_secs(60);

/// The smallest mappings that older kernels are advised of: longer than any thread's stack.
const ADVISED_MIN_BYTES: usize = 16 << 20;

/// Bits of an entry of `/proc/self/pagemap`: the page is in memory; it belongs to this process alone (which excludes
/// the zero page, to which memory that was only read refers); it belongs to a file or is shared.
const PRESENT: u64 = 1 << 63;
const EXCLUSIVE: u64 = 1 << 56;
const OF_FILE: u64 = 1 << 61;

/// Starts the thread, unless the system forbids huge pages or does not report on them.
pub(crate) fn start() {
    let Some(finder) = Finder::new() else { return };
    let run = move || {
        let Err(error) =
            if knows_collapse() { finder.collapse_used_blocks() } else { finder.advise_mappings() };
        tracing::info!("memory does not use huge pages: {error}");
    };
    // Without the thread everything works, but slower.
    let _ = thread::Builder::new().name("huge-pages".to_owned()).spawn(run);
}

/// Finds blocks to collapse, and collapses them.
struct Finder {
    page_bytes: usize,
    huge_bytes: usize,
    pagemap: File,
    /// Blocks for which a collapse was attempted, and that were in use at each check since.
    tried: HashSet<usize>,
    /// The entries of `pagemap` for one block.
    entries: Vec<u8>,
}

impl Finder {
    fn new() -> Option<Finder> {
        const FOLDER: &str = "/sys/kernel/mm/transparent_hugepage";
        let enabled = fs::read_to_string(format!("{FOLDER}/enabled")).ok()?;
        if enabled.contains("[never]") {
            return None;
        }
        let huge_bytes = fs::read_to_string(format!("{FOLDER}/hpage_pmd_size")).ok()?.trim().parse().ok()?;
        let page_bytes = rustix::param::page_size();
        let pagemap = File::open("/proc/self/pagemap").ok()?;
        let entries = vec![0; huge_bytes / page_bytes * size_of::<u64>()];
        Some(Finder { page_bytes, huge_bytes, pagemap, tried: HashSet::new(), entries })
    }

    /// Walks over memory forever.
    fn collapse_used_blocks(mut self) -> io::Result<Infallible> {
        let mut remembers_since = Instant::now();
        let mut pause = PAUSE_MIN;
        loop {
            let before = Instant::now();
            let mut collapsing = Duration::ZERO;
            for block in self.blocks()? {
                if !self.is_used(block)? {
                    self.tried.remove(&block);
                } else if self.tried.insert(block) {
                    collapsing += self.collapse(block);
                }
            }
            if remembers_since.elapsed() > REMEMBERED {
                self.tried.clear();
                remembers_since = Instant::now();
            }
            pause = if collapsing.is_zero() { (pause * 2).min(IDLE_PAUSE_MAX) } else { PAUSE_MIN };
            let walking = before.elapsed().saturating_sub(collapsing);
            thread::sleep(pause.max((walking * PAUSE_FACTOR).min(LONG_PAUSE)));
        }
    }

    /// Advises huge pages for large mappings, and repeats that for new ones forever.
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

    /// Returns the addresses of all blocks in mappings of this process that are neither shared nor of a file.
    fn blocks(&self) -> io::Result<Vec<usize>> {
        let maps = fs::read_to_string("/proc/self/maps")?;
        let blocks = maps.lines().filter_map(private_mapping).flat_map(|mapping| {
            let first = mapping.start.next_multiple_of(self.huge_bytes);
            let whole = mapping.end.saturating_sub(first) / self.huge_bytes;
            (0..whole).map(move |number| first + number * self.huge_bytes)
        });
        Ok(blocks.collect())
    }

    /// Whether nearly all small pages of a block are in memory, and belong to this process alone.
    fn is_used(&mut self, block: usize) -> io::Result<bool> {
        let offset = block / self.page_bytes * size_of::<u64>();
        self.pagemap.read_exact_at(&mut self.entries, offset as u64)?;
        let is_used = |entry: u64| entry & (PRESENT | EXCLUSIVE | OF_FILE) == PRESENT | EXCLUSIVE;
        let (entries, _) = self.entries.as_chunks();
        let missing = entries.iter().filter(|&&entry| !is_used(u64::from_ne_bytes(entry))).count();
        Ok(missing <= entries.len() / MISSING_SHARE)
    }

    /// Collapses a block, and pauses. Returns the total time.
    fn collapse(&mut self, block: usize) -> Duration {
        let before = Instant::now();
        match collapse(block, self.huge_bytes) {
            Ok(()) => {
                thread::sleep(before.elapsed() * COLLAPSE_PAUSE_FACTOR);
            }
            Err(error) if error.kind() == io::ErrorKind::OutOfMemory => thread::sleep(LONG_PAUSE),
            // The block has changed meanwhile, or some of its pages cannot be moved at present.
            Err(_) => {}
        }
        before.elapsed()
    }
}

/// Returns the addresses of a mapping from a line of `/proc/self/maps`, if it is writable, not of a file, not shared,
/// and not a stack.
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
    fn used_blocks_are_collapsed_unchanged_and_partial_ones_are_skipped() {
        let Some(mut finder) = Finder::new() else { return };
        let (huge, page) = (finder.huge_bytes, finder.page_bytes);
        // Contains three whole blocks at any address. Memory that other tests have used and freed is still resident.
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
        // Two blocks are in use, and three quarters of the third.
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
