//! What lies below all files that ember keeps, and where values are that are away from memory.
//!
//! Reading order: [`files`] (all access to the disk, and a disk that fails on purpose), [`encryption`], [`segments`] (a log
//! of values that memory has no room for), `stores` (data sets in the files of key-value engines).

pub mod encryption;
pub mod files;
pub mod segments;
#[cfg(feature = "stores")]
pub mod stores;
