//! What a peer may ask for: the bounds a [`Parser`](crate::Parser) enforces while it reads requests.

/// The most commands in one batch, usually: enough for deep pipelines, few enough that their replies and prefetched
/// entries stay in the cache.
pub const BATCH_COMMANDS_MAX: usize = 128;

/// Bulks of this length or more are received into a buffer of their own (see [`Limits::large_argument_min`]).
pub const LARGE_ARGUMENT_MIN: u64 = 32 * 1024;

/// The most arguments a peer may send in one command before it has authenticated; enough for AUTH and HELLO.
pub const UNAUTHENTICATED_MULTIBULK_COUNT_MAX: u64 = 10;

/// The longest argument in bytes a peer may send before it has authenticated.
pub const UNAUTHENTICATED_BULK_LEN_MAX: u64 = 16 * 1024;

/// The bounds on one connection's requests. Cheap to copy; may differ from one call of
/// [`Parser::parse`](crate::Parser::parse) to the next (CONFIG SET, AUTH).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest bulk argument in bytes (`proto-max-bulk-len`).
    pub bulk_len_max: u64,
    /// The most arguments in one command. Redis takes any positive 32-bit integer; the count costs nothing
    /// until the arguments arrive.
    pub multibulk_count_max: u64,
    /// The longest inline command, and the longest length line, in bytes without the line end. The parser
    /// assumes at least 16.
    pub inline_len_max: usize,
    /// From this length in bytes on an argument is received straight into a buffer of its own, which can
    /// become the stored value without a copy.
    pub large_argument_min: u64,
    /// The most commands that are handed out at once.
    pub batch_commands_max: usize,
    /// Whether the peer has authenticated (or need not). If not, the `UNAUTHENTICATED_*` bounds hold too and
    /// the parser hands out one command at a time, because an AUTH among them lifts the bounds.
    pub authenticated: bool,
}

impl Limits {
    /// The default bounds for a peer that has yet to authenticate.
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
