//! A directory for the files of one test.

use std::path::PathBuf;

/// A directory that is removed when this value is dropped.
pub struct Directory(pub PathBuf);

impl Directory {
    /// Creates an empty directory. Tests of the same test program run at the same time, so they must use different
    /// names.
    ///
    /// # Panics
    /// Panics if the directory cannot be created.
    pub fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("ember-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path).expect("the directory for temporary files is writable");
        Directory(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
