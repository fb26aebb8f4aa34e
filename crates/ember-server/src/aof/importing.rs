//! Import of an existing data set into a new store: from the AOF in the directory or, if there is none, from the RDB
//! file.
//!
//! ```text
//! mark      the store is cleared and marked: an import is running
//! load      as without a store; when memory is short, intermediate checkpoints allow values to be demoted
//! finish    a last checkpoint records that the import is done, and with which increment the log begins
//! settle    the new log replaces the AOF files that were read; an RDB file is not removed
//! ```
//!
//! A restart between the first and the third step finds the source files unchanged and restarts the import; after the
//! third step, the store contains all the data. No log is written during the import: until it is done, the source files
//! contain the data.

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

/// The files that an import reads.
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

/// Returns the source for a new store; `None` if the store already has a data set or no source exists.
///
/// # Errors
/// Returns an error if an import was interrupted and its source no longer exists, or if the disk fails.
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
    // If the log has increments but no base, they are this store's log before its first checkpoint, not a source.
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

/// Imports `source` into a store, and begins the store's log.
///
/// # Errors
/// Returns one line that describes the error; the next startup restarts the import.
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

/// Waits until memory usage is below its limit, as far as that is possible: values can be demoted once a checkpoint has
/// written them to the store.
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
