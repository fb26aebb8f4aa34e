//! Checks that LMDB's file contains all pages that it refers to. LMDB reads pages through a map, and reading past the
//! end of the file ends the process by SIGBUS, so this check precedes opening the file.
//!
//! ```text
//! page 0, page 1   a state each: the page's head, magic, version, address, map size, two trees (free pages, tables), the
//!                  last page, the number of the state
//! branch page      nodes: the number of a page below, and its least key
//! leaf page        nodes: a key with its value, or with the pages that the value is in, or with a table's tree
//! ```
//!
//! Numbers are in the processor's byte order. A file as long as its state requires is accepted without reading its
//! pages. A shorter file may be complete, because pages that were freed before they were written may be missing, so all
//! of its reachable pages are checked. O(1), or O(pages) for a shorter file.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::stores::StoreError;
use crate::stores::engine::EngineKind;

/// The file's name in the folder of the store.
const FILE_NAME: &str = "data.mdb";

const MAGIC: u64 = 0xBEEF_C0DE;

/// The range of valid page sizes in bytes.
const PAGE_BYTES_MIN: u64 = 256;
const PAGE_BYTES_MAX: u64 = 65_536;

/// Length of a page's head in bytes: the page's number; at offset 10 flags; at offset 12 the end of the node offsets,
/// or the number of pages of a value.
const PAGE_HEAD_BYTES: usize = 16;
const FLAGS_AT: usize = 10;
const COUNT_AT: usize = 12;
const BRANCH: u64 = 0x01;
const LEAF: u64 = 0x02;
const LEAF_WITHOUT_VALUES: u64 = 0x20;

/// Offsets of a state's fields in bytes, from the beginning of its page.
const MAGIC_AT: usize = 16;
const PAGE_BYTES_AT: usize = 40;
const FREE_ROOT_AT: usize = 80;
const TABLES_ROOT_AT: usize = 128;
const LAST_PAGE_AT: usize = 136;
const NUMBER_AT: usize = 144;
const STATE_BYTES: usize = 152;

/// Offsets of the fields of a node in bytes. A node contains the size of its value in two halves, flags, the size of
/// its key, the key and the value.
const NODE_FLAGS_AT: usize = 4;
const KEY_BYTES_AT: usize = 6;
const NODE_HEAD_BYTES: usize = 8;
const IN_PAGES: u64 = 0x01;
const TREE: u64 = 0x02;

/// Offset of the root page's number in a tree's description, in bytes; an empty tree has no root.
const ROOT_AT: usize = 40;
const NO_PAGE: u64 = u64::MAX;

/// Checks the file in the folder of a store, if it exists; a new store has none yet.
///
/// # Errors
/// Returns an error if the file is truncated, or cannot be read. Other problems are left for LMDB to report.
pub(super) fn check(folder: &Path) -> Result<(), StoreError> {
    let io = |cause| StoreError::Io { engine: EngineKind::Lmdb, cause };
    let file = match File::open(folder.join(FILE_NAME)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        opened => opened.map_err(io)?,
    };
    let len = file.metadata().map_err(io)?.len();
    match Pages::new(file, len).and_then(|pages| pages.map_or(Ok(()), |pages| pages.check())) {
        Ok(()) => Ok(()),
        Err(Problem::Io(cause)) => Err(io(cause)),
        Err(Problem::CutOff) => Err(damaged(format!("{FILE_NAME} is truncated: it has only {len} bytes"))),
        Err(Problem::Strange) => Err(damaged(format!("{FILE_NAME} has a page that LMDB does not write"))),
    }
}

fn damaged(message: String) -> StoreError {
    StoreError::EngineDamaged { engine: EngineKind::Lmdb, message }
}

enum Problem {
    Io(io::Error),
    /// A referenced page is beyond the end of the file.
    CutOff,
    /// A page has impossible contents.
    Strange,
}

/// The file's pages.
struct Pages {
    file: File,
    len: u64,
    page_bytes: u64,
    /// The newer of the two states.
    state: [u8; STATE_BYTES],
}

impl Pages {
    /// Opens a file of `len` bytes; None if it does not begin like LMDB's files.
    fn new(file: File, len: u64) -> Result<Option<Pages>, Problem> {
        let mut pages = Pages { file, len, page_bytes: 0, state: [0; STATE_BYTES] };
        let mut first = [0; STATE_BYTES];
        pages.read(0, &mut first)?;
        let page_bytes = number(&first, PAGE_BYTES_AT, 4)?;
        let is_size = page_bytes.is_power_of_two() && (PAGE_BYTES_MIN..=PAGE_BYTES_MAX).contains(&page_bytes);
        if number(&first, MAGIC_AT, 4)? != MAGIC || !is_size {
            return Ok(None);
        }
        pages.page_bytes = page_bytes;
        let mut second = [0; STATE_BYTES];
        pages.read(page_bytes, &mut second)?;
        let is_first_newer = number(&first, NUMBER_AT, 8)? >= number(&second, NUMBER_AT, 8)?;
        pages.state = if is_first_newer { first } else { second };
        Ok(Some(pages))
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), Problem> {
        match self.file.read_exact_at(bytes, offset) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Err(Problem::CutOff),
            read => read.map_err(Problem::Io),
        }
    }

    /// Checks that the file contains all pages of the newer state.
    fn check(&self) -> Result<(), Problem> {
        if self.has(number(&self.state, LAST_PAGE_AT, 8)?) {
            return Ok(());
        }
        let mut next = vec![number(&self.state, FREE_ROOT_AT, 8)?, number(&self.state, TABLES_ROOT_AT, 8)?];
        let mut page = vec![0; self.page_bytes as usize];
        // A valid tree reaches each page only once; the limit ends the loop for invalid trees.
        let mut left = self.len / self.page_bytes;
        while let Some(at) = next.pop() {
            if at == NO_PAGE {
                continue;
            }
            left = left.checked_sub(1).ok_or(Problem::Strange)?;
            if !self.has(at) {
                return Err(Problem::CutOff);
            }
            self.read(at * self.page_bytes, &mut page)?;
            self.follow(&page, &mut next)?;
        }
        Ok(())
    }

    /// Whether the file contains all of a page.
    fn has(&self, page: u64) -> bool {
        page.checked_add(1)
            .and_then(|pages| pages.checked_mul(self.page_bytes))
            .is_some_and(|end| end <= self.len)
    }

    /// Adds the child pages of `page` to `next`, and checks the pages of its values.
    fn follow(&self, page: &[u8], next: &mut Vec<u64>) -> Result<(), Problem> {
        let flags = number(page, FLAGS_AT, 2)?;
        if flags & (BRANCH | LEAF) == 0 {
            return Err(Problem::Strange);
        }
        if flags & LEAF_WITHOUT_VALUES != 0 {
            return Ok(());
        }
        let end = number(page, COUNT_AT, 2)? as usize;
        for offset_at in (PAGE_HEAD_BYTES..end).step_by(2) {
            let node = page.get(number(page, offset_at, 2)? as usize..).ok_or(Problem::Strange)?;
            let node_flags = number(node, NODE_FLAGS_AT, 2)?;
            if flags & BRANCH != 0 {
                next.push(number(node, 0, 4)? | node_flags << 32);
                continue;
            }
            let value_at = NODE_HEAD_BYTES + number(node, KEY_BYTES_AT, 2)? as usize;
            if node_flags & IN_PAGES != 0 {
                self.check_value(number(node, value_at, 8)?)?;
            } else if node_flags & TREE != 0 {
                next.push(number(node, value_at + ROOT_AT, 8)?);
            }
        }
        Ok(())
    }

    /// Checks that the file contains all pages of the value that begins with page `first`.
    fn check_value(&self, first: u64) -> Result<(), Problem> {
        if !self.has(first) {
            return Err(Problem::CutOff);
        }
        let mut head = [0; PAGE_HEAD_BYTES];
        self.read(first * self.page_bytes, &mut head)?;
        let count = number(&head, COUNT_AT, 4)?;
        let last = first.checked_add(count).and_then(|next| next.checked_sub(1)).ok_or(Problem::Strange)?;
        if self.has(last) { Ok(()) } else { Err(Problem::CutOff) }
    }
}

/// Reads a number of `size` bytes (at most 8) at offset `at`.
fn number(bytes: &[u8], at: usize, size: usize) -> Result<u64, Problem> {
    let digits = at.checked_add(size).and_then(|end| bytes.get(at..end)).ok_or(Problem::Strange)?;
    let digit = |number: u64, &byte: &u8| number << 8 | u64::from(byte);
    Ok(if cfg!(target_endian = "little") {
        digits.iter().rev().fold(0, digit)
    } else {
        digits.iter().fold(0, digit)
    })
}
