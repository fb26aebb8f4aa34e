//! What keeps commands from running for the moment: data that is being loaded, a disk that does not take what is written,
//! a snapshot under way.
//!
//! All of it is one number, which each command looks at once: as long as it is 0 that is one branch.

use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};

use bitflags::bitflags;
use parking_lot::Mutex;

bitflags! {
    /// Why some commands do not run.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) struct Condition: u16 {
        /// The data set is being loaded: commands that need it are refused.
        const LOADING = 1;
        /// A snapshot is under way: calls that change keys may have to wait until those are saved.
        const SNAPSHOT = 2;
        /// The last snapshot could not be written: commands that write are refused.
        const SNAPSHOT_FAILED = 4;
        /// What was written to the append-only file did not get there: commands that write are refused.
        const AOF_FAILED = 8;
        /// It is further behind than it may be: commands that write wait.
        const AOF_BEHIND = 16;
        /// Many pushes wait for a worker that is busy: commands wait.
        const PUSHES_BEHIND = 32;
        /// There are fewer good replicas than `min-replicas-to-write`: commands that write are refused.
        const FEW_REPLICAS = 64;
        /// Another server is being given keys: calls that may change those wait.
        const KEYS_HELD = 128;
        /// The server is a replica: clients do not write, and nothing expires by itself.
        const REPLICA = 256;
        /// It is not connected to its primary, or has not all of its data: reads may be refused.
        const LINK_DOWN = 512;
        /// There are fewer good replicas than a client may want to have its writes: each write is looked at.
        const FEW_TO_SYNC = 1024;
        /// Memory is full, and values are being sent away: calls that need memory wait.
        const MEMORY_BEHIND = 2048;
        /// Connections of clients are to be closed: their commands do not run any more.
        const CLIENTS_ENDING = 4096;

        /// Commands that write are refused because of the disk.
        const DISK_REFUSES_WRITES = Self::SNAPSHOT_FAILED.bits() | Self::AOF_FAILED.bits();
        /// Commands that write are refused.
        const REFUSES_WRITES =
            Self::DISK_REFUSES_WRITES.bits() | Self::FEW_REPLICAS.bits() | Self::FEW_TO_SYNC.bits();
    }
}

/// What commands are answered while data is loaded.
pub(crate) const LOADING_ERROR: &str = "LOADING Redis is loading the dataset in memory";

/// What clients of a replica are answered that write.
pub(crate) const READ_ONLY_ERROR: &str = "READONLY You can't write against a read only replica.";

/// What they are answered that read while there is no link, if `replica-serve-stale-data` says so.
pub(crate) const LINK_DOWN_ERROR: &str =
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.";

/// What commands that write are answered after a snapshot has failed.
const SNAPSHOT_ERROR: &str = "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to \
                              disk. Commands that may modify the data set are disabled, because this instance is \
                              configured to report errors during writes if RDB snapshotting fails \
                              (stop-writes-on-bgsave-error option). Please check the Redis logs for details about the RDB \
                              error.";

/// What commands that write are answered while there are too few replicas.
pub(crate) const FEW_REPLICAS_ERROR: &str = "NOREPLICAS Not enough good replicas to write.";

/// The conditions of a server.
#[derive(Debug, Default)]
pub(crate) struct Conditions {
    now: AtomicU16,
    /// How many good replicas there are, as far as anybody asks.
    good_replicas: AtomicU32,
    /// What the disk said when the append-only file was written.
    aof_error: Mutex<String>,
}

impl Conditions {
    /// Those that there are.
    #[inline]
    pub(crate) fn get(&self) -> Condition {
        // Relaxed: those that must be seen at once begin while nobody else is at the keyspace.
        Condition::from_bits_retain(self.now.load(Ordering::Relaxed))
    }

    /// Begins or ends a condition.
    pub(crate) fn set(&self, condition: Condition, there: bool) {
        if there {
            self.now.fetch_or(condition.bits(), Ordering::Relaxed);
        } else {
            self.now.fetch_and(!condition.bits(), Ordering::Relaxed);
        }
    }

    /// Refuses writes because the append-only file does not take them; `error` says what the disk said. `None` ends that.
    pub(crate) fn set_aof_error(&self, error: Option<String>) {
        let failed = error.is_some();
        *self.aof_error.lock() = error.unwrap_or_default();
        self.set(Condition::AOF_FAILED, failed);
    }

    /// Notes how many good replicas there are.
    pub(crate) fn set_good_replicas(&self, count: u32) {
        self.good_replicas.store(count, Ordering::Relaxed);
    }

    /// Whether a write is refused whose client wants this many replicas to have it.
    pub(crate) fn lacks_replicas(&self, wanted: u32) -> bool {
        let now = self.get();
        now.contains(Condition::FEW_REPLICAS)
            || (now.contains(Condition::FEW_TO_SYNC) && self.good_replicas.load(Ordering::Relaxed) < wanted)
    }

    /// What a script that may write and says what it does is answered, if the role, the disk or the replicas are why it is
    /// refused; its client wants `replicas` to have what it writes.
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
        } else if self.lacks_replicas(replicas) {
            Some(FEW_REPLICAS_ERROR.to_owned())
        } else {
            None
        }
    }

    /// What a command that writes is answered, if the disk is why it is refused.
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

    /// What a command that writes is answered, if it is refused; its client wants `replicas` to have what it writes.
    pub(crate) fn write_refusal(&self, replicas: u32) -> Option<String> {
        let is_short = self.lacks_replicas(replicas);
        self.disk_refusal().or_else(|| is_short.then(|| FEW_REPLICAS_ERROR.to_owned()))
    }
}
