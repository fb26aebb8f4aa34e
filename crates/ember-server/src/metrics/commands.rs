//! Metrics of commands and scripts: numbers of calls, durations, outcomes.

use super::exposition::Samples;
use super::metric::{Kind, Metric, Scene, gauge, labelled};
use crate::observability::command_log::LogKind;
use crate::observability::stats::CommandTotals;

/// The exponent of the last bound of the histograms, whose bounds are powers of two of microseconds: 17 seconds. Longer
/// calls are counted only in the total, and are in the slow log.
const LAST_BUCKET: usize = 24;

pub(super) const METRICS: &[Metric] = &[
    labelled(
        Kind::Counter,
        "ember_commands_total",
        &["command", "outcome"],
        "Commands by outcome: `ok`, `error` for an error reply, `rejected` for commands refused before they ran. \
         Commands without calls are omitted",
        |scene, samples| {
            each_called(scene, |name, totals| {
                samples.add(&[name, "ok"], totals.calls.saturating_sub(totals.failed) as f64);
                samples.add(&[name, "error"], totals.failed as f64);
                samples.add(&[name, "rejected"], totals.rejected as f64);
            });
        },
    ),
    labelled(
        Kind::Histogram,
        "ember_command_duration_seconds",
        &["command"],
        "Run time of commands, without the time they waited in the input or for keys; empty while `latency-tracking` is \
         off",
        |scene, samples| each_called(scene, |name, totals| durations(&[name], totals, samples)),
    ),
    labelled(
        Kind::Counter,
        "ember_errors_total",
        &["code"],
        "Error replies, by their first word",
        |scene, samples| {
            let errors = scene.server.errors_by_code();
            errors.iter().for_each(|(code, &count)| samples.add(&[code], count as f64));
        },
    ),
    labelled(
        Kind::Counter,
        "ember_logged_calls_total",
        &["log"],
        "Calls recorded in one of the logs of COMMANDLOG",
        |scene, samples| {
            for (name, kind) in [
                ("slow", LogKind::Slow),
                ("large_request", LogKind::LargeRequest),
                ("large_reply", LogKind::LargeReply),
                ("large_key", LogKind::LargeKey),
            ] {
                samples.add(&[name], scene.server.command_log.total(kind) as f64);
            }
        },
    ),
    labelled(
        Kind::Counter,
        "ember_acl_denials_total",
        &["reason"],
        "Commands and logins denied by ACL rules",
        |scene, samples| {
            let counts = scene.server.acl.log.counts();
            for (reason, count) in ["auth", "command", "key", "channel"].into_iter().zip(counts) {
                samples.add(&[reason], count as f64);
            }
        },
    ),
    labelled(
        Kind::Counter,
        "ember_scripts_total",
        &["isolation"],
        "Scripts and functions run with `exclusive` access to the keyspace, and `concurrent` with other commands",
        |scene, samples| {
            samples.add(&["exclusive"], scene.sum(|stats| &stats.scripts_exclusive));
            samples.add(&["concurrent"], scene.sum(|stats| &stats.scripts_concurrent));
        },
    ),
    gauge("ember_cached_scripts", "Scripts available to EVALSHA", |scene| {
        scene.server.scripting.scripts.count() as f64
    }),
    gauge("ember_function_libraries", "Libraries of functions", |scene| {
        scene.server.scripting.libraries.snapshot().all().count() as f64
    }),
    gauge("ember_functions", "Functions in these libraries", |scene| {
        scene.server.scripting.libraries.snapshot().functions_count() as f64
    }),
    gauge("ember_script_interpreter_bytes", "Memory of the interpreters of scripts", |scene| {
        scene.server.scripting.interpreter_bytes() as f64
    }),
];

/// Calls `act` for each command that was called or refused.
fn each_called(scene: &Scene<'_>, mut act: impl FnMut(&str, &CommandTotals)) {
    for command in scene.server.registry.all() {
        let totals = scene.server.totals_of(command.index);
        if totals != CommandTotals::default() {
            act(&command.full_name, &totals);
        }
    }
}

/// Writes the histogram of a command's durations. All values are derived from the buckets, so that the total equals the
/// sum of the buckets even if calls are added concurrently.
pub(super) fn durations(labels: &[&str], totals: &CommandTotals, samples: &mut Samples<'_>) {
    let count: u64 = totals.latency.iter().sum();
    if count == 0 {
        return;
    }
    let mut at_most = 0;
    let bounds = totals.latency.iter().take(LAST_BUCKET + 1).enumerate().map(|(bucket, calls)| {
        at_most += calls;
        ((1_u64 << bucket) as f64 / 1e6, at_most)
    });
    let sum = totals.nanoseconds.saturating_sub(totals.untracked_nanoseconds) as f64 / 1e9;
    samples.histogram(labels, bounds, count, sum);
}
