//! Metrics of the server's memory.

use emberkv_core::reclaim;

use super::metric::{Metric, counter, gauge};
use crate::metrics::memory_report::{ratio, system_bytes};
use crate::system::clock::unix_ms;

pub(super) const METRICS: &[Metric] = &[
    gauge("ember_memory_used_bytes", "Memory allocated by the process", |scene| {
        scene.memory.allocated as f64
    }),
    gauge("ember_memory_peak_bytes", "The maximum of allocated memory", |scene| scene.memory.peak as f64),
    gauge("ember_memory_limit_bytes", "The memory limit of the data: `maxmemory`; 0 for none", |scene| {
        scene.config.maxmemory as f64
    }),
    gauge("ember_memory_dataset_bytes", "Memory of the data, which counts against the limit", |scene| {
        scene.memory.dataset as f64
    }),
    counter("ember_memory_over_limit_seconds_total", "Time for which the data exceeded the limit", |scene| {
        scene.server.over_limit.total_ms(unix_ms()) as f64 / 1000.0
    }),
    gauge("ember_memory_clients_bytes", "Memory of connections and their buffers", |scene| {
        scene.memory.clients as f64
    }),
    gauge(
        "ember_memory_startup_bytes",
        "Memory allocated when the server started to serve clients",
        |scene| scene.memory.startup as f64,
    ),
    gauge("ember_memory_resident_bytes", "Resident memory of the process", |scene| {
        scene.memory.resident as f64
    }),
    gauge("ember_memory_fragmentation_ratio", "Resident memory divided by allocated memory", |scene| {
        ratio(scene.memory.resident, scene.memory.allocated)
    }),
    gauge("ember_memory_allocator_active_bytes", "Pages that contain allocations", |scene| {
        scene.memory.allocator.active as f64
    }),
    gauge("ember_memory_allocator_resident_bytes", "Resident pages of the allocator", |scene| {
        scene.memory.allocator.resident as f64
    }),
    gauge(
        "ember_memory_allocator_retained_bytes",
        "Address space that the allocator retains without pages",
        |scene| scene.memory.allocator.retained as f64,
    ),
    gauge("ember_reclaim_pending_values", "Values that wait to be freed in the background", |_| {
        reclaim::pending() as f64
    }),
    counter("ember_reclaimed_values_total", "Values freed in the background", |_| reclaim::freed() as f64),
    gauge("ember_memory_machine_bytes", "The machine's memory", |_| system_bytes().unwrap_or(0) as f64),
];
