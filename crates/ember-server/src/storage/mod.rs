//! Values away from memory: the threads that bring them back, and what sends them away.
//!
//! ```text
//! worker   a call lacks values: its connection is parked; what the system has in memory is read at once, and the other
//!          reads wait in one queue                                                          (executor/fetching.rs)
//! thread   reads the record, builds the value, puts it in its place under the shard's lock
//! shard    tells all who wait for it, each of them once all it waits for is there
//! worker   runs the call as if the values had never been away
//! ```
//!
//! Values go to a log of segments that is a cache, or with a store they are its rows: then what the store has not been told
//! of stays, and memory is short until a checkpoint has told it.
//!
//! Nobody waits for a disk on a worker, but for what cannot be run again later: calls of scripts on keys that the script
//! does not declare ([`Storage::read`], counted).

pub(crate) mod demotion;
pub(crate) mod memory;
pub(crate) mod reading;
mod reclaiming;
pub(crate) mod records;
pub(crate) mod report;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ember_storage::stores::Store;
use emberkv_core::keyspace::shard::aside::FetchOrder;
use parking_lot::{Condvar, Mutex};

use crate::server::Server;
use crate::system::clock::unix_ms;
use memory::Resident;
use records::Records;

/// So long values wait for room before they come back, at most: nothing can go away before the next checkpoint, perhaps.
const ROOM_WAIT_MAX: Duration = Duration::from_millis(100);

/// Parts of the times that values take to come: powers of two of microseconds up to 8 seconds, and what is longer.
pub(crate) const FETCH_TIMES: usize = 25;

/// Bytes that come back in a second, for each thread that reads, while memory is full of what a checkpoint has to save: what
/// is read can go again, but has to be found among that.
const FULL_BYTES_PER_SECOND: u64 = 32 << 20;

/// What is counted of values that go and come.
#[derive(Default)]
pub(crate) struct StorageCounters {
    /// Values that came back.
    pub(crate) fetched: AtomicU64,
    /// Those that nobody wanted any more when they did.
    pub(crate) unwanted: AtomicU64,
    /// Values that a call lacked and that were being read for another one.
    pub(crate) joined: AtomicU64,
    /// How long they took to come, from being asked for: element b counts those of at most 2^b µs and more than the
    /// element before, the last one all longer ones. Failed reads count, too.
    pub(crate) fetch_times: [AtomicU64; FETCH_TIMES],
    /// The same in sum, in µs.
    pub(crate) fetch_us: AtomicU64,
    /// Keys that TIERING MIGRATE has found or put where they are to be.
    pub(crate) migrated: AtomicU64,
    /// Values that could not be read.
    pub(crate) read_errors: AtomicU64,
    /// Values that went away.
    pub(crate) demoted: AtomicU64,
    /// Those for which nothing was written: their records were there still.
    pub(crate) dropped: AtomicU64,
    /// Records that were moved out of segments with little else.
    pub(crate) moved: AtomicU64,
    /// Writes that have failed.
    pub(crate) write_errors: AtomicU64,
    /// How often sending values away has paused: nothing could go, or a write had failed.
    pub(crate) pauses: AtomicU64,
    /// Reads for which a worker has waited.
    pub(crate) script_reads: AtomicU64,
}

/// Where values are that are away, and the reads that wait.
pub(crate) struct Storage {
    pub(crate) records: Records,
    /// The reads that wait, and when each was asked for.
    queue: Mutex<VecDeque<(Instant, FetchOrder)>>,
    has_orders: Condvar,
    /// Nothing is read for now: DEBUG TIER-HOLD-READS.
    holds_reads: AtomicBool,
    pub(crate) counters: StorageCounters,
    pub(crate) resident: Resident,
    /// Nothing can be sent away for now, and what is counted is near the limit.
    pub(crate) is_stuck: AtomicBool,
    /// Nothing can be sent away for now.
    is_spent: AtomicBool,
    /// Keys whose values are to go away, with their databases, whether memory is short or not.
    wishes: Mutex<Vec<(usize, Box<[u8]>)>>,
    /// Memory is full of what can go only when the next checkpoint has been made, which was asked for.
    awaits_checkpoint: AtomicBool,
    /// Values have to be saved before they can be sent away.
    pub(crate) wants_checkpoint: AtomicBool,
    /// One is being made.
    pub(crate) is_checkpointing: AtomicBool,
    /// Checkpoints that have ended, well or not.
    pub(crate) checkpoints: AtomicU64,
    /// When the last one has, or the server has started: Unix time in ms.
    pub(crate) checkpointed_ms: AtomicI64,
    /// The thread that sends values away is to look at memory.
    is_awaited: Mutex<bool>,
    wakes: Condvar,
    /// How many threads wait until there is room for the values that they bring.
    waits_for_room: Mutex<usize>,
    has_room: Condvar,
}

impl Storage {
    /// Nothing is away.
    pub(crate) fn new(records: Records) -> Storage {
        Storage {
            records,
            queue: Mutex::default(),
            has_orders: Condvar::new(),
            holds_reads: AtomicBool::new(false),
            counters: StorageCounters::default(),
            resident: Resident::default(),
            is_stuck: AtomicBool::new(false),
            is_spent: AtomicBool::new(false),
            wishes: Mutex::default(),
            awaits_checkpoint: AtomicBool::new(false),
            wants_checkpoint: AtomicBool::new(false),
            is_checkpointing: AtomicBool::new(false),
            checkpoints: AtomicU64::new(0),
            checkpointed_ms: AtomicI64::new(unix_ms()),
            is_awaited: Mutex::default(),
            wakes: Condvar::new(),
            waits_for_room: Mutex::default(),
            has_room: Condvar::new(),
        }
    }

    /// Whether values may be away: fixed after the start.
    pub(crate) fn is_on(&self) -> bool {
        self.records.is_on()
    }

    /// Whether values can be sent away when memory is short, so that nothing need be evicted or refused.
    pub(crate) fn can_demote(&self) -> bool {
        self.is_on() && !self.is_stuck.load(Ordering::Relaxed)
    }

    /// The store that has the data set, if there is one.
    pub(crate) fn store(&self) -> Option<&Store> {
        self.records.store()
    }

    /// Notes that a checkpoint has ended: there may be something to send away.
    pub(crate) fn note_checkpoint(&self) {
        self.checkpointed_ms.store(unix_ms(), Ordering::Relaxed);
        self.checkpoints.fetch_add(1, Ordering::Relaxed);
        self.awaits_checkpoint.store(false, Ordering::Relaxed);
        self.is_checkpointing.store(false, Ordering::Relaxed);
        self.wake_demoter();
    }

    /// Has memory looked at now.
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

    /// Waits until memory has room for what comes, or can have none soon: values may come as fast as they go.
    fn wait_for_room(&self, server: &Server) {
        if !is_above_limit(server) {
            return;
        }
        let until = Instant::now() + ROOM_WAIT_MAX;
        let mut waiting = self.waits_for_room.lock();
        *waiting += 1;
        while is_above_limit(server) && self.makes_room() {
            self.wake_demoter();
            if self.has_room.wait_until(&mut waiting, until).timed_out() {
                break;
            }
        }
        *waiting -= 1;
    }

    /// Waits behind reading a value of so many bytes, if there is no room before the next checkpoint.
    fn pace_without_room(&self, server: &Server, bytes: usize) {
        if self.awaits_checkpoint.load(Ordering::Relaxed) && is_above_limit(server) {
            let nanoseconds = bytes as u64 * 1_000_000_000 / FULL_BYTES_PER_SECOND;
            thread::park_timeout(Duration::from_nanos(nanoseconds).min(ROOM_WAIT_MAX));
        }
    }

    /// Whether waiting for room is worth it: values go, and not only when the next checkpoint has been made.
    fn makes_room(&self) -> bool {
        self.can_demote() && !self.awaits_checkpoint.load(Ordering::Relaxed) && !self.is_spent()
    }

    /// Whether nothing can be sent away for now.
    pub(crate) fn is_spent(&self) -> bool {
        self.is_spent.load(Ordering::Relaxed)
    }

    /// Waits until there is room for what is loaded, as far as values can go away. The caller holds no lock.
    pub(crate) fn wait_to_load(&self, server: &Server) {
        while is_above_limit(server) && self.makes_room() && !server.is_stopping() {
            self.wait_for_room(server);
        }
    }

    /// Has those look again who wait for room.
    fn end_waiting_for_room(&self) {
        if *self.waits_for_room.lock() > 0 {
            self.has_room.notify_all();
        }
    }

    /// That of a server.
    pub(crate) fn of(server: &Server) -> &Storage {
        server.services.get()
    }
}

/// The bytes that count against `maxmemory`: keys and what is kept for clients.
fn used_bytes(server: &Server) -> usize {
    server.keyspace.used_bytes() + server.client_bytes.load(Ordering::Relaxed).max(0) as usize
}

/// Whether what is counted takes more room than there is.
fn is_above_limit(server: &Server) -> bool {
    used_bytes(server) > server.room_bytes.load(Ordering::Relaxed)
}
