//! Figures on the dashboard that INFO does not contain: the counters of each worker and each command.

use std::sync::atomic::Ordering;

use serde_json::{Map, Value as Json, json};

use crate::observability::own_traffic::OwnCounts;
use crate::observability::stats::CommandTotals;
use crate::replication::link::{Link, RoleReport};
use crate::server::{Server, WorkerHandle};
use crate::system::clock::unix_ms;
use crate::tiers::Tiers;
use crate::tiers::report::Figures;

/// Returns the current counters; the page computes rates from differences between two readings. Takes O(workers ×
/// commands) steps and, with cold values, the lock of each shard once.
///
/// `latency` is a histogram of call durations: element b is the number of calls of at most 2^b µs that exceed the bound
/// of the previous element.
pub(super) fn of(server: &Server) -> Json {
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "now_ms": unix_ms(),
        "databases": server.config.snapshot().databases,
        "workers": server.workers.iter().map(worker).collect::<Vec<_>>(),
        "commands": commands(server),
        "own": own(server),
        "tiers": tiers(server),
        "replication": replication(server),
    })
}

/// Returns replication data that INFO does not contain: why and since when the server has its role, and details of the
/// link to its primary.
fn replication(server: &Server) -> Json {
    let RoleReport { why, since_ms, trouble, linked_ms } = Link::role(server);
    json!({ "why": why, "since_ms": since_ms, "trouble": trouble, "linked_ms": linked_ms })
}

/// Returns figures of tiers, with the names of their INFO fields; `None` if demotion is disabled.
fn tiers(server: &Server) -> Option<Map<String, Json>> {
    Tiers::of(server).is_on().then(|| {
        let figures = Figures::of(server);
        let all = figures.now().into_iter().chain(figures.since_start());
        all.map(|(name, figure)| (name.to_owned(), figure.into())).collect()
    })
}

/// Returns the load that the dashboard itself has caused.
fn own(server: &Server) -> Json {
    let OwnCounts { connections, commands, input_bytes, output_bytes, hello, info } =
        server.own_traffic.counts();
    json!({
        "connections": connections,
        "commands": commands,
        "input_bytes": input_bytes,
        "output_bytes": output_bytes,
        "calls": { "hello": hello, "info": info },
    })
}

fn worker(worker: &WorkerHandle) -> Json {
    json!({
        "busy_seconds": worker.stats.busy_nanoseconds.get() as f64 / 1e9,
        "idle_seconds": worker.stats.idle_nanoseconds.get() as f64 / 1e9,
        "commands": worker.stats.commands.get(),
        "connections": worker.connections.load(Ordering::Relaxed),
    })
}

/// Returns the counters of all commands that were called or refused, by name.
fn commands(server: &Server) -> Map<String, Json> {
    let all = server.registry.all().iter().map(|command| (command, server.totals_of(command.index)));
    let called = all.filter(|(_, totals)| *totals != CommandTotals::default());
    called
        .map(|(command, totals)| {
            let used = totals.latency.iter().rposition(|&calls| calls > 0).map_or(0, |last| last + 1);
            let figures = json!({
                "calls": totals.calls,
                "seconds": totals.nanoseconds as f64 / 1e9,
                "failed": totals.failed,
                "rejected": totals.rejected,
                "latency": &totals.latency[..used],
            });
            (command.full_name.clone(), figures)
        })
        .collect()
}
