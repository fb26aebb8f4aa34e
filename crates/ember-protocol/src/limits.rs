//! Limits of requests, which a [`Parser`](crate::Parser) enforces while it reads them.

/// The usual maximum number of commands in a batch: enough for deep pipelines, few enough that their replies and
/// prefetched entries remain in the cache.
pub const BATCH_COMMANDS_MAX: usize = 128;

/// Bulks of this length or more are received into a separate buffer (see [`Limits::large_argument_min`]).
pub const LARGE_ARGUMENT_MIN: u64 = 32 * 1024;

/// The maximum number of arguments in a command before authentication; enough for AUTH and HELLO.
pub const UNAUTHENTICATED_MULTIBULK_COUNT_MAX: u64 = 10;

/// The maximum length of an argument in bytes before authentication.
pub const UNAUTHENTICATED_BULK_LEN_MAX: u64 = 16 * 1024;

/// The bounds on one connection's requests. Cheap to copy; they may change between calls of
/// [`Parser::parse`](crate::Parser::parse), for example by CONFIG SET or AUTH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The maximum length of a bulk argument in bytes (`proto-max-bulk-len`).
    pub bulk_len_max: u64,
    /// The maximum number of arguments in one command. Redis accepts any positive 32-bit integer; nothing is allocated
    /// for announced arguments until they arrive.
    pub multibulk_count_max: u64,
    /// The maximum length of an inline command, and of a length line, in bytes without the line end. Must be at least
    /// 16.
    pub inline_len_max: usize,
    /// The length in bytes from which an argument is received directly into a separate buffer, which can become the
    /// stored value without a copy.
    pub large_argument_min: u64,
    /// The maximum number of commands in a batch.
    pub batch_commands_max: usize,
    /// Whether the peer has authenticated, or does not have to. Otherwise the `UNAUTHENTICATED_*` limits also apply,
    /// and the parser returns one command at a time, because an AUTH lifts the limits for the commands after it.
    pub authenticated: bool,
}

impl Limits {
    /// Returns the default limits for a peer that has not authenticated yet.
    pub fn unauthenticated() -> Self {
        Self { authenticated: false, ..Self::default() }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bulk_len_max: 512 * 1024 * 1024,
            multibulk_count_max: i32::MAX as u64,
            inline_len_max: 64 * 1024,
            large_argument_min: LARGE_ARGUMENT_MIN,
            batch_commands_max: BATCH_COMMANDS_MAX,
            authenticated: true,
        }
    }
}
