//! Metrics of the worker threads: the load of each.

use std::sync::atomic::Ordering;

use super::exposition::Samples;
use super::metric::{Kind, Metric, Scene, counter, gauge, labelled};
use crate::server::WorkerHandle;

pub(super) const METRICS: &[Metric] = &[
    gauge("ember_workers", "Threads that serve clients", |scene| scene.server.workers.len() as f64),
    labelled(
        Kind::Counter,
        "ember_worker_busy_seconds_total",
        &["worker"],
        "Time the worker was busy; its rate is the worker's load, at most 1",
        |scene, samples| each(scene, samples, |worker| worker.stats.busy_nanoseconds.get() as f64 / 1e9),
    ),
    labelled(
        Kind::Counter,
        "ember_worker_idle_seconds_total",
        &["worker"],
        "Time the worker was idle",
        |scene, samples| each(scene, samples, |worker| worker.stats.idle_nanoseconds.get() as f64 / 1e9),
    ),
    labelled(
        Kind::Counter,
        "ember_worker_turns_total",
        &["worker"],
        "Turns of the worker's loop; commands divided by turns is the number of commands per turn",
        |scene, samples| each(scene, samples, |worker| worker.stats.turns.get() as f64),
    ),
    labelled(
        Kind::Counter,
        "ember_worker_commands_total",
        &["worker"],
        "Commands that the worker has run",
        |scene, samples| each(scene, samples, |worker| worker.stats.commands.get() as f64),
    ),
    labelled(
        Kind::Gauge,
        "ember_worker_connections",
        &["worker"],
        "Connections that the worker serves",
        |scene, samples| each(scene, samples, |worker| worker.connections.load(Ordering::Relaxed) as f64),
    ),
    counter(
        "ember_forwarded_commands_total",
        "Commands run by another worker than the one that read them",
        |scene| scene.sum(|stats| &stats.forwarded),
    ),
];

fn each(scene: &Scene<'_>, samples: &mut Samples<'_>, value: impl Fn(&WorkerHandle) -> f64) {
    for (index, worker) in scene.server.workers.iter().enumerate() {
        samples.add(&[&index.to_string()], value(worker));
    }
}
