//! Loading the data set at startup, while workers already run and reply LOADING, and on request.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ember_config::Config;
use ember_persistence::encryption::Ending;
use ember_persistence::files::{directory_of, remove_leftovers};
use ember_persistence::origin::{Origin, OriginFields};
use ember_persistence::rdb_file::{self, Batch, Inserter, RdbError, RdbProblem, RdbReader, Source, Step};
use ember_scripting::library::Libraries;
use emberkv_core::reclaim;
use emberkv_core::turn::Turn;
use parking_lot::Mutex;

use crate::executor::Executor;
use crate::script_host::functions;
use crate::server::Server;
use crate::snapshot::delay;
use crate::snapshot::state::SnapshotState;
use crate::system::clock::unix_ms;
use crate::tiers::Tiers;

/// The maximum number of threads that insert keys, in addition to the thread that reads: further threads would only
/// wait for the reading thread.
const LOADERS_MAX: usize = 8;

/// The minimum size of a key in a file, in bytes. It bounds the number of keys for which tables are preallocated,
/// because the number that the file announces may be wrong.
const KEY_BYTES_MIN: u64 = 8;

/// The maximum number of keys without elements that the log names.
const SKIPPED_NAMED_MAX: u64 = 10;

/// Interval of progress messages in the log.
const PROGRESS_EVERY: Duration = Duration::from_secs(5);

/// The progress of loading.
#[derive(Debug, Default)]
pub(crate) struct Loading {
    /// When loading began, Unix time in ms.
    since_ms: AtomicI64,
    /// The size of all files that are loaded, in bytes.
    pub(crate) total_bytes: AtomicU64,
    /// Bytes of the files that were read completely.
    done_bytes: AtomicU64,
    /// Bytes read of the current file.
    read_bytes: AtomicU64,
    /// The memory usage of the data set in bytes when it was saved, if the file contains it.
    pub(crate) used_bytes: AtomicU64,
    /// The position of the data in a replication stream, as far as the files contain it.
    origin: Mutex<OriginFields>,
    /// Whether expired keys are loaded, because replicas have them and must be notified of their removal.
    keeps_expired: AtomicBool,
}

impl Loading {
    /// Begins to record the progress of files of `total_bytes` bytes in total.
    pub(crate) fn begin(&self, total_bytes: u64) {
        self.since_ms.store(unix_ms(), Ordering::Relaxed);
        self.total_bytes.store(total_bytes, Ordering::Relaxed);
        self.set_origin(None);
        self.keep_expired(false);
    }

    /// Records how many bytes of the current file were read.
    pub(crate) fn record_read(&self, bytes: u64) {
        self.read_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Records that a file of `bytes` bytes is loaded.
    pub(crate) fn end_file(&self, bytes: u64) {
        self.read_bytes.store(0, Ordering::Relaxed);
        self.done_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Returns the bytes read so far.
    pub(crate) fn loaded_bytes(&self) -> u64 {
        self.done_bytes.load(Ordering::Relaxed) + self.read_bytes.load(Ordering::Relaxed)
    }

    /// Logs the progress.
    pub(crate) fn log_progress(&self, path: &Path) {
        let (percent, eta_s) = self.outlook();
        tracing::info!("loading {}: {percent:.1} % read, {eta_s} seconds left", path.display());
    }

    /// Records the memory usage that a file contains in an aux field.
    fn record_used_bytes(&self, text: &[u8]) {
        let bytes = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
        self.used_bytes.store(bytes.unwrap_or(0), Ordering::Relaxed);
    }

    /// Records an aux field that may belong to the position of the data in a replication stream.
    fn record_origin(&self, name: &[u8], value: &[u8]) {
        let mut origin = self.origin.lock();
        origin.read_field(name, value);
        if origin.origin().is_some() {
            self.keep_expired(true);
        }
    }

    /// Sets the position of the data in a stream; `None` if the position is unknown.
    pub(crate) fn set_origin(&self, origin: Option<Origin>) {
        *self.origin.lock() = origin.map(OriginFields::from).unwrap_or_default();
    }

    /// Returns the position of the data in a stream, if the files contain it.
    pub(crate) fn origin(&self) -> Option<Origin> {
        self.origin.lock().origin()
    }

    /// Returns the database that the next command in the stream needs.
    pub(crate) fn stream_database(&self) -> usize {
        self.origin.lock().database()
    }

    /// Sets whether expired keys are loaded: later commands may depend on them, or other servers may have them.
    pub(crate) fn keep_expired(&self, keeps: bool) {
        self.keeps_expired.store(keeps, Ordering::Relaxed);
    }

    /// Returns when loading began, Unix time in s.
    pub(crate) fn since_s(&self) -> i64 {
        self.since_ms.load(Ordering::Relaxed) / 1000
    }

    /// Returns the percentage of bytes read, and the estimated time in s until loading ends.
    pub(crate) fn outlook(&self) -> (f64, u64) {
        let (loaded, total) = (self.loaded_bytes(), self.total_bytes.load(Ordering::Relaxed));
        let seconds = (unix_ms() / 1000 - self.since_s()).max(0).unsigned_abs();
        let left = total.saturating_sub(loaded);
        // Redis reports this value, too, before an estimate is possible.
        let eta_s = if seconds == 0 { 1 } else { seconds.saturating_mul(left) / (loaded + 1) };
        (100.0 * loaded as f64 / total.max(1) as f64, eta_s)
    }
}

/// A callback between batches of keys, on the loading thread, while no other thread accesses the keyspace.
pub(crate) type Between<'b> = &'b mut dyn FnMut() -> Result<(), String>;

/// Loads the RDB file, if there is one, into the empty keyspace; until it is loaded, `LOADING` keeps commands from the
/// keyspace.
///
/// # Errors
/// Returns one line with the error, its position and a remedy: a server must not serve with half of its keys. A
/// shutdown that is requested during the load is also an error.
pub(crate) fn load_at_start(server: &Server, between: Option<Between<'_>>) -> Result<(), String> {
    let config = server.config.snapshot();
    let (disk, path) = (&server.disk, Path::new(&config.dbfilename));
    let is_own = |name: &str| path.file_name().is_some_and(|own| own.to_string_lossy() == name);
    // Without the lock, a temporary file may belong to another server that is writing it.
    if server.data_lock.is_exclusive() {
        let removed = remove_leftovers(disk.as_ref(), directory_of(path), is_own);
        log_removed(removed.map_err(|error| error.to_string())?);
    }
    let file = match disk.open_to_read(path) {
        Ok(file) => file,
        Err(error) if error.is_missing() => return Ok(()),
        Err(error) => return Err(error.to_string()),
    };
    let total = file.size().map_err(|error| error.to_string())?;
    let opened = server.encryption().open(file, Ending::Whole);
    let opened = opened.map_err(|error| format!("cannot load the data set: {error}"))?;
    server.encryption.warn_of_plain(&opened, path);
    let source = Source::new(opened, 0);
    let reader = RdbReader::from_source(source, path, config.encoding_limits(), config.version_check());
    let mut reader = reader.map_err(|error| format!("cannot load the data set: {error}"))?;
    SnapshotState::of(server).loading.begin(total);
    load_from(server, &config, &mut reader, path, Present::Refused, total, between)
}

/// The policy for keys and libraries that exist in memory and in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Present {
    /// An existing key or library is an error.
    Refused,
    /// Existing keys and libraries are replaced.
    Replaced,
}

/// Loads the RDB file into a keyspace that may contain keys; with `empties`, existing keys and function libraries are
/// removed first. The worker has exclusive access and holds no lock. The changes are not journaled.
///
/// # Errors
/// Returns one line with the error and its position. If there is no readable file, the keyspace is unchanged; otherwise
/// it contains the keys before the invalid position.
pub(crate) fn reload(executor: &mut Executor, empties: bool, present: Present) -> Result<(), String> {
    let (server, config) = (executor.server, Arc::clone(&executor.config));
    let path = Path::new(&config.dbfilename);
    let file = server.disk.open_to_read(path).map_err(|error| error.to_string())?;
    let total = file.size().map_err(|error| error.to_string())?;
    let opened = server.encryption().open(file, Ending::Whole).map_err(|error| error.to_string())?;
    let source = Source::new(opened, 0);
    let reader = RdbReader::from_source(source, path, config.encoding_limits(), config.version_check());
    let mut reader = reader.map_err(|error| error.to_string())?;
    if empties {
        empty(executor);
    }
    executor.turn.notices.is_flushed = true;
    let state = SnapshotState::of(server);
    state.loading.begin(total);
    load_from(server, &config, &mut reader, path, present, total, None)?;
    if empties {
        state.record_loaded(server);
    }
    Ok(())
}

/// Removes all keys and all libraries before a load, and abandons a running BGSAVE of them. With `replica-lazy-flush`,
/// the memory of the keys is freed in the background. The worker has exclusive access and holds no lock.
pub(crate) fn empty(executor: &mut Executor) {
    let server = executor.server;
    executor.publish();
    SnapshotState::of(server).claims.abandon_save();
    let (_, taken) = server.keyspace.flush(None, &mut executor.turn.notices, |_| ());
    if executor.config.replica_lazy_flush {
        let keys = taken.iter().map(|database| database.table().len() as u64).sum();
        reclaim::later(taken, keys);
    } else {
        drop(taken);
    }
    let emptied = server.scripting.libraries.change(|libraries| {
        *libraries = Libraries::default();
        Ok(())
    });
    emptied.expect("this change does not fail");
}

/// Logs the number of temporary files of a killed server that were removed.
pub(crate) fn log_removed(leftovers: usize) {
    if leftovers > 0 {
        tracing::warn!("{leftovers} incomplete files are removed");
    }
}

/// Loads an RDB file, the RDB part of an AOF, or a full sync into a keyspace that no other thread accesses. Tables are
/// preallocated for at most the number of keys that a file of `file_bytes` bytes can contain. With `between`, a single
/// thread reads and inserts.
///
/// # Errors
/// Returns the errors of [`load_at_start`].
pub(crate) fn load_from(
    server: &Server,
    config: &Config,
    reader: &mut RdbReader<impl Read>,
    path: &Path,
    present: Present,
    file_bytes: u64,
    mut between: Option<Between<'_>>,
) -> Result<(), String> {
    let state = SnapshotState::of(server);
    if server.debug.skips_checksums.load(Ordering::Relaxed) {
        reader.ignore_checksum();
    }
    reader.skip_unknown_modules(config.rdb_skip_unknown_modules);
    let mut possible_keys = file_bytes / KEY_BYTES_MIN;
    let mut expected = BTreeSet::new();
    let mut delayed = state.loaded.load(Ordering::Relaxed);
    let begun = Instant::now();
    let mut logged_at = begun;
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let threads = if between.is_some() { 0 } else { (cores - 1).min(LOADERS_MAX) };
    let loaded = rdb_file::load(
        reader,
        threads,
        || insert_into(server, config, present),
        |step, read| {
            state.loading.record_read(read);
            if server.is_stopping() {
                return Err(RdbProblem::Refused("the server is stopping".to_owned()));
            }
            let done = state.loaded.load(Ordering::Relaxed);
            delay_loading(server, done - delayed);
            delayed = done;
            if logged_at.elapsed() >= PROGRESS_EVERY {
                logged_at = Instant::now();
                state.loading.log_progress(path);
            }
            match step {
                Step::Function(code) => add_library(server, config, &code, present),
                Step::Aux { name, value } => {
                    match &name[..] {
                        b"used-mem" => state.loading.record_used_bytes(&value),
                        _ => state.loading.record_origin(&name, &value),
                    }
                    Ok(())
                }
                Step::Sizes { database, keys, .. } => {
                    // Tables are preallocated once per database, however often a damaged file repeats the step.
                    if database < server.keyspace.databases() && expected.insert(database) {
                        let believed = keys.min(possible_keys);
                        possible_keys -= believed;
                        server.keyspace.reserve_for(database, usize::try_from(believed).unwrap_or(0));
                    }
                    Ok(())
                }
                Step::Keys => match &mut between {
                    Some(between) => between().map_err(RdbProblem::Refused),
                    None => Ok(()),
                },
                Step::Skipped(data) => {
                    tracing::warn!("{}: skipped {data}", path.display());
                    Ok(())
                }
                Step::End => Ok(()),
            }
        },
    );
    loaded.map_err(|error| format!("cannot load the data set: {error}"))?;
    delay_loading(server, state.loaded.load(Ordering::Relaxed) - delayed);
    let empty = state.empty.swap(0, Ordering::Relaxed);
    if empty > 0 {
        tracing::warn!("{}: empty keys skipped: {empty}", path.display());
    }
    for database in expected {
        server.keyspace.release_capacity(database);
    }
    state.saved_ms.store(unix_ms(), Ordering::Relaxed);
    tracing::info!(
        "loaded {} keys from {} in {:.3} seconds; {} had expired",
        state.loaded.load(Ordering::Relaxed),
        path.display(),
        begun.elapsed().as_secs_f64(),
        state.expired.load(Ordering::Relaxed),
    );
    Ok(())
}

/// Sleeps for the `key-load-delay` of the loaded keys.
pub(crate) fn delay_loading(server: &Server, keys: u64) {
    delay::wait(keys, || (!server.is_stopping()).then(|| server.config.snapshot().key_load_delay));
}

/// Returns the function that inserts the keys for one thread.
fn insert_into<'s>(
    server: &'s Server,
    config: &Config,
    present: Present,
) -> impl FnMut(&mut Batch) -> Result<(), RdbError> + use<'s> {
    let mut turn = Turn::new(unix_ms(), 1);
    turn.settings.policy = config.maxmemory_policy;
    turn.now_tick = server.keyspace.turnover_tick();
    // A replica does not expire keys itself: its primary decides when they expire.
    let mut keeps_expired = config.replicaof.get().is_some();
    if keeps_expired {
        turn.replay_at(turn.now_ms);
    }
    let mut inserter = Inserter::new(&server.keyspace, turn, config.encoding_limits())
        .replacing(present == Present::Replaced);
    let tiers = Tiers::of(server);
    move |batch| {
        // The file contains the position in the stream before its first key.
        if !keeps_expired && SnapshotState::of(server).loading.keeps_expired.load(Ordering::Relaxed) {
            keeps_expired = true;
            inserter.keep_expired();
        }
        let inserted = inserter.insert(batch)?;
        skip_empty(server, inserted.empty, inserter.take_empty_names());
        tiers.wait_to_load(server);
        SnapshotState::of(server).loaded.fetch_add(inserted.loaded, Ordering::Relaxed);
        SnapshotState::of(server).expired.fetch_add(inserted.expired, Ordering::Relaxed);
        Ok(())
    }
}

/// Counts skipped keys whose values have no elements, and logs the names of the first ones.
fn skip_empty(server: &Server, count: u64, names: Vec<Box<[u8]>>) {
    if count == 0 {
        return;
    }
    let before = SnapshotState::of(server).empty.fetch_add(count, Ordering::Relaxed);
    let left = SKIPPED_NAMED_MAX.saturating_sub(before);
    for name in names.iter().take(usize::try_from(left).unwrap_or(usize::MAX)) {
        tracing::warn!("skipping empty key: {}", name.escape_ascii());
    }
}

/// Adds a function library.
///
/// # Errors
/// Returns an error if the library is invalid, or already exists and is not to be replaced.
pub(crate) fn add_library(
    server: &Server,
    config: &Config,
    code: &[u8],
    present: Present,
) -> Result<(), RdbProblem> {
    let library = functions::declared(server, config, code);
    let added = library.and_then(|(library, _)| {
        server.scripting.libraries.change(|libraries| libraries.add(library, present == Present::Replaced))
    });
    added.map_err(|error| RdbProblem::Refused(String::from_utf8_lossy(&error.text()).into_owned()))
}
