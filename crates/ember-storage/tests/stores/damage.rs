//! Damaged bytes in the files: a read returns an error or the written value, never another value.

use std::panic::{AssertUnwindSafe, catch_unwind};

use ember_storage::files::SimulatedDisk;
use ember_storage::stores::Checkpoint;

use super::model::files;
use super::*;

/// The number of offsets that are damaged, one after the other, without `DAMAGED_PLACES`.
const PLACES: usize = 120;

fn fill_store(store: &Store) -> Model {
    let mut model = Model::new();
    let mut fill = |checkpoint: &mut Checkpoint<'_>| {
        for index in 0..60_u64 {
            let key = format!("key {index}").into_bytes();
            let value = value_of(index, (index * 37 % 900) as usize);
            checkpoint.put(&facts(0, &key, 2, None, &value), &value)?;
            model.insert((0, key), (2, None, value));
        }
        Ok(())
    };
    store.checkpoint(&position(1), &mut fill).unwrap();
    model
}

/// Reads all readable values, which must equal the written ones; returns the number of errors.
fn read_all(store: &Store, model: &Model) -> u64 {
    let mut errors = 0;
    let mut value = Vec::new();
    for ((database, key), (kind, _, known)) in model {
        match store.read(*database, key, &mut value) {
            Ok(Some(found)) => assert!(found == *kind && value == *known),
            // A value that the engine does not find is lost; the engine's own checksums or a check of the store reveal
            // that.
            Ok(None) | Err(_) => errors += 1,
        }
    }
    let each = &mut |facts: Facts<'_>| {
        let known = &model[&(facts.database, facts.key.to_vec())];
        assert!(facts.kind == known.0 && facts.stored_bytes == known.2.len() as u64);
        ControlFlow::Continue(())
    };
    errors + u64::from(store.facts(each).is_err())
}

#[test]
fn redb_with_a_damaged_byte_returns_an_error_or_the_written_data() {
    let simulated = SimulatedDisk::new(1);
    let disk: Arc<dyn Disk> = Arc::new(simulated.clone());
    let path = Path::new("data");
    let store = Store::open(EngineKind::Redb, &disk, path, &options(false)).unwrap();
    let model = fill_store(&store);
    drop(store);
    let file = disk.open(&path.join("store.redb")).unwrap();
    let size = file.size().unwrap();
    let mut whole = vec![0; size as usize];
    file.read_at(0, &mut whole).unwrap();
    // Most of the file is empty, so mostly non-zero bytes are damaged, and some others.
    let places: Vec<usize> = (0..whole.len()).filter(|&at| whole[at] != 0 || at % 65_537 == 0).collect();
    let count = std::env::var("DAMAGED_PLACES").map_or(PLACES, |count| count.parse().unwrap());
    let (mut noticed, mut panics) = (0, 0);
    for &at in places.iter().step_by(places.len().div_ceil(count)) {
        let damaged: Arc<dyn Disk> = Arc::new(SimulatedDisk::new(1));
        let copy = damaged.create(&path.join("store.redb")).unwrap();
        copy.write_at(0, &whole).unwrap();
        copy.write_at(at as u64, &[whole[at] ^ 0x21]).unwrap();
        let read = || match Store::open(EngineKind::Redb, &damaged, path, &options(false)) {
            Ok(store) => read_all(&store, &model),
            Err(_) => 1,
        };
        // redb asserts the contents of its pages in a debug build; a release build of it returns errors.
        match catch_unwind(AssertUnwindSafe(read)) {
            Ok(errors) => noticed += u64::from(errors > 0),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().map_or("", String::as_str);
                assert!(!text.contains("tests/stores"), "{text}");
                panics += 1;
            }
        }
    }
    println!("redb: {noticed} of {} noticed, {panics} asserted by redb", places.len().min(count));
    assert!(noticed > 0);
}

fn copy_folder(from: &Path, to: &Path) {
    for file in files(from) {
        let target = to.join(file.strip_prefix(from).unwrap());
        std::fs::create_dir_all(target.parent().unwrap()).unwrap();
        std::fs::copy(&file, target).unwrap();
    }
}

#[test]
fn damaged_values_are_errors_of_their_keys() {
    for kind in EngineKind::ALL {
        let folder = Folder::new();
        let store = open(kind, &folder.0, false);
        let model = fill_store(&store);
        drop(store);
        let mut found = 0;
        let long = model.iter().filter(|(_, (_, _, value))| value.len() > 100);
        for (number, ((_, key), (_, _, value))) in long.enumerate().step_by(5) {
            let copy = Folder::new();
            copy_folder(&folder.0, &copy.0);
            // Bytes in the middle of a value belong only to that value.
            let piece = &value[40..60];
            for file in files(&copy.0) {
                let mut bytes = std::fs::read(&file).unwrap();
                let Some(at) = bytes.windows(piece.len()).position(|window| window == piece) else {
                    continue;
                };
                bytes[at + number % piece.len()] ^= 0x10;
                std::fs::write(&file, &bytes).unwrap();
                found += 1;
            }
            let store = match Store::open(kind, &os_disk(), &copy.0, &options(false)) {
                Ok(store) => store,
                Err(error) => {
                    assert!(error.is_damage(), "{kind}: {error}");
                    continue;
                }
            };
            let mut read = Vec::new();
            match store.read(0, key, &mut read) {
                // The file contains another copy of the value.
                Ok(Some(_)) => assert!(read == *value),
                // fjall treats a damaged end of its journal as an unfinished write. Then the whole checkpoint is lost,
                // as the position shows.
                Ok(None) => assert_eq!(store.position(), None, "{kind}: {}", key.escape_ascii()),
                Err(error) => assert!(error.is_damage(), "{kind}: {error}"),
            }
            // The check may stop at an error of the engine itself.
            let _ = store.check(&mut |error| assert!(error.is_damage(), "{error}"));
        }
        assert!(found > 3, "{kind}: its files contain values");
    }
}

#[test]
fn files_of_no_store_are_errors() {
    for kind in [EngineKind::Redb, EngineKind::Lmdb] {
        let folder = Folder::new();
        let store = open(kind, &folder.0, false);
        fill_store(&store);
        drop(store);
        for file in files(&folder.0).into_iter().filter(|file| !file.ends_with("lock.mdb")) {
            let len = std::fs::metadata(&file).unwrap().len() as usize;
            std::fs::write(&file, value_of(1, len)).unwrap();
        }
        let opened = Store::open(kind, &os_disk(), &folder.0, &options(false));
        let error = opened.unwrap_err();
        assert!(error.is_damage(), "{kind}: {error:?}");
    }
}

#[test]
fn truncated_files_are_errors_or_contain_all_committed_data() {
    for kind in [EngineKind::Redb, EngineKind::Lmdb] {
        let folder = Folder::new();
        let store = open(kind, &folder.0, false);
        let model = fill_store(&store);
        drop(store);
        let is_data = |file: &std::path::PathBuf| !file.ends_with("lock.mdb");
        let file = files(&folder.0).into_iter().find(is_data).expect("the store has a file");
        let whole = std::fs::read(&file).unwrap();
        let end = whole.len();
        let lens = [0, 1, 100, 4095, 4096, 8192, 10_000, end / 4, end / 2, end - 4096, end - 1];
        for len in lens {
            std::fs::write(&file, &whole[..len]).unwrap();
            match Store::open(kind, &os_disk(), &folder.0, &options(false)) {
                // The last pages of the file may be free.
                Ok(store) => assert_eq!(read_all(&store, &model), 0, "{kind}: {len} of {end} bytes"),
                Err(error) => assert!(error.is_damage(), "{kind}: {len} of {end} bytes: {error:?}"),
            }
            assert!(
                len > end / 2 || Store::open(kind, &os_disk(), &folder.0, &options(false)).is_err(),
                "{kind}: {len} of {end} bytes"
            );
        }
    }
}
