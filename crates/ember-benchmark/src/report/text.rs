//! Results as text: a block for each test, or a line with `-q`.

use std::fmt::Write;

use crate::figures::{Figures, all_missed, remarks};
use crate::origin::Origin;
use crate::target::{Target, TestResult};

/// Formats the line of `-q`, like redis-benchmark.
pub(crate) fn line(result: &TestResult) -> String {
    let figures = Figures::of(result);
    let missed = all_missed(result).map(|text| format!(" ({text})")).unwrap_or_default();
    format!(
        "{}: {:.2} requests per second, p50={:.3} msec{missed}\n",
        result.name, figures.rate, figures.latency.p50
    )
}

/// Describes the measured server and the load.
pub(crate) fn head(target: &Target, data_bytes: u32) -> String {
    let keys = match target.key_count() {
        1 => "1 key".to_owned(),
        count => format!("{count} keys"),
    };
    let place = target.address.shown_in_errors();
    format!(
        "{} at {place}; {keys}, values of {data_bytes} bytes\n{}",
        target.facts.server,
        Origin::now().lines()
    )
}

/// Returns a count with its noun: `1 client`, `2 clients`.
pub(super) fn plural(count: u32, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Formats all results of one test.
pub(crate) fn block(result: &TestResult) -> String {
    let figures = Figures::of(result);
    let (measured, load, latency) = (&result.measured, &result.load, &figures.latency);
    let mut text = format!("\n{}\n", result.name);
    let mut put = |name: &str, value: String| {
        writeln!(text, "  {name:<12} {value}").expect("writing to a string cannot fail");
    };
    let rate = load.rate.map_or_else(String::new, |rate| format!(", {rate} scheduled per second"));
    put(
        "requests",
        format!(
            "{} in {:.3} s by {} on {}, pipeline {}{rate}",
            measured.tally.replies,
            measured.elapsed.as_secs_f64(),
            plural(load.clients, "client"),
            plural(load.threads, "thread"),
            load.pipeline
        ) + if load.reconnects { ", a new connection for each" } else { "" },
    );
    put("throughput", format!("{:.2} requests per second", figures.rate));
    put(
        "latency, ms",
        format!(
            "avg {:.3}  min {:.3}  p50 {:.3}  p95 {:.3}  p99 {:.3}  p99.9 {:.3}  max {:.3}",
            latency.average, latency.min, latency.p50, latency.p95, latency.p99, latency.p99_9, latency.max
        ),
    );
    if let Some(rate) = figures.hit_rate {
        put("hit rate", format!("{:.2} %", rate * 100.0));
    }
    let server = figures.server_us.map_or_else(String::new, |us| format!(", server {us:.2} µs"));
    put(
        "CPU",
        format!(
            "client {:.2} µs{server} per request; busiest client thread {:.0} %",
            figures.client_us,
            figures.client_busy * 100.0
        ),
    );
    for remark in remarks(result, &figures) {
        put("note", remark);
    }
    text
}
