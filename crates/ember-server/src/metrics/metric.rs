//! A metric, and the snapshot of the server from which the values of all metrics are read.

use std::sync::Arc;

use ember_config::Config;

use super::census::Census;
use super::exposition::Samples;
use super::memory_report::MemoryReport;
use crate::clients::client::ClientView;
use crate::history;
use crate::observability::stats::{Counter, WorkerStats};
use crate::server::Server;
use crate::system::clock::unix_ms;
use crate::tiers::Tiers;
use crate::tiers::report::Figures;

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A value that grows until the process ends or `CONFIG RESETSTAT` sets it to zero.
    Counter,
    /// A value that rises and falls.
    Gauge,
    /// The number of observations up to each of several bounds.
    Histogram,
}

impl Kind {
    /// Returns the name of the type in the text format.
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

/// The way in which the values of a metric are read.
#[derive(Clone, Copy)]
pub(super) enum Source {
    /// A single value.
    One(fn(&Scene<'_>) -> f64),
    /// Several values, each with labels.
    Each(fn(&Scene<'_>, &mut Samples<'_>)),
}

/// A metric: all samples of one name.
pub(super) struct Metric {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// The names of the labels, except for `le` of a histogram.
    pub(super) labels: &'static [&'static str],
    /// The description of the metric: a sentence without its full stop.
    pub(super) help: &'static str,
    pub(super) source: Source,
}

/// Declares a counter without labels.
pub(super) const fn counter(name: &'static str, help: &'static str, value: fn(&Scene<'_>) -> f64) -> Metric {
    Metric { name, kind: Kind::Counter, labels: &[], help, source: Source::One(value) }
}

/// Declares a gauge without labels.
pub(super) const fn gauge(name: &'static str, help: &'static str, value: fn(&Scene<'_>) -> f64) -> Metric {
    Metric { name, kind: Kind::Gauge, labels: &[], help, source: Source::One(value) }
}

/// Declares a metric with labels.
pub(super) const fn labelled(
    kind: Kind,
    name: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
    write: fn(&Scene<'_>, &mut Samples<'_>),
) -> Metric {
    Metric { name, kind, labels, help, source: Source::Each(write) }
}

/// One snapshot of the server's figures, from which all metrics of a request are read.
pub(super) struct Scene<'s> {
    pub(super) server: &'s Server,
    pub(super) config: Arc<Config>,
    pub(super) memory: MemoryReport,
    pub(super) census: Census,
    pub(super) clients: Vec<Arc<ClientView>>,
    pub(super) tiers: Figures,
    pub(super) history: history::report::Figures,
}

impl Scene<'_> {
    pub(super) fn of(server: &Server) -> Scene<'_> {
        Scene {
            server,
            config: server.config.snapshot(),
            memory: MemoryReport::of(server),
            census: Census::of(server, unix_ms()),
            clients: server.clients.all(),
            history: history::report::Figures::of(server),
            tiers: if Tiers::of(server).is_on() { Figures::of(server) } else { Figures::default() },
        }
    }

    /// Returns the sum of a counter over all workers.
    pub(super) fn sum(&self, counter: fn(&WorkerStats) -> &Counter) -> f64 {
        self.server.sum(counter) as f64
    }
}
