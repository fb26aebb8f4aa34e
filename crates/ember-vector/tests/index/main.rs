//! The index as its users see it: against a list of its vectors, and what it finds of what there is.

#![allow(clippy::unwrap_used, reason = "the whole program is a test")]

mod building;
mod data;
mod model;
mod recall;
mod threads;
