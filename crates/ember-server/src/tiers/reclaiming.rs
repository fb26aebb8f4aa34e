//! Reclaims segments: segments without references are removed, and the live records of the emptiest segment are moved,
//! a slice at a time.
//!
//! The demoting thread does this between other work, so no step may take long; a whole segment of 64 MiB would.

use std::collections::HashSet;
use std::sync::atomic::Ordering;

use ember_storage::segments::{self, AppendSource, LogFull, SegmentNumber, Which, WriteFailed};
use emberkv_core::keyspace::external::Location;
use emberkv_core::keyspace::shard::cold_values::Encoded;
use emberkv_core::rdb::Kind;

use super::Tiers;
use crate::server::Server;

/// The number of bytes of a segment that are scanned per step: a quarter of a buffer.
const SLICE_BYTES: u64 = 1 << 20;

/// The minimum size, in bytes, of a segment that is sealed early.
const SEALED_MIN_BYTES: u64 = 4 << 20;

/// A segment whose live records are being moved.
struct Moving {
    number: SegmentNumber,
    records: segments::Records<'static>,
    /// Whether all live records scanned so far were moved.
    is_complete: bool,
}

/// The state of reclaiming segments.
pub(super) struct Reclaimer {
    server: &'static Server,
    tiers: &'static Tiers,
    moving: Option<Moving>,
    /// Segments whose live records were moved; they are removed once they have no references.
    moved: HashSet<u32>,
}

impl Reclaimer {
    pub(super) fn new(server: &'static Server) -> Reclaimer {
        Reclaimer { server, tiers: Tiers::of(server), moving: None, moved: HashSet::new() }
    }

    /// Removes segments without references. Begins to move the records of the emptiest segment if less than half of it
    /// is live, or less than nine tenths if the files take nine tenths of their limit.
    pub(super) fn update(&mut self) {
        let segments = self.tiers.records.segments();
        let mut worst = None;
        let limit = self.tiers.records.statistics().map_or(u64::MAX, |statistics| statistics.limit_bytes);
        let stored: u64 = segments.iter().map(|segment| segment.stored_bytes).sum();
        let is_short = stored >= limit / 10 * 9;
        for segment in segments {
            if segment.is_open {
                // While many values become garbage and few are appended, an open segment would retain much dead data.
                if segment.stored_bytes >= SEALED_MIN_BYTES && segment.live_bytes < segment.stored_bytes / 2 {
                    self.tiers.records.seal();
                }
                continue;
            }
            if segment.live_bytes == 0 {
                self.moving.take_if(|moving| moving.number == segment.number);
                self.tiers.records.remove(segment.number);
                self.moved.remove(&segment.number.get());
                continue;
            }
            let share = segment.live_bytes as f64 / segment.stored_bytes.max(1) as f64;
            let is_worst = worst.is_none_or(|(other, _)| share < other);
            let is_bad = share < 0.5 || (is_short && share < 0.9);
            if is_worst && is_bad && !self.moved.contains(&segment.number.get()) {
                worst = Some((share, segment.number));
            }
        }
        if self.moving.is_none()
            && let Some((_, number)) = worst
            && let Some(records) = self.tiers.records.of_segment(number)
        {
            self.moved.insert(number.get());
            self.moving = Some(Moving { number, records, is_complete: true });
        }
    }

    /// Moves the live records in the next [`SLICE_BYTES`]. Returns false if there are no records to move, or if they
    /// cannot be written.
    pub(super) fn step(&mut self) -> bool {
        let Some(mut moving) = self.moving.take() else { return false };
        let mut read_bytes = 0;
        while read_bytes < SLICE_BYTES {
            match moving.records.next_record() {
                Some(Ok((location, record))) => {
                    read_bytes += location.stored_bytes().unwrap_or(SLICE_BYTES);
                    match self.move_one(Location::from_bits(location.to_bits()), &record) {
                        Ok(is_done) => moving.is_complete &= is_done,
                        Err(error) => {
                            tracing::error!("records cannot be moved: {error}");
                            self.moved.remove(&moving.number.get());
                            return false;
                        }
                    }
                }
                // A damaged record counts as a whole slice, because the extent of the damage is unknown.
                Some(Err(error)) => {
                    read_bytes += SLICE_BYTES;
                    tracing::warn!("a record that should have been moved is lost: {error}");
                }
                None => {
                    if !moving.is_complete {
                        self.moved.remove(&moving.number.get());
                    }
                    return true;
                }
            }
        }
        self.moving = Some(moving);
        true
    }

    /// Moves a record if it is referenced; returns whether the record need not be visited again.
    ///
    /// # Errors
    /// Returns the error of writing buffers.
    fn move_one(&self, from: Location, record: &segments::Record<'_>) -> Result<bool, WriteFailed> {
        let (tiers, keyspace) = (self.tiers, &self.server.keyspace);
        let hash = keyspace.hash(record.head.key);
        let name = record.head.database as usize;
        let mut data = keyspace.lock(hash.shard());
        let is_live = data.refers_to(name, hash, record.head.key, from);
        if !is_live {
            // A resident value does not need a copy in the segment.
            data.release_copy(name, hash, record.head.key, from);
        }
        keyspace.publish_bytes(keyspace.release(hash.shard(), data));
        let Some(kind) = Kind::from_byte(record.head.kind).filter(|_| is_live) else { return Ok(true) };
        let encoded = Encoded { database_name: name, key: record.head.key, kind, bytes: record.value };
        let mut appended = tiers.records.append(&encoded, AppendSource::Moved);
        if let Err(LogFull::Buffers) = appended {
            tiers.records.write(Which::Full)?;
            appended = tiers.records.append(&encoded, AppendSource::Moved);
        }
        let Ok(to) = appended else { return Ok(false) };
        let mut data = keyspace.lock(hash.shard());
        data.move_record(name, hash, record.head.key, from, to);
        keyspace.publish_bytes(keyspace.release(hash.shard(), data));
        tiers.counters.moved.fetch_add(1, Ordering::Relaxed);
        Ok(true)
    }
}
