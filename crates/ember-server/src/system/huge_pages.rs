//! Huge pages for memory that is in use, put in the place of its small pages by a thread of its own.
//!
//! Looking up random keys among a million is bound by the translation of addresses; huge pages take 20 % off the user time
//! of a GET. But a huge page that is asked for at first touch is cleared then, 2 MiB at once, by the worker that touches it,
//! and all that wait for it see that: p99 of LPUSH was five times that of redis-server. So memory comes in small pages, and
//! this thread looks for blocks of the size and at the place of a huge page whose small pages are nearly all in use, and has
//! the kernel collapse them (`MADV_COLLAPSE`, Linux 6.1). What is in use to a smaller part stays in small pages.
//!
//! Which pages are in use says `/proc/self/pagemap`. It does not say which are huge, so blocks that were collapsed are
//! remembered as long as they are seen in use, and forgotten after a minute: parts may have been given back meanwhile, and
//! used again.
//!
//! Older kernels are told that large mappings may have huge pages, at first touch too, which is all that they can. Where
//! the system gives huge pages to everybody (`enabled` is `always`) it does so at first touch, and little is left to do.

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

/// After a walk the thread pauses for so many times what that took, up to [`LONG_PAUSE`]: it may take 1 % of a processor.
const PAUSE_FACTOR: u32 = 100;

/// The pause after a walk over very much memory, and when the kernel has no huge page to give.
const LONG_PAUSE: Duration = Duration::from_secs(10);

/// Small pages of a block that may be missing: one in so many. Pages that were given back are in memory again when the block
/// has been collapsed, so this bounds what it costs.
const MISSING_SHARE: usize = 16;

/// After a collapse the thread pauses for so many times what that took: workers may share its processor.
const COLLAPSE_PAUSE_FACTOR: u32 = 4;

/// For so long it is remembered for which blocks that was tried.
const REMEMBERED: Duration = Duration::from_secs(60);

/// The shortest mappings that older kernels are told of: longer than any thread's stack.
const ADVISED_MIN_BYTES: usize = 16 << 20;

/// Bits of an entry of `/proc/self/pagemap`: the page is in memory, it is this process's alone (the page of zeros, which all
/// that was only read refers to, is not), it is of a file or shared.
const PRESENT: u64 = 1 << 63;
const EXCLUSIVE: u64 = 1 << 56;
const OF_FILE: u64 = 1 << 61;

/// Starts the thread, unless the system forbids huge pages or says nothing of them.
pub(crate) fn start() {
    let Some(finder) = Finder::new() else { return };
    let run = move || {
        let Err(error) =
            if knows_collapse() { finder.collapse_used_blocks() } else { finder.advise_mappings() };
        tracing::info!("memory stays in small pages: {error}");
    };
    // Without the thread the server is as good, but slower.
    let _ = thread::Builder::new().name("huge-pages".to_owned()).spawn(run);
}

/// Finds what can be collapsed, and has it collapsed.
struct Finder {
    page_bytes: usize,
    huge_bytes: usize,
    pagemap: File,
    /// Blocks that have been collapsed, or could not be, and were in use whenever they were looked at since.
    tried: HashSet<usize>,
    /// What has been read of `pagemap` for one block.
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

    /// Walks over memory for ever.
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

    /// Lets large mappings have huge pages, and looks for new ones for ever.
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

    /// The places of all blocks in mappings of this process that are neither of a file nor shared.
    fn blocks(&self) -> io::Result<Vec<usize>> {
        let maps = fs::read_to_string("/proc/self/maps")?;
        let blocks = maps.lines().filter_map(private_mapping).flat_map(|mapping| {
            let first = mapping.start.next_multiple_of(self.huge_bytes);
            let whole = mapping.end.saturating_sub(first) / self.huge_bytes;
            (0..whole).map(move |number| first + number * self.huge_bytes)
        });
        Ok(blocks.collect())
    }

    /// Whether nearly all small pages of a block are in memory, and this process's alone.
    fn is_used(&mut self, block: usize) -> io::Result<bool> {
        let offset = block / self.page_bytes * size_of::<u64>();
        self.pagemap.read_exact_at(&mut self.entries, offset as u64)?;
        let is_used = |entry: u64| entry & (PRESENT | EXCLUSIVE | OF_FILE) == PRESENT | EXCLUSIVE;
        let (entries, _) = self.entries.as_chunks();
        let missing = entries.iter().filter(|&&entry| !is_used(u64::from_ne_bytes(entry))).count();
        Ok(missing <= entries.len() / MISSING_SHARE)
    }

    /// Has a block collapsed, and pauses. Returns the time of both.
    fn collapse(&mut self, block: usize) -> Duration {
        let before = Instant::now();
        match collapse(block, self.huge_bytes) {
            Ok(()) => {
                thread::sleep(before.elapsed() * COLLAPSE_PAUSE_FACTOR);
            }
            Err(error) if error.kind() == io::ErrorKind::OutOfMemory => thread::sleep(LONG_PAUSE),
            // It has changed meanwhile, or some of its pages cannot be moved just now.
            Err(_) => {}
        }
        before.elapsed()
    }
}

/// The addresses of a mapping that a line of `/proc/self/maps` describes: one that can be written and is neither of a file
/// nor shared, nor a stack.
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
    fn a_private_mapping_is_told_from_all_others() {
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
    fn a_block_in_use_is_collapsed_and_keeps_its_bytes_and_a_partial_one_is_left_alone() {
        let Some(mut finder) = Finder::new() else { return };
        let (huge, page) = (finder.huge_bytes, finder.page_bytes);
        // Long enough to hold three whole blocks wherever it is. What others have used and freed is still in memory.
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
        // Two blocks are in use, the third to three quarters.
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
