//! Rewriting the AOF: a base, which contains the data set at one moment, replaces the earlier commands.
//!
//! A worker with exclusive access takes the snapshot: the worker that runs BGREWRITEAOF, or worker 0 for automatic
//! rewrites. A separate thread writes the base while the AOF subscriber continues with the next increment.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use ember_config::Config;
use ember_persistence::aof::{AofDirectory, AofError, AofWriter, BaseFile, Rewrite};
use ember_persistence::rdb_file::KeyForm;

use super::checkpoint::{self, Cut};
use super::orders::{Beginning, Order};
use super::service::{Aof, order};
use crate::executor::Executor;
use crate::journal::Reader;
use crate::server::Server;
use crate::snapshot::point_in_time;
use crate::snapshot::point_in_time::{Claim, PointInTime, Purpose};
use crate::snapshot::saving::warn_of_unsupported;
use crate::snapshot::state::SnapshotState;
use crate::system::abort_on_panic::AbortOnPanic;
use crate::system::affinity;
use crate::system::clock::unix_ms;
use crate::tiers::Tiers;

/// The maximum time that enabling an AOF waits until the previous AOF is closed and the thread that writes its base has
/// ended.
const ENDS_WITHIN: Duration = Duration::from_secs(2);

/// The data set at one moment, from which a base is written.
pub(crate) struct Base {
    pub(super) point: PointInTime,
    /// The claim on snapshots, held until the base is installed.
    pub(super) claim: Claim,
    /// The rest of a checkpoint; set if the server has a store, whose content after the checkpoint is the base.
    pub(super) cut: Option<Box<Cut>>,
}

impl Base {
    /// Returns the form in which the keys of the base are encoded.
    pub(super) fn form(&self) -> KeyForm {
        self.point.form()
    }

    /// Whether the base is a checkpoint of a store.
    pub(super) fn is_checkpoint(&self) -> bool {
        self.cut.is_some()
    }

    /// Takes the base from the current data. The executor has exclusive access.
    fn take(claim: Claim, executor: &mut Executor) -> Base {
        executor.publish();
        let point = point_in_time::begin(&claim, executor);
        let cut = Cut::take(executor.server).map(Box::new);
        Aof::of(executor.server).state.begin_rewrite();
        Base { point, claim, cut }
    }
}

/// A rewrite whose base is being written.
pub(super) struct Rewriting {
    pub(super) rewrite: Rewrite,
    /// Whether the AOF is not valid until this rewrite is complete.
    pub(super) is_beginning: bool,
}

/// The result of writing a base.
pub(crate) struct BaseWritten {
    /// The file of the base; `None` if the data are in a store.
    pub(super) result: Result<Option<BaseFile>, String>,
    /// The claim on snapshots, held until the base is installed, so that no other snapshot begins before.
    pub(super) claim: Claim,
}

/// Begins a rewrite, even of an AOF that is disabled. The worker is inside the gate and holds no lock.
///
/// # Errors
/// Returns the purpose of another snapshot that is running, or the error of the disk.
pub(crate) fn begin(executor: &mut Executor) -> Result<(), Result<Purpose, String>> {
    let begun = try_begin(executor);
    if let Err(Err(_)) = &begun {
        Aof::of(executor.server).state.end_rewrite(false);
    }
    begun
}

fn try_begin(executor: &mut Executor) -> Result<(), Result<Purpose, String>> {
    let server = executor.server;
    let aof = &Aof::of(server).state;
    if aof.failing_ms() > 0 && !aof.awaits_base.load(Ordering::Relaxed) {
        return Err(Err("the AOF cannot be written; an earlier log line has the reason".to_owned()));
    }
    let claim = Claim::take(server, Purpose::AofBase).map_err(Ok)?;
    if !server.journal.is_read_by(Reader::Aof) {
        if Tiers::of(server).store().is_some() {
            return Err(Err("the log of the store has not been reopened yet".to_owned()));
        }
        return begin_apart(executor, claim).map_err(Err);
    }
    executor.with_exclusive_access(|executor, _| {
        let base = Base::take(claim, executor);
        let after = server.journal.last_number();
        let is_awaited = aof.awaits_base.swap(false, Ordering::Relaxed);
        order(
            server,
            if is_awaited {
                Order::BaseTaken(Box::new((base, after)))
            } else {
                Order::Rotate { after, base: Some(base) }
            },
        );
    });
    Ok(())
}

/// Begins the rewrite of an AOF that is disabled: the new AOF contains the current data, and no later changes.
fn begin_apart(executor: &mut Executor, claim: Claim) -> Result<(), String> {
    let server = executor.server;
    server.data_lock.take(&executor.config)?;
    let mut directory = super::service::open(server, &executor.config)?;
    let (_, rewrite) = directory.begin_replacement().map_err(|error| error.to_string())?;
    let base = executor.with_exclusive_access(|executor, _| Base::take(claim, executor));
    let rewrite = rewrite.taken_at(unix_ms() / 1000);
    let file = directory.begin_base(base.form()).map_err(|error| error.to_string())?;
    let done = move |written: BaseWritten| {
        let finished = written
            .result
            .and_then(|file| finish(&mut directory, rewrite, file).map_err(|error| error.to_string()));
        match &finished {
            Ok(()) => tracing::info!("the rewrite of the AOF is complete"),
            Err(error) => tracing::error!("the rewrite of the AOF failed: {error}"),
        }
        Aof::of(server).state.end_rewrite(finished.is_ok());
        drop(written.claim);
    };
    write_base(server, file, base, done)
}

/// Makes a complete base the valid one.
pub(super) fn finish(
    directory: &mut AofDirectory,
    rewrite: Rewrite,
    file: Option<BaseFile>,
) -> Result<(), AofError> {
    match file {
        Some(file) => directory.finish_rewrite(rewrite, file),
        None => directory.finish_without_base(rewrite),
    }
}

/// Whether worker 0 is to begin a rewrite or a checkpoint, or to take the base of an AOF that is restarted.
pub(crate) fn is_due(server: &Server, config: &Config) -> bool {
    let aof = &Aof::of(server).state;
    // While the data of a primary are loaded, the log of a store is disabled; afterwards it restarts with a checkpoint.
    let may_begin = server.journal.is_read_by(Reader::Aof) || Tiers::of(server).store().is_none();
    may_begin
        && !aof.is_rewriting()
        && SnapshotState::of(server).claims.purpose().is_none()
        && (aof.is_scheduled()
            || (aof.failing_ms() == 0
                && (Tiers::of(server).needs_checkpoint.load(Ordering::Relaxed)
                    || (server.journal.is_read_by(Reader::Aof) && is_grown(server, config)))))
}

/// Begins rewrites and checkpoints that are due. The worker is inside the gate and holds no lock.
pub(crate) fn begin_due(executor: &mut Executor) {
    let server = executor.server;
    let aof = &Aof::of(server).state;
    match begin(executor) {
        Ok(()) => {
            aof.is_rewrite_scheduled.store(false, Ordering::Relaxed);
            if Tiers::of(server).store().is_none() {
                tracing::info!("a rewrite of the AOF starts");
            }
        }
        Err(Ok(_)) => {}
        Err(Err(error)) => {
            aof.is_rewrite_scheduled.store(false, Ordering::Relaxed);
            tracing::error!("the rewrite of the AOF cannot start: {error}");
        }
    }
}

/// Whether the files have grown enough to be rewritten.
fn is_grown(server: &Server, config: &Config) -> bool {
    let aof = &Aof::of(server).state;
    let (size, base) = (aof.size.load(Ordering::Relaxed), aof.base_size.load(Ordering::Relaxed).max(1));
    let percentage = u128::from(config.auto_aof_rewrite_percentage);
    // Each consecutive failure doubles the growth that is required for the next attempt.
    let retry_factor = 1 << aof.failed_in_a_row.load(Ordering::Relaxed).min(16);
    if Tiers::of(server).store().is_some() {
        let grown = size.saturating_sub(aof.base_size.load(Ordering::Relaxed));
        return checkpoint::is_due(server, config, grown / retry_factor as u64);
    }
    percentage != 0
        && size > config.auto_aof_rewrite_min_size
        && u128::from(size.saturating_sub(base)) * 100 >= u128::from(base) * percentage * retry_factor
}

/// Returns the callback with which a thread reports to the AOF subscriber that it has written a base.
pub(super) fn notify_writer(server: &'static Server) -> impl FnOnce(BaseWritten) + Send {
    move |written| {
        order(server, Order::BaseWritten(Box::new(written)));
    }
}

/// Writes a base on a separate thread, which then calls `done`.
///
/// # Errors
/// Returns an error if no thread can be started.
pub(super) fn write_base(
    server: &'static Server,
    file: BaseFile,
    base: Base,
    done: impl FnOnce(BaseWritten) + Send + 'static,
) -> Result<(), String> {
    let config = server.config.snapshot();
    let encryption = server.encryption();
    let write = move || {
        let _guard = AbortOnPanic;
        affinity::keep_to(&config.aof_rewrite_cpulist, "aof_rewrite_cpulist");
        let Base { point, claim, .. } = base;
        let written = file.write(&encryption, |writer| point.fill(writer, true));
        // This thread syncs the file: a sync by the AOF subscriber would delay replies.
        let written = written.and_then(|features| {
            warn_of_unsupported(&config, "the base of the AOF", features);
            file.file().sync()
        });
        let result = written.map(|()| Some(file)).map_err(|error| error.to_string());
        done(BaseWritten { result, claim });
    };
    let spawned = thread::Builder::new().name("aof-base".to_owned()).spawn(write);
    spawned.map(drop).map_err(|error| format!("cannot start a thread: {error}"))
}

/// Returns the size in bytes of all files of an AOF except the increment that is being written.
pub(super) fn closed_size(directory: &AofDirectory, writer: &AofWriter) -> u64 {
    let others = directory.live_files().into_iter().filter(|path| path != writer.path());
    others.filter_map(|path| std::fs::metadata(path).ok()).map(|data| data.len()).sum()
}

/// The first increment of an AOF that is not valid yet, because it has no base.
pub(crate) struct NewFiles {
    directory: AofDirectory,
    writer: AofWriter,
    rewrite: Rewrite,
}

impl NewFiles {
    /// Creates the first increment.
    ///
    /// # Errors
    /// Returns the error of the disk, with the directory.
    pub(super) fn create(mut directory: AofDirectory) -> Result<NewFiles, Box<(AofDirectory, AofError)>> {
        match directory.begin_replacement() {
            Ok((writer, rewrite)) => Ok(NewFiles { directory, writer, rewrite }),
            Err(error) => Err(Box::new((directory, error))),
        }
    }

    /// Returns the order to begin an AOF in these files, with a base that contains the effects of records up to number
    /// `after`.
    pub(super) fn begin(self, base: Base, after: u64, holds: bool) -> Beginning {
        let NewFiles { directory, writer, rewrite } = self;
        Beginning { directory, writer, rewrite, base, after, holds }
    }
}

/// Enables the AOF: its first file exists when this returns. The base is written afterwards or, if another snapshot is
/// running, after that snapshot. The worker is inside the gate and holds no lock.
///
/// # Errors
/// Returns the error for the client.
pub(crate) fn switch_on(executor: &mut Executor) -> Result<(), String> {
    let (server, config) = (executor.server, Arc::clone(&executor.server.config.snapshot()));
    let begun = Instant::now();
    let claims = &SnapshotState::of(server).claims;
    while Aof::of(server).is_ending(server) || claims.is_base_obsolete.load(Ordering::Acquire) {
        if begun.elapsed() >= ENDS_WITHIN {
            return Err("the append-only file is still being closed; try again".to_owned());
        }
        // Workers that left the gate earlier may publish their records only now, so the journal's thread must collect
        // them.
        server.journal.call_thread();
        thread::sleep(Duration::from_millis(1));
    }
    let claim = match Claim::take(server, Purpose::AofBase) {
        Err(Purpose::AofBase) => {
            return Err("the append-only file is being rewritten; try again when that has ended".to_owned());
        }
        claim => claim.ok(),
    };
    server.data_lock.take(&config)?;
    let files = super::service::open(server, &config)
        .and_then(|directory| NewFiles::create(directory).map_err(|failed| failed.1.to_string()));
    let files = files.map_err(|error| {
        tracing::error!("CONFIG SET appendonly yes: {error}");
        "Unable to turn on AOF. Check server logs.".to_owned()
    })?;
    if claim.is_none() {
        tracing::info!(
            "AOF background was scheduled: the rewrite starts when the running snapshot has ended"
        );
    }
    executor.with_exclusive_access(|executor, _| {
        let base = claim.map(|claim| Base::take(claim, executor));
        let after = server.journal.switch(Reader::Aof, true);
        Aof::of(server).state.is_enabled.store(true, Ordering::Relaxed);
        Aof::of(server).state.needs_base.store(true, Ordering::Relaxed);
        order(
            server,
            match base {
                Some(base) => Order::Begin(Box::new(files.begin(base, after, false))),
                None => Order::Await { files: Box::new(files), after },
            },
        );
    });
    Ok(())
}

/// Disables the AOF: it is closed after all earlier records. The worker is inside the gate and holds no lock.
pub(crate) fn switch_off(executor: &mut Executor) {
    let server = executor.server;
    executor.with_exclusive_access(|_, _| {
        let after = server.journal.switch(Reader::Aof, false);
        order(server, Order::End { after });
    });
}
