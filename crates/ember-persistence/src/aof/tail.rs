//! What the batches behind an unreadable place say of it.

use std::io::{self, Read};

use super::batch::{BATCH_LINE, BATCH_LINE_BYTES, BatchLine};
use crate::rdb_file::Source;

/// Whether a batch in `source` says that more than the first `upto` bytes of the file were durable. Reads all of it; holds
/// no more than a line.
pub(super) fn claims_more<R: Read>(source: &mut Source<R>, identity: u64, upto: u64) -> io::Result<bool> {
    // What was taken and may be the beginning of a line.
    let mut kept: Vec<u8> = Vec::new();
    loop {
        let buffered = source.buffered()?;
        if buffered.is_empty() {
            return Ok(false);
        }
        let count = buffered.len();
        kept.extend_from_slice(buffered);
        source.advance(count);
        let first = source.offset() - kept.len() as u64;
        let mut searched = 0;
        for at in memchr::memmem::find_iter(&kept, BATCH_LINE) {
            searched = at;
            let Some(line) = kept.get(at..at + BATCH_LINE_BYTES) else { break };
            let line = BatchLine::parse(line, identity, first + at as u64);
            if line.is_some_and(|line| line.durable > upto) {
                return Ok(true);
            }
            searched = at + 1;
        }
        // A line may begin in the last bytes, or has begun and goes on.
        let searched = searched.max(kept.len().saturating_sub(BATCH_LINE_BYTES - 1));
        kept.drain(..searched);
    }
}
