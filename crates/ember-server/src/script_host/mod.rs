//! What runs scripts and functions: which locks, which user, which flags; and the libraries of functions.

pub(crate) mod functions;
pub(crate) mod program;
