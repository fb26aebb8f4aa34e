//! Sketches: values of bounded size that summarize streams of items.
//!
//! Each has the same states as its counterpart in RedisBloom 2.8, bit for bit, so that serialized values can be
//! exchanged in both directions.

mod blocks;
pub mod bloom;
pub mod count_min;
pub mod cuckoo;
pub mod t_digest;
pub mod top_k;

pub use blocks::Blocks;
pub use bloom::Bloom;
pub use count_min::CountMin;
pub use cuckoo::Cuckoo;
pub use t_digest::TDigest;
pub use top_k::TopK;

/// The maximum number of bytes of a sketch's bits or counters. They are allocated when they are first set, but a payload
/// of DUMP contains all of them.
pub const BYTES_MAX: usize = 1 << 32;

/// A sketch would exceed [`BYTES_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge;
