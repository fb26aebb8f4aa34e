//! Metrics of clients, their buffers and network traffic.

use std::sync::atomic::{AtomicU64, Ordering};

use super::commands::durations;
use super::metric::{Kind, Metric, Scene, counter, gauge, labelled};
use crate::clients::client::ClientView;
use crate::clients::subscriptions::Kind as Subscription;
use crate::live_queries::LiveQueries;
use crate::observability::stats::CommandTotals;

pub(super) const METRICS: &[Metric] = &[
    gauge("ember_connected_clients", "Clients connected, without replicas", |scene| {
        scene.server.clients.count() as f64
    }),
    gauge("ember_max_clients", "The limit of connected clients: `maxclients`", |scene| {
        f64::from(scene.config.maxclients)
    }),
    gauge("ember_blocked_clients", "Clients in a blocking command", |scene| {
        scene.server.blocked_clients.load(Ordering::Relaxed) as f64
    }),
    gauge("ember_subscribed_clients", "Clients that are subscribed to channels or patterns", |scene| {
        scene.clients.iter().filter(|view| view.is_subscribed()).count() as f64
    }),
    gauge("ember_tracking_clients", "Clients with client-side caching (CLIENT TRACKING)", |scene| {
        scene.server.trackers.len() as f64
    }),
    gauge("ember_watching_clients", "Clients with WATCH", |scene| scene.census.watching_clients as f64),
    counter("ember_connections_received_total", "Connections accepted", |scene| {
        scene.sum(|stats| &stats.connections_received)
    }),
    counter("ember_connections_rejected_total", "Connections refused at `maxclients`", |scene| {
        scene.sum(|stats| &stats.connections_rejected)
    }),
    labelled(
        Kind::Counter,
        "ember_connections_closed_total",
        &["limit"],
        "Connections closed because of a limit: `input` of requests, `output` of replies, or the `memory` of all clients",
        |scene, samples| {
            samples.add(&["input"], scene.sum(|stats| &stats.query_limit_closed));
            samples.add(&["output"], scene.sum(|stats| &stats.output_limit_closed));
            samples.add(&["memory"], scene.sum(|stats| &stats.evicted_clients));
        },
    ),
    gauge("ember_clients_memory_bytes", "Memory of clients' connections and buffers", |scene| {
        scene.memory.clients as f64
    }),
    gauge("ember_input_buffers_bytes", "Unprocessed input of all clients", |scene| {
        buffers(scene, |view| &view.query_bytes).sum::<u64>() as f64
    }),
    gauge("ember_output_buffers_bytes", "Unsent output of all clients", |scene| {
        buffers(scene, |view| &view.output_bytes).sum::<u64>() as f64
    }),
    gauge("ember_largest_input_buffer_bytes", "Unprocessed input of the client with the most", |scene| {
        buffers(scene, |view| &view.query_bytes).max().unwrap_or(0) as f64
    }),
    gauge("ember_largest_output_buffer_bytes", "Unsent output of the client with the most", |scene| {
        buffers(scene, |view| &view.output_bytes).max().unwrap_or(0) as f64
    }),
    counter("ember_network_received_bytes_total", "Bytes read from connections", |scene| {
        scene.server.input_bytes() as f64
    }),
    counter("ember_network_sent_bytes_total", "Bytes written to connections", |scene| {
        scene.sum(|stats| &stats.output_bytes)
    }),
    counter("ember_network_reads_total", "Reads from sockets of clients", |scene| {
        scene.sum(|stats| &stats.reads)
    }),
    counter("ember_network_writes_total", "Writes to sockets of clients", |scene| {
        scene.sum(|stats| &stats.writes)
    }),
    labelled(
        Kind::Gauge,
        "ember_pubsub_subscriptions",
        &["kind"],
        "Channels, patterns and shard channels with subscribers",
        |scene, samples| {
            for (name, kind) in [
                ("channel", Subscription::Channel),
                ("pattern", Subscription::Pattern),
                ("shard_channel", Subscription::ShardChannel),
            ] {
                samples.add(&[name], scene.server.pubsub.len(kind) as f64);
            }
        },
    ),
    gauge("ember_live_queries", "Watched commands", |scene| LiveQueries::of(scene.server).queries() as f64),
    gauge("ember_live_watchers", "Subscriptions of connections to watched commands", |scene| {
        LiveQueries::of(scene.server).watchers() as f64
    }),
    gauge("ember_live_memory_bytes", "Memory of live queries and their watchers", |scene| {
        LiveQueries::of(scene.server).memory_bytes() as f64
    }),
    counter("ember_live_evaluations_total", "Evaluations of watched commands after changes", |scene| {
        scene.sum(|stats| &stats.query_evaluations)
    }),
    counter("ember_live_evaluations_equal_total", "Evaluations with an unchanged result", |scene| {
        scene.sum(|stats| &stats.query_equal)
    }),
    counter("ember_live_evaluation_seconds_total", "Time of evaluations", |scene| {
        scene.sum(|stats| &stats.query_nanoseconds) / 1e9
    }),
    counter("ember_live_states_sent_total", "New results sent to watchers", |scene| {
        scene.sum(|stats| &stats.query_sent)
    }),
    counter(
        "ember_live_states_coalesced_total",
        "New results replaced by newer ones before they were sent",
        |scene| scene.sum(|stats| &stats.query_coalesced),
    ),
    labelled(
        Kind::Histogram,
        "ember_live_lag_seconds",
        &[],
        "Time from a change to the sending of a new result",
        |scene, samples| {
            let mut lag = CommandTotals::default();
            scene.server.workers.iter().for_each(|worker| lag.add(&worker.stats.query_lag));
            durations(&[], &lag, samples);
        },
    ),
    gauge("ember_tracked_keys", "Keys that tracking clients may have cached", |scene| {
        scene.census.tracked_keys as f64
    }),
    gauge("ember_tracked_copies", "Pairs of tracked keys and clients", |scene| {
        scene.census.tracked_copies as f64
    }),
    gauge("ember_tracked_prefixes", "Prefixes of tracking clients in BCAST mode", |scene| {
        scene.server.trackers.prefixes() as f64
    }),
];

fn buffers(scene: &Scene<'_>, bytes: fn(&ClientView) -> &AtomicU64) -> impl Iterator<Item = u64> {
    scene.clients.iter().map(move |view| bytes(view).load(Ordering::Relaxed))
}
