//! The append-only file: a subscriber of the journal that writes it, rewriting it, and loading it at the start. With a store
//! it is the log before that: `checkpoint` tells the store what has changed, `resuming` opens it at the start, `importing`
//! fills a new one.

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
