//! The size of the B-trees' files under repeated rewrites. fjall keeps up to 512 MiB of journals.

use std::time::{Duration, Instant};

use ember_storage::stores::Checkpoint;

use super::*;

const KEYS: u64 = 4096;
const VALUE_BYTES: usize = 3900;

/// The number of times that all data is replaced.
const REPLACEMENTS: u64 = 16;

/// The timeout for an engine's background cleanup.
const PATIENCE: Duration = Duration::from_secs(60);

/// The maximum size of the files in bytes for 16 MiB of data.
const BYTES_MAX: u64 = 80 << 20;

fn replaced_data_leaves_no_more_than_its_bound(kind: EngineKind) {
    let folder = Folder::new();
    let options = StoreOptions { write_buffer_bytes: 4 << 20, ..options(false) };
    let store = Store::open(kind, &os_disk(), &folder.0, &options).unwrap();
    for number in 1..=REPLACEMENTS {
        let mut fill = |checkpoint: &mut Checkpoint<'_>| {
            // The data is removed at once, removed key by key, or overwritten.
            match number % 8 {
                0 => checkpoint.clear()?,
                1 | 3 | 5 | 7 => (0..KEYS).try_for_each(|key| checkpoint.remove(0, &key.to_be_bytes()))?,
                _ => {}
            }
            (0..KEYS).try_for_each(|key| {
                let value = value_of(number * KEYS + key, VALUE_BYTES);
                checkpoint.put(&facts(0, &key.to_be_bytes(), 1, None, &value), &value)
            })
        };
        store.checkpoint(&position(number), &mut fill).unwrap();
    }
    let begun = Instant::now();
    loop {
        let bytes = store.statistics().unwrap().file_bytes;
        if bytes <= BYTES_MAX {
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "{kind}: {} MiB", bytes >> 20);
        std::thread::park_timeout(Duration::from_millis(50));
    }
}

#[test]
fn files_of_redb_stay_small() {
    replaced_data_leaves_no_more_than_its_bound(EngineKind::Redb);
}

#[test]
fn files_of_lmdb_stay_small() {
    replaced_data_leaves_no_more_than_its_bound(EngineKind::Lmdb);
}
