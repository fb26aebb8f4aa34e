//! Loading a store at startup: its keys are loaded into memory, their values stay cold, and the log continues at the
//! increment that the last checkpoint names.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Instant;

use ember_config::Config;
use ember_persistence::log_of_store::Notes;
use ember_storage::stores::{EngineKind, Facts, Store, StoreOptions};
use emberkv_core::keyspace::external;
use emberkv_core::rdb::{self, Kind};
use emberkv_core::snapshot::StoredKey;
use emberkv_core::turn::Turn;

use super::checkpoint::HERE;
use crate::server::Server;
use crate::snapshot::loading::{Present, add_library};
use crate::snapshot::state::SnapshotState;
use crate::system::clock::unix_ms;
use crate::tiers::Tiers;

/// The directory of the store: the server's working directory.
const DIRECTORY: &str = ".";

/// The fractions of `maxmemory` that an engine's read cache (1/16) and write buffer (1/32) may take, and their sizes in
/// bytes without `maxmemory`.
const CACHE_SHARE: u64 = 16;
const WRITE_BUFFER_SHARE: u64 = 32;
const CACHE_BYTES: u64 = 64 << 20;
const WRITE_BUFFER_BYTES: u64 = 32 << 20;
const ENGINE_BYTES_MIN: u64 = 1 << 20;

/// Number of keys loaded between two checks whether the server is shutting down.
const KEYS_PER_CHECK: u64 = 4096;

/// Checks that the directory contains no store other than the configured one: the log of a store alone is not a data
/// set.
///
/// # Errors
/// Returns one line with the existing store and a remedy.
pub(super) fn check_directory(server: &Server, config: &Config) -> Result<(), String> {
    match Store::find(server.disk.as_ref(), Path::new(DIRECTORY)) {
        Some(there) if config.store.engine() != Some(there) => Err(format!(
            "the data set in this directory is in a store of {there}: start with --store {there}, or in \
             another directory"
        )),
        _ => Ok(()),
    }
}

/// Opens or creates the store.
pub(super) fn open(
    server: &'static Server,
    config: &Config,
    engine: EngineKind,
) -> Result<&'static Store, String> {
    if config.store.to_string() != engine.name() {
        tracing::info!(
            "the store '{}' is an alias: the server uses the similar engine {engine}",
            config.store
        );
    }
    let part = |share: u64, without_limit: u64| match config.maxmemory {
        0 => without_limit,
        limit => (limit / share).max(ENGINE_BYTES_MIN),
    };
    let options = StoreOptions {
        cache_bytes: part(CACHE_SHARE, CACHE_BYTES),
        write_buffer_bytes: part(WRITE_BUFFER_SHARE, WRITE_BUFFER_BYTES),
        encryption: server.encryption(),
    };
    let opened = Store::open(engine, &server.disk, Path::new(DIRECTORY), &options);
    let store = opened.map_err(|error| format!("cannot open the store: {error}"))?;
    server.keyspace.keep_in_store();
    Ok(Tiers::of(server).records.set_store(store))
}

/// Loads all keys of a store into the empty keyspace; their values stay cold, except for the values that must be
/// resident.
///
/// # Errors
/// Returns one line that describes the error.
pub(super) fn load(server: &Server, config: &Config, store: &Store) -> Result<(), String> {
    let Some(position) = store.position() else { return Ok(()) };
    let begun = Instant::now();
    let damaged = || "cannot load the data set: the store's metadata is damaged; restore a backup".to_owned();
    let notes = Notes::decode(&position.notes).ok_or_else(damaged)?;
    if notes.names.len() > server.keyspace.databases() {
        return Err(format!(
            "the store has {} databases: set `databases` to its previous value",
            notes.names.len()
        ));
    }
    if !server.keyspace.set_database_names(&notes.names) {
        return Err(damaged());
    }
    let shown = |error: &dyn std::fmt::Display| format!("cannot load the data set: {error}");
    for code in &notes.libraries {
        add_library(server, config, code, Present::Refused).map_err(|error| shown(&error))?;
    }
    let mut loader = Loader::new(server, config, &notes.names);
    let mut result = Ok(());
    let read = store.facts(&mut |facts| match loader.take(&facts) {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            result = Err(shown(&error));
            ControlFlow::Break(())
        }
    });
    read.map_err(|error| shown(&error))?;
    result?;
    loader.bring(store).map_err(|error| shown(&error))?;
    SnapshotState::of(server).loaded.fetch_add(loader.count, Ordering::Relaxed);
    let seconds = begun.elapsed().as_secs_f64();
    tracing::info!("loaded {} keys of the store in {seconds:.3} seconds", loader.count);
    Ok(())
}

/// Inserts the keys of a store into the keyspace.
struct Loader<'s> {
    server: &'s Server,
    config: &'s Config,
    turn: Turn,
    /// The number of each database, by its internal name.
    numbers: Vec<usize>,
    count: u64,
    /// Keys whose values must be resident, each with the internal name of its database and its expiry.
    here: Vec<(u32, Box<[u8]>, Option<i64>)>,
}

impl<'s> Loader<'s> {
    fn new(server: &'s Server, config: &'s Config, names: &[usize]) -> Loader<'s> {
        let mut turn = Turn::new(unix_ms(), 1);
        turn.settings.policy = config.maxmemory_policy;
        let mut numbers: Vec<usize> = (0..server.keyspace.databases()).collect();
        names.iter().enumerate().for_each(|(number, &name)| numbers[name] = number);
        Loader { server, config, turn, numbers, count: 0, here: Vec::new() }
    }

    fn number(&self, name: u32) -> Result<usize, String> {
        let number = self.numbers.get(name as usize).copied();
        number.ok_or_else(|| format!("there is no database {name}: set `databases` to its previous value"))
    }

    fn take(&mut self, facts: &Facts<'_>) -> Result<(), String> {
        self.count += 1;
        if self.count.is_multiple_of(KEYS_PER_CHECK) && self.server.is_stopping() {
            return Err("the server is stopping".to_owned());
        }
        let expire_at_ms = facts.expiry.map(u64::cast_signed);
        if facts.encoding == HERE {
            self.here.push((facts.database, facts.key.into(), expire_at_ms));
            return Ok(());
        }
        let damaged =
            || format!("the store has unknown metadata for the key '{}'", String::from_utf8_lossy(facts.key));
        let kind = Kind::from_byte(facts.kind).ok_or_else(damaged)?;
        let memory_bytes = usize::try_from(facts.memory_bytes).map_err(|_| damaged())?;
        let cold_facts = external::Facts::of_number(facts.encoding, memory_bytes).ok_or_else(damaged)?;
        let key = StoredKey {
            database: self.number(facts.database)?,
            key: facts.key,
            value_type: kind.value_type(),
            expire_at_ms,
            clock: self.turn.new_clock(),
        };
        if self.server.keyspace.insert_cold(&key, cold_facts) { Ok(()) } else { Err(damaged()) }
    }

    /// Reads the values that must be resident from the store.
    fn bring(&mut self, store: &Store) -> Result<(), String> {
        let limits = self.config.encoding_limits();
        let (mut bytes, mut buffer) = (Vec::new(), Vec::new());
        for (name, key, expire_at_ms) in std::mem::take(&mut self.here) {
            let damaged = || {
                format!("the value of the key '{}' is missing in the store", String::from_utf8_lossy(&key))
            };
            let kind = store.read(name, &key, &mut bytes).map_err(|error| error.to_string())?;
            let kind = kind.and_then(Kind::from_byte).ok_or_else(damaged)?;
            let mut rest = &bytes[..];
            let value = rdb::read_value(&mut rdb::Reader::new(&mut rest), kind, &limits);
            let value = value.map_err(|error| format!("'{}': {error}", String::from_utf8_lossy(&key)))?;
            let stored = StoredKey {
                database: self.number(name)?,
                key: &key,
                value_type: kind.value_type(),
                expire_at_ms,
                clock: self.turn.new_clock(),
            };
            if !self.server.keyspace.insert_stored(&stored, value.into_new(&mut buffer)) {
                return Err(damaged());
            }
        }
        Ok(())
    }
}
