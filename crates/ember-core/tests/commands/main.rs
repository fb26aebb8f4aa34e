//! Tests of the commands, by their reply bytes.

#![allow(clippy::unwrap_used, reason = "the whole program is a test")]

mod bitmaps;
mod command_table;
mod generic;
mod generic_specs;
mod geo;
mod hash_expiry;
mod hashes;
mod hyperloglogs;
mod json;
mod lists;
mod payloads;
mod sets;
mod sketches;
mod sorted_sets;
mod stream_references;
mod streams;
mod strings;
mod vector_indexes;
mod vector_sets;

mod support {
    pub(crate) mod hash;
    pub(crate) mod script;
    pub(crate) mod vectors;
    pub(crate) mod words;
}
