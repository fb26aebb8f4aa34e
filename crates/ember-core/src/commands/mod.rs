//! The data commands: a folder for each family, and a file for each command or group of variants.

pub mod arguments;
mod bitmap;
mod drawn_reply;
mod element_scan;
mod generic;
mod geo;
mod hash;
mod hyperloglog;
mod json;
mod list;
mod server;
mod set;
mod sorted_set;
mod stream;
mod string;
mod vector;
mod vector_set;

use crate::call::DataCommand;

/// All data commands, by family and file.
pub const FAMILIES: &[&[&[DataCommand]]] = &[
    bitmap::COMMANDS,
    generic::COMMANDS,
    geo::COMMANDS,
    hash::COMMANDS,
    hyperloglog::COMMANDS,
    json::COMMANDS,
    list::COMMANDS,
    server::COMMANDS,
    set::COMMANDS,
    sorted_set::COMMANDS,
    stream::COMMANDS,
    string::COMMANDS,
    vector::COMMANDS,
    vector_set::COMMANDS,
];
