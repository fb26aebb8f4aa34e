//! The append-only file (AOF): a subscriber of the journal that appends records to its files, rewrites, and loading at
//! startup. With a store, the AOF is the log of changes that the store does not contain yet: `checkpoint` writes them
//! to the store, `resuming` opens the store at startup, `importing` fills a new store.

mod checkpoint;
mod importing;
pub(crate) mod loading;
pub(crate) mod opening;
mod orders;
mod resuming;
pub(crate) mod rewriting;
pub(crate) mod service;
pub(crate) mod slow_disk;
pub(crate) mod start;
pub(crate) mod state;
mod subscriber;
