//! Reading the data set at the start, when workers run already and answer that they are loading, and again when somebody
//! asks for that.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ember_persistence::encryption::Ending;
use ember_persistence::files::{directory_of, remove_leftovers};
use ember_persistence::origin::{Origin, OriginFields};
use ember_persistence::rdb_file::{self, Batch, Inserter, RdbError, RdbProblem, RdbReader, Source, Step};
use ember_scripting::library::Libraries;
use emberkv_core::reclaim;
use emberkv_core::turn::Turn;
use parking_lot::Mutex;

use crate::config::Config;
use crate::executor::Executor;
use crate::script_host::functions;
use crate::server::Server;
use crate::snapshot::delay;
use crate::snapshot::state::SnapshotState;
use crate::storage::Storage;
use crate::system::clock::unix_ms;

/// Threads that insert keys beside the one that reads: more would wait for it.
const LOADERS_MAX: usize = 8;

/// In a file as long as it is, no more keys are expected than such small ones: tables are made for those that a file says
/// are in it, which may be wrong.
const KEY_BYTES_MIN: u64 = 8;

/// Keys without elements that are named in the log: more would say the same.
const SKIPPED_NAMED_MAX: u64 = 10;

/// How often the log tells how far loading is.
const PROGRESS_EVERY: Duration = Duration::from_secs(5);

/// How far loading is.
#[derive(Debug, Default)]
pub(crate) struct Loading {
    /// When it began, Unix time in ms.
    since_ms: AtomicI64,
    /// Bytes of all files.
    pub(crate) total_bytes: AtomicU64,
    /// Bytes of files that were read to their ends.
    done_bytes: AtomicU64,
    /// Bytes that were read of the next one.
    read_bytes: AtomicU64,
    /// How much memory the data set took where it was saved, as far as the file says so.
    pub(crate) used_bytes: AtomicU64,
    /// What the files say of the stream that the data are from.
    origin: Mutex<OriginFields>,
    /// Keys whose time has come are not left out: others have them, and are to be told when they go.
    keeps_expired: AtomicBool,
}

impl Loading {
    /// Begins with files of `total_bytes` bytes together.
    pub(crate) fn begin(&self, total_bytes: u64) {
        self.since_ms.store(unix_ms(), Ordering::Relaxed);
        self.total_bytes.store(total_bytes, Ordering::Relaxed);
        self.set_origin(None);
        self.keep_expired(false);
    }

    /// Notes how many bytes of a file were read.
    pub(crate) fn note_read(&self, bytes: u64) {
        self.read_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Notes that a file of `bytes` bytes is read.
    pub(crate) fn end_file(&self, bytes: u64) {
        self.read_bytes.store(0, Ordering::Relaxed);
        self.done_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Bytes that were read.
    pub(crate) fn loaded_bytes(&self) -> u64 {
        self.done_bytes.load(Ordering::Relaxed) + self.read_bytes.load(Ordering::Relaxed)
    }

    /// Tells the log how far it is.
    pub(crate) fn log_progress(&self, path: &Path) {
        let (percent, eta_s) = self.outlook();
        tracing::info!("loading {}: {percent:.1} % is read, {eta_s} seconds to go", path.display());
    }

    /// Notes what a file says of the memory that was in use.
    fn note_used(&self, text: &[u8]) {
        let bytes = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
        self.used_bytes.store(bytes.unwrap_or(0), Ordering::Relaxed);
    }

    /// Notes what an RDB file says of the stream that its data are from.
    fn note_origin(&self, name: &[u8], value: &[u8]) {
        let mut origin = self.origin.lock();
        origin.note(name, value);
        if origin.origin().is_some() {
            self.keep_expired(true);
        }
    }

    /// Notes where the data stand in a stream, or that it is not known.
    pub(crate) fn set_origin(&self, origin: Option<Origin>) {
        *self.origin.lock() = origin.map(OriginFields::from).unwrap_or_default();
    }

    /// Where the data stand in a stream, as far as the files say so.
    pub(crate) fn origin(&self) -> Option<Origin> {
        self.origin.lock().origin()
    }

    /// The database that the next command is for of the stream that the data are from.
    pub(crate) fn stream_database(&self) -> usize {
        self.origin.lock().database()
    }

    /// Says whether keys are loaded whose time has come. What is behind them may build on them, or others have them, too.
    pub(crate) fn keep_expired(&self, keeps: bool) {
        self.keeps_expired.store(keeps, Ordering::Relaxed);
    }

    /// When it began, Unix time in s.
    pub(crate) fn since_s(&self) -> i64 {
        self.since_ms.load(Ordering::Relaxed) / 1000
    }

    /// Bytes that were read in percent, and in how many seconds it will be over if it goes on like this.
    pub(crate) fn outlook(&self) -> (f64, u64) {
        let (loaded, total) = (self.loaded_bytes(), self.total_bytes.load(Ordering::Relaxed));
        let seconds = (unix_ms() / 1000 - self.since_s()).max(0).unsigned_abs();
        let left = total.saturating_sub(loaded);
        // As Redis does before it can tell.
        let eta_s = if seconds == 0 { 1 } else { seconds.saturating_mul(left) / (loaded + 1) };
        (100.0 * loaded as f64 / total.max(1) as f64, eta_s)
    }
}

/// What is done between batches of keys, on the only thread that is at the keyspace then.
pub(crate) type Between<'b> = &'b mut dyn FnMut() -> Result<(), String>;

/// Reads the file, if there is one, into the empty keyspace, which the condition LOADING keeps commands from.
///
/// # Errors
/// One line that says what is wrong, where, and what to do: a server must not serve with half of its keys. Also when the
/// server has been told to end meanwhile.
pub(crate) fn load_at_start(server: &Server, between: Option<Between<'_>>) -> Result<(), String> {
    let config = server.config.snapshot();
    let (disk, path) = (&server.disk, Path::new(&config.dbfilename));
    let is_own = |name: &str| path.file_name().is_some_and(|own| own.to_string_lossy() == name);
    // A file that another server is writing is not left over.
    if server.data_lock.is_nobody_elses() {
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

/// What becomes of keys and libraries that are there already when a file has them too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Present {
    /// They are an error.
    Refused,
    /// They give way.
    Replaced,
}

/// Reads the file into a keyspace that may have keys; with `empties` those there are go first, and so do the libraries of
/// functions. The worker has exclusive access and holds no lock. Nothing of it is journaled.
///
/// # Errors
/// One line that says what is wrong and where. Without a file that can be read nothing has changed, otherwise the keys
/// before the mistake are there.
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

/// Removes all keys and all libraries, for what is about to be loaded. A BGSAVE of them that is under way is abandoned.
/// With `replica-lazy-flush` the memory of the keys is freed in the background. The worker has exclusive access and holds no
/// lock.
pub(crate) fn empty(executor: &mut Executor) {
    let server = executor.server;
    executor.publish();
    SnapshotState::of(server).claims.abandon_save();
    let (_, taken) = server.keyspace.flush(None, &mut executor.turn.notices, || ());
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

/// Tells the log of files that a server which did not end by itself has left, and that are gone now.
pub(crate) fn log_removed(leftovers: usize) {
    if leftovers > 0 {
        tracing::warn!("{leftovers} files that were not written to their ends are removed");
    }
}

/// Reads an RDB file, the RDB part of an AOF, or one that a primary sends, into a keyspace that nobody else is at. Room is
/// made for no more keys beforehand than a file of `file_bytes` bytes may have. With `between` one thread does it all.
///
/// # Errors
/// As [`load_at_start`].
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
    let mut possible_keys = file_bytes / KEY_BYTES_MIN;
    let mut expected = BTreeSet::new();
    let mut delayed = state.loaded.load(Ordering::Relaxed);
    let begun = Instant::now();
    let mut told = begun;
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let threads = if between.is_some() { 0 } else { (cores - 1).min(LOADERS_MAX) };
    let loaded = rdb_file::load(
        reader,
        threads,
        || insert_into(server, config, present),
        |step, read| {
            state.loading.note_read(read);
            if server.is_stopping() {
                return Err(RdbProblem::Refused("the server ends".to_owned()));
            }
            let done = state.loaded.load(Ordering::Relaxed);
            delay_loading(server, done - delayed);
            delayed = done;
            if told.elapsed() >= PROGRESS_EVERY {
                told = Instant::now();
                state.loading.log_progress(path);
            }
            match step {
                Step::Function(code) => add_library(server, config, &code, present),
                Step::Aux { name, value } => {
                    match &name[..] {
                        b"used-mem" => state.loading.note_used(&value),
                        _ => state.loading.note_origin(&name, &value),
                    }
                    Ok(())
                }
                Step::Sizes { database, keys, .. } => {
                    // Once for each, however often a damaged file says it.
                    if database < server.keyspace.databases() && expected.insert(database) {
                        let believed = keys.min(possible_keys);
                        possible_keys -= believed;
                        server.keyspace.make_room_for(database, usize::try_from(believed).unwrap_or(0));
                    }
                    Ok(())
                }
                Step::Keys => match &mut between {
                    Some(between) => between().map_err(RdbProblem::Refused),
                    None => Ok(()),
                },
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
        server.keyspace.give_back_room(database);
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

/// Waits as `key-load-delay` says for what was loaded.
pub(crate) fn delay_loading(server: &Server, keys: u64) {
    delay::wait(keys, || (!server.is_stopping()).then(|| server.config.snapshot().key_load_delay));
}

/// What takes one thread's keys.
fn insert_into<'s>(
    server: &'s Server,
    config: &Config,
    present: Present,
) -> impl FnMut(&mut Batch) -> Result<(), RdbError> + use<'s> {
    let mut turn = Turn::new(unix_ms(), 1);
    turn.settings.policy = config.maxmemory_policy;
    // What has expired its primary says.
    let mut keeps_expired = config.replicaof.get().is_some();
    if keeps_expired {
        turn.replay_at(turn.now_ms);
    }
    let mut inserter = Inserter::new(&server.keyspace, turn, config.encoding_limits())
        .replacing(present == Present::Replaced);
    let storage = Storage::of(server);
    move |batch| {
        // The file says so before its first key.
        if !keeps_expired && SnapshotState::of(server).loading.keeps_expired.load(Ordering::Relaxed) {
            keeps_expired = true;
            inserter.keep_expired();
        }
        let inserted = inserter.insert(batch)?;
        skip_empty(server, inserted.empty, inserter.take_empty_names());
        storage.wait_to_load(server);
        SnapshotState::of(server).loaded.fetch_add(inserted.loaded, Ordering::Relaxed);
        SnapshotState::of(server).expired.fetch_add(inserted.expired, Ordering::Relaxed);
        Ok(())
    }
}

/// Counts keys that were left out because their values have no elements, and logs the first of them.
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

/// Adds a library of functions.
///
/// # Errors
/// If it is none, or is there already and is not replaced.
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
