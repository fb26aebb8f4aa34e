//! Paths as they stand in messages: from the root, so that who reads them need not know the directory of the process.

use std::path::{Path, absolute};

/// A path from the root; as it is, if the system does not tell the current directory.
pub(crate) fn full_path(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
}
