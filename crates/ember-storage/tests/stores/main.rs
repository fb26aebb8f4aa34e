//! Stores: one suite for all engines, compared with a map.

#![allow(clippy::unwrap_used, reason = "the whole program is a test")]

mod checkpoint_memory;
mod crashes;
mod damage;
mod faults;
mod files;
mod model;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ember_storage::encryption::{Encryption, Key, KeyRing};
use ember_storage::files::{Disk, OsDisk};
use ember_storage::stores::{EngineKind, Facts, Import, Position, Store, StoreError, StoreOptions};

/// Kind, expiry and value by database and key.
type Model = BTreeMap<(u32, Vec<u8>), (u8, Option<u64>, Vec<u8>)>;

/// A folder that is removed at the end of the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("ember-stores-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn key_ring() -> KeyRing {
    KeyRing::new(Key::new([3; 32]))
}

fn options(encrypted: bool) -> StoreOptions {
    let encryption = if encrypted { Encryption::with(key_ring()) } else { Encryption::off() };
    // The write buffer is so small that many checkpoints do not fit in it.
    StoreOptions { cache_bytes: 8 << 20, write_buffer_bytes: 64 << 10, encryption }
}

fn os_disk() -> Arc<dyn Disk> {
    Arc::new(OsDisk)
}

fn open(kind: EngineKind, folder: &Path, encrypted: bool) -> Store {
    Store::open(kind, &os_disk(), folder, &options(encrypted)).unwrap()
}

fn facts<'a>(database: u32, key: &'a [u8], kind: u8, expiry: Option<u64>, value: &[u8]) -> Facts<'a> {
    Facts {
        database,
        key,
        kind,
        encoding: kind ^ 5,
        memory_bytes: value.len() as u64 * 2,
        stored_bytes: value.len() as u64,
        expiry,
        element_expiry: expiry.map(|time| time + 1),
    }
}

fn position(number: u64) -> Position {
    let import = if number.is_multiple_of(2) { Import::UnderWay } else { Import::None };
    Position { number, increment: number / 3, import, notes: vec![7; 9] }
}

fn value_of(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        bytes.extend_from_slice(&(state ^ (state >> 29)).to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// Returns the contents of a store: lists the facts, and then reads key by key.
fn content(store: &Store) -> Result<Model, StoreError> {
    let mut model = Model::new();
    store.facts(&mut |facts| {
        assert_eq!(facts.encoding, facts.kind ^ 5);
        assert_eq!(facts.element_expiry, facts.expiry.map(|time| time + 1));
        assert_eq!(facts.memory_bytes, facts.stored_bytes * 2);
        let at = (facts.database, facts.key.to_vec());
        let before = model.insert(at, (facts.kind, facts.expiry, vec![0; facts.stored_bytes as usize]));
        assert!(before.is_none());
        ControlFlow::Continue(())
    })?;
    let mut value = Vec::new();
    for ((database, key), (kind, _, known)) in &mut model {
        let found = store.read(*database, key, &mut value)?;
        assert_eq!((found, value.len()), (Some(*kind), known.len()));
        known.clone_from(&value);
    }
    Ok(model)
}

#[track_caller]
fn assert_holds(store: &Store, model: &Model) {
    assert!(content(store).unwrap() == *model);
    let keys: Vec<(u32, &[u8])> = model.keys().map(|(database, key)| (*database, key.as_slice())).collect();
    let mut count = 0;
    let mut each = |index: usize, kind: u8, value: &[u8]| {
        let (database, key) = keys[index];
        let known = &model[&(database, key.to_vec())];
        assert!(known.0 == kind && known.2 == value);
        count += 1;
    };
    store.read_many(&keys, &mut each).unwrap();
    assert_eq!(count, model.len());
}
