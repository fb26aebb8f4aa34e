//! Rewriting the AOF: a base of all data at one moment, in the place of the commands before.

use std::sync::atomic::Ordering;
use std::thread;

use ember_persistence::aof::{AofDirectory, AofError, AofWriter, Rewrite};
use ember_persistence::files::TemporaryFile;
use ember_persistence::rdb_file::{self, FILE_VERSION, SaveOptions};
use emberkv_core::turn::Turn;

use super::orders::{Beginning, Order};
use super::state::AofState;
use crate::config::Config;
use crate::control;
use crate::server::Server;
use crate::snapshot::{self, PointInTime};

/// A rewrite whose base is being written.
pub(super) struct Rewriting {
    pub(super) rewrite: Rewrite,
    /// Whether there is no AOF without it.
    pub(super) is_beginning: bool,
}

/// What came of writing a base.
pub(crate) struct BaseWritten {
    pub(super) result: Result<TemporaryFile, String>,
    pub(super) handed_over_bytes: u64,
}

/// Begins a rewrite. The caller is alone at the keyspace, and `turn` is its own.
///
/// # Errors
/// If a snapshot is under way already.
pub(crate) fn begin(server: &'static Server, turn: &mut Turn) -> Result<(), snapshot::Busy> {
    let base = snapshot::begin(server, turn)?;
    server.journal.aof.begin_rewrite();
    let behind = server.journal.last_number();
    server.journal.orders.add(Order::Rotate { behind, base: Some(base) });
    server.journal.wake_keeper();
    Ok(())
}

/// Begins the rewrite of an AOF that is switched off: it holds the data as it is now, and nothing that comes later. The
/// caller is alone at the keyspace, and `turn` is its own.
///
/// # Errors
/// `None` if a snapshot is under way already, else what the disk says.
pub(crate) fn begin_apart(
    server: &'static Server,
    config: &Config,
    turn: &mut Turn,
) -> Result<(), Option<String>> {
    let mut directory = super::loading::open(server, config)?;
    let begun = directory.begin_anew().and_then(|(_, rewrite)| Ok((rewrite, directory.begin_base()?)));
    let (rewrite, file) = begun.map_err(|error| Some(error.to_string()))?;
    let base = snapshot::begin(server, turn).map_err(|_| None)?;
    server.journal.aof.begin_rewrite();
    let done = move |written: BaseWritten| {
        let finished = written
            .result
            .and_then(|file| directory.finish_rewrite(rewrite, file).map_err(|error| error.to_string()));
        match &finished {
            Ok(()) => tracing::info!("the AOF is rewritten"),
            Err(error) => tracing::error!("the rewrite of the AOF has failed: {error}"),
        }
        server.journal.aof.end_rewrite(finished.is_ok());
    };
    write_base(server, file, base, done).map_err(|error| {
        server.journal.aof.end_rewrite(false);
        Some(error)
    })
}

/// Begins a rewrite that nobody has asked for just now, unless a snapshot is under way: it is tried again then.
pub(super) fn begin_by_itself(server: &'static Server) {
    if snapshot::is_under_way(server) {
        return;
    }
    let config = server.config.snapshot();
    let begun = control::alone(server, |turn| match server.journal.is_on() {
        true => begin(server, turn).map_err(|_| None),
        false => begin_apart(server, &config, turn),
    });
    if let Err(None) = begun {
        return;
    }
    server.journal.aof.is_rewrite_scheduled.store(false, Ordering::Relaxed);
    match begun {
        Err(Some(error)) => tracing::error!("the rewrite of the AOF cannot begin: {error}"),
        _ => tracing::info!("a rewrite of the AOF begins"),
    }
}

/// Begins an AOF anew in the place of one that cannot be written any more.
///
/// # Errors
/// Those of the disk, with the directory; if a snapshot is under way, that it is to be tried again.
pub(super) fn begin_anew(
    server: &'static Server,
    directory: AofDirectory,
) -> Result<Beginning, Box<(AofDirectory, AofError)>> {
    let files = NewFiles::create(directory)?;
    let path = files.writer.path().to_owned();
    let base = control::alone(server, |turn| {
        snapshot::begin(server, turn).map(|base| (base, server.journal.last_number()))
    });
    match base {
        Ok((base, behind)) => {
            server.journal.aof.begin_rewrite();
            Ok(files.begin(base, behind, true))
        }
        Err(_) => Err(Box::new((files.directory, AofError::Lost(path)))),
    }
}

/// What the thread that has written a base of the keeper's does then.
pub(super) fn tell_keeper(server: &'static Server) -> impl FnOnce(BaseWritten) + Send {
    move |written| {
        server.journal.orders.add(Order::BaseWritten(Box::new(written)));
        server.journal.wake_keeper();
    }
}

/// Writes a base on a thread of its own, which calls `done` then.
///
/// # Errors
/// If there is no thread.
pub(super) fn write_base(
    server: &'static Server,
    file: TemporaryFile,
    base: PointInTime,
    done: impl FnOnce(BaseWritten) + Send + 'static,
) -> Result<(), String> {
    let config = server.config.snapshot();
    let encryption = server.encryption();
    let write = move || {
        let options =
            SaveOptions { version: FILE_VERSION, is_packed: config.rdbcompression, encryption: &encryption };
        let mut handed_over_bytes = 0;
        let written = rdb_file::save_to(file.file(), &options, |writer| {
            handed_over_bytes = base.fill(writer, true)?;
            Ok(())
        });
        let result = written.map(|_| file).map_err(|error| error.to_string());
        done(BaseWritten { result, handed_over_bytes });
    };
    let spawned = thread::Builder::new().name("aof-base".to_owned()).spawn(write);
    spawned.map(drop).map_err(|error| format!("cannot start a thread: {error}"))
}

/// Whether the files have grown so much that they are to be rewritten.
pub(super) fn is_grown(aof: &AofState, config: &Config) -> bool {
    let (size, base) = (aof.size.load(Ordering::Relaxed), aof.base_size.load(Ordering::Relaxed).max(1));
    let percentage = u128::from(config.auto_aof_rewrite_percentage);
    // After failures it takes longer to the next try.
    let patience = 1 << aof.failed_in_a_row.load(Ordering::Relaxed).min(16);
    percentage != 0
        && size > config.auto_aof_rewrite_min_size
        && u128::from(size - base.min(size)) * 100 >= u128::from(base) * percentage * patience
}

/// Bytes of all files of an AOF but the one that is written to.
pub(super) fn closed_size(directory: &AofDirectory, writer: &AofWriter) -> u64 {
    let others = directory.live_files().into_iter().filter(|path| path != writer.path());
    others.filter_map(|path| std::fs::metadata(path).ok()).map(|data| data.len()).sum()
}

/// The first increment of an AOF that does not count yet.
pub(crate) struct NewFiles {
    directory: AofDirectory,
    writer: AofWriter,
    rewrite: Rewrite,
}

impl NewFiles {
    fn create(mut directory: AofDirectory) -> Result<NewFiles, Box<(AofDirectory, AofError)>> {
        match directory.begin_anew() {
            Ok((writer, rewrite)) => Ok(NewFiles { directory, writer, rewrite }),
            Err(error) => Err(Box::new((directory, error))),
        }
    }

    fn begin(self, base: PointInTime, behind: u64, holds: bool) -> Beginning {
        let NewFiles { directory, writer, rewrite } = self;
        Beginning { directory, writer, rewrite, base, behind, holds }
    }
}

/// Creates the first file of an AOF that is to be switched on.
///
/// # Errors
/// One line: what the disk says.
pub(crate) fn prepare(server: &Server, config: &Config) -> Result<NewFiles, String> {
    NewFiles::create(super::loading::open(server, config)?).map_err(|failed| failed.1.to_string())
}

/// Switches an AOF on. The caller is alone at the keyspace, and `turn` is its own.
///
/// # Errors
/// If a snapshot is under way.
pub(crate) fn switch_on(
    server: &'static Server,
    files: NewFiles,
    turn: &mut Turn,
) -> Result<(), snapshot::Busy> {
    let base = snapshot::begin(server, turn)?;
    server.journal.aof.begin_rewrite();
    let behind = server.journal.switch(true);
    server.journal.aof.is_enabled.store(true, Ordering::Relaxed);
    server.journal.orders.add(Order::Begin(Box::new(files.begin(base, behind, false))));
    server.journal.wake_keeper();
    Ok(())
}

/// Switches the AOF off: it ends with what was written before. The caller is alone at the keyspace.
pub(crate) fn switch_off(server: &Server) {
    let behind = server.journal.switch(false);
    server.journal.orders.add(Order::End { behind });
    server.journal.wake_keeper();
}
