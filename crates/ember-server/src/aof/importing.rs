//! Import into a new store from its directory: from an AOF, or otherwise from the RDB file.
//!
//! ```text
//! mark      the store is emptied and marked: an import is running
//! load      as without a store; when memory is short, intermediate checkpoints allow values to be demoted
//! finish    a last checkpoint records that the import is done, and the increment with which a log begins
//! settle    that log replaces the files that were read; an RDB file stays
//! ```
//!
//! A restart between the first and the third step finds the files unchanged, and begins the import again; after the
//! third, everything is in the store. Nothing is written to a log meanwhile: the source files still hold the data.

use std::fmt::{self, Display};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Instant;

use ember_config::Config;
use ember_persistence::aof::{AofDirectory, AofWriter};
use ember_storage::stores::{Import, Position, Store};

use super::{checkpoint, loading};
use crate::server::Server;
use crate::snapshot;
use crate::tiers::Tiers;

/// The source of an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Aof,
    Rdb,
}

impl Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Source::Aof => "AOF",
            Source::Rdb => "RDB file",
        })
    }
}

/// Returns the source for a new store; `None` for one that has a data set, or is to begin empty.
///
/// # Errors
/// If an import was interrupted and its source no longer exists; those of the disk.
pub(super) fn source(
    server: &Server,
    config: &Config,
    store: &Store,
    log: &mut AofDirectory,
) -> Result<Option<Source>, String> {
    let position = store.position();
    let is_under_way = position.as_ref().is_some_and(|position| position.import == Import::UnderWay);
    if position.is_some() && !is_under_way {
        return Ok(None);
    }
    loading::adopt_single(server, config, log)?;
    if log.manifest().base.is_some() {
        return Ok(Some(Source::Aof));
    }
    // Increments without a base are this store's log before its first checkpoint.
    if !log.exists() && server.disk.open_to_read(Path::new(&config.dbfilename)).is_ok() {
        return Ok(Some(Source::Rdb));
    }
    if is_under_way {
        return Err(format!(
            "an import into the store was interrupted, and its source files are missing: restore {} or {}, \
             or start in an empty directory",
            config.appenddirname, config.dbfilename
        ));
    }
    Ok(None)
}

/// Imports `source` into a store, and begins its log.
///
/// # Errors
/// One line that describes the error; the next start begins again.
pub(super) fn import(
    server: &'static Server,
    config: &Config,
    store: &Store,
    mut log: AofDirectory,
    source: Source,
) -> Result<(AofDirectory, AofWriter), String> {
    let begun = Instant::now();
    let mark = Position { import: Import::UnderWay, ..Position::default() };
    store.checkpoint(&mark, &mut |checkpoint| checkpoint.clear()).map_err(|error| error.to_string())?;
    let mut free_memory = || free_memory(server, config);
    match source {
        Source::Rdb => snapshot::loading::load_at_start(server, Some(&mut free_memory))?,
        Source::Aof => {
            if let Some(torn) = loading::load_files(server, config, &log, Some(&mut free_memory))? {
                tracing::warn!("the AOF has an incomplete end ({}), which is ignored", torn.what);
            }
        }
    }
    let (writer, rewrite) = log.begin_replacement().map_err(|error| error.to_string())?;
    checkpoint::write_now(server, config, rewrite.first(), Import::Done)?;
    log.finish_without_base(rewrite).map_err(|error| error.to_string())?;
    let keys: usize = (0..server.keyspace.databases()).map(|number| server.keyspace.len(number)).sum();
    let seconds = begun.elapsed().as_secs_f64();
    tracing::info!("imported all {keys} keys of the {source} into the store in {seconds:.3} seconds");
    Ok((log, writer))
}

/// Waits until memory is below its limit, as far as that is possible: values are demoted once the store has them.
fn free_memory(server: &'static Server, config: &Config) -> Result<(), String> {
    let tiers = Tiers::of(server);
    loop {
        if server.is_stopping() {
            return Err("the server is stopping".to_owned());
        }
        if tiers.needs_checkpoint.load(Ordering::Relaxed) {
            checkpoint::write_now(server, config, 0, Import::UnderWay)?;
        }
        tiers.wait_to_load(server);
        if !tiers.needs_checkpoint.load(Ordering::Relaxed) {
            return Ok(());
        }
    }
}
