//! Atomic replacement of files: a reader finds either the old text or the new text, even after a crash.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// The permissions of a file that did not exist before: it may contain passwords or their hashes.
const PERMISSIONS_OF_NEW: u32 = 0o600;

/// Replaces the file at `path` with a file that contains `text` and has the same permissions. A symbolic link is
/// preserved.
///
/// # Errors
/// Returns errors of the system; the file is then unchanged, or (only if the directory cannot be synced) replaced.
pub fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let path = match fs::canonicalize(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => std::path::absolute(path)?,
        target => target?,
    };
    let directory = path.parent().unwrap_or(Path::new("/"));
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = directory.join(name);
    let written = write_new(&temporary, &path, text).and_then(|()| fs::rename(&temporary, &path));
    if written.is_err() {
        // The first error is returned; a leftover temporary file is harmless.
        let _ = fs::remove_file(&temporary);
    }
    written?;
    File::open(directory)?.sync_all()
}

/// Writes `text` durably to a new file with the permissions of the file `model`.
fn write_new(path: &Path, model: &Path, text: &[u8]) -> io::Result<()> {
    // A leftover of a crash would make `create_new` fail. `create_new` is used because it follows no symbolic link.
    let _ = fs::remove_file(path);
    // The text may contain a password, so the file must never be readable by other users, not even briefly.
    let mut file = OpenOptions::new().write(true).create_new(true).mode(PERMISSIONS_OF_NEW).open(path)?;
    let permissions = match fs::metadata(model) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Permissions::from_mode(PERMISSIONS_OF_NEW),
        model => model?.permissions(),
    };
    file.set_permissions(permissions)?;
    file.write_all(text)?;
    file.sync_all()
}
