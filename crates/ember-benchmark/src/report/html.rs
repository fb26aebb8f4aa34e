//! Results as a self-contained page: it includes its style and plots, and loads nothing from the network.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::svg::{Axis, Line, Plot};
use super::text::plural;
use crate::failure::Failure;
use crate::figures::{Figures, remarks};
use crate::recorder::{Moment, ms};
use crate::sweep::Scaling;
use crate::target::{Target, TestResult};
use ember_client::cause;

/// The maximum number of points in a line over time; beyond that, adjacent points are averaged.
const TIME_POINTS_MAX: usize = 200;

/// The percentiles in plots.
const PERCENTILES: [(f64, &str); 7] =
    [(0.0, "min"), (0.5, "50"), (0.9, "90"), (0.99, "99"), (0.999, "99.9"), (0.9999, "99.99"), (1.0, "max")];

const STYLE: &str = "
:root { color-scheme: light dark; --text: #1c1c1e; --back: #ffffff; --grid: #d9d9de; --dim: #62626a;
  --first: #0b62c4; --second: #b3401a; }
@media (prefers-color-scheme: dark) { :root { --text: #ececf0; --back: #17171a; --grid: #3a3a40; --dim: #a0a0a8;
  --first: #66b0ff; --second: #ff9a6b; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--back); max-width: 72rem;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.5rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
.wide { overflow-x: auto; }
th, td { padding: .3rem .7rem; text-align: right; border-bottom: 1px solid var(--grid); }
th:first-child, td:first-child { text-align: left; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: 1rem; }
svg { width: 100%; height: auto; font: 11px system-ui, sans-serif; }
svg text { fill: var(--dim); } svg .title { font-size: 13px; fill: var(--text); }
.left { text-anchor: end; } .below { text-anchor: middle; } svg .name { text-anchor: end; }
.grid { stroke: var(--grid); stroke-width: 1; } .line { fill: none; stroke-width: 2; }
.l0 { stroke: var(--first); } .l1 { stroke: var(--second); }
.dot.d0, svg .name.d0 { fill: var(--first); } .dot.d1, svg .name.d1 { fill: var(--second); }
.note { color: var(--dim); }
";

/// A page to be written. The file is created before the measurements, so that an error is reported early.
pub(crate) struct Page {
    file: File,
    path: PathBuf,
}

impl Page {
    /// Creates the file.
    ///
    /// # Errors
    /// Returns a message if the file cannot be created.
    pub(crate) fn create(path: &Path) -> Result<Page, Failure> {
        let file = File::create(path).map_err(|error| unwritten(path, &error))?;
        Ok(Page { file, path: path.to_owned() })
    }

    /// Writes all results.
    ///
    /// # Errors
    /// Returns a message if the file cannot be written.
    pub(crate) fn write(
        mut self,
        target: &Target,
        data_bytes: u32,
        results: &[TestResult],
        scalings: &[Scaling],
    ) -> Result<(), Failure> {
        let mut parts = vec![summary(results)];
        let no_scaling = Scaling::default();
        for (index, result) in results.iter().enumerate() {
            parts.push(section(result, scalings.get(index).unwrap_or(&no_scaling)));
        }
        self.put(&document(&super::text::head(target, data_bytes), &parts))
    }

    /// Writes a comparison of servers: its table, whose first row names the columns, and the plots of each test.
    ///
    /// # Errors
    /// Returns a message if the file cannot be written.
    pub(crate) fn write_comparison(
        mut self,
        head: &str,
        rows: &[Vec<String>],
        tests: &[ComparedTest],
    ) -> Result<(), Failure> {
        let parts: Vec<String> =
            std::iter::once(rows_as_table(rows)).chain(tests.iter().map(ComparedTest::section)).collect();
        self.put(&document(head, &parts))
    }

    fn put(&mut self, text: &str) -> Result<(), Failure> {
        self.file.write_all(text.as_bytes()).map_err(|error| unwritten(&self.path, &error))
    }
}

/// The figures of a test of two servers, by round.
pub(crate) struct ComparedTest {
    pub(crate) test: String,
    /// The names of both servers.
    pub(crate) servers: [String; 2],
    /// Requests per second of both servers.
    pub(crate) rates: [Vec<f64>; 2],
    /// p99 in milliseconds of both servers.
    pub(crate) p99_ms: [Vec<f64>; 2],
}

impl ComparedTest {
    fn section(&self) -> String {
        let [first, other] = &self.servers;
        format!(
            "<section>\n<h2>{}</h2>\n<p>First: {}. Other: {}.</p>\n<div class=\"plots\">\n{}{}</div>\n</section>",
            escape(&self.test),
            escape(first),
            escape(other),
            by_round("Requests per second by round", &self.rates).render(),
            by_round("p99 in milliseconds by round", &self.p99_ms).render()
        )
    }
}

fn by_round(title: &str, figures: &[Vec<f64>; 2]) -> Plot {
    let points = |values: &Vec<f64>| values.iter().enumerate().map(|(round, y)| (round as f64, *y)).collect();
    Plot {
        title: title.to_owned(),
        below: "round",
        axis: Axis::Words((1..=figures[0].len()).map(|round| round.to_string()).collect()),
        lines: vec![
            Line { name: "first", points: points(&figures[0]) },
            Line { name: "other", points: points(&figures[1]) },
        ],
    }
}

fn rows_as_table(rows: &[Vec<String>]) -> String {
    let mut text = String::from("<div class=\"wide\"><table>\n");
    for (index, row) in rows.iter().enumerate() {
        let tag = if index == 0 { "th" } else { "td" };
        let cells: String = row.iter().map(|cell| format!("<{tag}>{}</{tag}>", escape(cell))).collect();
        text.push_str(&format!("<tr>{cells}</tr>\n"));
    }
    text + "</table></div>"
}

fn unwritten(path: &Path, error: &std::io::Error) -> Failure {
    Failure(format!("Cannot write {}: {}", path.display(), cause(error)))
}

fn document(head: &str, parts: &[String]) -> String {
    let mut text = String::from("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    text.push_str(
        "<meta name=\"viewport\" content=\"width=device-width\">\n<title>ember-cli benchmark</title>\n",
    );
    let mut put = |part: &str| {
        text.push_str(part);
        text.push('\n');
    };
    put(&format!(
        "<style>{STYLE}</style>\n</head>\n<body>\n<h1>ember-cli benchmark</h1>\n<p>{}</p>",
        escape(head.trim()).replace('\n', "<br>\n")
    ));
    parts.iter().for_each(|part| put(part));
    put("</body>\n</html>");
    text
}

fn summary(results: &[TestResult]) -> String {
    let mut text = String::from(
        "<div class=\"wide\"><table>\n<tr><th>test</th><th>requests/s</th><th>p50, ms</th><th>p99, ms</th><th>p99.9, ms</th>\
         <th>max, ms</th><th>hit rate</th><th>client CPU, µs</th><th>server CPU, µs</th><th>bound by</th></tr>\n",
    );
    for result in results {
        let figures = Figures::of(result);
        let latency = &figures.latency;
        let optional = |number: Option<f64>, unit: &str| {
            number.map_or_else(|| "–".to_owned(), |number| format!("{number:.2}{unit}"))
        };
        writeln!(
            text,
            "<tr><td>{}</td><td>{:.0}</td><td>{:.3}</td><td>{:.3}</td><td>{:.3}</td><td>{:.3}</td><td>{}</td>\
             <td>{:.2}</td><td>{}</td><td>{}</td></tr>",
            escape(&result.name),
            figures.rate,
            latency.p50,
            latency.p99,
            latency.p99_9,
            latency.max,
            optional(figures.hit_rate.map(|rate| rate * 100.0), " %"),
            figures.client_us,
            optional(figures.server_us, ""),
            figures.bound.word()
        )
        .expect("writing to a string cannot fail");
    }
    text + "</table></div>"
}

fn section(result: &TestResult, scaling: &Scaling) -> String {
    let figures = Figures::of(result);
    let load = &result.load;
    let mut text = format!("<section>\n<h2>{}</h2>\n", escape(&result.name));
    let mut put = |part: String| {
        text.push_str(&part);
        text.push('\n');
    };
    put(format!(
        "<p>{} requests in {:.3} s by {} on {}, pipeline {}.</p>",
        result.measured.tally.replies,
        result.measured.elapsed.as_secs_f64(),
        plural(load.clients, "client"),
        plural(load.threads, "thread"),
        load.pipeline
    ));
    for remark in remarks(result, &figures) {
        put(format!("<p class=\"note\">{}</p>", escape(&remark)));
    }
    put("<div class=\"plots\">".to_owned());
    put(over_time(result).render());
    put(latency_over_time(result).render());
    put(percentiles(result).render());
    put(scaled("Requests per second by connections", "connections", &scaling.by_clients).render());
    put(scaled("Requests per second by pipeline", "pipeline", &scaling.by_pipeline).render());
    put("</div>\n</section>".to_owned());
    text
}

fn over_time(result: &TestResult) -> Plot {
    let rate = |chunk: &[Moment]| {
        let replies: u64 = chunk.iter().map(|moment| moment.replies).sum();
        replies as f64 / length_s(chunk).max(1e-9)
    };
    timed(
        result,
        "Requests per second over time",
        vec![Line { name: "requests", points: points(result, &rate) }],
    )
}

fn latency_over_time(result: &TestResult) -> Plot {
    let mean = |value: fn(&Moment) -> f64| {
        move |chunk: &[Moment]| chunk.iter().map(value).sum::<f64>() / chunk.len().max(1) as f64
    };
    let lines = vec![
        Line { name: "p50", points: points(result, &mean(|moment| moment.p50_ms)) },
        Line { name: "p99", points: points(result, &mean(|moment| moment.p99_ms)) },
    ];
    timed(result, "Latency in milliseconds over time", lines)
}

fn timed(result: &TestResult, title: &str, lines: Vec<Line>) -> Plot {
    let axis = Axis::Numbers(result.measured.elapsed.as_secs_f64());
    Plot { title: title.to_owned(), below: "seconds", axis, lines }
}

fn length_s(chunk: &[Moment]) -> f64 {
    chunk.iter().map(|moment| moment.length_s).sum()
}

/// Returns the points of a line over time; each is in the middle of the time it represents.
fn points(result: &TestResult, value: &dyn Fn(&[Moment]) -> f64) -> Vec<(f64, f64)> {
    let moments = &result.measured.moments;
    let at_once = moments.len().div_ceil(TIME_POINTS_MAX).max(1);
    let middle = |chunk: &[Moment]| chunk.last().map_or(0.0, |last| last.end_s - length_s(chunk) / 2.0);
    moments.chunks(at_once).map(|chunk| (middle(chunk), value(chunk))).collect()
}

fn percentiles(result: &TestResult) -> Plot {
    let latencies = &result.measured.latencies;
    let at = |(index, (quantile, _)): (usize, &(f64, &str))| {
        let ns = if *quantile == 0.0 { latencies.min() } else { latencies.value_at_quantile(*quantile) };
        (index as f64, ms(ns))
    };
    Plot {
        title: "Latency in milliseconds by percentile".to_owned(),
        below: "percentile",
        axis: Axis::Words(PERCENTILES.iter().map(|(_, name)| (*name).to_owned()).collect()),
        lines: vec![Line { name: "latency", points: PERCENTILES.iter().enumerate().map(at).collect() }],
    }
}

fn scaled(title: &str, below: &'static str, points: &[(u32, f64)]) -> Plot {
    Plot {
        title: title.to_owned(),
        below,
        axis: Axis::Words(points.iter().map(|(count, _)| count.to_string()).collect()),
        lines: vec![Line {
            name: "requests",
            points: points.iter().enumerate().map(|(index, (_, rate))| (index as f64, *rate)).collect(),
        }],
    }
}

/// Escapes text for HTML.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
