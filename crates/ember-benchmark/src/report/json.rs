//! Results as JSON. Numbers have their units in their names; latencies are in milliseconds.

use serde_json::{Value, json};

use crate::engine::Goal;
use crate::figures::{Figures, remarks};
use crate::origin::Origin;
use crate::target::{Target, TestResult};

/// Formats all tests of a server.
pub(crate) fn document(target: &Target, data_bytes: u32, results: &[TestResult]) -> String {
    let origin = Origin::now();
    let document = json!({
        "date": origin.date,
        "host": origin.host,
        "client": origin.client,
        "command_line": origin.command_line,
        "server": target.facts.server,
        "address": target.address.shown_in_errors(),
        "server_threads": target.facts.threads,
        "keys": target.key_count(),
        "data_bytes": data_bytes,
        "tests": results.iter().map(test).collect::<Vec<_>>(),
    });
    format!("{document:#}\n")
}

/// Formats one test.
pub(crate) fn test(result: &TestResult) -> Value {
    let figures = Figures::of(result);
    let (measured, load, latency) = (&result.measured, &result.load, &figures.latency);
    let (requests, duration_s) = match load.goal {
        Goal::Requests(count) => (Some(count), None),
        Goal::Time(time) => (None, Some(time.as_secs_f64())),
    };
    let moments: Vec<Value> = measured
        .moments
        .iter()
        .map(|moment| {
            json!({
                "end_s": moment.end_s,
                "rps": moment.replies as f64 / moment.length_s,
                "p50_ms": moment.p50_ms,
                "p99_ms": moment.p99_ms,
            })
        })
        .collect();
    json!({
        "test": result.name,
        "clients": load.clients,
        "threads": load.threads,
        "pipeline": load.pipeline,
        "keep_alive": !load.reconnects,
        "asked_requests": requests,
        "asked_duration_s": duration_s,
        "asked_rate": load.rate,
        "requests": measured.tally.replies,
        "elapsed_s": measured.elapsed.as_secs_f64(),
        "rps": figures.rate,
        "latency_ms": {
            "avg": latency.average,
            "min": latency.min,
            "p50": latency.p50,
            "p95": latency.p95,
            "p99": latency.p99,
            "p99_9": latency.p99_9,
            "max": latency.max,
        },
        "errors": measured.tally.errors,
        "first_error": measured.first_error,
        "never_sent": measured.never_sent,
        "hit_rate": figures.hit_rate,
        "client_cpu_us": figures.client_us,
        "client_busy": figures.client_busy,
        "client_waiting": figures.client_waiting,
        "server_cpu_us": figures.server_us,
        "server_processors": figures.server_processors,
        "bound": figures.bound.word(),
        "remarks": remarks(result, &figures),
        "series": moments,
    })
}
