//! Algorithms on bytes and numbers that know nothing of keys.

pub mod bits;
pub mod glob;
pub mod lcs;
pub mod long_double;
pub(crate) mod lzf;
pub mod random;
