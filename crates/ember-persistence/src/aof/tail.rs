//! What stands behind an unreadable place, and what that says of it: a torn end, or damage.
//!
//! A process that is killed leaves the beginning of what it wrote: nothing stands behind an unreadable batch then. A power
//! cut may lose any sector that was not synced, and leaves zeros in its place: batches may stand behind it, each where it
//! was written, and none of them calls the unreadable one durable. Nothing else leaves a torn end. So it is damage if
//!
//! * a batch behind it says that it was durable;
//! * a batch that was written behind it stands in another place now: bytes are missing, or were inserted;
//! * something is behind it, and none of its sectors has been left as zeros.
//!
//! **A value may hold anything**, also a copy of this very file up to the batch that the value is in. That is why a line
//! counts only if it was written behind the unreadable place: none of that can have been copied before. Where it was
//! written follows from its check, which is as good as a random number for whoever does not know the file's identity.

use std::io;

use super::batch::{BATCH_LINE, BATCH_LINE_BYTES, BatchLine};
use crate::files::{LostSector, Reread};
use crate::rdb_file::Source;

/// How far bytes that are missing or were inserted can have moved a batch. The greater it is, the likelier is one of many
/// made-up lines in a value taken for one that was moved: with this, one in eight thousand million.
const MOVED_BYTES_MAX: u64 = 1 << 30;

/// A place where no batch can be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unreadable {
    /// Where it begins.
    pub(super) at: u64,
    /// Where the batch ends, if its line can be read.
    pub(super) end: Option<u64>,
}

/// What it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The end of a file that was being written to; the file ends at this offset.
    Torn { file_end: u64 },
    /// Damage.
    Damaged,
    /// Damage: batches behind it are not where they were written.
    Moved,
}

/// Judges what `source`, a file with `identity`, has from an unreadable place on. Reads all of it, some of it twice; holds
/// no more than what is buffered and a line.
pub(super) fn judge<R: Reread>(
    source: &mut Source<R>,
    identity: u64,
    place: Unreadable,
) -> io::Result<Verdict> {
    source.restart_at(place.at)?;
    // The first batch behind it that stands where it was written, and whether anything but zeros is behind its end.
    let mut next_batch = None;
    let mut is_followed = false;
    // What was taken and may be the beginning of a line.
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
            let behind = &kept[kept.len() - count + end.saturating_sub(begin) as usize..];
            is_followed = is_followed || behind.iter().any(|&byte| byte != 0);
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
        // A line may begin in the last bytes, or has begun and goes on.
        let searched = searched.max(kept.len().saturating_sub(BATCH_LINE_BYTES - 1));
        kept.drain(..searched);
    }
    let file_end = source.offset();
    let end = [place.end, next_batch].into_iter().flatten().min();
    match end {
        Some(end) if next_batch.is_some() || is_followed => {
            // Nothing is missing and nothing was inserted, or what is behind would have moved. So a batch that does not end
            // with a line has lost its end.
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
        lost.look(&buffered[..count]);
        source.advance(count);
    }
    Ok(lost.is_found())
}
