//! Common to all files of the data set: which process may write them, and with which keys they are encrypted.

pub(crate) mod data_lock;
pub(crate) mod encryption;
