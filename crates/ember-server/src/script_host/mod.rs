//! Runs scripts and functions: locks, rights and flags; and the libraries of functions.

pub(crate) mod functions;
pub(crate) mod program;
