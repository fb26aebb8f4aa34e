//! Metrics of replication: of the link that a replica has to its primary.

use super::metric::{Metric, Scene, gauge};
use crate::replication::link::{Link, LinkReport, Phase};
use crate::system::clock::unix_ms;

pub(super) const METRICS: &[Metric] = &[
    gauge("ember_replica", "1 if the server is a replica, else 0", |scene| {
        f64::from(u8::from(Link::report(scene.server).is_some()))
    }),
    gauge("ember_replica_link_up", "1 while a replica is linked to its primary, else 0", |scene| {
        told(scene, |link| f64::from(u8::from(link.phase == Phase::Connected)))
    }),
    gauge(
        "ember_replica_link_stopped",
        "1 if the link was stopped by what cannot be applied, else 0",
        |scene| told(scene, |link| f64::from(u8::from(link.stopped.is_some()))),
    ),
    gauge("ember_replica_link_down_seconds", "For how long there is no link; 0 if there is one", |scene| {
        told(scene, |link| match link.phase {
            Phase::Connected => 0.0,
            _ => (unix_ms() - link.down_since_ms).max(0) as f64 / 1000.0,
        })
    }),
    gauge("ember_replica_read_bytes", "Bytes of the primary's history that were read", |scene| {
        told(scene, |link| link.offsets.map_or(0, |(read, _)| read) as f64)
    }),
    gauge("ember_replica_applied_bytes", "Bytes of that history that are applied", |scene| {
        told(scene, |link| link.offsets.map_or(0, |(_, applied)| applied) as f64)
    }),
];

/// What `value` says of the link of a replica; 0 for a primary.
fn told(scene: &Scene<'_>, value: impl FnOnce(&LinkReport) -> f64) -> f64 {
    Link::report(scene.server).as_ref().map_or(0.0, value)
}
