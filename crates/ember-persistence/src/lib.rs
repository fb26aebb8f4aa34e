//! Files that outlive the server: what is kept on disk, in which formats, and how it is read back.
//!
//! Reading order: [`files`] (all access to the disk, and a disk that fails on purpose).

pub mod files;
