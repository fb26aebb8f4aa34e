//! The public interface of the index: results compared with a list of its vectors, and recall.

#![allow(clippy::unwrap_used, reason = "the whole program is a test")]

mod building;
mod data;
mod model;
mod recall;
mod threads;
