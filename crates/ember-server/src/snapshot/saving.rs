//! SAVE and the RDB file at shutdown, written with exclusive access to the keyspace.

use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Instant;

use ember_config::Config;
use ember_persistence::encryption::FileSink;
use ember_persistence::files::{DiskError, TemporaryFile};
use ember_persistence::key_writer::KeyWriter;
use ember_persistence::rdb_file::{self, KeyFacts, RdbWriter, SaveOptions, Written};
use emberkv_core::keyspace::SHARDS;
use emberkv_core::keyspace::entry::EntryRef;
use emberkv_core::keyspace::shard::ShardData;
use emberkv_core::keyspace::shard::cold_values::Fetched;
use emberkv_core::rdb::Features;
use emberkv_core::turn::Turn;

use crate::executor::Executor;
use crate::replication::primary::Primary;
use crate::replication::primary::place::Place;
use crate::server::Server;
use crate::snapshot::delay;
use crate::snapshot::state::SnapshotState;
use crate::system::clock::unix_ms;
use crate::tiers::Tiers;

/// Writes the RDB file after all workers have ended, if the shutdown saves and keys have changed since the last save.
///
/// # Errors
/// Returns the errors of [`save`].
pub(crate) fn save_at_end(server: &Server) -> Result<(), String> {
    let state = SnapshotState::of(server);
    if !state.saves_at_end.load(Ordering::Relaxed) || state.changes(server) == 0 {
        return Ok(());
    }
    let config = server.config.snapshot();
    let mut turn = Turn::new(unix_ms(), 1);
    turn.settings.policy = config.maxmemory_policy;
    turn.now_tick = server.keyspace.turnover_tick();
    let place = Primary::of(server).last_place(server).map(Place::Known);
    save_at(server, &config, &turn, place)
}

/// Saves during a shutdown, and requests another save for when all workers have ended, in case keys change later. The
/// worker has exclusive access and has published its records; no background save is running any more.
///
/// # Errors
/// Returns the errors of [`save`]; the server then continues.
pub(crate) fn save_before_end(executor: &mut Executor) -> Result<(), String> {
    let server = executor.server;
    let saved = save(server, &executor.config, &executor.turn);
    SnapshotState::of(server).saves_at_end.store(saved.is_ok(), Ordering::Relaxed);
    SnapshotState::of(server).is_given_up.store(saved.is_ok(), Ordering::Relaxed);
    saved
}

/// Writes the RDB file. The calling worker has exclusive access, holds no lock and has published its records; `turn` is
/// the worker's own. O(N) for N bytes.
///
/// # Errors
/// Returns one line that says what failed. The previous file is then unchanged.
pub(crate) fn save(server: &Server, config: &Config, turn: &Turn) -> Result<(), String> {
    save_at(server, config, turn, Primary::of(server).place(server))
}

/// Writes the RDB file; `place` is the position of the data in the stream.
fn save_at(server: &Server, config: &Config, turn: &Turn, place: Option<Place>) -> Result<(), String> {
    let begun = Instant::now();
    let changes = SnapshotState::of(server).all_changes(server);
    let (file, written) = write_file(server, config, |writer| {
        write_place(place, writer)?;
        write_all(server, turn, false, writer)
    })?;
    publish(file)?;
    SnapshotState::of(server).record_saved(changes);
    SnapshotState::of(server).background.record_success(server);
    let seconds = begun.elapsed().as_secs_f64();
    tracing::info!("saved {} keys to {} in {seconds:.3} seconds", written.keys, config.dbfilename);
    Ok(())
}

/// Writes the configured RDB file durably under a temporary name; [`publish`] renames the file to its final name.
/// `fill` writes the contents.
///
/// # Errors
/// Returns one line that says what failed, or which other process writes to the directory.
pub(super) fn write_file(
    server: &Server,
    config: &Config,
    fill: impl FnOnce(&mut RdbWriter<FileSink>) -> io::Result<()>,
) -> Result<(TemporaryFile, Written), String> {
    server.data_lock.take(config)?;
    let options = SaveOptions {
        version: config.rdb_target().file_version(),
        is_packed: config.rdbcompression,
        encryption: &server.encryption(),
    };
    let written = (|| {
        let file = TemporaryFile::create(&server.disk, Path::new(&config.dbfilename))?;
        let written = rdb_file::save_to(file.file(), &options, fill)?;
        file.file().sync()?;
        Ok((file, written))
    })();
    let (file, written) = written.map_err(|error: DiskError| error.to_string())?;
    warn_of_unsupported(config, &config.dbfilename, written.features);
    Ok((file, written))
}

/// Renames a written file to its final name atomically.
///
/// # Errors
/// Returns one line that says what failed.
pub(super) fn publish(file: TemporaryFile) -> Result<(), String> {
    file.publish().map_err(|error| error.to_string())
}

/// Warns if the server of `rdb-target` lacks a feature that `file` uses: that server would refuse the file.
pub(crate) fn warn_of_unsupported(config: &Config, file: &str, features: Features) {
    let target = config.rdb_target();
    let unsupported = features.common(target.unsupported());
    if !unsupported.is_empty() {
        tracing::warn!(
            "{file} has {unsupported}: {}, the server of `rdb-target`, cannot read it",
            target.name()
        );
    }
}

/// Writes the position of the data in the stream, waiting until it is known.
pub(super) fn write_place(place: Option<Place>, writer: &mut RdbWriter<FileSink>) -> io::Result<()> {
    place.and_then(Place::wait).map_or(Ok(()), |origin| origin.write(writer))
}

/// Writes the whole data set. The caller has exclusive access, or no worker runs.
///
/// # Errors
/// Returns errors of the file.
pub(crate) fn write_all(
    server: &Server,
    turn: &Turn,
    is_aof_base: bool,
    writer: &mut impl KeyWriter,
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

/// Returns the cold value of an entry.
fn value_of(
    server: &Server,
    data: &ShardData,
    database: usize,
    entry: EntryRef<'_>,
) -> io::Result<Option<Fetched>> {
    Tiers::of(server).value_of(data.database_name(database), entry).map_err(io::Error::other)
}

fn write_database(
    server: &Server,
    turn: &Turn,
    database: usize,
    writer: &mut impl KeyWriter,
) -> io::Result<()> {
    let keyspace = &server.keyspace;
    let keys = keyspace.len(database) as u64;
    if keys == 0 {
        return Ok(());
    }
    // As in Redis, the delay is read once, because the parameter cannot change while nothing else runs.
    let delay = server.config.snapshot().rdb_key_save_delay;
    writer.sizes(database, keys, keyspace.volatile(database) as u64)?;
    for shard in 0..SHARDS {
        let data = keyspace.lock(shard);
        for entry in data.database(database).table().iter() {
            let mut facts = KeyFacts { database, expire_at_ms: entry.expire_at_ms(), ..KeyFacts::default() };
            if turn.settings.policy.counts_uses() {
                facts.frequency = Some(turn.frequency(entry.clock()));
            } else if turn.settings.policy.is_lru() {
                facts.idle_s = Some(turn.idle_seconds(entry.clock()));
            }
            match value_of(server, &data, database, entry)? {
                Some(value) => writer.key(&facts, entry.key(), value.as_value())?,
                None => writer.key(&facts, entry.key(), entry)?,
            }
            if delay != 0 {
                delay::wait(1, || Some(delay));
            }
        }
    }
    Ok(())
}
