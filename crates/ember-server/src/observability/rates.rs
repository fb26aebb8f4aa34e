//! Rates per second: the mean of the last seconds, computed from samples that worker 0 takes in its ticks.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The maximum number of samples. With [`INTERVAL_MIN`] between them, they cover the last 1.6 seconds, as in Redis.
const SAMPLES: usize = 17;

const INTERVAL_MIN: Duration = Duration::from_millis(100);

/// Totals since startup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) commands: u64,
    pub(crate) input_bytes: u64,
    pub(crate) output_bytes: u64,
    pub(crate) replication_input_bytes: u64,
    pub(crate) replication_output_bytes: u64,
    /// The number of turns of all workers' event loops.
    pub(crate) turns: u64,
    /// The total time of all turns, in ns.
    pub(crate) busy_nanoseconds: u64,
}

/// Mean rates per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct PerSecond {
    pub(crate) commands: f64,
    pub(crate) input_bytes: f64,
    pub(crate) output_bytes: f64,
    pub(crate) replication_input_bytes: f64,
    pub(crate) replication_output_bytes: f64,
    pub(crate) turns: f64,
    pub(crate) busy_nanoseconds: f64,
}

/// Samples of the totals, oldest first.
#[derive(Default)]
pub(crate) struct Rates(Mutex<VecDeque<(Instant, Totals)>>);

impl Rates {
    /// Takes a sample, unless the last one is too recent; `totals` is called only if a sample is taken.
    pub(crate) fn sample(&self, now: Instant, totals: impl FnOnce() -> Totals) {
        let mut samples = self.0.lock();
        if samples.back().is_some_and(|(at, _)| now.duration_since(*at) < INTERVAL_MIN) {
            return;
        }
        samples.push_back((now, totals()));
        if samples.len() > SAMPLES {
            samples.pop_front();
        }
    }

    /// Returns the mean rates between the oldest and the newest sample.
    pub(crate) fn per_second(&self) -> PerSecond {
        let samples = self.0.lock();
        let (Some((from, before)), Some((to, after))) = (samples.front(), samples.back()) else {
            return PerSecond::default();
        };
        let seconds = to.duration_since(*from).as_secs_f64();
        let rate = |before: u64, after: u64| {
            if seconds > 0.0 { after.saturating_sub(before) as f64 / seconds } else { 0.0 }
        };
        PerSecond {
            commands: rate(before.commands, after.commands),
            input_bytes: rate(before.input_bytes, after.input_bytes),
            output_bytes: rate(before.output_bytes, after.output_bytes),
            replication_input_bytes: rate(before.replication_input_bytes, after.replication_input_bytes),
            replication_output_bytes: rate(before.replication_output_bytes, after.replication_output_bytes),
            turns: rate(before.turns, after.turns),
            busy_nanoseconds: rate(before.busy_nanoseconds, after.busy_nanoseconds),
        }
    }

    /// Removes all samples, because the counters were reset.
    pub(crate) fn reset(&self) {
        self.0.lock().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_the_mean_over_the_samples_kept() {
        let rates = Rates::default();
        assert_eq!(rates.per_second(), PerSecond::default());
        let start = Instant::now();
        for tenth in 0..100 {
            let totals = Totals { commands: 5 * tenth, input_bytes: 100 * tenth, ..Totals::default() };
            let at = start + INTERVAL_MIN * tenth as u32;
            rates.sample(at, || totals);
            rates.sample(at + INTERVAL_MIN / 2, || unreachable!("too early"));
        }
        let rates = rates.per_second();
        assert!((rates.commands - 50.0).abs() < 1e-6 && (rates.input_bytes - 1000.0).abs() < 1e-6);
        assert_eq!(rates.output_bytes, 0.0);
    }
}
