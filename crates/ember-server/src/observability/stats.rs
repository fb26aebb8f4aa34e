//! Counters. Each worker has its own set, to which only that worker writes; readers add up the sets of all workers.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use emberkv_core::turn::KeyspaceCounters;
use parking_lot::Mutex;

/// A counter with a single writer: adding to it is a load and a store, not an atomic read-modify-write.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Adds to the counter. Must be called only by the worker that owns the counter.
    #[inline]
    pub(crate) fn add(&self, amount: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(amount), Ordering::Relaxed);
    }

    /// Returns the current value.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Resets the counter. A concurrent addition may be lost, or survive the reset.
    pub(crate) fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// The maximum number of error codes that a worker counts by name, because scripts can create any number of codes.
const ERROR_CODES_MAX: usize = 128;

/// The maximum number of bytes of a code that are stored; the codes of the server's own errors have at most 20.
const ERROR_CODE_BYTES_MAX: usize = 64;

/// The number of error replies by code. Only the worker that counts and occasional readers take the lock.
#[derive(Debug, Default)]
pub(crate) struct ErrorCodes(Mutex<BTreeMap<String, u64>>);

impl ErrorCodes {
    /// Counts an error reply by its code, the first word of its text.
    pub(crate) fn count(&self, text: &[u8]) {
        let head = &text[..text.len().min(ERROR_CODE_BYTES_MAX)];
        let code = head.split(|&byte| byte == b' ').next().unwrap_or_default();
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

/// The number of buckets of a latency histogram, whose bounds are powers of two in µs, up to an hour.
pub(crate) const LATENCY_BUCKETS: usize = 32;

/// The counters of one worker for one command.
#[derive(Debug, Default)]
pub(crate) struct CommandCounters {
    /// Calls that were executed.
    pub(crate) calls: Counter,
    /// The total time of executed calls, in ns.
    pub(crate) nanoseconds: Counter,
    /// Calls that were refused before execution.
    pub(crate) rejected: Counter,
    /// Calls that returned an error reply.
    pub(crate) failed: Counter,
    /// A histogram of the duration of calls: bucket `b` counts calls of at most 2^b µs that exceed the bound of bucket
    /// `b - 1`.
    pub(crate) latency: [Counter; LATENCY_BUCKETS],
    /// The total time in ns of calls that are not in the histogram.
    pub(crate) untracked_nanoseconds: Counter,
}

impl CommandCounters {
    /// Counts `calls` calls that took `nanoseconds` each; adds them to the histogram if `tracks_latency`.
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
    /// The total time of all calls, in ns.
    pub(crate) nanoseconds: u64,
    pub(crate) rejected: u64,
    pub(crate) failed: u64,
    /// The sum of [`CommandCounters::latency`].
    pub(crate) latency: [u64; LATENCY_BUCKETS],
    /// The sum of [`CommandCounters::untracked_nanoseconds`].
    pub(crate) untracked_nanoseconds: u64,
}

impl CommandTotals {
    /// Adds the counters of one worker.
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

/// The counters of one worker.
#[derive(Debug)]
pub(crate) struct WorkerStats {
    pub(crate) connections_received: Counter,
    pub(crate) connections_rejected: Counter,
    pub(crate) commands: Counter,
    pub(crate) input_bytes: Counter,
    pub(crate) output_bytes: Counter,
    /// The part of `input_bytes` that was received from the primary.
    pub(crate) replication_input_bytes: Counter,
    /// The part of `output_bytes` that was sent to replicas.
    pub(crate) replication_output_bytes: Counter,
    pub(crate) reads: Counter,
    pub(crate) writes: Counter,
    pub(crate) errors: Counter,
    pub(crate) error_codes: ErrorCodes,
    pub(crate) output_limit_closed: Counter,
    pub(crate) query_limit_closed: Counter,
    pub(crate) forwarded: Counter,
    /// Scripts and functions that were run with exclusive access.
    pub(crate) scripts_exclusive: Counter,
    /// Scripts and functions that were run concurrently with other clients, under the locks of their keys.
    pub(crate) scripts_concurrent: Counter,
    /// Long-running calls that were executed on a job thread.
    pub(crate) long_calls: Counter,
    /// Commands of the primary that were applied while other workers applied other commands.
    pub(crate) applied_together: Counter,
    /// Evaluations of live queries.
    pub(crate) query_evaluations: Counter,
    /// Evaluations with an unchanged result.
    pub(crate) query_equal: Counter,
    /// States sent to clients.
    pub(crate) query_sent: Counter,
    /// States that were replaced by newer ones before they were sent.
    pub(crate) query_coalesced: Counter,
    /// The time of evaluations, in ns.
    pub(crate) query_nanoseconds: Counter,
    /// The states sent, with a histogram of the time between the change and the sending of the state.
    pub(crate) query_lag: CommandCounters,
    pub(crate) hits: Counter,
    pub(crate) misses: Counter,
    pub(crate) expired: Counter,
    pub(crate) expired_fields: Counter,
    /// The time spent on active expiry, in ns.
    pub(crate) expire_nanoseconds: Counter,
    /// Rounds of active expiry that ended at their time limit, before they had found all expired keys.
    pub(crate) expire_cut_short: Counter,
    pub(crate) evicted: Counter,
    /// Created keys that were evicted before, and of which a ghost remained.
    pub(crate) recalled: Counter,
    /// Clients evicted because of `maxmemory-clients`.
    pub(crate) evicted_clients: Counter,
    /// The number of changes to the data set. `CONFIG RESETSTAT` does not reset it.
    pub(crate) changes: Counter,
    /// The current memory of the worker's clients, in bytes. `CONFIG RESETSTAT` does not reset it.
    pub(crate) client_bytes: Counter,
    /// Turns of the worker's event loop.
    pub(crate) turns: Counter,
    /// The time in ns that the worker has spent working, updated once per turn.
    pub(crate) busy_nanoseconds: Counter,
    /// The time in ns that the worker has spent waiting for work, updated once per turn.
    pub(crate) idle_nanoseconds: Counter,
    /// The number of times that `sync-replicas` delayed a connection's replies.
    pub(crate) sync_waits: Counter,
    /// Connections closed because too few replicas acknowledged in time.
    pub(crate) sync_timeouts: Counter,
    /// The counters of each command, by index in the registry.
    pub(crate) by_command: Vec<CommandCounters>,
}

impl WorkerStats {
    /// Creates counters of zero, for a registry of `commands` commands.
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
            recalled: Counter::default(),
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

    /// Adds the keyspace's counters, and resets them.
    pub(crate) fn absorb(&self, counters: &mut KeyspaceCounters) {
        if *counters == KeyspaceCounters::default() {
            return;
        }
        let KeyspaceCounters { hits, misses, expired, expired_fields, evicted, recalled, changes } =
            std::mem::take(counters);
        self.hits.add(hits);
        self.misses.add(misses);
        self.expired.add(expired);
        self.expired_fields.add(expired_fields);
        self.evicted.add(evicted);
        self.recalled.add(recalled);
        self.changes.add(changes);
    }

    /// Resets the counters that `CONFIG RESETSTAT` covers.
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
            &self.recalled,
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
