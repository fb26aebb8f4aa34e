//! The append-only file: a subscriber of the journal that writes it, rewriting it, and loading it at the start.

pub(crate) mod loading;
mod orders;
pub(crate) mod rewriting;
pub(crate) mod service;
pub(crate) mod start;
pub(crate) mod state;
mod subscriber;
