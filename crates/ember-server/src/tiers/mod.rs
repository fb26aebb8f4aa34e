//! Cold values: the threads that fetch values, and the thread that demotes them.
//!
//! ```text
//! worker   a call has missing values: its connection is parked; what the system has cached is read at once, and the
//!          other reads wait in one queue                                                    (executor/fetching.rs)
//! thread   reads the record, builds the value, stores it in its entry under the shard's lock
//! shard    notifies all waiters of the value, each once all values that it needs have been fetched
//! worker   runs the call as if the values had never been cold
//! ```
//!
//! Values are demoted to a log of segments, which is a cache, or they are rows of a store. With a store, values that
//! are not saved yet must stay in memory until a checkpoint has written them.
//!
//! Workers do not wait for the disk, except for calls that cannot be run again later: calls of scripts on keys that the
//! script does not declare ([`Tiers::read`]); these reads are counted.

pub(crate) mod demotion;
pub(crate) mod memory_budget;
pub(crate) mod reading;
mod reclaiming;
pub(crate) mod records;
pub(crate) mod report;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ember_storage::stores::Store;
use emberkv_core::keyspace::shard::fetch_tickets::FetchOrder;
use parking_lot::{Condvar, Mutex};

use crate::server::Server;
use crate::system::clock::unix_ms;
use memory_budget::Resident;
use records::Records;

/// The maximum time for which fetched values wait for memory; it is limited because possibly no value can be demoted
/// before the next checkpoint.
const MEMORY_WAIT_MAX: Duration = Duration::from_millis(100);

/// The number of buckets of fetch times: one per power of two of microseconds up to about 8 seconds, and one for longer
/// times.
pub(crate) const FETCH_TIMES: usize = 25;

/// The bytes fetched per second and reading thread while memory is full of values that a checkpoint has to save.
/// Fetched values can be demoted again, but the demoting thread has to find them among the values to be saved.
const FULL_BYTES_PER_SECOND: u64 = 32 << 20;

/// Counters of demoted and fetched values.
#[derive(Default)]
pub(crate) struct TierCounters {
    /// The number of fetched values.
    pub(crate) fetched: AtomicU64,
    /// The number of values that were no longer needed when they were fetched.
    pub(crate) unwanted: AtomicU64,
    /// The number of missing values of a call that were already being read for another call.
    pub(crate) joined: AtomicU64,
    /// The number of fetches by time since the request: element b counts times of at most 2^b µs that exceed the limit
    /// of the previous element; the last element counts all longer times. Failed reads are included.
    pub(crate) fetch_times: [AtomicU64; FETCH_TIMES],
    /// The sum of fetch times, in µs.
    pub(crate) fetch_us: AtomicU64,
    /// The number of keys that TIERING MIGRATE has moved, or found in the right tier.
    pub(crate) migrated: AtomicU64,
    /// The number of values that could not be read.
    pub(crate) read_errors: AtomicU64,
    /// The number of demoted values.
    pub(crate) demoted: AtomicU64,
    /// The number of values demoted without a write, because their records still existed.
    pub(crate) dropped: AtomicU64,
    /// The number of records moved out of segments with few live bytes.
    pub(crate) moved: AtomicU64,
    /// The number of failed writes.
    pub(crate) write_errors: AtomicU64,
    /// The number of pauses of demotion: no value could be demoted, or a write had failed.
    pub(crate) pauses: AtomicU64,
    /// The number of reads for which a worker has waited.
    pub(crate) script_reads: AtomicU64,
}

/// The state of tiering: the records of cold values, the queue of reads, and the state of demotion.
pub(crate) struct Tiers {
    pub(crate) records: Records,
    /// The queued reads, and the time at which each was requested.
    queue: Mutex<VecDeque<(Instant, FetchOrder)>>,
    has_orders: Condvar,
    /// Whether reads are held (DEBUG TIER-HOLD-READS).
    holds_reads: AtomicBool,
    pub(crate) counters: TierCounters,
    pub(crate) resident: Resident,
    /// Whether no value can be demoted at present, and the counted bytes are near the limit.
    pub(crate) is_stuck: AtomicBool,
    /// Whether no value can be demoted at present.
    is_spent: AtomicBool,
    /// The keys whose values are to be demoted on request, with their databases, even if memory is not short.
    wishes: Mutex<Vec<(usize, Box<[u8]>)>>,
    /// Whether memory is full of values that can be demoted only after the next checkpoint, which is already requested.
    awaits_checkpoint: AtomicBool,
    /// Whether values must be saved by a checkpoint before they can be demoted.
    pub(crate) needs_checkpoint: AtomicBool,
    /// Whether a checkpoint is running.
    pub(crate) is_checkpointing: AtomicBool,
    /// The number of checkpoints that have ended, successfully or not.
    pub(crate) checkpoints: AtomicU64,
    /// The time at which the last checkpoint ended, or the server started, as Unix time in ms.
    pub(crate) checkpointed_ms: AtomicI64,
    /// Whether the demoting thread is requested to check memory.
    is_awaited: Mutex<bool>,
    wakes: Condvar,
    /// The number of threads that wait for memory for fetched values.
    memory_waiters: Mutex<usize>,
    memory_freed: Condvar,
}

impl Tiers {
    /// Creates the state of tiering, without cold values.
    pub(crate) fn new(records: Records) -> Tiers {
        Tiers {
            records,
            queue: Mutex::default(),
            has_orders: Condvar::new(),
            holds_reads: AtomicBool::new(false),
            counters: TierCounters::default(),
            resident: Resident::default(),
            is_stuck: AtomicBool::new(false),
            is_spent: AtomicBool::new(false),
            wishes: Mutex::default(),
            awaits_checkpoint: AtomicBool::new(false),
            needs_checkpoint: AtomicBool::new(false),
            is_checkpointing: AtomicBool::new(false),
            checkpoints: AtomicU64::new(0),
            checkpointed_ms: AtomicI64::new(unix_ms()),
            is_awaited: Mutex::default(),
            wakes: Condvar::new(),
            memory_waiters: Mutex::default(),
            memory_freed: Condvar::new(),
        }
    }

    /// Returns whether values may be cold; fixed after startup.
    pub(crate) fn is_on(&self) -> bool {
        self.records.is_on()
    }

    /// Returns whether values can be demoted when memory is short, so that no key need be evicted and no write refused.
    pub(crate) fn can_demote(&self) -> bool {
        self.is_on() && !self.is_stuck.load(Ordering::Relaxed)
    }

    /// Returns the store of the data set, if there is one.
    pub(crate) fn store(&self) -> Option<&Store> {
        self.records.store()
    }

    /// Records that a checkpoint has ended, so that more values may be demoted.
    pub(crate) fn record_checkpoint(&self) {
        self.checkpointed_ms.store(unix_ms(), Ordering::Relaxed);
        self.checkpoints.fetch_add(1, Ordering::Relaxed);
        self.awaits_checkpoint.store(false, Ordering::Relaxed);
        self.is_checkpointing.store(false, Ordering::Relaxed);
        self.wake_demoter();
    }

    /// Wakes the demoting thread to check memory.
    pub(crate) fn wake_demoter(&self) {
        *self.is_awaited.lock() = true;
        self.wakes.notify_one();
    }

    fn wait_for_work(&self, most: Duration) {
        let mut is_awaited = self.is_awaited.lock();
        if !*is_awaited {
            self.wakes.wait_for(&mut is_awaited, most);
        }
        *is_awaited = false;
    }

    /// Waits until there is memory for further values, or until none is expected to be freed soon. So values are
    /// fetched at most as fast as others are demoted.
    fn wait_for_memory(&self, server: &Server) {
        if !is_above_limit(server) {
            return;
        }
        let until = Instant::now() + MEMORY_WAIT_MAX;
        let mut waiting = self.memory_waiters.lock();
        *waiting += 1;
        while is_above_limit(server) && self.frees_memory() {
            self.wake_demoter();
            if self.memory_freed.wait_until(&mut waiting, until).timed_out() {
                break;
            }
        }
        *waiting -= 1;
    }

    /// Waits after a value of `bytes` bytes was read, if no memory can be freed before the next checkpoint. The wait
    /// limits the rate to [`FULL_BYTES_PER_SECOND`].
    fn pace_without_memory(&self, server: &Server, bytes: usize) {
        if self.awaits_checkpoint.load(Ordering::Relaxed) && is_above_limit(server) {
            let nanoseconds = bytes as u64 * 1_000_000_000 / FULL_BYTES_PER_SECOND;
            thread::park_timeout(Duration::from_nanos(nanoseconds).min(MEMORY_WAIT_MAX));
        }
    }

    /// Returns whether waiting for memory is useful: values can be demoted now, not only after the next checkpoint.
    fn frees_memory(&self) -> bool {
        self.can_demote() && !self.awaits_checkpoint.load(Ordering::Relaxed) && !self.is_spent()
    }

    /// Returns whether no value can be demoted at present.
    pub(crate) fn is_spent(&self) -> bool {
        self.is_spent.load(Ordering::Relaxed)
    }

    /// Waits until there is memory for loaded data, if values can be demoted. The caller holds no lock.
    pub(crate) fn wait_to_load(&self, server: &Server) {
        while is_above_limit(server) && self.frees_memory() && !server.is_stopping() {
            self.wait_for_memory(server);
        }
    }

    /// Wakes the threads that wait for memory, so that they check again.
    fn wake_memory_waiters(&self) {
        if *self.memory_waiters.lock() > 0 {
            self.memory_freed.notify_all();
        }
    }

    /// Returns the state of tiering of a server.
    pub(crate) fn of(server: &Server) -> &Tiers {
        server.services.get()
    }
}

/// Returns the counted bytes: the memory of keys, values and clients.
fn used_bytes(server: &Server) -> usize {
    server.keyspace.used_bytes() + server.client_bytes.load(Ordering::Relaxed).max(0) as usize
}

/// Returns whether the counted bytes exceed the budget.
fn is_above_limit(server: &Server) -> bool {
    used_bytes(server) > server.budget_bytes.load(Ordering::Relaxed)
}
