//! Metrics of the history of keys: its size, its oldest moment, and the number of lost states.

use super::metric::{Metric, counter, gauge};

pub(super) const METRICS: &[Metric] = &[
    gauge("ember_history_oldest_timestamp_seconds", "The oldest moment that can be read", |scene| {
        scene.history.oldest_ms as f64 / 1000.0
    }),
    gauge("ember_history_keys", "Keys with past states", |scene| scene.history.keys as f64),
    gauge("ember_history_versions", "Past states", |scene| scene.history.versions as f64),
    gauge("ember_history_memory_bytes", "Memory of the history's index and buffers", |scene| {
        scene.history.memory_bytes as f64
    }),
    gauge("ember_history_stored_bytes", "Size of the history's files", |scene| {
        scene.history.stored_bytes as f64
    }),
    gauge("ember_history_segments", "Files of the history", |scene| scene.history.segments as f64),
    gauge("ember_history_lag_records", "Journal records that the history has not stored yet", |scene| {
        scene.history.lag as f64
    }),
    counter("ember_history_changes_total", "Recorded changes of covered keys", |scene| {
        scene.history.changes as f64
    }),
    counter(
        "ember_history_lost_states_total",
        "States that were not recorded: too large, not in memory, or refused by the disk",
        |scene| scene.history.lost as f64,
    ),
    counter("ember_history_reads_total", "Reads of the history", |scene| scene.history.reads as f64),
    counter("ember_history_disk_reads_total", "Past states that were read from disk", |scene| {
        scene.history.disk_reads as f64
    }),
    counter("ember_history_write_errors_total", "Failed writes of the history", |scene| {
        scene.history.write_errors as f64
    }),
];
