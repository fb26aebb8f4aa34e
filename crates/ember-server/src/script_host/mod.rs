//! Runs scripts and functions, with their locks, permissions and flags, and changes the libraries of functions.

pub(crate) mod functions;
pub(crate) mod program;
