//! The engines, each enabled by the cargo feature of its name.

#[cfg(feature = "fjall")]
mod fjall;
#[cfg(feature = "lmdb")]
mod lmdb;
#[cfg(feature = "redb")]
mod redb;

use std::path::Path;
use std::sync::Arc;

use super::engine::{Engine, EngineKind};
use super::{StoreError, StoreOptions};
use crate::files::{Disk, DiskError};

/// Opens the engine's files in an existing directory. Files that do not exist are created under a temporary name first,
/// so that a killed process leaves no incomplete store.
pub(super) fn open(
    kind: EngineKind,
    disk: &Arc<dyn Disk>,
    directory: &Path,
    options: &StoreOptions,
) -> Result<Box<dyn Engine>, StoreError> {
    let path = directory.join(kind.file_name());
    if kind.is_built() && !is_there(kind, disk.as_ref(), &path)? {
        let new = directory.join(format!("new-{}", kind.file_name()));
        if is_there(kind, disk.as_ref(), &new)? {
            on_disk(kind, disk.as_ref(), |disk| disk.remove(&new), || std::fs::remove_dir_all(&new))?;
        }
        drop(open_at(kind, disk, &new, options)?);
        on_disk(kind, disk.as_ref(), |disk| disk.rename(&new, &path), || std::fs::rename(&new, &path))?;
        disk.sync_directory(directory)?;
    }
    open_at(kind, disk, &path, options)
}

/// Whether the engine's files exist at `path`.
fn is_there(kind: EngineKind, disk: &dyn Disk, path: &Path) -> Result<bool, StoreError> {
    let open = |disk: &dyn Disk| match disk.open_to_read(path) {
        Err(error) if error.is_missing() => Ok(false),
        opened => opened.map(|_| true),
    };
    on_disk(kind, disk, open, || path.try_exists())
}

/// Runs an operation on an engine's files: redb's files are accessed through [`Disk`], the other engines access theirs
/// directly.
fn on_disk<T>(
    kind: EngineKind,
    disk: &dyn Disk,
    file: impl FnOnce(&dyn Disk) -> Result<T, DiskError>,
    folder: impl FnOnce() -> std::io::Result<T>,
) -> Result<T, StoreError> {
    match kind {
        EngineKind::Redb => Ok(file(disk)?),
        EngineKind::Lmdb | EngineKind::Fjall => {
            folder().map_err(|cause| StoreError::Io { engine: kind, cause })
        }
    }
}

/// Opens the engine's files at `path`, or creates them.
#[cfg_attr(
    not(feature = "redb"),
    expect(unused_variables, reason = "only redb uses the backend of the disk")
)]
fn open_at(
    kind: EngineKind,
    disk: &Arc<dyn Disk>,
    path: &Path,
    options: &StoreOptions,
) -> Result<Box<dyn Engine>, StoreError> {
    match kind {
        #[cfg(feature = "redb")]
        EngineKind::Redb => Ok(Box::new(redb::RedbEngine::open(disk, path, options)?)),
        #[cfg(feature = "lmdb")]
        EngineKind::Lmdb => Ok(Box::new(lmdb::LmdbEngine::open(path)?)),
        #[cfg(feature = "fjall")]
        EngineKind::Fjall => Ok(Box::new(fjall::FjallEngine::open(path, options)?)),
        #[cfg(not(all(feature = "redb", feature = "lmdb", feature = "fjall")))]
        kind => Err(StoreError::NotBuilt(kind)),
    }
}
