//! Constants that several families of parameters use.

/// The maximum of parameters that are an `int` in Redis.
pub(super) const INT_MAX: i64 = i32::MAX as i64;

/// The maximum of memory sizes that are limited in Redis.
pub(super) const BYTES_MAX: u64 = i64::MAX as u64;

/// The parameter that names the file of encryption keys. CONFIG SET with this name reads the file again, even if the
/// name is unchanged.
pub(crate) const ENCRYPTION_KEY_FILE: &str = "encryption-key-file";

/// The parameters that a client may change with CONFIG SET only if `enable-protected-configs` permits it.
pub(crate) const PROTECTED: [&str; 2] = ["dbfilename", DIRECTORY];

/// The parameter that names the data directory.
pub(crate) const DIRECTORY: &str = "dir";

/// The maximum of `sync-replicas`: the number of replicas that must confirm a write.
pub const SYNC_REPLICAS_MAX: usize = 4;
