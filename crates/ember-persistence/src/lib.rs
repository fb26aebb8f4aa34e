//! The files of the data set: which files are kept on disk, in which formats, and how they are read and written.
//!
//! Reading order: [`files`] (all disk access, and a simulated disk with fault injection) and [`encryption`], both
//! re-exported from `ember-storage`, [`rdb_file`], [`key_writer`], [`origin`], [`aof`], [`log_of_store`], then the
//! tools for these files: [`check`], [`repair`], [`convert`] with [`unsupported_features`], [`restore`]. [`replace_file`]
//! and [`full_path`] are also used for other files.

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
pub mod restore;
pub mod unsupported_features;

pub use ember_storage::{encryption, files};
