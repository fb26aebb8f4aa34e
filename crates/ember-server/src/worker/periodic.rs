//! Periodic work: expiry, eviction, timeouts, buffer limits, and samples for INFO.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use ember_config::ShutdownOptions;
use emberkv_core::keys::Guards;

use super::Worker;
use crate::aof::rewriting;
use crate::aof::service::Aof;
use crate::aof::slow_disk;
use crate::clients::ending::EndReason;
use crate::cluster::shard;
use crate::defragmentation;
use crate::metrics::memory_report;
use crate::migration::Migrations;
use crate::observability::rates::Totals;
use crate::replication::primary::upkeep;
use crate::replication::shutdown;
use crate::snapshot::background::begin_bgsave;
use crate::snapshot::state::SnapshotState;
use crate::system::heap;

/// The number of references that active expiry checks per turn, to be multiplied by `active-expire-effort`. With effort
/// 1 that takes about 0.1 ms, so a million keys that are due at the same time delay no batch by more; the remaining
/// keys follow in the next turns.
const EXPIRE_BUDGET: usize = 1000;

/// The distance, in shards, between the starts of two rounds of active expiry. It is a prime, so that each shard is the
/// first at some time.
const EXPIRE_STRIDE: usize = 61;

/// The interval at which worker 0 searches for keys that have become hot.
const ANNOUNCE_INTERVAL: Duration = Duration::from_millis(500);

/// The maximum number of connections checked for timeouts per tick.
const TIMEOUT_CHECKS_MAX: usize = 1000;

/// The time, in ms, after which a connection with an incomplete TLS handshake is closed.
const HANDSHAKE_TIMEOUT_MS: i64 = 10_000;

impl Worker {
    pub(super) fn tick(&mut self) {
        self.next_tick = Instant::now() + Duration::from_secs(1) / self.executor.config.hz;
        if !self.server.debug.pauses_periodic_work.load(Ordering::Relaxed) {
            self.work_periodically();
        }
        self.server.end_push_delay();
        self.server.forget_turns();
        self.server.scripting.forget_if_requested();
        self.resume_paused();
        self.settle_jobs();
        self.connections.is_accepting |= std::mem::take(&mut self.connections.accepts_at_tick);
    }

    fn work_periodically(&mut self) {
        if !self.server.is_loading() {
            self.observed("expire-cycle", Worker::expire);
            self.observed("eviction-cycle", |worker| worker.executor.free_memory_in_background());
        }
        slow_disk::watch(self.server, &self.executor.config);
        self.check_timeouts();
        self.list_replicas();
        defragmentation::flush_after_walk(self.server, &mut self.flushed_for);
        if self.executor.index == 0 {
            self.sample();
            self.check_tls_files();
            Migrations::of(self.server).close_unused();
            defragmentation::start_if_enabled(self.server, &self.executor.config);
        }
        if self.executor.index == 0 && !self.server.is_loading() {
            self.observed("tracking-table-limit", |worker| worker.executor.limit_tracked());
            self.observed("replication", |worker| {
                upkeep::work(&mut worker.executor);
                shard::work(&mut worker.executor);
            });
            if SnapshotState::of(self.server).background.is_due(self.server, &self.executor.config) {
                // If the snapshot cannot begin, the reason is logged, and it is retried.
                self.observed("snapshot", |worker| _ = begin_bgsave(&mut worker.executor));
            }
            if rewriting::is_due(self.server, &self.executor.config) {
                self.observed("aof-rewrite", |worker| rewriting::begin_due(&mut worker.executor));
            }
            if Instant::now() >= self.announces_at {
                self.announces_at = Instant::now() + ANNOUNCE_INTERVAL;
                self.server.announce_hot_keys(&mut self.announced);
            }
        }
    }

    /// Retries the waiting commands of other workers. Resumes the connections that wait for the end of a pause, for a
    /// snapshot or for held keys, unless a pause is still in effect.
    pub(super) fn resume_paused(&mut self) {
        self.executor.run_held();
        if !self.connections.paused.is_empty() && !self.server.pause.holds(self.executor.turn.now_ms, true) {
            for token in std::mem::take(&mut self.connections.paused) {
                self.resume(token);
            }
        }
    }

    /// Begins a shutdown that a signal has requested.
    #[cold]
    pub(super) fn begin_shutdown(&mut self, options: ShutdownOptions) {
        if !self.executor.enter_gate() {
            return; // after the script that runs
        }
        self.ending = None;
        shutdown::begin(&mut self.executor, options, None);
        self.server.gate.leave(self.executor.index);
        self.executor.publish();
    }

    /// Does periodic work, and reports it to the latency monitor if it takes too long.
    pub(super) fn observed(&mut self, event: &'static str, work: impl FnOnce(&mut Worker)) {
        let begun = Instant::now();
        let (gate, worker) = (&self.server.gate, self.executor.index);
        if !self.executor.enter_gate() {
            return; // a script runs for long; the next tick tries again
        }
        work(self);
        self.executor.deliver(&mut Guards::None, None);
        gate.leave(worker);
        self.executor.publish();
        let milliseconds = begun.elapsed().as_millis() as u64;
        let threshold = self.executor.config.latency_monitor_threshold;
        if threshold != 0 && milliseconds >= threshold {
            self.server.latency.enter(event, self.executor.turn.now_ms / 1000, milliseconds);
        }
    }

    /// Samples the metrics that INFO reports over time: counters for rates, and memory for its peak.
    pub(super) fn sample(&self) {
        let server = self.server;
        memory_report::update_peak(server, heap::allocator().allocated);
        let maxmemory = self.executor.config.maxmemory;
        let keyspace = &server.keyspace;
        let held_back = keyspace.held_back().bytes() as u64;
        let used = keyspace.used_bytes() as u64 + held_back + server.client_memory();
        let is_over = maxmemory != 0 && used > maxmemory;
        server.over_limit.record(self.executor.turn.now_ms, is_over);
        server.rates.sample(Instant::now(), || Totals {
            commands: server.sum(|stats| &stats.commands),
            input_bytes: server.input_bytes(),
            output_bytes: server.sum(|stats| &stats.output_bytes),
            replication_input_bytes: server.replication_input_bytes(),
            replication_output_bytes: server.sum(|stats| &stats.replication_output_bytes),
            turns: server.sum(|stats| &stats.turns),
            busy_nanoseconds: server.sum(|stats| &stats.busy_nanoseconds),
        });
    }

    pub(super) fn expire(&mut self) {
        self.is_expiring = false;
        let switches = &self.server.debug;
        if switches.keeps_expired.load(Ordering::Relaxed)
            || switches.pauses_periodic_work.load(Ordering::Relaxed)
            || self.executor.turn.keeps_expired
        {
            return;
        }
        let begun = Instant::now();
        self.is_expiring = !self.expire_within_budget();
        let stats = &self.executor.stats;
        stats.expire_cut_short.add(u64::from(self.is_expiring));
        stats.expire_nanoseconds.add(begun.elapsed().as_nanos() as u64);
    }

    /// Expires keys that are due; returns false if there may be more.
    fn expire_within_budget(&mut self) -> bool {
        let shards = self.server.shards_of(self.executor.index);
        // Each round begins at another shard, so that no shard has to wait indefinitely after a busy one.
        self.expire_turn = self.expire_turn.wrapping_add(1);
        let from = shards.start + self.expire_turn * EXPIRE_STRIDE % shards.len();
        let mut left = EXPIRE_BUDGET * self.executor.config.active_expire_effort;
        for range in [from..shards.end, shards.start..from] {
            let (expired, examined) = self.server.keyspace.expire_due(range, &mut self.executor.turn, left);
            self.executor.stats.expired.add(expired as u64);
            left -= examined;
            if left == 0 {
                return false;
            }
        }
        true
    }

    /// Closes connections that were idle for `timeout` seconds, and connections whose replies have waited too long to
    /// be sent.
    pub(super) fn check_timeouts(&mut self) {
        let count = self.connections.all.len();
        for _ in 0..count.min(TIMEOUT_CHECKS_MAX) {
            self.timeout_cursor = (self.timeout_cursor + 1) % count;
            let token = self.timeout_cursor;
            let Some(connection) = self.connections.all[token].as_deref() else { continue };
            let idle_ms =
                self.executor.turn.now_ms - connection.client.view.active_ms.load(Ordering::Relaxed);
            let timeout_ms = i64::from(self.executor.config.timeout) * 1000;
            let is_late = connection.is_handshaking() && idle_ms > HANDSHAKE_TIMEOUT_MS;
            // As in Redis, subscribers are exempt: they receive messages without sending requests.
            let is_client = connection.client.primary.is_none()
                && connection.client.replica.is_none()
                && connection.client.subscriptions.is_none();
            let is_idle =
                is_late || (is_client && timeout_ms != 0 && idle_ms > timeout_ms && connection.may_run());
            if connection.is_held
                && Aof::of(self.server).state.failing_ms() > self.executor.config.aof_wait_limit as i64
            {
                tracing::warn!(
                    "closing client {}: its writes cannot be written to the AOF",
                    connection.client.view.id
                );
                self.close(token);
                continue;
            }
            if self.waits_too_long_for_replicas(connection) {
                self.executor.stats.sync_timeouts.add(1);
                tracing::warn!(
                    "closing client {}: too few replicas have confirmed its writes",
                    connection.client.view.id
                );
                self.close(token);
                continue;
            }
            if !connection.awaits_last_reply() && (is_idle || !self.is_within_limits(token)) {
                self.end(token, EndReason::Over);
            }
        }
    }
}
