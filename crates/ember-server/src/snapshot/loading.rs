//! Reading the data set at the start.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use ember_persistence::encryption::{Ending, FileSource};
use ember_persistence::files::remove_leftovers;
use ember_persistence::rdb_file::{self, KeyFacts, RdbProblem, RdbReader, Step};
use emberkv_core::rdb::Value;
use emberkv_core::turn::Turn;

use crate::commands::declared_library;
use crate::config::Config;
use crate::server::{Server, unix_ms};

/// Threads that build values while the calling one reads: more would wait for it.
const LOADERS_MAX: usize = 8;

/// How often the log tells how far loading is.
const PROGRESS_EVERY: Duration = Duration::from_secs(5);

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
