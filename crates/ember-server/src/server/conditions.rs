//! Conditions under which commands do not run at present: data being loaded, a disk that does not accept writes, a
//! running snapshot.
//!
//! All of them are bits of one number that each command reads: while it is 0, that is one branch.

use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};

use bitflags::bitflags;
use parking_lot::Mutex;

bitflags! {
    /// Conditions under which some commands do not run.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) struct Condition: u16 {
        /// The data set is being loaded: commands that need it are refused.
        const LOADING = 1;
        /// A snapshot is running: calls that change keys may have to wait until those are saved.
        const SNAPSHOT = 2;
        /// The last snapshot could not be written: commands that write are refused.
        const SNAPSHOT_FAILED = 4;
        /// Writes to the append-only file have failed: commands that write are refused.
        const AOF_FAILED = 8;
        /// The append-only file is too far behind: commands that write wait.
        const AOF_LAGS = 16;
        /// Many pushes are queued for a busy worker: commands wait.
        const PUSHES_LAG = 32;
        /// There are fewer good replicas than `min-replicas-to-write`: commands that write are refused.
        const FEW_REPLICAS = 64;
        /// Keys are being moved to another server: calls that may change them wait.
        const KEYS_HELD = 128;
        /// The server is a replica: clients do not write, and this server expires nothing on its own.
        const REPLICA = 256;
        /// The replica is not connected to its primary, or does not have all of its data: reads may be refused.
        const LINK_DOWN = 512;
        /// There are fewer good replicas than a client may require for its writes: each write is checked.
        const FEW_TO_SYNC = 1024;
        /// Memory is full, and values are being demoted: calls that need memory wait.
        const MEMORY_LAGS = 2048;
        /// Connections of clients are to be closed: their commands no longer run.
        const CLIENTS_ENDING = 4096;

        /// Commands that write are refused because of the disk.
        const DISK_REFUSES_WRITES = Self::SNAPSHOT_FAILED.bits() | Self::AOF_FAILED.bits();
        /// Commands that write are refused.
        const REFUSES_WRITES =
            Self::DISK_REFUSES_WRITES.bits() | Self::FEW_REPLICAS.bits() | Self::FEW_TO_SYNC.bits();
    }
}

/// The error of commands while data are loaded.
pub(crate) const LOADING_ERROR: &str = "LOADING Redis is loading the dataset in memory";

/// The error of writes to a replica.
pub(crate) const READ_ONLY_ERROR: &str = "READONLY You can't write against a read only replica.";

/// The error of reads while there is no link, depending on `replica-serve-stale-data`.
pub(crate) const LINK_DOWN_ERROR: &str =
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.";

/// The error of writes after a snapshot has failed.
const SNAPSHOT_ERROR: &str = "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to \
                              disk. Commands that may modify the data set are disabled, because this instance is \
                              configured to report errors during writes if RDB snapshotting fails \
                              (stop-writes-on-bgsave-error option). Please check the Redis logs for details about the RDB \
                              error.";

/// The error of writes while there are too few replicas.
pub(crate) const FEW_REPLICAS_ERROR: &str = "NOREPLICAS Not enough good replicas to write.";

/// The conditions of a server.
#[derive(Debug, Default)]
pub(crate) struct Conditions {
    now: AtomicU16,
    /// The number of good replicas, kept up to date while it is needed.
    good_replicas: AtomicU32,
    /// The disk's error when the append-only file was written.
    aof_error: Mutex<String>,
}

impl Conditions {
    /// Returns the present conditions.
    #[inline]
    pub(crate) fn get(&self) -> Condition {
        // Relaxed: conditions that must be seen immediately are set with exclusive access.
        Condition::from_bits_retain(self.now.load(Ordering::Relaxed))
    }

    /// Sets or clears a condition.
    pub(crate) fn set(&self, condition: Condition, there: bool) {
        if there {
            self.now.fetch_or(condition.bits(), Ordering::Relaxed);
        } else {
            self.now.fetch_and(!condition.bits(), Ordering::Relaxed);
        }
    }

    /// Refuses writes because the append-only file does not accept them; `error` is that of the disk. `None` ends this.
    pub(crate) fn set_aof_error(&self, error: Option<String>) {
        let failed = error.is_some();
        *self.aof_error.lock() = error.unwrap_or_default();
        self.set(Condition::AOF_FAILED, failed);
    }

    /// Sets the number of good replicas.
    pub(crate) fn set_good_replicas(&self, count: u32) {
        self.good_replicas.store(count, Ordering::Relaxed);
    }

    /// Returns whether a write is refused whose client requires this number of replicas to have it.
    pub(crate) fn has_too_few_replicas(&self, wanted: u32) -> bool {
        let now = self.get();
        now.contains(Condition::FEW_REPLICAS)
            || (now.contains(Condition::FEW_TO_SYNC) && self.good_replicas.load(Ordering::Relaxed) < wanted)
    }

    /// Returns the error for a script that declares flags and may write, if it is refused because of the role, the disk
    /// or the replicas; its client requires `replicas` to have its writes.
    pub(crate) fn script_refusal(&self, replicas: u32) -> Option<String> {
        const WRITABLE: &str = "Writable scripts are blocked. Use 'no-writes' flag for read only scripts.";
        let now = self.get();
        if now.contains(Condition::REPLICA) {
            Some("READONLY Can not run script with write flag on readonly replica.".to_owned())
        } else if now.contains(Condition::SNAPSHOT_FAILED) {
            Some(format!(
                "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. \
                 {WRITABLE}"
            ))
        } else if now.contains(Condition::AOF_FAILED) {
            let error = self.aof_error.lock();
            Some(format!(
                "MISCONF Redis is configured to persist data to AOF, but it's currently unable to persist to disk. \
                 {WRITABLE} AOF error: {error}"
            ))
        } else if self.has_too_few_replicas(replicas) {
            Some(FEW_REPLICAS_ERROR.to_owned())
        } else {
            None
        }
    }

    /// Returns the error for a command that writes, if it is refused because of the disk.
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

    /// Returns the error for a command that writes, if it is refused; its client requires `replicas` to have its
    /// writes.
    pub(crate) fn write_refusal(&self, replicas: u32) -> Option<String> {
        let is_short = self.has_too_few_replicas(replicas);
        self.disk_refusal().or_else(|| is_short.then(|| FEW_REPLICAS_ERROR.to_owned()))
    }
}
