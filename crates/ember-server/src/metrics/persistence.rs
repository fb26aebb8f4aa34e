//! Metrics of persistence: the same as the section of INFO.

use std::sync::atomic::Ordering;

use super::{Metric, counter, gauge};

pub(super) const METRICS: &[Metric] = &[
    gauge("ember_rdb_changes_since_last_save", "Changes of keys that no RDB file has", |scene| {
        scene.server.snapshots.changes(scene.server) as f64
    }),
    gauge("ember_rdb_last_save_timestamp_seconds", "Unix time of the last save, or of the start", |scene| {
        scene.server.snapshots.saved_s(scene.server) as f64
    }),
    counter("ember_rdb_saves_total", "RDB files written", |scene| {
        scene.server.snapshots.saves.load(Ordering::Relaxed) as f64
    }),
    gauge("ember_rdb_last_load_keys", "Keys read from the RDB file at the start", |scene| {
        scene.server.snapshots.loaded.load(Ordering::Relaxed) as f64
    }),
    gauge("ember_rdb_last_load_expired_keys", "Keys left out then because they had expired", |scene| {
        scene.server.snapshots.expired.load(Ordering::Relaxed) as f64
    }),
];
