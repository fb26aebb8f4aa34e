//! The INFO sections that contain counters: stats, commandstats, errorstats, latencystats.

use std::sync::atomic::Ordering;

use super::Report;
use crate::clients::subscriptions::Kind;
use crate::defragmentation::ActiveDefrag;
use crate::live_queries::LiveQueries;
use crate::metrics::system_figures::SystemFigures;
use crate::migration::Migrations;
use crate::observability::command_log::LogKind;
use crate::observability::stats::{CommandTotals, Counter, LATENCY_BUCKETS, WorkerStats};
use crate::replication::primary::Primary;

pub(super) fn stats(report: &mut Report<'_>) {
    let server = report.server;
    let sum = |counter: fn(&WorkerStats) -> &Counter| server.sum(counter);
    let per_second = server.rates.per_second();
    report.line("total_connections_received", sum(|stats| &stats.connections_received));
    report.line("total_commands_processed", sum(|stats| &stats.commands));
    report.line("instantaneous_ops_per_sec", per_second.commands.round() as u64);
    report.line("total_net_input_bytes", server.input_bytes());
    report.line("total_net_output_bytes", sum(|stats| &stats.output_bytes));
    report.line("total_net_repl_input_bytes", server.replication_input_bytes());
    report.line("total_net_repl_output_bytes", sum(|stats| &stats.replication_output_bytes));
    for (name, bytes) in [
        ("instantaneous_input_kbps", per_second.input_bytes),
        ("instantaneous_output_kbps", per_second.output_bytes),
        ("instantaneous_input_repl_kbps", per_second.replication_input_bytes),
        ("instantaneous_output_repl_kbps", per_second.replication_output_bytes),
    ] {
        report.line(name, format_args!("{:.2}", bytes / 1024.0));
    }
    report.line("rejected_connections", sum(|stats| &stats.connections_rejected));
    let synchronized = &Primary::of(report.server).counts;
    for (name, count) in [
        ("sync_full", &synchronized.full),
        ("sync_partial_ok", &synchronized.partial),
        ("sync_partial_err", &synchronized.partial_refused),
    ] {
        report.line(name, count.load(Ordering::Relaxed));
    }
    report.line("expired_subkeys", sum(|stats| &stats.expired_fields));
    report.line("expired_keys", sum(|stats| &stats.expired));
    report.line("expired_stale_perc", "0.00");
    report.line("expired_time_cap_reached_count", sum(|stats| &stats.expire_cut_short));
    let milliseconds = sum(|stats| &stats.expire_nanoseconds) / 1_000_000;
    report.line("expire_cycle_cpu_milliseconds", milliseconds);
    report.line("evicted_keys", sum(|stats| &stats.evicted));
    report.line("recalled_keys", sum(|stats| &stats.recalled));
    report.line("evicted_clients", sum(|stats| &stats.evicted_clients));
    // Scripts are removed only by SCRIPT FLUSH.
    report.zeros(&["evicted_scripts"]);
    report.line("total_eviction_exceeded_time", server.over_limit.total_ms(report.now_ms));
    report.line("current_eviction_exceeded_time", server.over_limit.current_ms(report.now_ms));
    report.line("keyspace_hits", sum(|stats| &stats.hits));
    report.line("keyspace_misses", sum(|stats| &stats.misses));
    let pubsub = &report.server.pubsub;
    report.line("pubsub_channels", pubsub.len(Kind::Channel));
    report.line("pubsub_patterns", pubsub.len(Kind::Pattern));
    report.line("pubsubshard_channels", pubsub.len(Kind::ShardChannel));
    report.zeros(&["latest_fork_usec", "total_forks"]);
    report.line("migrate_cached_sockets", Migrations::of(server).kept_connections());
    report.zeros(&["slave_expires_tracked_keys"]);
    let defrag = ActiveDefrag::of(server);
    report.line("active_defrag_hits", defrag.hits.load(Ordering::Relaxed));
    report.line("active_defrag_misses", defrag.misses.load(Ordering::Relaxed));
    report.line("active_defrag_key_hits", defrag.key_hits.load(Ordering::Relaxed));
    report.line("active_defrag_key_misses", defrag.key_misses.load(Ordering::Relaxed));
    report.line("total_active_defrag_time", defrag.total_ms(report.now_ms));
    report.line("current_active_defrag_time", defrag.current_ms(report.now_ms));
    let census = report.census();
    report.line("tracking_total_keys", census.tracked_keys);
    report.line("tracking_total_items", census.tracked_copies);
    report.line("tracking_total_prefixes", report.server.trackers.prefixes());
    report.zeros(&["unexpected_error_replies"]);
    report.line("total_error_replies", sum(|stats| &stats.errors));
    report.zeros(&["dump_payload_sanitizations"]);
    report.line("total_reads_processed", sum(|stats| &stats.reads));
    report.line("total_writes_processed", sum(|stats| &stats.writes));
    report.zeros(&["io_threaded_reads_processed", "io_threaded_writes_processed"]);
    report.zeros(&["reply_buffer_shrinks", "reply_buffer_expands"]);
    event_loop(report);
    report.line("client_query_buffer_limit_disconnections", sum(|stats| &stats.query_limit_closed));
    report.line("client_output_buffer_limit_disconnections", sum(|stats| &stats.output_limit_closed));
    let [auth, command, key, channel] = server.acl.log.counts();
    report.line("acl_access_denied_auth", auth);
    report.line("acl_access_denied_cmd", command);
    report.line("acl_access_denied_key", key);
    report.line("acl_access_denied_channel", channel);
    report.line("ember_forwarded_commands", sum(|stats| &stats.forwarded));
    let logged = |kind| server.command_log.total(kind);
    report.line("ember_slow_calls", logged(LogKind::Slow));
    report.line("ember_large_requests", logged(LogKind::LargeRequest));
    report.line("ember_large_replies", logged(LogKind::LargeReply));
    report.line("ember_large_keys", logged(LogKind::LargeKey));
    report.line("ember_scripts_run_exclusively", sum(|stats| &stats.scripts_exclusive));
    report.line("ember_scripts_run_concurrently", sum(|stats| &stats.scripts_concurrent));
    report.line("ember_long_calls", sum(|stats| &stats.long_calls));
    report.line("ember_applied_in_parallel", sum(|stats| &stats.applied_together));
    let live = LiveQueries::of(server);
    report.line("ember_live_queries", live.queries());
    report.line("ember_live_watchers", live.watchers());
    report.line("ember_live_evaluations", sum(|stats| &stats.query_evaluations));
    report.line("ember_live_evaluations_equal", sum(|stats| &stats.query_equal));
    report.line("ember_live_states_sent", sum(|stats| &stats.query_sent));
    report.line("ember_live_states_coalesced", sum(|stats| &stats.query_coalesced));
    report.line("ember_keyspace_changes", sum(|stats| &stats.changes));
}

/// Writes the number of turns of all workers' event loops, their total time in µs, and the part spent on commands.
fn event_loop(report: &mut Report<'_>) {
    let server = report.server;
    let per_second = server.rates.per_second();
    let each = if per_second.turns > 0.0 { per_second.busy_nanoseconds / per_second.turns } else { 0.0 };
    report.line("eventloop_cycles", server.sum(|stats| &stats.turns));
    report.line("eventloop_duration_sum", server.sum(|stats| &stats.busy_nanoseconds) / 1000);
    report.line("eventloop_duration_cmd_sum", SystemFigures::recent(server).command_nanoseconds / 1000);
    report.line("instantaneous_eventloop_cycles_per_sec", per_second.turns.round() as u64);
    report.line("instantaneous_eventloop_duration_usec", (each / 1000.0).round() as u64);
}

pub(super) fn commandstats(report: &mut Report<'_>) {
    let server = report.server;
    for command in server.registry.all() {
        let CommandTotals { calls, nanoseconds, rejected, failed, .. } = server.totals_of(command.index);
        if calls + rejected + failed == 0 {
            continue;
        }
        let microseconds = nanoseconds / 1000;
        let each = if calls == 0 { 0.0 } else { nanoseconds as f64 / 1000.0 / calls as f64 };
        report.line(
            &format!("cmdstat_{}", command.full_name),
            format_args!(
                "calls={calls},usec={microseconds},usec_per_call={each:.2},rejected_calls={rejected},\
                 failed_calls={failed}"
            ),
        );
    }
}

pub(super) fn errorstats(report: &mut Report<'_>) {
    let errors = report.server.errors_by_code();
    for (code, count) in errors {
        report.line(&format!("errorstat_{code}"), format_args!("count={count}"));
    }
}

pub(super) fn latencystats(report: &mut Report<'_>) {
    let server = report.server;
    if !report.config.latency_tracking {
        return;
    }
    for command in server.registry.all() {
        let counts = server.totals_of(command.index).latency;
        if counts.iter().all(|&count| count == 0) {
            continue;
        }
        let percentiles = &report.config.latency_tracking_info_percentiles;
        let shown = percentiles.iter().map(|&p| format!("p{p}={:.3}", percentile(&counts, p)));
        let shown: Vec<String> = shown.collect();
        report.line(&format!("latency_percentiles_usec_{}", command.full_name), shown.join(","));
    }
}

/// Returns an upper bound in µs of the duration of `percent` of the calls: the bound of the histogram bucket that
/// contains the last of these calls.
fn percentile(counts: &[u64; LATENCY_BUCKETS], percent: f64) -> f64 {
    let total: u64 = counts.iter().sum();
    let wanted = (total as f64 * percent / 100.0).ceil().max(1.0) as u64;
    let mut sum = 0;
    for (bucket, &count) in counts.iter().enumerate() {
        sum += count;
        if sum >= wanted {
            return (1u64 << bucket) as f64;
        }
    }
    (1u64 << (LATENCY_BUCKETS - 1)) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_the_upper_bound_of_its_bucket() {
        let mut counts = [0; LATENCY_BUCKETS];
        (counts[0], counts[4]) = (99, 1);
        assert_eq!(percentile(&counts, 50.0), 1.0);
        assert_eq!(percentile(&counts, 99.0), 1.0);
        assert_eq!(percentile(&counts, 99.9), 16.0);
        assert_eq!(percentile(&counts, 0.0), 1.0);
        assert_eq!(percentile(&counts, 100.0), 16.0);
    }
}
