//! Random checkpoints compared with a map, with the store reopened between them.

use ember_storage::files::SimulatedDisk;
use ember_storage::stores::Checkpoint;
use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Change {
    Put { database: u32, key: Vec<u8>, kind: u8, expiry: Option<u64>, len: usize },
    PutFacts { database: u32, key: Vec<u8>, expiry: Option<u64> },
    Remove { database: u32, key: Vec<u8> },
    RemoveDatabase { database: u32 },
    Clear,
}

#[derive(Clone, Debug)]
enum Step {
    Checkpoint(Vec<Change>),
    GiveUp(Vec<Change>),
    Reopen,
}

/// Generates keys: few, so that they collide; some are longer than a row key can be, and some are prefixes of others.
fn key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        (0..20_u8).prop_map(|number| vec![b'k', number]),
        (0..4_u8).prop_map(|number| vec![b'k', 0, 0, 0, 0, number]),
        (0..4_u8).prop_map(|number| [vec![b'l'; 600], vec![number]].concat()),
        Just(Vec::new()),
        Just(vec![0xFF; 480]),
    ]
}

fn change() -> impl Strategy<Value = Change> {
    let len = prop_oneof![
        8 => 0..300_usize,
        2 => 1000..100_000_usize,
        1 => (1 << 20) - 2..(1 << 20) + 3_usize,
        1 => 2_000_000..3_200_000_usize,
    ];
    let database = prop_oneof![Just(0), Just(1), Just(255), Just(256), Just(u32::MAX)];
    let put = (database.clone(), key(), any::<u8>(), any::<Option<u32>>(), len);
    prop_oneof![
        20 => put.prop_map(|(database, key, kind, expiry, len)| {
            Change::Put { database, key, kind, expiry: expiry.map(u64::from), len }
        }),
        6 => (database.clone(), key()).prop_map(|(database, key)| Change::Remove { database, key }),
        4 => (database.clone(), key(), any::<Option<u32>>()).prop_map(|(database, key, expiry)| {
            Change::PutFacts { database, key, expiry: expiry.map(u64::from) }
        }),
        1 => database.prop_map(|database| Change::RemoveDatabase { database }),
        1 => Just(Change::Clear),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let changes = || prop::collection::vec(change(), 0..30);
    prop_oneof![
        4 => changes().prop_map(Step::Checkpoint),
        1 => changes().prop_map(Step::GiveUp),
        1 => Just(Step::Reopen),
    ]
}

fn make(changes: &[Change], seed: u64, checkpoint: &mut Checkpoint<'_>, model: &mut Model) {
    for (index, change) in changes.iter().enumerate() {
        match change {
            Change::Put { database, key, kind, expiry, len } => {
                let value = value_of(seed + index as u64, *len);
                checkpoint.put(&facts(*database, key, *kind, *expiry, &value), &value).unwrap();
                model.insert((*database, key.clone()), (*kind, *expiry, value));
            }
            Change::PutFacts { database, key, expiry } => {
                let value = model.get_mut(&(*database, key.clone()));
                let (kind, known) = value.as_ref().map_or((0, &b""[..]), |value| (value.0, &value.2));
                // The facts given here about the stored value are ignored.
                let facts = Facts { kind: 0, stored_bytes: 1, ..facts(*database, key, kind, *expiry, known) };
                let is_there = checkpoint.put_facts(&facts).unwrap();
                assert_eq!(is_there, value.is_some());
                value.into_iter().for_each(|value| value.1 = *expiry);
            }
            Change::Remove { database, key } => {
                checkpoint.remove(*database, key).unwrap();
                model.remove(&(*database, key.clone()));
            }
            Change::RemoveDatabase { database } => {
                checkpoint.remove_database(*database).unwrap();
                model.retain(|(of, _), _| of != database);
            }
            Change::Clear => {
                checkpoint.clear().unwrap();
                model.clear();
            }
        }
    }
}

fn follow(kind: EngineKind, steps: &[Step], encrypted: bool) {
    let folder = Folder::new();
    // redb uses the simulated disk in every second case.
    let disk: Arc<dyn Disk> =
        if steps.len().is_multiple_of(2) { Arc::new(SimulatedDisk::new(1)) } else { os_disk() };
    let open = || Store::open(kind, &disk, &folder.0, &options(encrypted)).unwrap();
    let mut store = open();
    assert_eq!((store.kind(), store.position()), (kind, None));
    let mut model = Model::new();
    let mut last = None;
    for (number, step) in (1_u64..).zip(steps) {
        match step {
            Step::Checkpoint(changes) => {
                let mut fill = |checkpoint: &mut Checkpoint<'_>| {
                    make(changes, number * 1000, checkpoint, &mut model);
                    Ok(())
                };
                store.checkpoint(&position(number), &mut fill).unwrap();
                last = Some(position(number));
            }
            Step::GiveUp(changes) => {
                let mut fill = |checkpoint: &mut Checkpoint<'_>| {
                    make(changes, number * 1000, checkpoint, &mut model.clone());
                    Err(StoreError::Abandoned("no".to_owned()))
                };
                let error = store.checkpoint(&position(number), &mut fill).unwrap_err();
                assert_eq!(error.to_string(), "no");
            }
            Step::Reopen => {
                drop(store);
                store = open();
                assert_eq!(Store::find(disk.as_ref(), &folder.0), Some(kind));
            }
        }
        assert_eq!(store.position(), last);
        assert!(content(&store).unwrap() == model);
    }
    assert_holds(&store, &model);
    drop(store);
    let store = open();
    assert_holds(&store, &model);
    assert_eq!(store.position(), last);
    let mut wrong = Vec::new();
    let checked = store.check(&mut |error| wrong.push(error.to_string())).unwrap();
    assert!(wrong.is_empty(), "{wrong:?}");
    assert_eq!(checked.keys, model.len() as u64);
    assert_eq!(checked.value_bytes, model.values().map(|(_, _, value)| value.len() as u64).sum::<u64>());
    let mut value = Vec::new();
    assert_eq!(store.read(77, b"no such key", &mut value).unwrap(), None);
    assert!(store.statistics().unwrap().file_bytes > 0);
}

proptest! {
    // 5 cases instead of 256, because each syncs files. `PROPTEST_CASES` sets another number.
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases.div_ceil(52),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn redb_equals_a_map(steps in prop::collection::vec(step(), 1..12), encrypted: bool) {
        follow(EngineKind::Redb, &steps, encrypted);
    }

    #[test]
    fn lmdb_equals_a_map(steps in prop::collection::vec(step(), 1..12), encrypted: bool) {
        follow(EngineKind::Lmdb, &steps, encrypted);
    }

    #[test]
    fn fjall_equals_a_map(steps in prop::collection::vec(step(), 1..12), encrypted: bool) {
        follow(EngineKind::Fjall, &steps, encrypted);
    }
}

#[test]
fn a_store_opens_only_with_its_key() {
    for kind in EngineKind::ALL {
        let (plain, sealed) = (Folder::new(), Folder::new());
        for (folder, encrypted) in [(&plain, false), (&sealed, true)] {
            let store = open(kind, &folder.0, encrypted);
            let value = b"a value that is looked for in the file".repeat(100);
            let mut fill = |checkpoint: &mut Checkpoint<'_>| {
                checkpoint.put(&facts(0, b"a key that is looked for", 1, None, &value), &value)
            };
            store.checkpoint(&position(1), &mut fill).unwrap();
            drop(store);
            let mut readable = false;
            for file in files(&folder.0) {
                let bytes = std::fs::read(&file).unwrap();
                readable |= bytes.windows(15).any(|window| window == b"that is looked ");
            }
            assert_eq!(readable, !encrypted, "{kind}");
        }
        let open = |folder: &Folder, encryption: Encryption| {
            Store::open(kind, &os_disk(), &folder.0, &StoreOptions { encryption, ..options(false) })
        };
        assert!(matches!(open(&plain, Encryption::with(key_ring())), Err(StoreError::NotEncrypted)));
        assert!(matches!(open(&sealed, Encryption::off()), Err(StoreError::NoKey)));
        let other = Encryption::with(KeyRing::new(Key::new([4; 32])));
        let error = open(&sealed, other).unwrap_err();
        assert!(error.to_string().contains(&key_ring().current().fingerprint()), "{error}");
        let mut both = KeyRing::new(Key::new([4; 32]));
        both.add_older(Key::new([3; 32]));
        let store = open(&sealed, Encryption::with(both)).unwrap();
        assert_eq!(content(&store).unwrap().len(), 1);
    }
}

/// Returns all files below a folder.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

#[test]
fn threads_read_consistent_states_during_checkpoints() {
    // Values that together fit in a write buffer, and values that fill several.
    for (kind, copies) in EngineKind::ALL.into_iter().flat_map(|kind| [(kind, 100), (kind, 2000)]) {
        let folder = Folder::new();
        let store = open(kind, &folder.0, false);
        let keys: Vec<Vec<u8>> = (0..50_u8).map(|number| vec![number]).collect();
        let put_all = |number: u64| {
            let value = number.to_le_bytes().repeat(copies);
            let mut fill = |checkpoint: &mut Checkpoint<'_>| {
                // A single key is added and removed repeatedly.
                match number % 2 {
                    0 => checkpoint.remove(0, b"odd")?,
                    _ => checkpoint.put(&facts(0, b"odd", 1, None, b""), b"")?,
                }
                keys.iter()
                    .try_for_each(|key| checkpoint.put(&facts(0, key, 1, Some(number), &value), &value))
            };
            store.checkpoint(&position(number), &mut fill).unwrap();
        };
        put_all(0);
        let values = || {
            let asked: Vec<(u32, &[u8])> = keys.iter().map(|key| (0, key.as_slice())).collect();
            let mut numbers = Vec::new();
            let mut each = |_, _, value: &[u8]| {
                numbers.push(u64::from_le_bytes(value[..8].try_into().unwrap()));
            };
            store.read_many(&asked, &mut each).unwrap();
            (numbers, None)
        };
        let all_facts = || {
            let (mut numbers, mut has_odd) = (Vec::new(), false);
            let mut each = |facts: Facts<'_>| {
                match facts.expiry {
                    Some(number) => numbers.push(number),
                    None => has_odd = true,
                }
                ControlFlow::Continue(())
            };
            store.facts(&mut each).unwrap();
            (numbers, Some(has_odd))
        };
        let read_to_the_end = |read: &dyn Fn() -> (Vec<u64>, Option<bool>)| {
            let mut last = 0;
            while last < 20 {
                let (numbers, has_odd) = read();
                assert_eq!(numbers.len(), keys.len());
                let first = numbers[0];
                let is_one = numbers.iter().all(|&number| number == first) && first >= last;
                assert!(is_one && has_odd.is_none_or(|has| has == (first % 2 == 1)), "{kind}: {numbers:?}");
                last = first;
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| read_to_the_end(&values));
                scope.spawn(|| read_to_the_end(&all_facts));
            }
            (1..=20).for_each(put_all);
        });
    }
}
