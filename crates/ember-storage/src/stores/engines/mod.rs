//! The engines, each behind the cargo feature of its name.

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
use crate::files::Disk;

/// Opens the engine's files in a directory that is there, or makes them.
#[cfg_attr(
    not(all(feature = "redb", feature = "lmdb", feature = "fjall")),
    expect(unused_variables, reason = "not all engines are built")
)]
pub(super) fn open(
    kind: EngineKind,
    disk: &Arc<dyn Disk>,
    directory: &Path,
    options: &StoreOptions,
) -> Result<Box<dyn Engine>, StoreError> {
    match kind {
        #[cfg(feature = "redb")]
        EngineKind::Redb => Ok(Box::new(redb::RedbEngine::open(disk, directory, options)?)),
        #[cfg(feature = "lmdb")]
        EngineKind::Lmdb => Ok(Box::new(lmdb::LmdbEngine::open(directory)?)),
        #[cfg(feature = "fjall")]
        EngineKind::Fjall => Ok(Box::new(fjall::FjallEngine::open(directory, options)?)),
        #[cfg(not(all(feature = "redb", feature = "lmdb", feature = "fjall")))]
        kind => Err(StoreError::NotBuilt(kind)),
    }
}

/// The file or folder of an engine in the directory of a store.
pub(super) fn file_name(kind: EngineKind) -> &'static str {
    match kind {
        EngineKind::Redb => "store.redb",
        EngineKind::Lmdb => "store.lmdb",
        EngineKind::Fjall => "store.fjall",
    }
}
