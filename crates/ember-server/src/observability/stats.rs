//! Counters: one set per worker, written only by it and summed by readers.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use emberkv_core::turn::KeyspaceCounters;
use parking_lot::Mutex;

/// A counter with one writer: adding is a load and a store, not a locked operation.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Adds to the counter; only its own worker may.
    #[inline]
    pub(crate) fn add(&self, amount: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(amount), Ordering::Relaxed);
    }

    /// Returns the value.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Resets the counter; a concurrent addition may be lost or kept.
    pub(crate) fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// The maximum number of error codes that a worker counts by name; scripts could produce any number.
const ERROR_CODES_MAX: usize = 128;

/// Error replies by code. Its worker takes the lock, and rarely a reader.
#[derive(Debug, Default)]
pub(crate) struct ErrorCodes(Mutex<BTreeMap<String, u64>>);

impl ErrorCodes {
    /// Counts an error by its code, the first word of its text.
    pub(crate) fn count(&self, text: &[u8]) {
        let code = text.split(|&byte| byte == b' ').next().unwrap_or_default();
        let code = std::str::from_utf8(code).unwrap_or("ERR");
        let mut counts = self.0.lock();
        if let Some(count) = counts.get_mut(code) {
            *count += 1;
        } else if counts.len() < ERROR_CODES_MAX {
            counts.insert(code.to_owned(), 1);
        }
    }

    /// Adds the counts to `sum`.
    pub(crate) fn add_to(&self, sum: &mut BTreeMap<String, u64>) {
        for (code, count) in &*self.0.lock() {
            *sum.entry(code.clone()).or_default() += count;
        }
    }

    /// Removes all counts.
    pub(crate) fn reset(&self) {
        self.0.lock().clear();
    }
}

/// The number of buckets of call times: powers of two of microseconds, up to an hour.
pub(crate) const LATENCY_BUCKETS: usize = 32;

/// One worker's counts for one command.
#[derive(Debug, Default)]
pub(crate) struct CommandCounters {
    /// Calls that ran.
    pub(crate) calls: Counter,
    /// Their time, in ns.
    pub(crate) nanoseconds: Counter,
    /// Calls refused before they ran.
    pub(crate) rejected: Counter,
    /// Calls with an error reply.
    pub(crate) failed: Counter,
    /// Calls by time: bucket `b` counts those of at most 2^b µs.
    pub(crate) latency: [Counter; LATENCY_BUCKETS],
    /// The time in ns of calls that no bucket counts.
    pub(crate) untracked_nanoseconds: Counter,
}

impl CommandCounters {
    /// Counts `calls` that took `nanoseconds` each, also in the histogram if `tracks_latency`.
    #[inline]
    pub(crate) fn count(&self, calls: u64, nanoseconds: u64, tracks_latency: bool) {
        self.calls.add(calls);
        self.nanoseconds.add(nanoseconds * calls);
        if tracks_latency {
            let microseconds = nanoseconds.div_ceil(1000).max(1);
            let bucket = microseconds.next_power_of_two().trailing_zeros() as usize;
            self.latency[bucket.min(LATENCY_BUCKETS - 1)].add(calls);
        } else {
            self.untracked_nanoseconds.add(nanoseconds * calls);
        }
    }

    fn reset(&self) {
        let sums = [&self.nanoseconds, &self.untracked_nanoseconds];
        for counter in [&self.calls, &self.rejected, &self.failed].into_iter().chain(sums) {
            counter.reset();
        }
        self.latency.iter().for_each(Counter::reset);
    }
}

/// The counts of all workers for one command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CommandTotals {
    pub(crate) calls: u64,
    /// The time of all calls, in ns.
    pub(crate) nanoseconds: u64,
    pub(crate) rejected: u64,
    pub(crate) failed: u64,
    /// See [`CommandCounters::latency`].
    pub(crate) latency: [u64; LATENCY_BUCKETS],
    /// See [`CommandCounters::untracked_nanoseconds`].
    pub(crate) untracked_nanoseconds: u64,
}

impl CommandTotals {
    /// Adds the counts of one worker.
    pub(crate) fn add(&mut self, counters: &CommandCounters) {
        self.calls += counters.calls.get();
        self.nanoseconds += counters.nanoseconds.get();
        self.rejected += counters.rejected.get();
        self.failed += counters.failed.get();
        self.untracked_nanoseconds += counters.untracked_nanoseconds.get();
        for (sum, bucket) in self.latency.iter_mut().zip(&counters.latency) {
            *sum += bucket.get();
        }
    }
}

/// The counts of one worker.
#[derive(Debug)]
pub(crate) struct WorkerStats {
    pub(crate) connections_received: Counter,
    pub(crate) connections_rejected: Counter,
    pub(crate) commands: Counter,
    pub(crate) input_bytes: Counter,
    pub(crate) output_bytes: Counter,
    /// The part of these bytes from the primary, and the part sent to replicas.
    pub(crate) replication_input_bytes: Counter,
    pub(crate) replication_output_bytes: Counter,
    pub(crate) reads: Counter,
    pub(crate) writes: Counter,
    pub(crate) errors: Counter,
    pub(crate) error_codes: ErrorCodes,
    pub(crate) output_limit_closed: Counter,
    pub(crate) query_limit_closed: Counter,
    pub(crate) forwarded: Counter,
    /// Scripts and functions that ran with exclusive access.
    pub(crate) scripts_exclusive: Counter,
    /// Scripts and functions that ran in parallel with other clients, under the locks of their keys.
    pub(crate) scripts_concurrent: Counter,
    /// Long calls that ran on a job thread.
    pub(crate) long_calls: Counter,
    /// Commands of the primary that were applied while other workers applied others.
    pub(crate) applied_together: Counter,
    /// Evaluations of live queries, those with an unchanged result, states sent to clients, states replaced by newer
    /// ones before they were sent, and the time of evaluations in ns.
    pub(crate) query_evaluations: Counter,
    pub(crate) query_equal: Counter,
    pub(crate) query_sent: Counter,
    pub(crate) query_coalesced: Counter,
    pub(crate) query_nanoseconds: Counter,
    /// States sent, by the time since the change, and that time.
    pub(crate) query_lag: CommandCounters,
    pub(crate) hits: Counter,
    pub(crate) misses: Counter,
    pub(crate) expired: Counter,
    pub(crate) expired_fields: Counter,
    /// Time spent on active expiry, in ns.
    pub(crate) expire_nanoseconds: Counter,
    /// Rounds of active expiry that ended before they had found all expired keys.
    pub(crate) expire_cut_short: Counter,
    pub(crate) evicted: Counter,
    /// Clients evicted because of `maxmemory-clients`.
    pub(crate) evicted_clients: Counter,
    /// Not reset by `CONFIG RESETSTAT`.
    pub(crate) changes: Counter,
    /// Bytes that the worker's clients take at present. Not reset either.
    pub(crate) client_bytes: Counter,
    /// Turns of the worker's loop.
    pub(crate) turns: Counter,
    /// Time the worker worked, in ns, added once per turn.
    pub(crate) busy_nanoseconds: Counter,
    /// Time the worker waited for work, in ns, added in the same way.
    pub(crate) idle_nanoseconds: Counter,
    /// Times that a connection's replies were held with `sync-replicas`, and connections closed because too few
    /// replicas have acknowledged in time.
    pub(crate) sync_waits: Counter,
    pub(crate) sync_timeouts: Counter,
    /// Indexed like the registry.
    pub(crate) by_command: Vec<CommandCounters>,
}

impl WorkerStats {
    /// Creates zeros for a registry of `commands` commands.
    pub(crate) fn new(commands: usize) -> WorkerStats {
        WorkerStats {
            connections_received: Counter::default(),
            connections_rejected: Counter::default(),
            commands: Counter::default(),
            input_bytes: Counter::default(),
            output_bytes: Counter::default(),
            replication_input_bytes: Counter::default(),
            replication_output_bytes: Counter::default(),
            reads: Counter::default(),
            writes: Counter::default(),
            errors: Counter::default(),
            error_codes: ErrorCodes::default(),
            output_limit_closed: Counter::default(),
            query_limit_closed: Counter::default(),
            forwarded: Counter::default(),
            scripts_exclusive: Counter::default(),
            scripts_concurrent: Counter::default(),
            long_calls: Counter::default(),
            applied_together: Counter::default(),
            query_evaluations: Counter::default(),
            query_equal: Counter::default(),
            query_sent: Counter::default(),
            query_coalesced: Counter::default(),
            query_nanoseconds: Counter::default(),
            query_lag: CommandCounters::default(),
            hits: Counter::default(),
            misses: Counter::default(),
            expired: Counter::default(),
            expired_fields: Counter::default(),
            expire_nanoseconds: Counter::default(),
            expire_cut_short: Counter::default(),
            evicted: Counter::default(),
            evicted_clients: Counter::default(),
            changes: Counter::default(),
            client_bytes: Counter::default(),
            turns: Counter::default(),
            busy_nanoseconds: Counter::default(),
            idle_nanoseconds: Counter::default(),
            sync_waits: Counter::default(),
            sync_timeouts: Counter::default(),
            by_command: (0..commands).map(|_| CommandCounters::default()).collect(),
        }
    }

    /// Adds the counts of the keyspace since the last call, and resets them.
    pub(crate) fn absorb(&self, counters: &mut KeyspaceCounters) {
        if *counters == KeyspaceCounters::default() {
            return;
        }
        let KeyspaceCounters { hits, misses, expired, expired_fields, evicted, changes } =
            std::mem::take(counters);
        self.hits.add(hits);
        self.misses.add(misses);
        self.expired.add(expired);
        self.expired_fields.add(expired_fields);
        self.evicted.add(evicted);
        self.changes.add(changes);
    }

    /// Resets the counters, for `CONFIG RESETSTAT`.
    pub(crate) fn reset(&self) {
        self.error_codes.reset();
        self.query_lag.reset();
        for counter in [
            &self.connections_received,
            &self.connections_rejected,
            &self.commands,
            &self.input_bytes,
            &self.output_bytes,
            &self.replication_input_bytes,
            &self.replication_output_bytes,
            &self.reads,
            &self.writes,
            &self.errors,
            &self.output_limit_closed,
            &self.query_limit_closed,
            &self.forwarded,
            &self.scripts_exclusive,
            &self.scripts_concurrent,
            &self.long_calls,
            &self.applied_together,
            &self.query_evaluations,
            &self.query_equal,
            &self.query_sent,
            &self.query_coalesced,
            &self.query_nanoseconds,
            &self.hits,
            &self.misses,
            &self.expired,
            &self.expired_fields,
            &self.expire_nanoseconds,
            &self.expire_cut_short,
            &self.evicted,
            &self.evicted_clients,
            &self.turns,
            &self.busy_nanoseconds,
            &self.idle_nanoseconds,
            &self.sync_waits,
            &self.sync_timeouts,
        ] {
            counter.reset();
        }
        self.by_command.iter().for_each(CommandCounters::reset);
    }
}
