//! File access for everything that ember stores, and the on-disk formats of cold values.
//!
//! Reading order: [`files`] (all disk access, and a simulated disk with fault injection), [`encryption`], [`segments`]
//! (a log of demoted values), `stores` (data sets in the files of key-value engines).

pub mod encryption;
pub mod files;
pub mod segments;
#[cfg(feature = "stores")]
pub mod stores;
