//! The data set in an RDB file: read when the server starts, written by SAVE while nobody else is at the keyspace.
//!
//! The file is [`rdb_file`]'s: Redis 7 reads what is written here, as long as no field of a hash expires, and what any Redis
//! from 2.8 on has written is read here. It appears under its name all at once, or not at all.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ember_persistence::encryption::{Ending, FileSink, FileSource};
use ember_persistence::files::remove_leftovers;
use ember_persistence::rdb_file::{self, KeyFacts, RdbProblem, RdbReader, SaveOptions, Step};
use emberkv_core::keyspace::SHARDS;
use emberkv_core::rdb::Value;
use emberkv_core::turn::Turn;

use crate::commands::declared_library;
use crate::config::Config;
use crate::server::{Server, unix_ms};

/// Threads that build values while the calling one reads: more would wait for it.
const LOADERS_MAX: usize = 8;

/// How often the log tells how far loading is.
const PROGRESS_EVERY: Duration = Duration::from_secs(5);

/// What is known of the file.
#[derive(Debug, Default)]
pub(crate) struct SnapshotState {
    /// When it was last read or written, Unix time in ms; 0 is never.
    saved_ms: AtomicI64,
    /// Changes of keys up to then.
    saved_changes: AtomicU64,
    /// Whether it is to be written at the end, if anything has changed by then.
    pub(crate) saves_at_end: AtomicBool,
    /// How often it was written.
    pub(crate) saves: AtomicU64,
    /// Keys that were read, and those left out because their time had come.
    pub(crate) loaded: AtomicU64,
    pub(crate) expired: AtomicU64,
}

impl SnapshotState {
    /// When the data set was last on disk as it was in memory, Unix time in s.
    pub(crate) fn saved_s(&self, server: &Server) -> i64 {
        let saved_ms = self.saved_ms.load(Ordering::Relaxed);
        if saved_ms == 0 { server.started_ms / 1000 } else { saved_ms / 1000 }
    }

    /// Changes of keys since then.
    pub(crate) fn changes(&self, server: &Server) -> u64 {
        server.sum(|stats| &stats.changes).saturating_sub(self.saved_changes.load(Ordering::Relaxed))
    }
}

/// Reads the file, if there is one, into the empty keyspace. No worker runs yet.
///
/// # Errors
/// One line that says what is wrong, where, and what to do: a server must not start with half of its keys.
pub(crate) fn load_at_start(server: &Server) -> Result<(), String> {
    let config = server.config.snapshot();
    let (disk, path) = (&server.disk, Path::new(&config.dbfilename));
    let removed = remove_leftovers(disk.as_ref(), path).map_err(|error| error.to_string())?;
    if removed > 0 {
        tracing::warn!("{removed} files that were not written to their ends are removed");
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
    let reader = RdbReader::new(opened, path, config.encoding_limits());
    let mut reader = reader.map_err(|error| format!("cannot load the data set: {error}"))?;
    load_from(server, &config, &mut reader, path, total)
}

/// Reads an RDB file, or the RDB part of an AOF of `total` bytes, into the empty keyspace. No worker runs yet.
///
/// # Errors
/// As [`load_at_start`].
pub(crate) fn load_from(
    server: &Server,
    config: &Config,
    reader: &mut RdbReader<FileSource>,
    path: &Path,
    total: u64,
) -> Result<(), String> {
    let limits = config.encoding_limits();
    let begun = Instant::now();
    let mut told = begun;
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let threads = (cores - 1).min(LOADERS_MAX);
    let loaded = rdb_file::load(
        reader,
        threads,
        &limits,
        || insert_into(server, config),
        |step, read| {
            if told.elapsed() >= PROGRESS_EVERY {
                told = Instant::now();
                tracing::info!("loading {}: {read} of {total} bytes", path.display());
            }
            match step {
                Step::Function(code) => add_library(server, config, &code),
                Step::Keys | Step::Aux { .. } | Step::Sizes { .. } | Step::End => Ok(()),
            }
        },
    );
    loaded.map_err(|error| format!("cannot load the data set: {error}"))?;
    let state = &server.snapshots;
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

/// What takes one thread's keys.
fn insert_into<'s>(
    server: &'s Server,
    config: &'s Config,
) -> impl FnMut(&[u8], KeyFacts, Value) -> Result<(), RdbProblem> + use<'s> {
    let mut turn = Turn::new(unix_ms(), 1);
    turn.policy = config.maxmemory_policy;
    let mut buffer = Vec::new();
    move |name, facts, mut value| {
        let keyspace = &server.keyspace;
        if facts.database >= keyspace.databases() {
            return Err(RdbProblem::Database(facts.database as u64));
        }
        if value.is_over(turn.now_ms) || facts.expire_at_ms.is_some_and(|at_ms| at_ms <= turn.now_ms) {
            server.snapshots.expired.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        }
        let clock = match (facts.idle_s, facts.frequency) {
            (Some(seconds), _) if !turn.policy.is_lfu() => turn.idle_clock(seconds),
            (_, Some(counter)) if turn.policy.is_lfu() => turn.frequency_clock(counter),
            _ => turn.new_clock(),
        };
        let hash = keyspace.hash(name);
        let mut shard = keyspace.lock(hash.shard());
        if shard.find(facts.database, hash, name).is_some() {
            return Err(RdbProblem::DuplicateKey(name.to_vec()));
        }
        shard.insert(facts.database, hash, name, value.into_new(&mut buffer), facts.expire_at_ms, clock);
        keyspace.publish_bytes(keyspace.release(hash.shard(), shard));
        server.snapshots.loaded.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

fn add_library(server: &Server, config: &Config, code: &[u8]) -> Result<(), RdbProblem> {
    let library = declared_library(server, config, code);
    let added = library.and_then(|(library, _)| {
        server.scripting.libraries.change(|libraries| libraries.add(library, false))
    });
    added.map_err(|error| RdbProblem::Refused(String::from_utf8_lossy(&error.text()).into_owned()))
}

/// Writes the file when all workers have ended, if SHUTDOWN SAVE has asked for it and anything has changed since.
///
/// # Errors
/// Those of [`save`].
pub(crate) fn save_at_end(server: &Server) -> Result<(), String> {
    let state = &server.snapshots;
    if !state.saves_at_end.load(Ordering::Relaxed) || state.changes(server) == 0 {
        return Ok(());
    }
    let config = server.config.snapshot();
    let mut turn = Turn::new(unix_ms(), 1);
    turn.policy = config.maxmemory_policy;
    save(server, &config, &turn)
}

/// Writes the file. The calling worker is alone at the keyspace and holds no lock; `turn` is its own. O(N) for N bytes.
///
/// # Errors
/// One line that says what failed. The file that was there before is there still.
pub(crate) fn save(server: &Server, config: &Config, turn: &Turn) -> Result<(), String> {
    let begun = Instant::now();
    let options = SaveOptions {
        version: rdb_file::FILE_VERSION,
        is_packed: config.rdbcompression,
        encryption: &server.encryption(),
    };
    let path = Path::new(&config.dbfilename);
    let changes = server.sum(|stats| &stats.changes);
    let written =
        rdb_file::save(&server.disk, path, &options, |writer| write_all(server, turn, false, writer));
    let written = written.map_err(|error| error.to_string())?;
    let state = &server.snapshots;
    state.saved_ms.store(unix_ms(), Ordering::Relaxed);
    state.saved_changes.store(changes, Ordering::Relaxed);
    state.saves.fetch_add(1, Ordering::Relaxed);
    tracing::info!(
        "saved {} keys to {} in {:.3} seconds",
        written.keys,
        path.display(),
        begun.elapsed().as_secs_f64()
    );
    Ok(())
}

/// Writes all data. The caller is alone at the keyspace, or no worker runs.
pub(crate) fn write_all<W: io::Write>(
    server: &Server,
    turn: &Turn,
    is_aof_base: bool,
    writer: &mut rdb_file::RdbWriter<W>,
) -> io::Result<()> {
    let used = server.keyspace.used_bytes() as u64;
    writer.usual_aux(env!("CARGO_PKG_VERSION"), turn.now_ms / 1000, used, is_aof_base)?;
    for library in server.scripting.libraries.snapshot().all() {
        writer.function(&library.code)?;
    }
    for database in 0..server.keyspace.databases() {
        write_database(server, turn, database, writer)?;
    }
    Ok(())
}

fn write_database<W: io::Write>(
    server: &Server,
    turn: &Turn,
    database: usize,
    writer: &mut rdb_file::RdbWriter<W>,
) -> io::Result<()> {
    let keyspace = &server.keyspace;
    let keys = keyspace.len(database) as u64;
    if keys == 0 {
        return Ok(());
    }
    writer.sizes(database, keys, keyspace.volatile(database) as u64)?;
    for shard in 0..SHARDS {
        let data = keyspace.lock(shard);
        for entry in data.database(database).table().iter() {
            let mut facts = KeyFacts { database, expire_at_ms: entry.expire_at_ms(), ..KeyFacts::default() };
            if turn.policy.is_lfu() {
                facts.frequency = Some(turn.lfu_counter(entry.clock()));
            } else if turn.policy.is_lru() {
                facts.idle_s = Some(turn.idle_seconds(entry.clock()));
            }
            writer.key(&facts, entry.key(), entry)?;
        }
    }
    Ok(())
}

/// A snapshot is under way already.
#[derive(Debug)]
pub(crate) struct Busy;

/// All data at one moment.
pub(crate) struct PointInTime(Vec<u8>);

/// Whether a snapshot is under way.
pub(crate) fn is_under_way(_: &Server) -> bool {
    false
}

/// Begins a snapshot. The caller is alone at the keyspace.
pub(crate) fn begin(server: &'static Server, turn: &mut Turn) -> Result<PointInTime, Busy> {
    let mut writer = rdb_file::RdbWriter::new(Vec::new(), rdb_file::FILE_VERSION, false).map_err(|_| Busy)?;
    write_all(server, turn, true, &mut writer).map_err(|_| Busy)?;
    let (bytes, _) = writer.finish_as_begun().map_err(|_| Busy)?;
    Ok(PointInTime(bytes))
}

impl PointInTime {
    /// Writes it; bytes handed over.
    pub(crate) fn fill(self, writer: &mut rdb_file::RdbWriter<FileSink>, _: bool) -> io::Result<u64> {
        writer.raw(&self.0[9..self.0.len() - 9])?;
        Ok(0)
    }
}
