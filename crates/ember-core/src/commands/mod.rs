//! The data commands, a folder for each family and a file for each command (or variants of one idea).

pub mod arguments;
mod generic;
mod server;
mod string;

use crate::call::DataCommand;

/// All data commands.
pub const FAMILIES: &[&[&[DataCommand]]] = &[generic::COMMANDS, server::COMMANDS, string::COMMANDS];
