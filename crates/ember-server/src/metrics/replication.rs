//! Metrics of replication: a primary's stream and replicas, and a replica's link to its primary.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use super::exposition::Samples;
use super::metric::{Kind, Metric, Scene, counter, gauge, labelled};
use crate::replication::failover::stage::{Failover, FailoverStage};
use crate::replication::link::{Link, LinkReport, Phase};
use crate::replication::primary::replica::{ReplicaView, Stage};
use crate::replication::primary::{Primary, good_replicas};
use crate::system::clock::unix_ms;

pub(super) const METRICS: &[Metric] = &[
    gauge("ember_replica", "1 if the server is a replica, else 0", |scene| {
        f64::from(u8::from(Link::report(scene.server).is_some()))
    }),
    gauge("ember_replica_link_up", "1 while a replica is linked to its primary, else 0", |scene| {
        link_values(scene, |link| f64::from(u8::from(link.phase == Phase::Connected)))
    }),
    gauge(
        "ember_replica_link_stopped",
        "1 if the link was stopped by a command that cannot be applied, else 0",
        |scene| link_values(scene, |link| f64::from(u8::from(link.stopped.is_some()))),
    ),
    gauge("ember_replica_link_down_seconds", "Time without a link to the primary; 0 while linked", |scene| {
        link_values(scene, |link| match link.phase {
            Phase::Connected => 0.0,
            _ => (unix_ms() - link.down_since_ms).max(0) as f64 / 1000.0,
        })
    }),
    gauge("ember_replica_read_bytes", "Bytes of the primary's stream that were read", |scene| {
        link_values(scene, |link| link.offsets.map_or(0, |(read, _)| read) as f64)
    }),
    gauge("ember_replica_applied_bytes", "Bytes of the primary's stream that were applied", |scene| {
        link_values(scene, |link| link.offsets.map_or(0, |(_, applied)| applied) as f64)
    }),
    labelled(
        Kind::Gauge,
        "ember_connected_replicas",
        &["state"],
        "Replicas of this server by state: waiting for a full sync (`wait_bgsave`), receiving one (`send_bulk`), \
         receiving the stream (`online`)",
        |scene, samples| {
            let replicas = Primary::of(scene.server).replicas();
            for stage in [Stage::Waiting, Stage::Copying, Stage::Online] {
                let count = replicas.iter().filter(|view| view.stage() == stage).count();
                samples.add(&[stage.name()], count as f64);
            }
        },
    ),
    gauge("ember_good_replicas", "Online replicas that reported within `min-replicas-max-lag`", |scene| {
        good_replicas::count(scene.server, &scene.config) as f64
    }),
    labelled(
        Kind::Gauge,
        "ember_connected_replica_lag_seconds",
        &["replica"],
        "Time since the last report of a replica, by its address and port",
        |scene, samples| {
            let now_ms = unix_ms();
            each(scene, samples, |view| (now_ms - view.acknowledged_ms()).max(0) as f64 / 1000.0);
        },
    ),
    labelled(
        Kind::Gauge,
        "ember_connected_replica_lag_bytes",
        &["replica"],
        "Bytes of the stream that a replica has not confirmed, by its address and port",
        |scene, samples| {
            let end = Primary::of(scene.server).end();
            each(scene, samples, |view| view.lag_bytes(end) as f64);
        },
    ),
    gauge("ember_replication_offset_bytes", "End of the replication stream", |scene| {
        Primary::of(scene.server).end() as f64
    }),
    gauge("ember_replication_backlog_bytes", "Bytes of the stream kept in memory", |scene| {
        Primary::of(scene.server).backlog_bytes() as f64
    }),
    gauge("ember_replication_spilled_bytes", "Bytes of the stream kept on disk beyond that", |scene| {
        Primary::of(scene.server).spilled_bytes() as f64
    }),
    labelled(
        Kind::Counter,
        "ember_replica_synchronizations_total",
        &["kind"],
        "Synchronizations of replicas: full syncs (`full`), partial syncs (`partial`), and refused partial syncs \
         (`refused`)",
        |scene, samples| {
            let counts = &Primary::of(scene.server).counts;
            samples.add(&["full"], counts.full.load(Ordering::Relaxed) as f64);
            samples.add(&["partial"], counts.partial.load(Ordering::Relaxed) as f64);
            samples.add(&["refused"], counts.partial_refused.load(Ordering::Relaxed) as f64);
        },
    ),
    counter("ember_replication_received_bytes_total", "Bytes read from the primary", |scene| {
        scene.server.replication_input_bytes() as f64
    }),
    counter("ember_replication_sent_bytes_total", "Bytes written to replicas", |scene| {
        scene.sum(|stats| &stats.replication_output_bytes)
    }),
    counter(
        "ember_sync_waits_total",
        "Number of times that replies were held for `sync-replicas`",
        |scene| scene.sum(|stats| &stats.sync_waits),
    ),
    counter(
        "ember_sync_timeouts_total",
        "Connections closed because too few replicas confirmed within `sync-timeout`",
        |scene| scene.sum(|stats| &stats.sync_timeouts),
    ),
    labelled(
        Kind::Gauge,
        "ember_failover_state",
        &["state"],
        "1 for the current failover state of this server, as named in INFO, else 0",
        |scene, samples| {
            let now = Failover::of(scene.server).stage();
            for stage in [FailoverStage::Off, FailoverStage::Waiting, FailoverStage::HandingOver] {
                samples.add(&[stage.name()], f64::from(u8::from(stage == now)));
            }
        },
    ),
];

/// Returns `value` of the link to the primary; 0 if this server is a primary.
fn link_values(scene: &Scene<'_>, value: impl FnOnce(&LinkReport) -> f64) -> f64 {
    Link::report(scene.server).as_ref().map_or(0.0, value)
}

/// Adds a sample for each replica. If several connections have the same replica name, as during a reconnect, the
/// largest value is used.
fn each(scene: &Scene<'_>, samples: &mut Samples<'_>, value: impl Fn(&ReplicaView) -> f64) {
    let mut largest: BTreeMap<String, f64> = BTreeMap::new();
    for view in Primary::of(scene.server).replicas() {
        let largest = largest.entry(view.name()).or_default();
        *largest = largest.max(value(&view));
    }
    largest.iter().for_each(|(name, &value)| samples.add(&[name.as_str()], value));
}
