//! Detects changes of the files that the TLS settings refer to.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ember_config::Config;

/// The maximum number of files read from `tls-ca-cert-dir`.
const CA_FILES_MAX: usize = 1024;

/// The inode, the modification time (s and ns), and the size of a file.
type FileState = (u64, i64, i64, u64);

/// The states of all TLS files; `None` for a missing file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FileStates(Vec<(PathBuf, Option<FileState>)>);

impl FileStates {
    /// Reads the current state of each file.
    pub(super) fn read(config: &Config) -> FileStates {
        let named = [&config.tls_cert_file, &config.tls_key_file, &config.tls_ca_cert_file];
        let named = named.into_iter().filter(|path| !path.is_empty()).map(PathBuf::from);
        let mut paths: Vec<PathBuf> = named.collect();
        if !config.tls_ca_cert_dir.is_empty() {
            paths.extend(authority_paths(Path::new(&config.tls_ca_cert_dir)).unwrap_or_default());
        }
        paths.sort_unstable();
        let with_state = |path: PathBuf| {
            let state = state_of(&path);
            (path, state)
        };
        FileStates(paths.into_iter().map(with_state).collect())
    }
}

fn state_of(path: &Path) -> Option<FileState> {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.ino(), metadata.mtime(), metadata.mtime_nsec(), metadata.len()))
}

/// Returns the paths of the files in a directory of certificate authorities, at most [`CA_FILES_MAX`].
///
/// # Errors
/// Returns the error of reading the directory.
pub(super) fn authority_paths(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    fs::read_dir(directory)?.take(CA_FILES_MAX).map(|entry| entry.map(|entry| entry.path())).collect()
}
