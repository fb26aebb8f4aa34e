//! The figures of the last hour, which a newly opened page shows: one sample of fixed size every ten seconds.

use std::collections::VecDeque;
use std::time::Duration;

use emberkv_core::keyspace::SHARDS;
use parking_lot::Mutex;
use serde_json::{Value as Json, json};

use crate::observability::own_traffic::OwnCounts;
use crate::observability::stats::{CommandTotals, LATENCY_BUCKETS};
use crate::server::Server;
use crate::system::clock::unix_ms;
use crate::system::heap;

/// The time between two samples.
const PERIOD: Duration = Duration::from_secs(10);

/// The maximum number of samples: those of one hour, which take 30 KiB.
const SAMPLES: usize = 360;

/// The latency percentiles in a sample.
const PERCENTILES: [f64; 3] = [50.0, 99.0, 99.9];

/// The samples of a server's last hour.
#[derive(Default)]
pub(crate) struct LastHour(Mutex<Samples>);

#[derive(Default)]
struct Samples {
    /// The totals at the previous sample, with which the next ones are compared.
    last: Option<Totals>,
    /// The samples, oldest first.
    kept: VecDeque<Sample>,
}

/// Totals since startup, excluding the dashboard's own load, and current values.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    at_ms: i64,
    commands: u64,
    hits: u64,
    misses: u64,
    input_bytes: u64,
    output_bytes: u64,
    latency: [u64; LATENCY_BUCKETS],
    memory_bytes: u64,
    clients: u64,
    keys: u64,
}

/// The activity between two readings of the totals, and the current values at the second reading.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Sample {
    at_ms: i64,
    /// Commands per second.
    commands: f64,
    input_bytes: f64,
    output_bytes: f64,
    /// The fraction of reads that found their key; `None` without reads.
    hit_rate: Option<f64>,
    /// Upper bounds of the latency percentiles, in µs; `None` without commands.
    latency: [Option<u64>; PERCENTILES.len()],
    memory_bytes: u64,
    clients: u64,
    keys: u64,
}

impl Totals {
    /// Reads the current totals. Takes O(shards + workers × commands) steps, and the lock of each shard for a moment.
    fn of(server: &Server) -> Totals {
        let OwnCounts { commands, input_bytes, output_bytes, .. } = server.own_traffic.counts();
        let without = |sum: u64, own: u64| sum.saturating_sub(own);
        let mut latency = [0; LATENCY_BUCKETS];
        for command in server.registry.all() {
            let CommandTotals { latency: calls, .. } = server.totals_of(command.index);
            latency.iter_mut().zip(calls).for_each(|(sum, calls)| *sum += calls);
        }
        let keys = |shard: usize| {
            let counts = server.keyspace.counts(shard);
            if counts.is_all {
                return counts.keys as u64;
            }
            let data = server.keyspace.lock(shard);
            (0..data.databases_used()).map(|index| data.database(index).table().len() as u64).sum::<u64>()
        };
        Totals {
            at_ms: unix_ms(),
            commands: without(server.sum(|stats| &stats.commands), commands),
            hits: server.sum(|stats| &stats.hits),
            misses: server.sum(|stats| &stats.misses),
            input_bytes: without(server.input_bytes(), input_bytes),
            output_bytes: without(server.sum(|stats| &stats.output_bytes), output_bytes),
            latency,
            memory_bytes: heap::allocator().allocated.max(server.keyspace.used_bytes() as u64),
            clients: server.clients.count() as u64,
            keys: (0..SHARDS).map(keys).sum(),
        }
    }

    /// Returns the activity since an earlier reading; `None` if counters were reset since, or no time has passed.
    fn since(&self, before: &Totals) -> Option<Sample> {
        let seconds = (self.at_ms - before.at_ms) as f64 / 1000.0;
        if seconds <= 0.0 || self.commands < before.commands || self.hits < before.hits {
            return None;
        }
        let rate = |now: u64, then: u64| now.saturating_sub(then) as f64 / seconds;
        let (hits, misses) = (self.hits - before.hits, self.misses.saturating_sub(before.misses));
        let calls: Vec<u64> =
            self.latency.iter().zip(before.latency).map(|(now, then)| now.saturating_sub(then)).collect();
        Some(Sample {
            at_ms: self.at_ms,
            commands: rate(self.commands, before.commands),
            input_bytes: rate(self.input_bytes, before.input_bytes),
            output_bytes: rate(self.output_bytes, before.output_bytes),
            hit_rate: (hits + misses > 0).then(|| hits as f64 / (hits + misses) as f64),
            latency: PERCENTILES.map(|percent| percentile(&calls, percent)),
            memory_bytes: self.memory_bytes,
            clients: self.clients,
            keys: self.keys,
        })
    }
}

/// Returns the upper bound of a percentile in µs. Element b of `calls` is the number of calls of at most 2^b µs that
/// exceed the bound of the previous element.
fn percentile(calls: &[u64], percent: f64) -> Option<u64> {
    let total: u64 = calls.iter().sum();
    let wanted = ((total as f64 * percent / 100.0).ceil() as u64).max(1);
    let mut sum = 0;
    let bucket = calls.iter().position(|calls| {
        sum += calls;
        sum >= wanted
    });
    bucket.map(|bucket| 1 << bucket)
}

impl LastHour {
    /// Returns the figures of the server.
    pub(super) fn of(server: &Server) -> &LastHour {
        server.services.get()
    }

    fn add(&self, totals: Totals) {
        let mut samples = self.0.lock();
        let sample = samples.last.as_ref().and_then(|last| totals.since(last));
        samples.last = Some(totals);
        if samples.kept.len() == SAMPLES {
            samples.kept.pop_front();
        }
        samples.kept.extend(sample);
    }

    /// Returns one list of samples per figure, oldest first.
    pub(super) fn shown(&self) -> Json {
        let samples = self.0.lock();
        let list = |of: &dyn Fn(&Sample) -> Json| samples.kept.iter().map(of).collect::<Json>();
        json!({
            "at_ms": list(&|sample| json!(sample.at_ms)),
            "operations": list(&|sample| json!(sample.commands)),
            "received": list(&|sample| json!(sample.input_bytes)),
            "sent": list(&|sample| json!(sample.output_bytes)),
            "hits": list(&|sample| json!(sample.hit_rate)),
            "50": list(&|sample| json!(sample.latency[0])),
            "99": list(&|sample| json!(sample.latency[1])),
            "99.9": list(&|sample| json!(sample.latency[2])),
            "memory": list(&|sample| json!(sample.memory_bytes)),
            "clients": list(&|sample| json!(sample.clients)),
            "keys": list(&|sample| json!(sample.keys)),
        })
    }
}

/// Takes samples forever; skips them while the dashboard is disabled.
pub(in crate::control_plane) async fn keep(server: &'static Server) {
    let mut ticks = tokio::time::interval(PERIOD);
    loop {
        ticks.tick().await;
        if server.config.snapshot().metrics_dashboard {
            LastHour::of(server).add(Totals::of(server));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(at_ms: i64, commands: u64) -> Totals {
        let mut latency = [0; LATENCY_BUCKETS];
        latency[3] = commands;
        Totals {
            at_ms,
            commands,
            hits: commands / 2,
            misses: commands / 2,
            latency,
            keys: 7,
            ..Totals::default()
        }
    }

    #[test]
    fn samples_contain_the_changes_since_the_previous_one() {
        let sample = totals(12_000, 300).since(&totals(2_000, 100)).unwrap();
        assert_eq!((sample.commands, sample.hit_rate, sample.keys), (20.0, Some(0.5), 7));
        assert_eq!(sample.latency, [Some(8); 3]);
        let quiet = totals(22_000, 300).since(&totals(12_000, 300)).unwrap();
        assert_eq!((quiet.commands, quiet.hit_rate, quiet.latency), (0.0, None, [None; 3]));
        // After CONFIG RESETSTAT or a clock that was set back, there is no sample.
        assert_eq!(totals(22_000, 1).since(&totals(12_000, 300)), None);
        assert_eq!(totals(2_000, 300).since(&totals(12_000, 100)), None);
    }

    #[test]
    fn only_the_last_hour_is_kept() {
        let figures = LastHour::default();
        (0..SAMPLES as u64 + 50).for_each(|number| figures.add(totals(number as i64 * 10_000, number)));
        let shown = figures.shown();
        assert_eq!(shown["at_ms"].as_array().unwrap().len(), SAMPLES);
        assert_eq!(shown["at_ms"][SAMPLES - 1], (SAMPLES as i64 + 49) * 10_000);
        assert!(shown["operations"][0].as_f64().unwrap() > 0.0);
    }
}
