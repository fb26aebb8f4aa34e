//! Metrics: what the server counts, for Prometheus.
//!
//! [`FAMILIES`] describes every metric once; the text at `/metrics` and the table in `docs/metrics.md` are derived from it.
//! Nothing is counted for them: a [`Scene`] is one look at what workers count anyway, taken when somebody asks. What is
//! looked at, and in which order, is the same as for INFO, so that both tell the same.

mod clients;
mod commands;
mod exposition;
mod keyspace;
mod memory;
mod persistence;
mod process;
mod workers;

use std::sync::Arc;

use crate::census::Census;
use crate::client::ClientView;
use crate::config::Config;
use crate::memory::MemoryReport;
use crate::server::{Server, unix_ms};
use crate::stats::{Counter, WorkerStats};

use exposition::Samples;

/// The type of [`render`]'s text.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What a metric's values mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Grows until the process ends or `CONFIG RESETSTAT` sets it to zero.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts of what did not exceed each of several bounds.
    Histogram,
}

impl Kind {
    /// The word of the text format.
    fn name(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

/// Where the values of a metric come from.
#[derive(Clone, Copy)]
enum Source {
    /// There is one value.
    One(fn(&Scene<'_>) -> f64),
    /// There are some, each with labels.
    Each(fn(&Scene<'_>, &mut Samples<'_>)),
}

/// A metric: all samples of one name.
struct Metric {
    name: &'static str,
    kind: Kind,
    /// The names of the labels, `le` of a histogram excepted.
    labels: &'static [&'static str],
    /// What it is, as a sentence without its full stop.
    help: &'static str,
    source: Source,
}

/// A counter without labels.
const fn counter(name: &'static str, help: &'static str, value: fn(&Scene<'_>) -> f64) -> Metric {
    Metric { name, kind: Kind::Counter, labels: &[], help, source: Source::One(value) }
}

/// A gauge without labels.
const fn gauge(name: &'static str, help: &'static str, value: fn(&Scene<'_>) -> f64) -> Metric {
    Metric { name, kind: Kind::Gauge, labels: &[], help, source: Source::One(value) }
}

/// A metric with labels.
const fn labelled(
    kind: Kind,
    name: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
    write: fn(&Scene<'_>, &mut Samples<'_>),
) -> Metric {
    Metric { name, kind, labels, help, source: Source::Each(write) }
}

/// All metrics, by what they are about, in the order of the text.
const FAMILIES: &[(&str, &[Metric])] = &[
    ("Process", process::METRICS),
    ("Workers", workers::METRICS),
    ("Commands", commands::METRICS),
    ("Clients and network", clients::METRICS),
    ("Keyspace", keyspace::METRICS),
    ("Memory", memory::METRICS),
    ("Persistence", persistence::METRICS),
];

/// One look at the server.
struct Scene<'s> {
    server: &'s Server,
    config: Arc<Config>,
    memory: MemoryReport,
    census: Census,
    clients: Vec<Arc<ClientView>>,
}

impl Scene<'_> {
    fn of(server: &Server) -> Scene<'_> {
        Scene {
            server,
            config: server.config.snapshot(),
            memory: MemoryReport::of(server),
            census: Census::of(server, unix_ms()),
            clients: server.clients.all(),
        }
    }

    /// The sum of a counter over all workers.
    fn sum(&self, counter: fn(&WorkerStats) -> &Counter) -> f64 {
        self.server.sum(counter) as f64
    }
}

/// The values of all metrics, in the text format 0.0.4 of Prometheus. Takes the lock of each shard once; O(shards +
/// connections + keys observed).
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
