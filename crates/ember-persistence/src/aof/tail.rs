//! Classifies an unreadable place by the bytes after it: a torn end, or damage.
//!
//! A killed process leaves the beginning of its last write: nothing follows an unreadable batch then. A power cut may
//! lose any unsynced sector and leaves zeros there: batches may follow, each at the place it was written for, and none
//! of them records the unreadable one as durable. Nothing else leaves a torn end. So it is damage if
//!
//! * a later batch records that the unreadable one was durable;
//! * a batch that was written after it is now at another place: bytes are missing, or were inserted;
//! * other bytes follow it, and none of its sectors was left as zeros.
//!
//! **A value may contain anything**, also a copy of this very file up to the batch that the value is in. So a line
//! counts only if it was written after the unreadable place: no value before can be a copy of that. The place a line
//! was written for follows from its check, which is effectively random without knowledge of the file's identity.

use std::io;

use super::batch::{BATCH_LINE, BATCH_LINE_BYTES, BatchLine};
use crate::files::{LostSector, Reread};
use crate::rdb_file::Source;

/// The maximum distance by which missing or inserted bytes can have moved a batch. The greater it is, the more likely a
/// made-up line in a value is mistaken for a moved one: with this, one in eight thousand million.
const MOVED_BYTES_MAX: u64 = 1 << 30;

/// A place where no batch can be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unreadable {
    /// Its offset.
    pub(super) at: u64,
    /// The end of the batch, if its line can be read.
    pub(super) end: Option<u64>,
}

/// The classification of an unreadable place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The end of a file during a write; the file ends at this offset.
    Torn { file_end: u64 },
    /// Damage.
    Damaged,
    /// Damage: later batches are not where they were written.
    Moved,
}

/// Classifies an unreadable place of `source`, a file with `identity`. Reads all of the rest, some of it twice; holds
/// only the source's buffer and a line.
pub(super) fn judge<R: Reread>(
    source: &mut Source<R>,
    identity: u64,
    place: Unreadable,
) -> io::Result<Verdict> {
    source.restart_at(place.at)?;
    // The first later batch at the place it was written for, and whether anything but zeros follows the end of this
    // one.
    let mut next_batch = None;
    let mut is_followed = false;
    // Bytes already read that may begin a line.
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
        // A line may begin in the last bytes and continue in the next ones.
        let searched = searched.max(kept.len().saturating_sub(BATCH_LINE_BYTES - 1));
        kept.drain(..searched);
    }
    let file_end = source.offset();
    let end = [place.end, next_batch].into_iter().flatten().min();
    match end {
        Some(end) if next_batch.is_some() || is_followed => {
            // Nothing is missing or inserted, or the later batches would have moved. So a batch that does not end with
            // a line end has lost its end.
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

/// Whether a batch from `begin` to `end` has lost a sector.
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
