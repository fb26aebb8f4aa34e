//! Files replaced in one step: whoever reads one, also after a crash, finds the old text or the new one.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// The permissions of a file that was not there: it may hold passwords, or their hashes.
const PERMISSIONS_OF_NEW: u32 = 0o600;

/// Replaces the file at `path` by one with `text` and the same permissions. A symbolic link stays one.
///
/// # Errors
/// What the system says; the file is then as it was, or (only when the directory cannot be synced) replaced.
pub(crate) fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
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
        // The first error is the one to report; a left-over file is only untidy.
        let _ = fs::remove_file(&temporary);
    }
    written?;
    File::open(directory)?.sync_all()
}

/// Writes `text` to a new file with the permissions of `model`, down to the disk.
fn write_new(path: &Path, model: &Path, text: &[u8]) -> io::Result<()> {
    // One left by a crash would be in the way of `create_new`, which follows no symbolic link.
    let _ = fs::remove_file(path);
    // The text may hold a password, so nobody else may read it at any time.
    let mut file = OpenOptions::new().write(true).create_new(true).mode(PERMISSIONS_OF_NEW).open(path)?;
    let permissions = match fs::metadata(model) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Permissions::from_mode(PERMISSIONS_OF_NEW),
        model => model?.permissions(),
    };
    file.set_permissions(permissions)?;
    file.write_all(text)?;
    file.sync_all()
}
