//! Metrics of persistence, with the same values as the persistence section of INFO.

use std::sync::atomic::{AtomicU64, Ordering};

use super::metric::{Metric, Scene, counter, gauge};
use crate::aof::service::Aof;
use crate::aof::slow_disk;
use crate::aof::state::AofState;
use crate::journal::Reader;
use crate::snapshot::background::Background;
use crate::snapshot::state::SnapshotState;

pub(super) const METRICS: &[Metric] = &[
    gauge("ember_rdb_changes_since_last_save", "Changes of keys since the last save", |scene| {
        SnapshotState::of(scene.server).changes(scene.server) as f64
    }),
    gauge("ember_rdb_last_save_timestamp_seconds", "Unix time of the last save, or of startup", |scene| {
        SnapshotState::of(scene.server).saved_s(scene.server) as f64
    }),
    counter("ember_rdb_saves_total", "RDB files written", |scene| {
        number(&SnapshotState::of(scene.server).saves)
    }),
    gauge(
        "ember_rdb_bgsave_in_progress",
        "1 while a snapshot is written for a background save or for replicas, else 0",
        |scene| flag(SnapshotState::of(scene.server).is_saving()),
    ),
    gauge("ember_rdb_last_bgsave_failed", "1 if the last background save failed, else 0", |scene| {
        flag(background(scene).has_failed())
    }),
    gauge(
        "ember_rdb_last_bgsave_seconds",
        "Duration of the last background save; 0 if there was none",
        |scene| background(scene).last_s().unwrap_or(0) as f64,
    ),
    gauge("ember_snapshot_keys_processed", "Keys written by the running snapshot; 0 without one", |scene| {
        SnapshotState::of(scene.server).claims.progress().0 as f64
    }),
    gauge("ember_snapshot_keys", "Keys that the running snapshot has to write", |scene| {
        SnapshotState::of(scene.server).claims.progress().1 as f64
    }),
    gauge("ember_rdb_last_load_keys", "Keys loaded from the RDB file at startup", |scene| {
        number(&SnapshotState::of(scene.server).loaded)
    }),
    gauge("ember_rdb_last_load_expired_keys", "Expired keys skipped while loading at startup", |scene| {
        number(&SnapshotState::of(scene.server).expired)
    }),
    gauge("ember_aof_enabled", "1 while the append-only file is enabled, else 0", |scene| {
        flag(scene.server.journal.is_read_by(Reader::Aof))
    }),
    gauge("ember_aof_size_bytes", "Size of all files of the AOF", |scene| number(&aof(scene).size)),
    gauge(
        "ember_aof_base_size_bytes",
        "Size of all files of the AOF after the last rewrite, or at startup",
        |scene| number(&aof(scene).base_size),
    ),
    gauge(
        "ember_aof_kept_bytes",
        "Size of all files that rewrites of the AOF have replaced and that are kept",
        |scene| number(&aof(scene).kept_bytes),
    ),
    gauge("ember_aof_buffer_bytes", "Records that wait to be written", |scene| {
        Aof::of(scene.server).buffer_bytes(scene.server) as f64
    }),
    gauge("ember_aof_unsynced_bytes", "Bytes of the AOF without a completed fsync", |scene| {
        number(&aof(scene).unsynced_bytes)
    }),
    gauge("ember_aof_failing_seconds", "Time for which the AOF could not be written; 0 if it can", |scene| {
        aof(scene).failing_ms() as f64 / 1000.0
    }),
    counter("ember_aof_delayed_syncs_total", "Syncs that were due while another one ran", |scene| {
        number(&aof(scene).delayed_syncs)
    }),
    gauge(
        "ember_aof_sync_running_seconds",
        "Duration so far of the running fsync of the AOF; 0 without one",
        |scene| seconds(aof(scene).sync.running_ms()),
    ),
    gauge("ember_aof_last_sync_seconds", "Duration of the last fsync of the AOF", |scene| {
        seconds(Some(aof(scene).sync.last_ms()))
    }),
    gauge(
        "ember_aof_write_running_seconds",
        "Duration so far of the running write to the AOF; 0 without one",
        |scene| seconds(aof(scene).write.running_ms()),
    ),
    gauge("ember_aof_disk_slow", "1 while an fsync of the AOF or a write to it is slow, else 0", |scene| {
        flag(slow_disk::slowness(scene.server).is_some())
    }),
    gauge("ember_aof_rewriting", "1 while the AOF is being rewritten, else 0", |scene| {
        flag(aof(scene).is_rewriting())
    }),
    counter("ember_aof_rewrites_total", "Started rewrites of the AOF", |scene| number(&aof(scene).rewrites)),
    gauge("ember_aof_failed_rewrites", "Rewrites that failed since the last success", |scene| {
        number(&aof(scene).failed_in_a_row)
    }),
    gauge("ember_aof_last_rewrite_seconds", "Duration of the last rewrite; 0 if there was none", |scene| {
        aof(scene).last_rewrite_s.load(Ordering::Relaxed).max(0) as f64
    }),
    gauge("ember_writes_refused", "1 while writes are refused because of the disk, else 0", |scene| {
        flag(scene.server.conditions.disk_refusal().is_some())
    }),
];

fn background<'s>(scene: &Scene<'s>) -> &'s Background {
    &SnapshotState::of(scene.server).background
}

fn aof<'s>(scene: &Scene<'s>) -> &'s AofState {
    &Aof::of(scene.server).state
}

fn number(counter: &AtomicU64) -> f64 {
    counter.load(Ordering::Relaxed) as f64
}

fn seconds(ms: Option<u64>) -> f64 {
    ms.unwrap_or(0) as f64 / 1000.0
}

fn flag(is_so: bool) -> f64 {
    f64::from(u8::from(is_so))
}
