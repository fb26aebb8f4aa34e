//! `--compare`: measures several servers in pairs, one directly after the other.
//!
//! The speed of a machine varies from minute to minute. So in every round each other server is measured directly before
//! or after the first one, in an order that alternates from round to round, and the ratios within these pairs are
//! reported.

use serde_json::{Value, json};

use super::arguments::BenchmarkArguments;
use super::failure::Failure;
use super::figures::Figures;
use super::origin::Origin;
use super::report::html::{ComparedTest, Page};
use super::report::{csv, json, table};
use super::target::{Load, Target, TestResult};
use super::workload::Workload;
use ember_client::put;
use ember_client::{Address, Place};

/// The results of both servers of a pair in one round.
struct Pair {
    first: TestResult,
    other: TestResult,
}

impl Pair {
    fn ratio(&self) -> f64 {
        Figures::of(&self.other).rate / Figures::of(&self.first).rate.max(f64::MIN_POSITIVE)
    }
}

/// The results of all rounds of a test with one other server.
struct Comparison {
    test: String,
    /// The index of the other server.
    other: usize,
    pairs: Vec<Pair>,
}

/// Runs each test on all servers; returns the number of error replies.
///
/// # Errors
/// Returns a message if an address is invalid, or a server cannot be measured.
pub(super) fn run(
    arguments: &BenchmarkArguments,
    workloads: &[Workload],
    address: Address,
) -> Result<u64, Failure> {
    let load = Load::of(arguments);
    let page = arguments.output.report.as_deref().map(Page::create).transpose()?;
    let mut others = Vec::new();
    for text in &arguments.target.compare {
        let place = place(text).ok_or_else(|| Failure(format!("--compare: {text} is not HOST:PORT")))?;
        others.push(Target::open(Address { place, ..address.clone() }, arguments)?);
    }
    let mut first = Target::open(address, arguments)?;
    let mut comparisons = Vec::new();
    for workload in workloads {
        for (index, other) in others.iter_mut().enumerate() {
            let mut pairs = Vec::new();
            for round in 0..arguments.target.rounds {
                pairs.push(measure_pair(&mut first, other, workload, &load, round % 2 == 1)?);
            }
            comparisons.push(Comparison { test: workload.name.clone(), other: index, pairs });
        }
    }
    let rows = rows(&first, &others, &comparisons);
    show(arguments, &first, &others, &comparisons, &rows);
    if let Some(page) = page {
        let tests: Vec<ComparedTest> =
            comparisons.iter().map(|row| compared(&first, &others[row.other], row)).collect();
        page.write_comparison(&Origin::now().lines(), &rows, &tests)?;
    }
    let errors = |pair: &Pair| pair.first.measured.tally.errors + pair.other.measured.tally.errors;
    Ok(comparisons.iter().flat_map(|comparison| &comparison.pairs).map(errors).sum())
}

fn measure_pair(
    first: &mut Target,
    other: &mut Target,
    workload: &Workload,
    load: &Load,
    other_goes_first: bool,
) -> Result<Pair, Failure> {
    if other_goes_first {
        let other = other.measure(workload, load)?;
        return Ok(Pair { other, first: first.measure(workload, load)? });
    }
    let first = first.measure(workload, load)?;
    Ok(Pair { first, other: other.measure(workload, load)? })
}

/// Parses `HOST:PORT` or `[ADDRESS]:PORT`.
fn place(text: &str) -> Option<Place> {
    let (host, port) = text.trim().rsplit_once(':')?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let port = port.parse().ok()?;
    (!host.is_empty()).then(|| Place::Tcp { host: host.to_owned(), port })
}

/// Returns the figures of a test by round.
fn compared(first: &Target, other: &Target, comparison: &Comparison) -> ComparedTest {
    let of = |value: &dyn Fn(&Figures) -> f64| {
        let side = |result: &dyn Fn(&Pair) -> Figures| {
            comparison.pairs.iter().map(|pair| value(&result(pair))).collect::<Vec<f64>>()
        };
        [side(&|pair| Figures::of(&pair.first)), side(&|pair| Figures::of(&pair.other))]
    };
    ComparedTest {
        test: comparison.test.clone(),
        servers: [name(first), name(other)],
        rates: of(&|figures| figures.rate),
        p99_ms: of(&|figures| figures.latency.p99),
    }
}

fn name(target: &Target) -> String {
    format!("{} at {}", target.facts.server, target.address.shown_in_errors())
}

fn show(
    arguments: &BenchmarkArguments,
    first: &Target,
    others: &[Target],
    comparisons: &[Comparison],
    rows: &[Vec<String>],
) {
    let output = &arguments.output;
    if output.json {
        let rows: Vec<Value> =
            comparisons.iter().map(|row| document(first, &others[row.other], row)).collect();
        let Origin { date, host, client, command_line } = Origin::now();
        let document = json!({
            "date": date,
            "host": host,
            "client": client,
            "command_line": command_line,
            "comparisons": rows,
        });
        put(format!("{document:#}\n").as_bytes());
        return;
    }
    if output.csv {
        let lines: String = rows.iter().map(|cells| csv::row(cells.iter().cloned())).collect();
        put(lines.as_bytes());
    } else {
        put(format!("{}\n{}", Origin::now().lines(), table(rows, 2)).as_bytes());
    }
}

/// Returns the table of all results; the first row names the columns.
fn rows(first: &Target, others: &[Target], comparisons: &[Comparison]) -> Vec<Vec<String>> {
    let head = [
        "test",
        "server",
        "rps",
        "ratio",
        "ratio_min",
        "ratio_max",
        "p50_ms",
        "p99_ms",
        "client_bound",
        "errors",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for comparison in comparisons {
        let ratios: Vec<f64> = comparison.pairs.iter().map(Pair::ratio).collect();
        let results: [Vec<&TestResult>; 2] = [
            comparison.pairs.iter().map(|pair| &pair.first).collect(),
            comparison.pairs.iter().map(|pair| &pair.other).collect(),
        ];
        rows.push(row(&comparison.test, &name(first), &results[0], &[1.0]));
        rows.push(row(&comparison.test, &name(&others[comparison.other]), &results[1], &ratios));
    }
    rows
}

/// Returns the table row of a server: the medians of all rounds, and for ratios also their range.
fn row(test: &str, server: &str, results: &[&TestResult], ratios: &[f64]) -> Vec<String> {
    let figures: Vec<Figures> = results.iter().map(|result| Figures::of(result)).collect();
    let of = |value: &dyn Fn(&Figures) -> f64| median(figures.iter().map(value).collect());
    let bound = figures.iter().filter(|figures| figures.bound == super::figures::Bound::Client).count();
    let errors: u64 = results.iter().map(|result| result.measured.tally.errors).sum();
    vec![
        test.to_owned(),
        server.to_owned(),
        format!("{:.0}", of(&|figures| figures.rate)),
        format!("{:.2}", median(ratios.to_vec())),
        format!("{:.2}", ratios.iter().copied().fold(f64::INFINITY, f64::min)),
        format!("{:.2}", ratios.iter().copied().fold(0.0, f64::max)),
        format!("{:.3}", of(&|figures| figures.latency.p50)),
        format!("{:.3}", of(&|figures| figures.latency.p99)),
        format!("{bound} of {}", figures.len()),
        errors.to_string(),
    ]
}

fn document(first: &Target, other: &Target, comparison: &Comparison) -> Value {
    let rounds: Vec<Value> = comparison
        .pairs
        .iter()
        .map(|pair| json!({ "ratio": pair.ratio(), "first": json::test(&pair.first), "other": json::test(&pair.other) }))
        .collect();
    let ratios: Vec<f64> = comparison.pairs.iter().map(Pair::ratio).collect();
    let server = |target: &Target| json!({ "server": target.facts.server, "address": target.address.shown_in_errors() });
    json!({
        "test": comparison.test,
        "first": server(first),
        "other": server(other),
        "ratio": median(ratios),
        "rounds": rounds,
    })
}

/// Returns the median; for an even count, the mean of the two middle numbers.
fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    match numbers.len() {
        0 => 0.0,
        count if count % 2 == 1 => numbers[count / 2],
        count => f64::midpoint(numbers[count / 2 - 1], numbers[count / 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_have_a_host_and_a_port() {
        let tcp = |host: &str, port| Some(Place::Tcp { host: host.to_owned(), port });
        assert_eq!(place("127.0.0.1:6399"), tcp("127.0.0.1", 6399));
        assert_eq!(place(" [::1]:7"), tcp("::1", 7));
        for text in ["", "host", ":1", "host:", "host:66000", "host:x"] {
            assert_eq!(place(text), None, "{text}");
        }
    }

    #[test]
    fn medians_of_odd_and_even_counts_are_correct() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
    }
}
