//! What lies below all files that ember keeps.
//!
//! Reading order: [`files`] (all access to the disk, and a disk that fails on purpose), [`encryption`].

pub mod encryption;
pub mod files;
