//! Checkpoints: all changes since the last checkpoint are written to the store in one transaction, after which the
//! earlier log is no longer needed.
//!
//! ```text
//! cut      exclusive access: removed keys are collected, a snapshot of the changes begins, and the log begins its next
//!          increment
//! write    one transaction of the store: the removals, the rows, and the number of that increment
//! settle   saved values that have not changed since may be demoted; older increments are removed
//! ```
//!
//! After a crash, the log continues at the increment whose number the store contains, whatever the log's manifest says.
//! So a crash between the last two steps is harmless. If a checkpoint fails, its changes remain marked for the next
//! one.

use std::io;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Instant;

use ember_config::Config;
use ember_persistence::log_of_store::Notes;
use ember_storage::stores::{self, Import, Position, StoreError};
use emberkv_core::rdb::{Encoded, KeyFacts, KeyForm, Row, rows};
use emberkv_core::snapshot::{ColdKey, Piece, RemovedKeys, Snapshot};

use super::rewriting::{Base, BaseWritten};
use crate::server::Server;
use crate::snapshot::point_in_time::{self, Claim, PointInTime, Purpose};
use crate::system::abort_on_panic::AbortOnPanic;
use crate::system::affinity;
use crate::system::clock::unix_ms;
use crate::tiers::Tiers;

/// The bounds on the growth of the log, in bytes, after which a checkpoint is due; between them, a checkpoint is due
/// when the log has grown by the size of the data set. A checkpoint rewrites most pages of the store's tree when the
/// changes are scattered, and writes each key once, however often the key has changed: the more of the log a checkpoint
/// covers, the less each change costs. Replaying the log takes one or two seconds.
const LOG_BYTES_MIN: u64 = 64 << 20;
const LOG_BYTES_MAX: u64 = 512 << 20;

/// The log may grow by this fraction (1/4) of `maxmemory` before a checkpoint is due: changes that are only in the log
/// must stay in memory.
const LOG_SHARE: u64 = 4;

/// Time after which a checkpoint is due if the log has grown.
const INTERVAL_MS: i64 = 60_000;

/// Encoding number that marks a row whose value must be resident: the value is read when the store is loaded.
pub(super) const HERE: u8 = u8::MAX;

/// The part of a checkpoint that the snapshot does not contain.
pub(super) struct Cut {
    removed_keys: RemovedKeys,
    /// The internal name that the shards use for each database, by database number.
    names: Vec<usize>,
}

impl Cut {
    /// Takes the cut; returns `None` if the server has no store. The caller has exclusive access, and the log contains
    /// no later records.
    pub(super) fn take(server: &Server) -> Option<Cut> {
        let tiers = Tiers::of(server);
        tiers.store()?;
        tiers.needs_checkpoint.store(false, Ordering::Relaxed);
        tiers.is_checkpointing.store(true, Ordering::Relaxed);
        Some(Cut { removed_keys: server.keyspace.take_removed(), names: server.keyspace.database_names() })
    }
}

/// Whether a checkpoint is due after the log has grown by this many bytes since the last one.
pub(super) fn is_due(server: &Server, config: &Config, grown: u64) -> bool {
    let share = if config.maxmemory == 0 { u64::MAX } else { config.maxmemory / LOG_SHARE };
    let data_bytes = server.keyspace.used_bytes() as u64;
    let most = data_bytes.clamp(LOG_BYTES_MIN, LOG_BYTES_MAX).min(share).max(1);
    let is_long_ago = unix_ms() - Tiers::of(server).checkpointed_ms.load(Ordering::Relaxed) >= INTERVAL_MS;
    grown >= most || (grown > 0 && is_long_ago)
}

/// Writes a checkpoint on a separate thread, which then calls `done`. `first` is the first increment of the log whose
/// changes the checkpoint does not contain.
///
/// # Errors
/// Returns an error if no thread can be started.
pub(super) fn begin(
    server: &'static Server,
    first: u64,
    base: Base,
    done: impl FnOnce(BaseWritten) + Send + 'static,
) -> Result<(), String> {
    let cpus = server.config.snapshot().aof_rewrite_cpulist.clone();
    let write_now = move || {
        let _guard = AbortOnPanic;
        affinity::keep_to(&cpus, "aof_rewrite_cpulist");
        let Base { point, claim, cut } = base;
        let begun = Instant::now();
        let result = match cut {
            Some(cut) => write(server, (first, Import::None), point, *cut),
            None => Err("there is no store".to_owned()),
        };
        if let Ok(keys) = &result {
            let seconds = begun.elapsed().as_secs_f64();
            tracing::info!("a checkpoint wrote {keys} keys to the store in {seconds:.3} seconds");
        }
        done(BaseWritten { result: result.map(|_| None), claim });
    };
    let spawned = thread::Builder::new().name("checkpoint".to_owned()).spawn(write_now);
    spawned.map(drop).map_err(|error| format!("cannot start a thread: {error}"))
}

/// Discards the base of a rewrite that cannot begin. With a store, the base's changes remain marked for the next
/// checkpoint.
pub(super) fn give_up(server: &Server, base: Base) {
    let Base { point, claim, cut } = base;
    drop(point);
    if let Some(cut) = cut {
        server.keyspace.restore_removed(cut.removed_keys);
        server.keyspace.settle_checkpoint(false);
        Tiers::of(server).record_checkpoint();
    }
    drop(claim);
}

/// Writes a checkpoint on the calling thread, before the server accepts commands; returns the number of keys written.
/// No other thread accesses the keyspace.
///
/// # Errors
/// Returns why the store could not be written.
pub(super) fn write_now(
    server: &'static Server,
    config: &Config,
    first: u64,
    import: Import,
) -> Result<u64, String> {
    let taken = |purpose| format!("another snapshot is under way: {purpose:?}");
    let claim = Claim::take(server, Purpose::AofBase).map_err(taken)?;
    let point = point_in_time::begin_while_loading(&claim, config);
    let cut = Cut::take(server).ok_or("there is no store")?;
    write(server, (first, import), point, cut)
}

/// Writes all changes to the store and marks the keys as saved in the keyspace; returns the number of keys. The log
/// continues with increment `first`.
fn write(
    server: &Server,
    (first, import): (u64, Import),
    point: PointInTime,
    cut: Cut,
) -> Result<u64, String> {
    let written = write_changes(server, (first, import), point, cut);
    server.keyspace.settle_checkpoint(written.is_ok());
    Tiers::of(server).record_checkpoint();
    written
}

fn write_changes(
    server: &Server,
    (first, import): (u64, Import),
    point: PointInTime,
    cut: Cut,
) -> Result<u64, String> {
    let store = Tiers::of(server).store().ok_or("there is no store")?;
    let notes =
        Notes { names: cut.names.clone(), libraries: point.libraries().map(<[u8]>::to_vec).collect() };
    let position = Position { number: 0, increment: first, import, notes: notes.encode() };
    let mut point = Some(point);
    let mut keys = 0;
    let written = store.checkpoint(&position, &mut |checkpoint| {
        for &name in &cut.removed_keys.emptied {
            checkpoint.remove_database(database(name)?)?;
        }
        for (name, key) in &cut.removed_keys.removed {
            checkpoint.remove(database(*name)?, key)?;
        }
        keys = cut.removed_keys.removed.len() as u64;
        let Some(point) = point.take() else { return Ok(()) };
        let saved = point.each_piece(|snapshot, piece| {
            let put = put(checkpoint, &cut.names, snapshot, piece).map_err(io::Error::other)?;
            keys += put;
            Ok(keys)
        });
        saved.map_err(|error| StoreError::Abandoned(error.to_string()))
    });
    drop(point);
    if let Err(error) = written {
        server.keyspace.restore_removed(cut.removed_keys);
        return Err(error.to_string());
    }
    Ok(keys)
}

fn database(name: usize) -> Result<u32, StoreError> {
    u32::try_from(name).map_err(|_| StoreError::TooLong)
}

/// Writes a piece of the snapshot to the store; returns the number of keys.
fn put(
    checkpoint: &mut stores::Checkpoint<'_>,
    names: &[usize],
    snapshot: &Snapshot,
    piece: &Piece,
) -> Result<u64, StoreError> {
    match piece {
        Piece::Keys(number, block) => put_rows(checkpoint, names[*number], block),
        Piece::Value(key) => {
            let mut block = Encoded::new(KeyForm::Rows);
            block.push(&key.facts, &key.name, key.value.as_value());
            put_rows(checkpoint, names[key.facts.database], &block)
        }
        Piece::Cold(keys) => keys.iter().try_fold(0, |count, key| Ok(count + put_facts(checkpoint, key)?)),
        Piece::Detached(detached) => detached.entries().try_fold(0, |count, entry| {
            if let Some(key) = snapshot.cold_key(detached.number, detached.name(), entry) {
                return Ok(count + put_facts(checkpoint, &key)?);
            }
            let mut block = Encoded::new(KeyForm::Rows);
            block.push(&snapshot.facts(detached.number, entry), entry.key(), entry);
            Ok(count + put_rows(checkpoint, detached.name(), &block)?)
        }),
    }
}

fn put_rows(
    checkpoint: &mut stores::Checkpoint<'_>,
    name: usize,
    block: &Encoded,
) -> Result<u64, StoreError> {
    for row in rows(block.bytes()) {
        let Row { cold_facts, kind, expire_at_ms, name: key, value } = row;
        let facts = KeyFacts { expire_at_ms, cold_facts, ..KeyFacts::default() };
        checkpoint.put(&facts_of(database(name)?, key, kind as u8, &facts), value)?;
    }
    Ok(block.keys())
}

/// Updates the metadata of a key whose value is already in the store.
fn put_facts(checkpoint: &mut stores::Checkpoint<'_>, key: &ColdKey) -> Result<u64, StoreError> {
    let facts = facts_of(database(key.database_name)?, &key.name, 0, &key.facts);
    if checkpoint.put_facts(&facts)? {
        return Ok(1);
    }
    let name = String::from_utf8_lossy(&key.name);
    Err(StoreError::Abandoned(format!("the value of the key '{name}' is missing in the store")))
}

fn facts_of<'k>(database: u32, key: &'k [u8], kind: u8, facts: &KeyFacts) -> stores::Facts<'k> {
    stores::Facts {
        database,
        key,
        kind,
        encoding: facts.cold_facts.map_or(HERE, |cold_facts| cold_facts.encoding_number()),
        memory_bytes: facts.cold_facts.map_or(0, |cold_facts| cold_facts.memory_bytes() as u64),
        stored_bytes: 0,
        // Expiry times before 1970 are negative, and valid.
        expiry: facts.expire_at_ms.map(i64::cast_unsigned),
        element_expiry: None,
    }
}
