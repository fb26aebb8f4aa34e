//! Records latencies: a histogram for each thread, and the sum over all threads for each tenth of a second.
//!
//! A thread records into the histogram of the current tick. At the end of the tick, that histogram is added to the
//! thread's total and to the same tick of all threads, so that recording a latency takes a single addition.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hdrhistogram::Histogram;

/// Length of a tick, in nanoseconds.
pub(super) const TICK_NS: u64 = 100_000_000;

/// The smallest latency that histograms distinguish, in nanoseconds.
const LATENCY_MIN_NS: u64 = 64;

/// The maximum recorded latency: latencies above an hour count as an hour.
const LATENCY_MAX_NS: u64 = 3_600_000_000_000;

/// The number of decimal digits to which recorded latencies are accurate.
const LATENCY_DIGITS: u8 = 3;

/// A histogram of latencies in nanoseconds.
pub(super) type Latencies = Histogram<u64>;

/// Creates an empty histogram.
pub(super) fn no_latencies() -> Latencies {
    Histogram::new_with_bounds(LATENCY_MIN_NS, LATENCY_MAX_NS, LATENCY_DIGITS)
        .expect("bounds in ascending order")
}

/// Converts nanoseconds to milliseconds.
pub(super) fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

/// The statistics of a tick, or of a run so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Moment {
    /// The end of the tick, in seconds since the start of the run.
    pub(super) end_s: f64,
    /// The length of the tick, in seconds.
    pub(super) length_s: f64,
    /// The number of replies in the tick.
    pub(super) replies: u64,
    /// Median latency in milliseconds.
    pub(super) p50_ms: f64,
    /// 99th percentile of the latency in milliseconds.
    pub(super) p99_ms: f64,
}

/// The records of all threads by tick. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Series {
    threads: usize,
    ticks: Arc<Mutex<Ticks>>,
}

#[derive(Debug, Default)]
struct Ticks {
    /// Ticks that some threads have not finished: the number of threads that have finished the tick, and the latencies
    /// recorded by these.
    open: BTreeMap<u64, (usize, Latencies)>,
    /// Ticks that all threads have finished, in order.
    done: Vec<Moment>,
    replies: u64,
}

impl Series {
    /// Creates a series for `threads` threads.
    pub(super) fn new(threads: usize) -> Series {
        Series { threads, ticks: Arc::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Ticks> {
        // The data under the lock is always consistent, so a poisoned lock can be used.
        self.ticks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the latencies of one thread in tick `index`.
    fn add(&self, index: u64, seen: &Latencies) {
        let mut ticks = self.lock();
        ticks.replies += seen.len();
        let (threads, all) = ticks.open.entry(index).or_insert_with(|| (0, no_latencies()));
        *threads += 1;
        all.add(seen).expect("histograms with equal bounds");
        if *threads == self.threads
            && let Some((_, all)) = ticks.open.remove(&index)
        {
            ticks.done.push(moment(index, TICK_NS, &all));
        }
    }

    /// Returns the number of replies up to the last tick, and the statistics of that tick.
    pub(super) fn now(&self) -> (u64, Option<Moment>) {
        let ticks = self.lock();
        (ticks.replies, ticks.done.last().copied())
    }

    /// Returns all ticks of a run of `elapsed_ns`. The last tick may be shorter than the others.
    pub(super) fn finish(&self, elapsed_ns: u64) -> Vec<Moment> {
        let mut ticks = self.lock();
        let open = std::mem::take(&mut ticks.open);
        ticks.done.extend(open.iter().map(|(index, (_, all))| moment(*index, TICK_NS, all)));
        let mut done = std::mem::take(&mut ticks.done);
        done.sort_by(|left, right| left.end_s.total_cmp(&right.end_s));
        let elapsed_s = elapsed_ns as f64 / 1e9;
        done.retain(|moment| moment.end_s - moment.length_s < elapsed_s);
        if let Some(last) = done.last_mut() {
            let start_s = last.end_s - last.length_s;
            last.end_s = last.end_s.min(elapsed_s);
            last.length_s = last.end_s - start_s;
        }
        // A short last tick has little significance, so it is merged into the tick before.
        if let [.., before, last] = done.as_mut_slice()
            && last.length_s < TICK_NS as f64 / 2e9
        {
            before.end_s = last.end_s;
            before.length_s += last.length_s;
            before.replies += last.replies;
            done.pop();
        }
        done
    }
}

fn moment(index: u64, length_ns: u64, seen: &Latencies) -> Moment {
    Moment {
        end_s: (index * TICK_NS + length_ns) as f64 / 1e9,
        length_s: length_ns as f64 / 1e9,
        replies: seen.len(),
        p50_ms: ms(seen.value_at_quantile(0.5)),
        p99_ms: ms(seen.value_at_quantile(0.99)),
    }
}

/// The records of one thread.
pub(super) struct Recorder {
    tick: Latencies,
    index: u64,
    total: Latencies,
    series: Series,
}

impl Recorder {
    /// Creates an empty recorder.
    pub(super) fn new(series: &Series) -> Recorder {
        Recorder { tick: no_latencies(), index: 0, total: no_latencies(), series: series.clone() }
    }

    /// Records `count` replies with the same latency.
    pub(super) fn record(&mut self, latency_ns: u64, count: u64) {
        let latency = latency_ns.min(LATENCY_MAX_NS);
        self.tick.record_n(latency, count).expect("a latency within the bounds");
    }

    /// Returns the end of the current tick, in nanoseconds since the start.
    pub(super) fn tick_end_ns(&self) -> u64 {
        (self.index + 1) * TICK_NS
    }

    /// Ends the ticks before `now_ns`.
    pub(super) fn advance(&mut self, now_ns: u64) {
        while self.tick_end_ns() <= now_ns {
            self.end_tick();
        }
    }

    fn end_tick(&mut self) {
        self.series.add(self.index, &self.tick);
        if !self.tick.is_empty() {
            self.total.add(&self.tick).expect("histograms with equal bounds");
            self.tick.reset();
        }
        self.index += 1;
    }

    /// Returns all recorded latencies.
    pub(super) fn finish(mut self) -> Latencies {
        self.end_tick();
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_of_all_threads_are_merged() {
        let series = Series::new(2);
        let mut recorders = [Recorder::new(&series), Recorder::new(&series)];
        for recorder in &mut recorders {
            recorder.record(1_000_000, 10);
            recorder.advance(TICK_NS);
            recorder.record(3_000_000, 5);
        }
        assert_eq!(series.now().0, 20);
        assert!((series.now().1.unwrap().p50_ms - 1.0).abs() < 0.01);
        for recorder in recorders {
            assert_eq!(recorder.finish().len(), 15);
        }
        let moments = series.finish(160_000_000);
        assert_eq!(moments.iter().map(|moment| moment.replies).collect::<Vec<_>>(), [20, 10]);
        assert_eq!((moments[0].length_s, moments[1].end_s), (0.1, 0.16));
        assert!((moments[1].p99_ms - 3.0).abs() < 0.01);
    }

    #[test]
    fn an_incomplete_last_tick_is_added_to_the_previous_one() {
        let series = Series::new(1);
        let mut recorder = Recorder::new(&series);
        for end in [TICK_NS, 2 * TICK_NS] {
            recorder.record(1_000_000, 10);
            recorder.advance(end);
        }
        recorder.record(1_000_000, 1);
        recorder.finish();
        let moments = series.finish(210_000_000);
        assert_eq!(moments.iter().map(|moment| moment.replies).collect::<Vec<_>>(), [10, 11]);
        assert!((moments[1].length_s - 0.11).abs() < 1e-9 && (moments[1].end_s - 0.21).abs() < 1e-9);
    }

    #[test]
    fn latencies_are_capped_at_the_recordable_maximum() {
        let mut recorder = Recorder::new(&Series::new(1));
        recorder.record(u64::MAX, 1);
        recorder.record(0, 1);
        let latencies = recorder.finish();
        assert_eq!(latencies.len(), 2);
        assert!(latencies.max() >= LATENCY_MAX_NS / 1000 * 999);
    }
}
