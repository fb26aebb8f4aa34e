//! The keyspace at one moment, which any thread can write while commands run.
//!
//! The caller takes the [`Claim`] first, since only one snapshot runs at a time, then calls [`begin`] with exclusive
//! access, and passes the [`PointInTime`] to the thread that writes the file. Threads on at most half of the cores
//! encode keys in addition to that thread.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use ember_config::Config;
use ember_persistence::key_writer::KeyWriter;
use ember_persistence::rdb_file::KeyForm;
use emberkv_core::eviction::ClockReading;
use emberkv_core::rdb::{Encoded, VERSION_MAX};
use emberkv_core::snapshot::{ColdKey, Pace, Piece, QueueLimits, Saver, Snapshot, SnapshotOptions};
use parking_lot::Mutex;

use crate::clients::mailbox::Message;
use crate::executor::{Executor, Section};
use crate::server::Server;
use crate::server::conditions::Condition;
use crate::snapshot::delay;
use crate::snapshot::state::SnapshotState;
use crate::system::clock::unix_ms;
use crate::tiers::Tiers;
use ember_scripting::library::Libraries;

/// The maximum number of threads that encode keys: one writing thread keeps up with four of them.
const WALKERS_MAX: usize = 4;

/// The purpose of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The RDB file of BGSAVE and of save rules.
    Save,
    /// The base of an append-only file.
    AofBase,
    /// A snapshot for replicas.
    Sync,
}

/// The claim on snapshots, and the progress of the running snapshot.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    taken: Mutex<Option<Purpose>>,
    /// The number of claims so far, which is the number of the last one.
    number: AtomicU64,
    /// The number of a claim for a BGSAVE whose keys were removed, so that its file must not appear. Locked while the
    /// file of a BGSAVE is renamed to its final name.
    abandoned: Mutex<u64>,
    /// Whether the running snapshot is the base of an AOF that has been disabled.
    pub(crate) is_base_obsolete: AtomicBool,
    /// The number of keys that the running snapshot has written, and their total number.
    processed: AtomicU64,
    total: AtomicU64,
    /// Bytes of values that the last snapshot has copied because they were about to change.
    preimage_bytes: AtomicU64,
}

impl Claims {
    /// Returns the purpose of the running snapshot.
    pub(crate) fn purpose(&self) -> Option<Purpose> {
        *self.taken.lock()
    }

    /// Returns the number of keys that the running snapshot has written, and the total number of its keys.
    pub(crate) fn progress(&self) -> (u64, u64) {
        match self.purpose() {
            None => (0, 0),
            Some(_) => (self.processed.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed)),
        }
    }

    /// Prevents the file of a running BGSAVE from getting its final name. If the file has that name when this returns,
    /// it had the name before the call.
    pub(crate) fn abandon_save(&self) {
        let number = {
            let taken = self.taken.lock();
            (*taken == Some(Purpose::Save)).then(|| self.number.load(Ordering::Relaxed))
        };
        if let Some(number) = number {
            *self.abandoned.lock() = number;
        }
    }

    /// Whether the running snapshot belongs to a BGSAVE whose keys were removed.
    pub(super) fn is_abandoned(&self) -> bool {
        *self.abandoned.lock() == self.number.load(Ordering::Relaxed)
    }

    /// Returns why the running snapshot is obsolete, if it is.
    fn why_obsolete(&self) -> Option<&'static str> {
        if self.is_abandoned() {
            Some("its keys were removed")
        } else if self.is_base_obsolete.load(Ordering::Relaxed) {
            Some("the AOF was switched off")
        } else {
            None
        }
    }

    /// Calls `publish`, which gives the file of a BGSAVE its final name, unless the keys of that BGSAVE were removed.
    pub(super) fn unless_abandoned<R>(&self, publish: impl FnOnce() -> R) -> Option<R> {
        let abandoned = self.abandoned.lock();
        (*abandoned != self.number.load(Ordering::Relaxed)).then(publish)
    }

    /// Returns the bytes of values that the last snapshot has copied because they were about to change.
    pub(crate) fn preimage_bytes(&self) -> u64 {
        self.preimage_bytes.load(Ordering::Relaxed)
    }
}

/// The exclusive right to take snapshots, held until it is dropped: the holder keeps it until the snapshot's file has
/// its final name.
pub(crate) struct Claim(&'static Server, Purpose);

impl Claim {
    /// Takes the claim of `server`, if it is not held.
    ///
    /// # Errors
    /// Returns the purpose of the current claim.
    pub(crate) fn take(server: &'static Server, purpose: Purpose) -> Result<Claim, Purpose> {
        let mut taken = SnapshotState::of(server).claims.taken.lock();
        match *taken {
            Some(other) => Err(other),
            None => {
                *taken = Some(purpose);
                SnapshotState::of(server).claims.number.fetch_add(1, Ordering::Relaxed);
                Ok(Claim(server, purpose))
            }
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        *SnapshotState::of(self.0).claims.taken.lock() = None;
    }
}

/// A running snapshot. Dropping it before it is written ends the snapshot, which may take long: O(keys).
pub(crate) struct PointInTime {
    // `saver` must be dropped before `underway` clears the condition, so the order of these fields matters.
    saver: Saver<'static>,
    underway: Underway,
    snapshot: Arc<Snapshot>,
    libraries: Arc<Libraries>,
    used_bytes: u64,
    /// The number of changes of keys up to the snapshot.
    pub(crate) changes: u64,
}

/// A guard that sets the condition that a snapshot is running, and clears the condition when dropped.
struct Underway(&'static Server);

impl Drop for Underway {
    fn drop(&mut self) {
        self.0.conditions.set(Condition::SNAPSHOT, false);
        try_again(self.0);
    }
}

/// Retries commands that had to wait until the snapshot ended.
fn try_again(server: &Server) {
    server.workers.iter().for_each(|worker| worker.mailbox.send(Message::TryAgain));
}

/// Returns the form in which keys are encoded in RDB files.
fn rdb_form(server: &Server, config: &Config) -> KeyForm {
    // Only ember can read an encrypted file, but other servers may read the decrypted file.
    let target = config.rdb_target().file_version();
    let version = if server.encryption().is_on() { target.max(VERSION_MAX) } else { target };
    KeyForm::Rdb { version, is_packed: config.rdbcompression }
}

/// Returns the form in which keys are encoded in the base of an AOF.
pub(crate) fn base_form(server: &Server, config: &Config) -> KeyForm {
    if Tiers::of(server).store().is_some() {
        return KeyForm::Rows;
    }
    if config.aof_use_rdb_preamble { rdb_form(server, config) } else { KeyForm::Commands }
}

/// The limits on bytes that wait to be written, as fractions of `maxmemory`: bytes encoded by threads, and bytes copied
/// before changes.
const WALKED_SHARE: u64 = 64;
const PREIMAGE_SHARE: u64 = 16;

fn queue_limits(config: &Config) -> QueueLimits {
    let most = QueueLimits::default();
    QueueLimits {
        walked_bytes: config.held_back_max(most.walked_bytes, WALKED_SHARE),
        preimage_bytes: config.held_back_max(most.preimage_bytes, PREIMAGE_SHARE),
    }
}

/// Begins a snapshot. The executor has exclusive access, holds no lock and has published its counters. O(shards).
pub(crate) fn begin(claim: &Claim, executor: &Executor) -> PointInTime {
    assert!(executor.section == Section::Exclusive, "a snapshot is taken with exclusive access");
    take(claim, &executor.config, executor.turn.now_ms)
}

/// Begins a snapshot for replicas, in this RDB version.
pub(crate) fn begin_for_replicas(claim: &Claim, executor: &Executor, version: u16) -> PointInTime {
    assert!(executor.section == Section::Exclusive, "a snapshot is taken with exclusive access");
    let form = KeyForm::Rdb { version, is_packed: executor.config.rdbcompression };
    take_as(claim, form, &executor.config, executor.turn.now_ms)
}

/// Begins a snapshot while data are loaded: no command runs, and no other thread changes the keyspace.
pub(crate) fn begin_while_loading(claim: &Claim, config: &Config) -> PointInTime {
    assert!(claim.0.is_loading(), "later a snapshot is taken with exclusive access");
    take(claim, config, unix_ms())
}

fn take(claim: &Claim, config: &Config, now_ms: i64) -> PointInTime {
    let form = match claim.1 {
        Purpose::AofBase => base_form(claim.0, config),
        Purpose::Save | Purpose::Sync => rdb_form(claim.0, config),
    };
    take_as(claim, form, config, now_ms)
}

fn take_as(claim: &Claim, form: KeyForm, config: &Config, now_ms: i64) -> PointInTime {
    let server = claim.0;
    let options = SnapshotOptions {
        form,
        clocks: ClockReading {
            policy: config.maxmemory_policy,
            lfu_decay_minutes: config.lfu_decay_time,
            now_ms,
            now_tick: server.keyspace.turnover_tick(),
        },
        limits: queue_limits(config),
    };
    let snapshot = server.keyspace.begin_snapshot(options);
    server.conditions.set(Condition::SNAPSHOT, true);
    let claims = &SnapshotState::of(server).claims;
    claims.processed.store(0, Ordering::Relaxed);
    claims.total.store(snapshot.sizes().iter().map(|(keys, _)| keys).sum(), Ordering::Relaxed);
    PointInTime {
        saver: Saver::new(Arc::clone(&snapshot), &server.keyspace, || try_again(server)),
        underway: Underway(server),
        snapshot,
        libraries: server.scripting.libraries.snapshot(),
        used_bytes: server.keyspace.used_bytes() as u64,
        changes: SnapshotState::of(server).all_changes(server),
    }
}

impl PointInTime {
    /// Returns the form in which the keys are encoded.
    pub(crate) fn form(&self) -> KeyForm {
        self.snapshot.options().form
    }

    /// Writes the whole file to `writer`, while up to [`WALKERS_MAX`] other threads encode keys.
    ///
    /// # Errors
    /// Returns errors of the file, or an error if no thread can be started, the server shuts down, or the keys are
    /// removed.
    pub(crate) fn fill(self, writer: &mut impl KeyWriter, is_aof_base: bool) -> io::Result<()> {
        let now_s = self.snapshot.options().clocks.now_ms / 1000;
        writer.usual_aux(env!("CARGO_PKG_VERSION"), now_s, self.used_bytes, is_aof_base)?;
        self.libraries.all().try_for_each(|library| writer.function(&library.code))?;
        for (database, &(keys, volatile)) in self.snapshot.sizes().iter().enumerate() {
            if keys > 0 {
                writer.sizes(database, keys, volatile)?;
            }
        }
        let server = self.underway.0;
        self.each_piece(|snapshot, piece| {
            write(server, writer, snapshot, piece)?;
            Ok(writer.keys())
        })
    }

    /// Returns the code of all function libraries.
    pub(crate) fn libraries(&self) -> impl Iterator<Item = &[u8]> {
        self.libraries.all().map(|library| &library.code[..])
    }

    /// Passes all pieces of the snapshot to `each`, which returns the number of keys written so far, while up to
    /// [`WALKERS_MAX`] other threads encode keys.
    ///
    /// # Errors
    /// Returns errors of `each`, or an error if no thread can be started, the server shuts down, or the keys are
    /// removed.
    pub(crate) fn each_piece(
        self,
        mut each: impl FnMut(&Snapshot, &Piece) -> io::Result<u64>,
    ) -> io::Result<()> {
        let PointInTime { saver, underway, snapshot, .. } = self;
        let server = underway.0;
        let cores = thread::available_parallelism().map_or(1, usize::from);
        thread::scope(|scope| {
            // Dropping the saver inside the scope ensures that after an error no thread waits for it.
            let mut saver = saver;
            for number in 0..(cores / 2).clamp(1, WALKERS_MAX) {
                let walker = thread::Builder::new().name(format!("snapshot-{number}"));
                let snapshot = &snapshot;
                let spawned = walker.spawn_scoped(scope, || snapshot.walk(&server.keyspace));
                // At least one thread must encode; failures to start further threads are ignored.
                if number == 0 {
                    spawned?;
                }
            }
            let claims = &SnapshotState::of(server).claims;
            let mut pace = Pace::default();
            let mut before = 0;
            while let Some(piece) = saver.next_piece() {
                pace.keep();
                let keys = each(&snapshot, &piece)?;
                snapshot.take_back(piece);
                delay::wait(keys - std::mem::replace(&mut before, keys), || {
                    let is_given_up = SnapshotState::of(server).is_given_up.load(Ordering::Relaxed);
                    let continues = !is_given_up && claims.why_obsolete().is_none();
                    continues.then(|| server.config.snapshot().rdb_key_save_delay)
                });
                claims.processed.store(keys, Ordering::Relaxed);
                claims.preimage_bytes.store(snapshot.preimage_total_bytes(), Ordering::Relaxed);
                if SnapshotState::of(server).is_given_up.load(Ordering::Relaxed) {
                    return Err(io::Error::other("the server is stopping"));
                }
                if let Some(why) = claims.why_obsolete() {
                    return Err(io::Error::other(why));
                }
            }
            Ok(())
        })
    }
}

/// Bytes of cold values that are read with one call.
const READ_TOGETHER_BYTES: usize = 256 * 1024;

/// Copies the records of cold values, in the order in which they are on disk, without decoding them.
fn write_cold(
    server: &Server,
    writer: &mut impl KeyWriter,
    snapshot: &Snapshot,
    keys: &mut [&ColdKey],
) -> io::Result<()> {
    keys.sort_unstable_by_key(|key| key.record.location());
    let Some(first) = keys.first() else { return Ok(()) };
    let database = first.facts.database;
    let mut block = Encoded::new(snapshot.options().form);
    let mut buffer = Vec::new();
    for key in keys {
        let place = (key.database_name, &*key.name);
        let pushed =
            Tiers::of(server).records.read(key.record.location(), place, &mut buffer, |kind, value| {
                block.push_encoded(&key.facts, &key.name, (kind, value))
            });
        pushed.map_err(io::Error::other)?.map_err(|error| io::Error::other(error.to_string()))?;
        if block.bytes().len() >= READ_TOGETHER_BYTES {
            writer.encoded(database, &block)?;
            block.clear();
        }
    }
    if block.keys() > 0 { writer.encoded(database, &block) } else { Ok(()) }
}

fn write(server: &Server, writer: &mut impl KeyWriter, snapshot: &Snapshot, piece: &Piece) -> io::Result<()> {
    match piece {
        Piece::Cold(keys) => write_cold(server, writer, snapshot, &mut keys.iter().collect::<Vec<_>>()),
        Piece::Keys(database, block) => writer.encoded(*database, block),
        Piece::Value(key) => writer.key(&key.facts, &key.name, key.value.as_value()),
        Piece::Detached(detached) => detached.entries().try_for_each(|entry| {
            match snapshot.cold_key(detached.number, detached.name(), entry) {
                Some(key) => write_cold(server, writer, snapshot, &mut [&key]),
                None => writer.key(&snapshot.facts(detached.number, entry), entry.key(), entry),
            }
        }),
    }
}
