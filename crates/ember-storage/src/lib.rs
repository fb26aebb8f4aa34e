//! File access for everything that ember stores, and the places of cold values.
//!
//! Reading order: [`files`] (all access to the disk, and a disk that fails on purpose), [`encryption`], [`segments`] (a
//! log of demoted values), `stores` (data sets in the files of key-value engines).

pub mod encryption;
pub mod files;
pub mod segments;
#[cfg(feature = "stores")]
pub mod stores;
