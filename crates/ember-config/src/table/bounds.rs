//! Constants that several parameters share.

/// The largest `int` of Redis's own ranges.
pub(super) const INT_MAX: i64 = i32::MAX as i64;

/// The largest memory size that Redis accepts where it has a limit at all.
pub(super) const BYTES_MAX: u64 = i64::MAX as u64;

/// The parameter whose CONFIG SET reads the key files again, even if it is unchanged.
pub(crate) const ENCRYPTION_KEY_FILE: &str = "encryption-key-file";

/// The parameters that CONFIG SET changes only for clients that `enable-protected-configs` allows to.
pub(crate) const PROTECTED: [&str; 2] = ["dbfilename", DIRECTORY];

/// The directory of the data.
pub(crate) const DIRECTORY: &str = "dir";

/// The maximum number of replicas that a write can wait for.
pub const SYNC_REPLICAS_MAX: usize = 4;
