//! Between encrypted and plain files, and from one key to another.

use std::path::Path;
use std::sync::Arc;

use crate::check::FileError;
use crate::encryption::{Encryption, Ending};
use crate::files::Disk;
use crate::repair::{Plan, Repaired, repair_aof, repair_file};

/// Copies an RDB file to `target`, encrypted as `to` says. The file is read as a whole before that.
///
/// # Errors
/// What is wrong with the file; if `target` is there; those of the disk.
pub fn convert_file(
    disk: &Arc<dyn Disk>,
    path: &Path,
    target: &Path,
    from: &Encryption,
    to: &Encryption,
) -> Result<Repaired, FileError> {
    repair_file(disk, path, target, from, Ending::Whole, &plan(to))
}

/// Copies the AOF that a manifest is of to the directory `target`, encrypted as `to` says. A torn end is cut off.
///
/// # Errors
/// What is wrong with one of the files; if there is an AOF in `target`; those of the disk.
pub fn convert_aof(
    disk: &Arc<dyn Disk>,
    manifest: &Path,
    target: &Path,
    from: &Encryption,
    to: &Encryption,
) -> Result<Vec<Repaired>, FileError> {
    repair_aof(disk, manifest, target, from, &plan(to))
}

fn plan(to: &Encryption) -> Plan {
    Plan { encryption: to.clone(), ..Plan::default() }
}
