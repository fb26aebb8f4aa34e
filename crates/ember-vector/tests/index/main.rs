//! The index as its users see it: compared with a list of its vectors, and its recall.

#![allow(clippy::unwrap_used, reason = "the whole program is a test")]

mod building;
mod data;
mod model;
mod recall;
mod threads;
