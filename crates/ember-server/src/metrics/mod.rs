//! Metrics of the server for Prometheus.
//!
//! [`FAMILIES`] describes every metric once; the text at `/metrics` and the table in `docs/metrics.md` are derived from
//! it. No count exists only for metrics: each request takes a [`Scene`], a snapshot of counts that the server maintains
//! in any case. It reads the same figures in the same order as INFO, so both report the same.

pub(crate) mod census;
mod clients;
mod commands;
mod exposition;
mod history;
mod keyspace;
mod memory_metrics;
pub(crate) mod memory_report;
mod metric;
mod persistence;
mod process;
mod replication;
pub(crate) mod system_figures;
mod tiers;
mod workers;

use metric::{Metric, Scene};

use crate::server::Server;

/// The content type of the text of [`render`].
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// All metrics, grouped by subject, in the order in which they are rendered.
const FAMILIES: &[(&str, &[Metric])] = &[
    ("Process", process::METRICS),
    ("Workers", workers::METRICS),
    ("Commands", commands::METRICS),
    ("Clients and network", clients::METRICS),
    ("Keyspace", keyspace::METRICS),
    ("Memory", memory_metrics::METRICS),
    ("Persistence", persistence::METRICS),
    ("Tiers", tiers::METRICS),
    ("History", history::METRICS),
    ("Replication", replication::METRICS),
];

/// Returns the values of all metrics, in the text format 0.0.4 of Prometheus. Locks shards one at a time; O(shards +
/// connections + observed keys).
pub(crate) fn render(server: &Server) -> String {
    let scene = Scene::of(server);
    let mut text = String::new();
    for metric in FAMILIES.iter().flat_map(|(_, metrics)| *metrics) {
        exposition::write(metric, &scene, &mut text);
    }
    text
}

#[cfg(test)]
mod tests;
