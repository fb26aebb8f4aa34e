//! The catalogue of commands: the registry of their specifications, and data derived from them.

pub(crate) mod modules;
pub(crate) mod redis_commands;
pub(crate) mod registry;
pub(crate) mod syntax;
