//! The data commands, a folder for each family and a file for each command (or variants of one idea).

pub mod arguments;
mod bitmap;
mod generic;
mod server;
mod string;

use crate::call::DataCommand;

/// All data commands.
pub const FAMILIES: &[&[&[DataCommand]]] =
    &[bitmap::COMMANDS, generic::COMMANDS, server::COMMANDS, string::COMMANDS];
