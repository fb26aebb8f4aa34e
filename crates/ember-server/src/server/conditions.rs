//! Conditions under which commands do not run at present: data being loaded, a disk that does not accept writes, a
//! running snapshot.
//!
//! The conditions are bits of one number, which each command reads. While the number is 0, the check costs one branch.

use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};

use bitflags::bitflags;
use parking_lot::Mutex;

bitflags! {
    /// Conditions under which some commands do not run.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) struct Condition: u16 {
        /// The data set is being loaded: commands that need it are refused.
        const LOADING = 1;
        /// A snapshot is running: calls that change keys may have to wait until the keys are saved.
        const SNAPSHOT = 2;
        /// The last snapshot could not be written: commands that write are refused.
        const SNAPSHOT_FAILED = 4;
        /// Writes to the append-only file have failed: commands that write are refused.
        const AOF_FAILED = 8;
        /// Records wait for the append-only file for too long, or with too many bytes: commands that write wait.
        const AOF_LAGS = 16;
        /// Many pushes are queued for a busy worker: commands wait.
        const PUSHES_LAG = 32;
        /// There are fewer good replicas than `min-replicas-to-write` requires: commands that write are refused.
        const FEW_REPLICAS = 64;
        /// Some keys are held (`server/held_keys.rs`): calls that may change them wait.
        const KEYS_HELD = 128;
        /// The server is a replica: clients' writes are refused, and this server does not expire keys on its own.
        const REPLICA = 256;
        /// This replica is not connected to its primary, or has not received all of the primary's data: reads may be
        /// refused.
        const LINK_DOWN = 512;
        /// There are fewer good replicas than clients may require for their writes: each write is checked.
        const FEW_TO_SYNC = 1024;
        /// Memory is full and values are being demoted: calls that need memory wait.
        const MEMORY_LAGS = 2048;
        /// Some clients are being disconnected: their commands no longer run.
        const CLIENTS_ENDING = 4096;
        /// The server is a node of a cluster: the slot of each call is checked.
        const CLUSTER = 8192;

        /// The conditions under which commands that write are refused because of the disk.
        const DISK_REFUSES_WRITES = Self::SNAPSHOT_FAILED.bits() | Self::AOF_FAILED.bits();
        /// The conditions under which commands that write are refused.
        const REFUSES_WRITES =
            Self::DISK_REFUSES_WRITES.bits() | Self::FEW_REPLICAS.bits() | Self::FEW_TO_SYNC.bits();
    }
}

/// The error of commands during loading.
pub(crate) const LOADING_ERROR: &str = "LOADING Redis is loading the dataset in memory";

/// The error of writes that clients send to a replica.
pub(crate) const READ_ONLY_ERROR: &str = "READONLY You can't write against a read only replica.";

/// The error of reads while the link to the primary is down, if `replica-serve-stale-data` is off.
pub(crate) const LINK_DOWN_ERROR: &str =
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.";

/// The error of writes after a snapshot could not be written.
const SNAPSHOT_ERROR: &str = "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to \
                              disk. Commands that may modify the data set are disabled, because this instance is \
                              configured to report errors during writes if RDB snapshotting fails \
                              (stop-writes-on-bgsave-error option). Please check the Redis logs for details about the RDB \
                              error.";

/// The error of writes while there are too few good replicas.
pub(crate) const FEW_REPLICAS_ERROR: &str = "NOREPLICAS Not enough good replicas to write.";

/// The conditions that are in effect on a server.
#[derive(Debug, Default)]
pub(crate) struct Conditions {
    now: AtomicU16,
    /// The number of good replicas; it is updated only while a condition needs it.
    good_replicas: AtomicU32,
    /// The disk's error when the append-only file was last written.
    aof_error: Mutex<String>,
}

impl Conditions {
    /// Returns the present conditions.
    #[inline]
    pub(crate) fn get(&self) -> Condition {
        // Relaxed: conditions that must be seen immediately are set with exclusive access.
        Condition::from_bits_retain(self.now.load(Ordering::Relaxed))
    }

    /// Sets a condition if `there` is true, otherwise clears it.
    pub(crate) fn set(&self, condition: Condition, there: bool) {
        if there {
            self.now.fetch_or(condition.bits(), Ordering::Relaxed);
        } else {
            self.now.fetch_and(!condition.bits(), Ordering::Relaxed);
        }
    }

    /// Begins to refuse writes because the append-only file cannot be written; `error` is the disk's. `None` ends the
    /// refusal.
    pub(crate) fn set_aof_error(&self, error: Option<String>) {
        let failed = error.is_some();
        *self.aof_error.lock() = error.unwrap_or_default();
        self.set(Condition::AOF_FAILED, failed);
    }

    /// Sets the number of good replicas.
    pub(crate) fn set_good_replicas(&self, count: u32) {
        self.good_replicas.store(count, Ordering::Relaxed);
    }

    /// Returns whether a write must be refused whose client requires this number of replicas to receive it.
    pub(crate) fn has_too_few_replicas(&self, wanted: u32) -> bool {
        let now = self.get();
        now.contains(Condition::FEW_REPLICAS)
            || (now.contains(Condition::FEW_TO_SYNC) && self.good_replicas.load(Ordering::Relaxed) < wanted)
    }

    /// Returns the error for a script that declares flags and may write, if the role, the disk or the replicas require
    /// its refusal. Its client requires `replicas` replicas to receive its writes.
    pub(crate) fn script_refusal(&self, replicas: u32) -> Option<String> {
        if self.get().contains(Condition::REPLICA) {
            return Some(READ_ONLY_ERROR.to_owned());
        }
        self.write_refusal(replicas)
    }

    /// Returns the error for a command that writes, if the disk requires its refusal.
    pub(crate) fn disk_refusal(&self) -> Option<String> {
        let now = self.get();
        if now.contains(Condition::SNAPSHOT_FAILED) {
            Some(SNAPSHOT_ERROR.to_owned())
        } else if now.contains(Condition::AOF_FAILED) {
            Some(format!("MISCONF Errors writing to the AOF file: {}", self.aof_error.lock()))
        } else {
            None
        }
    }

    /// Returns the error for a command that writes, if the disk or the replicas require its refusal. Its client
    /// requires `replicas` replicas to receive its writes.
    pub(crate) fn write_refusal(&self, replicas: u32) -> Option<String> {
        let is_short = self.has_too_few_replicas(replicas);
        self.disk_refusal().or_else(|| is_short.then(|| FEW_REPLICAS_ERROR.to_owned()))
    }
}
