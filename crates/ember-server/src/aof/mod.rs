//! The append-only file: a subscriber of the journal that writes it, rewrites, and loading at startup. With a store it
//! is the log of changes that the store does not have yet: `checkpoint` writes them to the store, `resuming` opens the
//! store at startup, `importing` fills a new one.

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
