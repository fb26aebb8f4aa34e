//! Classifies an unreadable batch by the bytes after it: as a torn end, or as damage.
//!
//! When a process is killed, the file may contain only the beginning of its last write: no bytes follow the unreadable
//! batch. When power fails, any unsynced sector may be lost and then contains zeros: other batches may follow, each at
//! the offset it was written for, and none of them records the unreadable batch as durable. Nothing else causes a torn
//! end. So the unreadable batch is damaged if
//!
//! * a later batch records that the unreadable batch was durable;
//! * a batch that was written after it is now at another offset: bytes are missing, or were inserted;
//! * other bytes follow it, and none of its sectors contains only zeros.
//!
//! **A value may contain any bytes**, even a copy of this file up to the batch that contains the value. So a line
//! counts only if it was written for an offset after the unreadable batch: no earlier value can contain a copy of such
//! a line. The offset that a line was written for is computed from its check, and is effectively random for a line made
//! without knowledge of the file's identity.

use std::io;

use super::batch::{BATCH_LINE, BATCH_LINE_BYTES, BatchLine};
use crate::files::{LostSector, Reread};
use crate::rdb_file::Source;

/// The maximum distance in bytes by which missing or inserted bytes can have moved a batch. The greater it is, the more
/// likely a forged line in a value is mistaken for a moved line: with this value, with a probability of one in eight
/// thousand million.
const MOVED_BYTES_MAX: u64 = 1 << 30;

/// An offset at which no batch can be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unreadable {
    /// The offset of the unreadable batch.
    pub(super) at: u64,
    /// The end of the batch, if its line could be read.
    pub(super) end: Option<u64>,
}

/// The classification of an unreadable batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// A torn end; the file ends at this offset.
    Torn { file_end: u64 },
    /// Damage; later batches, if any, are at the offsets they were written for.
    Damaged,
    /// Damage before later batches, which are not at the offsets they were written for.
    Moved,
}

/// Classifies an unreadable batch of `source`, a file with `identity`. Reads the whole rest of the file, some of it
/// twice; only the source's buffer and a line are in memory.
pub(super) fn judge<R: Reread>(
    source: &mut Source<R>,
    identity: u64,
    place: Unreadable,
) -> io::Result<Verdict> {
    source.restart_at(place.at)?;
    // The offset of the first later batch that is where it was written, and whether any byte after the end of the
    // unreadable batch is not zero.
    let mut next_batch = None;
    let mut is_followed = false;
    // Bytes already read that may contain the beginning of a line.
    let mut kept: Vec<u8> = Vec::new();
    loop {
        let buffered = source.buffered()?;
        if buffered.is_empty() {
            break;
        }
        let count = buffered.len();
        kept.extend_from_slice(buffered);
        let begin = source.offset();
        source.advance(count);
        if let Some(end) = place.end.filter(|&end| end < begin + count as u64) {
            let after = &kept[kept.len() - count + end.saturating_sub(begin) as usize..];
            is_followed = is_followed || after.iter().any(|&byte| byte != 0);
        }
        let first = source.offset() - kept.len() as u64;
        let mut searched = 0;
        for index in memchr::memmem::find_iter(&kept, BATCH_LINE) {
            searched = index;
            let Some(line) = kept.get(index..index + BATCH_LINE_BYTES) else { break };
            searched = index + 1;
            let at = first + index as u64;
            let Some((line, written_at)) = BatchLine::parse_anywhere(line, identity) else { continue };
            if written_at < place.at || written_at.abs_diff(at) > MOVED_BYTES_MAX {
                continue;
            }
            if written_at != at {
                return Ok(Verdict::Moved);
            }
            if line.durable > place.at {
                return Ok(Verdict::Damaged);
            }
            if at > place.at && next_batch.is_none() {
                next_batch = Some(at);
            }
        }
        // A line may begin in the last buffered bytes and continue in the next ones.
        let searched = searched.max(kept.len().saturating_sub(BATCH_LINE_BYTES - 1));
        kept.drain(..searched);
    }
    let file_end = source.offset();
    let end = [place.end, next_batch].into_iter().flatten().min();
    match end {
        Some(end) if next_batch.is_some() || is_followed => {
            // No bytes are missing or inserted, because then later batches would have moved. So if the last byte of the
            // batch is zero rather than part of a line end, the end of the batch was lost.
            let is_cut = place.end.map_or(Ok(false), |end| ends_with_zero(source, end))?;
            let is_lost = is_cut || has_lost_sector(source, place.at, end)?;
            Ok(if is_lost { Verdict::Torn { file_end } } else { Verdict::Damaged })
        }
        _ => Ok(Verdict::Torn { file_end }),
    }
}

/// Whether the byte before `end` is zero.
fn ends_with_zero<R: Reread>(source: &mut Source<R>, end: u64) -> io::Result<bool> {
    source.restart_at(end - 1)?;
    Ok(source.buffered()?.first() == Some(&0))
}

/// Whether a sector of the batch from `begin` to `end` was lost.
fn has_lost_sector<R: Reread>(source: &mut Source<R>, begin: u64, end: u64) -> io::Result<bool> {
    source.restart_at(begin)?;
    let mut lost = LostSector::new(begin);
    while source.offset() < end {
        let rest = end - source.offset();
        let buffered = source.buffered()?;
        if buffered.is_empty() {
            break;
        }
        let count = usize::try_from(rest).map_or(buffered.len(), |rest| rest.min(buffered.len()));
        lost.scan(&buffered[..count]);
        source.advance(count);
    }
    Ok(lost.is_found())
}
