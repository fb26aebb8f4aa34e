//! Times of single operations in benchmarks: percentiles and rates, as a table in Markdown.

use std::fmt::Write;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

/// The number of exact digits of a recorded time, and the maximum time in ns: longer times are recorded as this one.
const DIGITS: u8 = 3;
const TIME_NS_MAX: u64 = 3600 * 1_000_000_000;

/// The number of measurements of the clock itself.
const CLOCK_SAMPLES: usize = 10_000;

/// The recorded times of one kind of operation.
pub struct OperationTimes {
    histogram: Histogram<u64>,
    total: Duration,
}

impl Default for OperationTimes {
    fn default() -> Self {
        OperationTimes {
            histogram: Histogram::new_with_bounds(1, TIME_NS_MAX, DIGITS).expect("the bounds are valid"),
            total: Duration::ZERO,
        }
    }
}

impl OperationTimes {
    /// Runs an operation, and records and returns the time that it takes.
    #[inline]
    pub fn time<R>(&mut self, operation: impl FnOnce() -> R) -> Duration {
        let start = Instant::now();
        std::hint::black_box(operation());
        let time = start.elapsed();
        self.record(time);
        time
    }

    /// Records a time.
    pub fn record(&mut self, time: Duration) {
        self.histogram.saturating_record(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        self.total += time;
    }

    /// Returns the number of recorded times.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Returns the time that a share of all operations does not exceed: 0.5 for the median.
    pub fn quantile(&self, share: f64) -> Duration {
        Duration::from_nanos(self.histogram.value_at_quantile(share))
    }

    /// Returns the number of operations per second of recorded time.
    pub fn per_second(&self) -> f64 {
        if self.total.is_zero() { 0.0 } else { self.count() as f64 / self.total.as_secs_f64() }
    }
}

/// Returns the median time of an empty operation: the part of each recorded time that the clock takes.
pub fn clock_time() -> Duration {
    let mut times = OperationTimes::default();
    for _ in 0..CLOCK_SAMPLES {
        times.time(|| ());
    }
    times.quantile(0.5)
}

/// Returns a table with a row for each operation: its name, its rate, its median, P99 and P99.9, and the cells of the
/// further columns.
pub fn times_table(further: &[&str], rows: &[(String, &OperationTimes, Vec<String>)]) -> String {
    let mut columns = vec!["operation", "operations/s", "P50", "P99", "P99.9"];
    columns.extend(further);
    let mut table = format!("| {} |\n|---{}|\n", columns.join(" | "), "|--:".repeat(columns.len() - 1));
    for (name, times, cells) in rows {
        let shown = [0.5, 0.99, 0.999].map(|share| readable(times.quantile(share)));
        let rate = format!("{:.0}", times.per_second());
        let mut row = vec![name.as_str(), &rate];
        row.extend(shown.iter().map(String::as_str));
        row.extend(cells.iter().map(String::as_str));
        writeln!(table, "| {} |", row.join(" | ")).expect("a string accepts all text");
    }
    table
}

/// Formats a time with at least two significant digits.
fn readable(time: Duration) -> String {
    let ns = time.as_nanos() as f64;
    match ns {
        ns if ns < 1e3 => format!("{ns:.0} ns"),
        ns if ns < 1e4 => format!("{:.1} µs", ns / 1e3),
        ns if ns < 1e6 => format!("{:.0} µs", ns / 1e3),
        ns if ns < 1e7 => format!("{:.1} ms", ns / 1e6),
        ns => format!("{:.0} ms", ns / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_rates_and_percentiles() {
        let mut times = OperationTimes::default();
        (1..=1000).for_each(|us| times.record(Duration::from_micros(us)));
        let rows = [("GET".to_owned(), &times, vec!["0.98".to_owned()])];
        let expected = "| operation | operations/s | P50 | P99 | P99.9 | recall |\n\
                        |---|--:|--:|--:|--:|--:|\n\
                        | GET | 1998 | 500 µs | 990 µs | 999 µs | 0.98 |\n";
        assert_eq!(times_table(&["recall"], &rows), expected);
        assert_eq!((times.count(), OperationTimes::default().per_second()), (1000, 0.0));
    }

    #[test]
    fn times_have_a_readable_unit() {
        let shown =
            [83, 999, 1500, 15_000, 1_500_000, 52_000_000].map(|ns| readable(Duration::from_nanos(ns)));
        assert_eq!(shown, ["83 ns", "999 ns", "1.5 µs", "15 µs", "1.5 ms", "52 ms"]);
    }
}
