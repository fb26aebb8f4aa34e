//! What commands are: the table of their facts, and what follows from those.

pub(crate) mod redis_commands;
pub(crate) mod registry;
pub(crate) mod syntax;
