//! The data commands: a folder for each family, and a file for each command or group of variants.

pub mod arguments;
mod bitmap;
mod bloom;
mod count_min;
mod cuckoo;
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
mod sketch;
mod sorted_set;
mod stream;
mod string;
mod t_digest;
mod top_k;
mod vector;
mod vector_set;

use crate::call::DataCommand;

/// All data commands, by family and file.
pub const FAMILIES: &[&[&[DataCommand]]] = &[
    bitmap::COMMANDS,
    bloom::COMMANDS,
    count_min::COMMANDS,
    cuckoo::COMMANDS,
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
    t_digest::COMMANDS,
    top_k::COMMANDS,
    vector::COMMANDS,
    vector_set::COMMANDS,
];
