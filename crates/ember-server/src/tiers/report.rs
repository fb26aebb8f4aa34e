//! Statistics of cold values, for INFO, TIERING and metrics.

use std::sync::atomic::{AtomicU64, Ordering};

use emberkv_core::keyspace::SHARDS;

use super::{FETCH_TIMES, Tiers};
use crate::server::Server;

/// The present state of tiering, and the counts since startup. All are zero if tiering is off.
#[derive(Default)]
pub(crate) struct Figures {
    pub(crate) is_on: bool,
    /// The number of keys with resident values, and of keys with cold values.
    pub(crate) hot_keys: u64,
    pub(crate) cold_keys: u64,
    /// The memory of the data set in bytes, and the bytes that the cold values would add to it.
    pub(crate) hot_bytes: u64,
    pub(crate) cold_bytes: u64,
    /// The number of keys whose values must stay in memory.
    pub(crate) pinned_keys: u64,
    /// The number of segments, the bytes in their files or in those of a store, and the live bytes in segments.
    pub(crate) segments: u64,
    pub(crate) stored_bytes: u64,
    pub(crate) live_bytes: u64,
    /// The bytes that are to be written, and the size limit of the files in bytes.
    pub(crate) buffered_bytes: u64,
    pub(crate) limit_bytes: u64,
    /// The resident bytes that are not counted, and the counted bytes above which values are demoted.
    pub(crate) uncounted_bytes: u64,
    pub(crate) goal_bytes: u64,
    pub(crate) reads_waiting: u64,
    /// Whether no value can be demoted at present.
    pub(crate) demotion_stuck: bool,
    pub(crate) demotions: u64,
    pub(crate) free_drops: u64,
    pub(crate) fetches: u64,
    pub(crate) fetches_unwanted: u64,
    /// The number of missing values that were already being read, and the times of fetches: their sum, and by bucket.
    pub(crate) fetches_joined: u64,
    pub(crate) fetch_usec: u64,
    pub(crate) fetch_times: [u64; FETCH_TIMES],
    pub(crate) script_reads: u64,
    pub(crate) read_errors: u64,
    pub(crate) write_errors: u64,
    pub(crate) demotion_pauses: u64,
    pub(crate) migrations: u64,
    pub(crate) records_moved: u64,
    pub(crate) bytes_written: u64,
}

impl Figures {
    /// Collects the statistics of a server. O(shards).
    pub(crate) fn of(server: &Server) -> Figures {
        let tiers = Tiers::of(server);
        let (mut keys, mut cold, mut cold_bytes, mut pinned) = (0, 0, 0, 0);
        for shard in 0..SHARDS {
            let data = server.keyspace.lock(shard);
            keys += (0..data.databases_used()).map(|at| data.database(at).table().len()).sum::<usize>();
            cold += data.cold_count();
            cold_bytes += data.cold_bytes();
            pinned += data.pinned();
        }
        let segments = tiers.records.segments();
        let log = tiers.records.statistics().unwrap_or_default();
        // If the store's files are being replaced, they are reported the next time.
        let of_store = tiers.store().and_then(|store| store.statistics().ok());
        let in_segments = || segments.iter().map(|segment| segment.stored_bytes).sum::<u64>();
        let stored_bytes = of_store.map_or_else(in_segments, |statistics| statistics.file_bytes);
        let counters = &tiers.counters;
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Figures {
            is_on: tiers.is_on(),
            hot_keys: (keys - cold) as u64,
            cold_keys: cold as u64,
            hot_bytes: server.keyspace.used_bytes() as u64,
            cold_bytes: cold_bytes as u64,
            pinned_keys: pinned as u64,
            segments: segments.len() as u64,
            stored_bytes,
            live_bytes: segments.iter().map(|segment| segment.live_bytes).sum(),
            buffered_bytes: log.buffer_bytes,
            limit_bytes: log.limit_bytes,
            uncounted_bytes: tiers.resident.uncounted_bytes(),
            goal_bytes: tiers.resident.goal_bytes(),
            reads_waiting: tiers.waiting() as u64,
            demotion_stuck: tiers.is_on() && !tiers.can_demote(),
            demotions: count(&counters.demoted),
            free_drops: count(&counters.dropped),
            fetches: count(&counters.fetched),
            fetches_unwanted: count(&counters.unwanted),
            fetches_joined: count(&counters.joined),
            fetch_usec: count(&counters.fetch_us),
            fetch_times: std::array::from_fn(|part| count(&counters.fetch_times[part])),
            script_reads: count(&counters.script_reads),
            read_errors: count(&counters.read_errors),
            write_errors: count(&counters.write_errors),
            demotion_pauses: count(&counters.pauses),
            migrations: count(&counters.migrated),
            records_moved: count(&counters.moved),
            bytes_written: log.written_bytes,
        }
    }

    /// Returns the present state as pairs of INFO field and value.
    pub(crate) fn now(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("enabled", u64::from(self.is_on)),
            ("hot_keys", self.hot_keys),
            ("cold_keys", self.cold_keys),
            ("pinned_keys", self.pinned_keys),
            ("hot_bytes", self.hot_bytes),
            ("cold_bytes", self.cold_bytes),
            ("segments", self.segments),
            ("stored_bytes", self.stored_bytes),
            ("live_bytes", self.live_bytes),
            ("buffered_bytes", self.buffered_bytes),
            ("limit_bytes", self.limit_bytes),
            ("beside_bytes", self.uncounted_bytes),
            ("goal_bytes", self.goal_bytes),
            ("reads_waiting", self.reads_waiting),
            ("demotion_stuck", u64::from(self.demotion_stuck)),
        ]
    }

    /// Returns the counts since startup as pairs of INFO field and value.
    pub(crate) fn since_start(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("demotions", self.demotions),
            ("free_drops", self.free_drops),
            ("fetches", self.fetches),
            ("fetches_unwanted", self.fetches_unwanted),
            ("fetches_joined", self.fetches_joined),
            ("fetch_usec", self.fetch_usec),
            ("script_reads", self.script_reads),
            ("read_errors", self.read_errors),
            ("write_errors", self.write_errors),
            ("demotion_pauses", self.demotion_pauses),
            ("migrations", self.migrations),
            ("records_moved", self.records_moved),
            ("bytes_written", self.bytes_written),
        ]
    }
}
