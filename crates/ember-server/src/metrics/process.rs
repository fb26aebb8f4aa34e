//! Metrics of the process: its build, its start time, and its use of the machine. Metrics without the prefix `ember_`
//! have the names that Prometheus's client libraries use.

use std::fs;

use rustix::process::{Resource, getrlimit};

use super::metric::{Kind, Metric, counter, gauge, labelled};
use super::system_figures::SystemFigures;
use crate::system::heap::ALLOCATOR_NAME;
use crate::system::processor_time::ProcessorTime;

pub(super) const METRICS: &[Metric] = &[
    labelled(
        Kind::Gauge,
        "ember_build_info",
        &["version", "redis_version", "mode", "allocator"],
        "Always 1; the labels give version, mode and allocator",
        |scene, samples| {
            let mode = if scene.server.is_concurrent { "concurrent" } else { "sharded" };
            let reported = scene.server.config.snapshot().redis_version.to_string();
            samples.add(&[env!("CARGO_PKG_VERSION"), &reported, mode, ALLOCATOR_NAME], 1.0);
        },
    ),
    gauge("ember_uptime_seconds", "Time since startup", |scene| scene.server.started.elapsed().as_secs_f64()),
    gauge("ember_loading", "1 while the data set is being loaded, else 0", |scene| {
        f64::from(u8::from(scene.server.is_loading()))
    }),
    gauge("ember_stopping", "1 while connections are drained at shutdown, else 0", |scene| {
        f64::from(u8::from(scene.server.is_stopping()))
    }),
    gauge("process_start_time_seconds", "Unix time of startup", |scene| {
        scene.server.started_ms as f64 / 1000.0
    }),
    counter("process_cpu_seconds_total", "Processor time used, in user mode and in the kernel", |scene| {
        let ProcessorTime { user, system, .. } = SystemFigures::recent(scene.server).processor;
        user + system
    }),
    gauge("process_resident_memory_bytes", "Resident memory of the process", |scene| {
        scene.memory.resident as f64
    }),
    gauge("process_open_fds", "Open files and sockets", |_| {
        fs::read_dir("/proc/self/fd").map_or(0.0, |descriptors| descriptors.count() as f64)
    }),
    gauge("process_max_fds", "The limit of open files and sockets; 0 for none", |_| {
        getrlimit(Resource::Nofile).current.unwrap_or(0) as f64
    }),
];
