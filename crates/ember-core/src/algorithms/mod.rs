//! Algorithms on bytes and numbers, independent of keys.

pub mod bits;
pub mod glob;
pub mod lcs;
pub mod long_double;
pub(crate) mod lzf;
pub(crate) mod murmur;
pub mod random;
