//! Metrics of the keyspace: keys, hits and misses, expiry and eviction.

use super::exposition::Samples;
use super::metric::{Kind, Metric, Scene, counter, gauge, labelled};
use crate::metrics::census::DatabaseCounts;

pub(super) const METRICS: &[Metric] = &[
    labelled(
        Kind::Gauge,
        "ember_db_keys",
        &["db"],
        "Keys of a database. Databases without keys are omitted, except the first",
        |scene, samples| each(scene, samples, |counts| counts.keys as f64),
    ),
    labelled(
        Kind::Gauge,
        "ember_db_expiring_keys",
        &["db"],
        "Keys of a database that have an expiry",
        |scene, samples| each(scene, samples, |counts| counts.volatile as f64),
    ),
    labelled(
        Kind::Gauge,
        "ember_db_mean_ttl_seconds",
        &["db"],
        "The mean time to live of keys that expire, from a sample",
        |scene, samples| each(scene, samples, |counts| counts.mean_ttl_ms() as f64 / 1000.0),
    ),
    counter("ember_keyspace_hits_total", "Reads that found their key", |scene| {
        scene.sum(|stats| &stats.hits)
    }),
    counter("ember_keyspace_misses_total", "Reads that did not find their key", |scene| {
        scene.sum(|stats| &stats.misses)
    }),
    counter("ember_keyspace_changes_total", "Changes of keys", |scene| scene.sum(|stats| &stats.changes)),
    counter("ember_expired_keys_total", "Keys removed because they expired", |scene| {
        scene.sum(|stats| &stats.expired)
    }),
    counter("ember_expired_fields_total", "Fields of hashes removed because they expired", |scene| {
        scene.sum(|stats| &stats.expired_fields)
    }),
    counter("ember_expiry_seconds_total", "Time of active expiry", |scene| {
        scene.sum(|stats| &stats.expire_nanoseconds) / 1e9
    }),
    counter("ember_evicted_keys_total", "Keys evicted at `maxmemory`", |scene| {
        scene.sum(|stats| &stats.evicted)
    }),
    counter(
        "ember_recalled_keys_total",
        "Created keys that were evicted before, and of which a ghost remained",
        |scene| scene.sum(|stats| &stats.recalled),
    ),
    gauge("ember_watched_keys", "Keys watched for transactions", |scene| scene.census.watched_keys as f64),
    gauge("ember_awaited_keys", "Keys that blocking commands wait for", |scene| {
        scene.census.awaited_keys as f64
    }),
];

fn each(scene: &Scene<'_>, samples: &mut Samples<'_>, value: impl Fn(&DatabaseCounts) -> f64) {
    for (index, counts) in scene.census.databases.iter().enumerate() {
        if index == 0 || counts.keys > 0 {
            samples.add(&[&index.to_string()], value(counts));
        }
    }
}
