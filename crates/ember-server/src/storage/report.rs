//! What is told of values that go and come: by INFO, TIERING and metrics.

use std::sync::atomic::{AtomicU64, Ordering};

use emberkv_core::keyspace::SHARDS;

use super::Storage;
use crate::server::Server;

/// How it is now, and what has been since the start.
pub(crate) struct Figures {
    now: Vec<(&'static str, u64)>,
    since_start: Vec<(&'static str, u64)>,
}

impl Figures {
    /// Those of a server. O(shards).
    pub(crate) fn of(server: &Server) -> Figures {
        let storage = Storage::of(server);
        let (mut keys, mut away, mut pinned) = (0, 0, 0);
        for shard in 0..SHARDS {
            let data = server.keyspace.lock(shard);
            keys += (0..data.databases_used()).map(|at| data.database(at).table().len()).sum::<usize>();
            away += data.away();
            pinned += data.pinned();
        }
        let segments = storage.records.segments();
        let stored: u64 = segments.iter().map(|segment| segment.stored_bytes).sum();
        let live: u64 = segments.iter().map(|segment| segment.live_bytes).sum();
        let statistics = storage.records.statistics();
        let of_log = |figure: fn(&ember_storage::segments::LogStatistics) -> u64| {
            statistics.as_ref().map_or(0, figure)
        };
        let counters = &storage.counters;
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Figures {
            now: vec![
                ("enabled", u64::from(storage.is_on())),
                ("hot_keys", (keys - away) as u64),
                ("cold_keys", away as u64),
                ("pinned_keys", pinned as u64),
                ("segments", segments.len() as u64),
                ("stored_bytes", stored),
                ("live_bytes", live),
                ("buffered_bytes", of_log(|statistics| statistics.buffer_bytes)),
                ("limit_bytes", of_log(|statistics| statistics.limit_bytes)),
                ("reads_waiting", storage.waiting() as u64),
                ("demotion_stuck", u64::from(storage.is_on() && !storage.can_demote())),
            ],
            since_start: vec![
                ("demotions", count(&counters.demoted)),
                ("free_drops", count(&counters.dropped)),
                ("fetches", count(&counters.fetched)),
                ("fetches_unwanted", count(&counters.unwanted)),
                ("script_reads", count(&counters.script_reads)),
                ("read_errors", count(&counters.read_errors)),
                ("write_errors", count(&counters.write_errors)),
                ("migrations", count(&counters.migrated)),
                ("records_moved", count(&counters.moved)),
                ("bytes_written", of_log(|statistics| statistics.written_bytes)),
            ],
        }
    }

    /// How it is now.
    pub(crate) fn now(&self) -> Vec<(&'static str, u64)> {
        self.now.clone()
    }

    /// What has been since the start.
    pub(crate) fn since_start(&self) -> Vec<(&'static str, u64)> {
        self.since_start.clone()
    }
}
