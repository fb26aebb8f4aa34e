//! Files that outlive the server: which are kept on disk, in which formats, and how they are read.
//!
//! Reading order: [`files`] (all access to the disk, and a disk that fails on purpose) and [`encryption`], both of
//! `ember-storage`, [`rdb_file`], [`key_writer`], [`origin`], [`aof`], [`log_of_store`], then the tools for them:
//! [`check`], [`repair`], [`convert`] with [`unsupported_features`]. [`replace_file`] and [`full_path`] serve
//! other files, too.

pub mod aof;
pub mod check;
pub mod convert;
pub mod full_path;
pub mod key_writer;
pub mod log_of_store;
pub mod origin;
pub mod rdb_file;
pub mod repair;
pub mod replace_file;
pub mod unsupported_features;

pub use ember_storage::{encryption, files};
