//! The catalogue of commands: the table of their specifications, and data derived from it.

pub(crate) mod redis_commands;
pub(crate) mod registry;
pub(crate) mod syntax;
