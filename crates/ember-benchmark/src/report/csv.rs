//! Results as comma-separated values. The first eight columns are those of redis-benchmark.

use crate::figures::Figures;
use crate::target::TestResult;

const COLUMNS: [&str; 17] = [
    "test",
    "rps",
    "avg_latency_ms",
    "min_latency_ms",
    "p50_latency_ms",
    "p95_latency_ms",
    "p99_latency_ms",
    "max_latency_ms",
    "p99_9_latency_ms",
    "requests",
    "errors",
    "never_sent",
    "hit_rate",
    "client_cpu_us",
    "client_busy",
    "server_cpu_us",
    "bound",
];

/// Formats the names of the columns.
pub(crate) fn head() -> String {
    row(COLUMNS.iter().map(|&name| name.to_owned()))
}

/// Formats one result.
pub(crate) fn line(result: &TestResult) -> String {
    let figures = Figures::of(result);
    let (latency, measured) = (&figures.latency, &result.measured);
    let optional = |number: Option<f64>| number.map_or_else(String::new, |number| format!("{number:.4}"));
    let times =
        [latency.average, latency.min, latency.p50, latency.p95, latency.p99, latency.max, latency.p99_9];
    let mut cells = vec![result.name.clone(), format!("{:.2}", figures.rate)];
    cells.extend(times.iter().map(|time| format!("{time:.3}")));
    let counts = [measured.tally.replies, measured.tally.errors, measured.never_sent];
    cells.extend(counts.iter().map(u64::to_string));
    cells.extend([
        optional(figures.hit_rate),
        format!("{:.3}", figures.client_us),
        format!("{:.3}", figures.client_busy),
        optional(figures.server_us),
        figures.bound.word().to_owned(),
    ]);
    row(cells.into_iter())
}

/// Formats cells as a line, all of them quoted.
pub(crate) fn row(cells: impl Iterator<Item = String>) -> String {
    let quoted: Vec<String> = cells.map(|cell| format!("\"{}\"", cell.replace('"', "\"\""))).collect();
    quoted.join(",") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_in_cells_are_doubled() {
        assert_eq!(row(["a\"b".to_owned(), "c,d".to_owned()].into_iter()), "\"a\"\"b\",\"c,d\"\n");
    }
}
