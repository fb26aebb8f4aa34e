//! What all files of the data set have in common: the lock of the data directory, and the encryption keys.

pub(crate) mod data_lock;
pub(crate) mod encryption;
