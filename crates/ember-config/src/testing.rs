//! A temporary directory for one test, removed when the value is dropped.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory that is unique to one test.
pub(super) struct TestDirectory(PathBuf);

impl TestDirectory {
    pub(super) fn new() -> TestDirectory {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("ember-config-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        TestDirectory(path)
    }

    /// Returns the path of `name` in this directory.
    pub(super) fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    /// Writes a file, creates its parent directories, and returns its path.
    pub(super) fn write(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        std::fs::create_dir_all(PathBuf::from(&path).parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    pub(super) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }
}

impl Drop for TestDirectory {
    fn drop(&mut self) {
        // Ignores errors: a directory that remains in the system's temporary directory is harmless.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
