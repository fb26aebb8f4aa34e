//! Parts that all files of the data set share: the lock of the data directory, and the encryption keys.

pub(crate) mod data_lock;
pub(crate) mod encryption;
