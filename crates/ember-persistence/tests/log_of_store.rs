//! A log and its store on one simulated disk whose power is cut, with the steps of a server with `--store`.
//!
//! Data synced to the log survives a power cut at any time: while a checkpoint is written, before the log records it,
//! while older files of the log are removed, and while a new store imports an existing AOF. Power is cut after each
//! step, and in each sync of a file before that sync has any effect.

#![allow(clippy::unwrap_used, reason = "a test")]

mod support;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use ember_persistence::aof::{AofDirectory, AofWriter, Batch};
use ember_persistence::encryption::{Encryption, Key, KeyRing};
use ember_persistence::files::{Disk, Faults, SimulatedDisk};
use ember_persistence::log_of_store;
use ember_protocol::Protocol;
use ember_storage::stores::{
    Checkpoint, EngineKind, Facts, Import, Position, Store, StoreError, StoreOptions,
};
use ember_testkit::Random;
use emberkv_core::local::Local;
use parking_lot::Mutex;
use support::{RDB, must, play, write_keys};

const DATA: &str = "data";
const LOG: &str = "data/appendonlydir";

/// The number of keys, which are written in turn.
const KEYS: u64 = 17;

/// Returns the number of runs: CRASH_SEEDS, or a few.
fn lives() -> u64 {
    std::env::var("CRASH_SEEDS").ok().and_then(|count| count.parse().ok()).unwrap_or(25)
}

/// Returns the change of record `number`: a key, and its new value or `None` for a removal.
fn change(number: u64) -> (String, Option<String>) {
    let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
    let value = (!mixed.is_multiple_of(5)).then(|| format!("{number}{}", "v".repeat(mixed as usize % 900)));
    (format!("key:{}", mixed % KEYS), value)
}

/// Returns all keys and values after this number of records.
fn keys_after(records: u64) -> BTreeMap<String, String> {
    let mut keys = BTreeMap::new();
    for (key, value) in (0..records).map(change) {
        match value {
            Some(value) => _ = keys.insert(key, value),
            None => _ = keys.remove(&key),
        }
    }
    keys
}

/// Returns record `number` as a batch for the log.
fn batch_of(number: u64) -> Batch {
    let mut batch = Batch::new();
    let (key, value) = change(number);
    match &value {
        Some(value) => batch.command(&[b"SET", key.as_bytes(), value.as_bytes()]),
        None => batch.command(&[b"DEL", key.as_bytes()]),
    }
    batch.command(&[b"INCR", b"records"]);
    batch
}

/// Applies record `number` to a keyspace.
fn apply(local: &mut Local, number: u64) {
    let (key, value) = change(number);
    must(local, &value.map_or_else(|| format!("DEL {key}"), |value| format!("SET {key} {value}")));
    must(local, "INCR records");
}

/// Returns the number of records that a keyspace contains; it must contain nothing else.
#[track_caller]
fn records_of(local: &mut Local) -> u64 {
    let count = must(local, "GET records").text().parse().unwrap_or(0);
    let keys = keys_after(count);
    for number in 0..KEYS {
        let key = format!("key:{number}");
        let value = must(local, &format!("GET {key}"));
        assert_eq!(
            Some(value.text()).filter(|text| !text.is_empty()),
            keys.get(&key).cloned(),
            "{key} of {count}"
        );
    }
    count
}

/// One run of a server with a store.
struct Life {
    disk: SimulatedDisk,
    encryption: Encryption,
    store: Store,
    log: AofDirectory,
    /// The number of records that the store contains.
    stored: u64,
    written: Written,
}

/// The number of records written to the log, and how many of these the server has promised to be durable.
struct Written {
    writer: AofWriter,
    local: Local,
    appended: u64,
    durable: u64,
}

impl Written {
    fn append(&mut self) {
        self.writer.append(&mut batch_of(self.appended)).unwrap();
        apply(&mut self.local, self.appended);
        self.appended += 1;
    }

    fn sync(&mut self) {
        self.writer.sync().unwrap();
        self.durable = self.appended;
    }
}

fn open_store(disk: &Arc<dyn Disk>, encryption: &Encryption) -> Store {
    let options =
        StoreOptions { cache_bytes: 1 << 20, write_buffer_bytes: 64 << 10, encryption: encryption.clone() };
    Store::open(EngineKind::Redb, disk, Path::new(DATA), &options).unwrap()
}

fn open_log(disk: &Arc<dyn Disk>, encryption: &Encryption) -> AofDirectory {
    let log = AofDirectory::open(disk, Path::new(LOG), "appendonly.aof", encryption).unwrap();
    log.remove_leftovers().unwrap();
    log
}

/// Writes to a store the keys that the records from `stored` to `until` have changed.
fn store_changes(
    store: &Store,
    (stored, until): (u64, u64),
    (increment, import): (u64, Import),
    meanwhile: &mut dyn FnMut(),
) -> Result<(), StoreError> {
    let position = Position { number: until, increment, import, notes: until.to_le_bytes().to_vec() };
    let keys = keys_after(until);
    store.checkpoint(&position, &mut |checkpoint| {
        if import == Import::UnderWay && stored == 0 {
            checkpoint.clear()?;
        }
        put(checkpoint, "records", &until.to_string())?;
        meanwhile();
        for (key, _) in (stored..until).map(change) {
            match keys.get(&key) {
                Some(value) => put(checkpoint, &key, value)?,
                None => checkpoint.remove(0, key.as_bytes())?,
            }
        }
        Ok(())
    })
}

fn put(checkpoint: &mut Checkpoint<'_>, key: &str, value: &str) -> Result<(), StoreError> {
    let facts = Facts {
        database: 0,
        key: key.as_bytes(),
        kind: 0,
        encoding: 0,
        memory_bytes: value.len() as u64,
        stored_bytes: 0,
        expiry: None,
        element_expiry: None,
    };
    checkpoint.put(&facts, value.as_bytes())
}

/// Imports an existing AOF into a new store, in two parts.
fn import(
    disk: &Arc<dyn Disk>,
    store: &Store,
    log: &mut AofDirectory,
    encryption: &Encryption,
    local: &mut Local,
) -> AofWriter {
    let mark = Position { import: Import::UnderWay, ..Position::default() };
    store.checkpoint(&mark, &mut |checkpoint| checkpoint.clear()).unwrap();
    play(disk, log, encryption, local).unwrap();
    let records = records_of(local);
    store_changes(store, (0, records / 2), (0, Import::UnderWay), &mut || ()).unwrap();
    let (writer, rewrite) = log.begin_replacement().unwrap();
    store_changes(store, (records / 2, records), (rewrite.first(), Import::Done), &mut || ()).unwrap();
    log.finish_without_base(rewrite).unwrap();
    writer
}

impl Life {
    fn begin(disk: &SimulatedDisk, encryption: &Encryption) -> Life {
        let shared: Arc<dyn Disk> = Arc::new(disk.clone());
        let store = open_store(&shared, encryption);
        let mut log = open_log(&shared, encryption);
        let mut local = Local::new(Protocol::Resp2);
        let position = store.position();
        let is_under_way = position.as_ref().is_some_and(|position| position.import == Import::UnderWay);
        let may_import = (position.is_none() || is_under_way) && log.manifest().base.is_some();
        assert!(may_import || !is_under_way, "the files of an import stay until it is complete");
        let writer = if may_import {
            import(&shared, &store, &mut log, encryption, &mut local)
        } else {
            let next_increment = position.as_ref().map(|position| position.increment);
            let has_imported = position.as_ref().is_some_and(|position| position.import == Import::Done);
            log_of_store::meet(next_increment, has_imported, &mut log).unwrap();
            let mut names = Vec::new();
            let mut each = |facts: Facts<'_>| {
                names.push(String::from_utf8(facts.key.to_vec()).unwrap());
                ControlFlow::Continue(())
            };
            store.facts(&mut each).unwrap();
            let mut value = Vec::new();
            for name in names {
                assert_eq!(store.read(0, name.as_bytes(), &mut value).unwrap(), Some(0));
                must(&mut local, &format!("SET {name} {}", std::str::from_utf8(&value).unwrap()));
            }
            let stored = position.map_or(0, |position| position.number);
            assert_eq!(records_of(&mut local), stored, "the store has the data of its checkpoint");
            play(&shared, &log, encryption, &mut local).unwrap();
            log.begin_increment().unwrap()
        };
        let stored = store.position().map_or(0, |position| position.number);
        let appended = records_of(&mut local);
        let (disk, encryption) = (disk.clone(), encryption.clone());
        let written = Written { writer, local, appended, durable: appended };
        Life { disk, encryption, store, log, stored, written }
    }

    /// Writes a checkpoint, while further records arrive.
    fn checkpoint(&mut self, random: &mut Random) {
        let Life { store, log, stored, written, .. } = self;
        log.rotate(&mut written.writer).unwrap();
        written.durable = written.appended;
        let rewrite = log.begin_rewrite();
        let records = (*stored, written.appended);
        let meanwhile = random.below(4);
        let mut come = || {
            (0..meanwhile).for_each(|_| written.append());
            written.sync();
        };
        store_changes(store, records, (rewrite.first(), Import::None), &mut come).unwrap();
        *stored = records.1;
        // In some cases, the log does not record the checkpoint before the next startup.
        if random.chance(70) {
            log.finish_without_base(rewrite).unwrap();
        }
    }

    /// Checks that after a power cut the log contains all durable data, and no data that was not appended.
    fn check(&self, left: &SimulatedDisk, durable: u64) {
        let life = Life::begin(left, &self.encryption);
        let (found, appended) = (life.written.appended, self.written.appended);
        assert!((durable..=appended).contains(&found), "{found} of {durable}..={appended}");
    }
}

/// Cuts the power of a disk in each sync of a file, before the sync has any effect; returns the remaining disks.
fn cut_in_syncs(disk: &SimulatedDisk, seed: u64) -> Arc<Mutex<Vec<SimulatedDisk>>> {
    let cuts = Arc::new(Mutex::new(Vec::new()));
    let (stuck, found) = (disk.clone(), Arc::clone(&cuts));
    let hook = move |_: &Path| {
        let mut found = found.lock();
        let left = stuck.after_power_cut(seed + found.len() as u64);
        found.push(left);
    };
    disk.set_faults(Faults { slow_sync_percent: 100, slow_sync: Some(Arc::new(hook)), ..Faults::default() });
    cuts
}

fn live(seed: u64, encryption: &Encryption) {
    let mut random = Random::new(seed);
    let mut disk = SimulatedDisk::new(seed);
    if seed.is_multiple_of(2) {
        build_aof(&disk, encryption, random.below(30) as u64 + 1);
    }
    let mut durable = if seed.is_multiple_of(2) { None } else { Some(0) };
    for _ in 0..3 {
        let cuts = cut_in_syncs(&disk, random.next_u64() >> 1);
        let mut life = Life::begin(&disk, encryption);
        // The first startup may import the AOF, so all of the AOF's records are promised.
        let promised = durable.unwrap_or(life.written.appended);
        cuts.lock().drain(..).for_each(|left| life.check(&left, promised));
        for _ in 0..random.below(14) {
            let promised = life.written.durable;
            match random.below(10) {
                0..5 => life.written.append(),
                5..7 => life.written.sync(),
                _ => life.checkpoint(&mut random),
            }
            cuts.lock().drain(..).for_each(|left| life.check(&left, promised));
            life.check(&life.disk.after_power_cut(random.next_u64()), life.written.durable);
        }
        disk.set_faults(Faults::default());
        let left = disk.after_power_cut(random.next_u64());
        durable = Some(life.written.durable);
        drop(life);
        disk = left;
    }
}

/// Writes the AOF of a server without a store: a base and an increment.
fn build_aof(disk: &SimulatedDisk, encryption: &Encryption, records: u64) {
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let mut log = open_log(&shared, encryption);
    let mut writer = log.begin_increment().unwrap();
    let mut local = Local::new(Protocol::Resp2);
    for number in 0..records {
        writer.append(&mut batch_of(number)).unwrap();
        apply(&mut local, number);
        if number == records / 2 {
            log.rotate(&mut writer).unwrap();
            let rewrite = log.begin_rewrite();
            let base = log.begin_base(RDB).unwrap();
            log.write_base(&base, |writer| write_keys(&local, writer)).unwrap();
            log.finish_rewrite(rewrite, base).unwrap();
        }
    }
    writer.sync().unwrap();
}

#[test]
fn synced_data_survive_power_cuts_of_log_and_store() {
    for seed in 0..lives() {
        live(seed, &Encryption::off());
    }
}

#[test]
fn synced_data_survive_power_cuts_of_an_encrypted_log_and_store() {
    let encryption = Encryption::with(KeyRing::new(Key::new([7; 32])));
    for seed in 0..lives() {
        live(seed, &encryption);
    }
}
