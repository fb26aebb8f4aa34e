//! A failing disk: a checkpoint is committed atomically, and the next one may succeed.

use std::sync::atomic::AtomicUsize;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use ember_storage::files::{Faults, SimulatedDisk, SyncHook};
use ember_storage::stores::Checkpoint;

use super::*;

fn put_some(store: &Store, number: u64, model: &mut Model) -> Result<(), StoreError> {
    let mut next = model.clone();
    let mut fill = |checkpoint: &mut Checkpoint<'_>| {
        for index in 0..30_u64 {
            let key = format!("key {}", (number * 7 + index * 3) % 60).into_bytes();
            let value = value_of(number * 100 + index, 3000);
            checkpoint.put(&facts(0, &key, 2, Some(number), &value), &value)?;
            next.insert((0, key), (2, Some(number), value));
        }
        Ok(())
    };
    store.checkpoint(&position(number), &mut fill)?;
    *model = next;
    Ok(())
}

#[test]
fn redb_on_a_failing_disk_keeps_the_last_checkpoint() {
    for (seed, faults) in (1_u64..).zip([
        Faults { write_error_percent: 5, ..Faults::default() },
        Faults { write_error_percent: 100, ..Faults::default() },
        Faults { sync_error_percent: 50, ..Faults::default() },
        Faults { sync_error_percent: 100, ..Faults::default() },
        Faults { read_error_percent: 20, ..Faults::default() },
        Faults { read_only: true, ..Faults::default() },
    ]) {
        let simulated = SimulatedDisk::new(seed);
        let disk: Arc<dyn Disk> = Arc::new(simulated.clone());
        let path = Path::new("data");
        // Without a cache, redb reads each page from the disk.
        let options = StoreOptions { cache_bytes: 0, ..options(false) };
        let mut store = Store::open(EngineKind::Redb, &disk, path, &options).unwrap();
        let mut model = Model::new();
        put_some(&store, 1, &mut model).unwrap();
        let mut failed = 0;
        for number in 2..12 {
            simulated.set_faults(faults.clone());
            let attempt = put_some(&store, number, &mut model);
            simulated.set_faults(Faults::default());
            // A failed sync may still have made the commit durable; the caller retries.
            if let Err(error) = attempt {
                assert!(!error.is_damage(), "{error}");
                failed += 1;
                put_some(&store, number, &mut model).unwrap();
            }
            assert_holds(&store, &model);
            assert_eq!(store.position(), Some(position(number)));
        }
        assert!(failed > 0, "{faults:?}");
        drop(store);
        let cut: Arc<dyn Disk> = Arc::new(simulated.after_power_cut(seed));
        store = Store::open(EngineKind::Redb, &cut, path, &options).unwrap();
        assert_holds(&store, &model);
    }
}

#[test]
fn redb_reports_a_full_disk_and_continues_once_it_has_space() {
    let simulated = SimulatedDisk::new(1);
    let disk: Arc<dyn Disk> = Arc::new(simulated.clone());
    let store = Store::open(EngineKind::Redb, &disk, Path::new("data"), &options(false)).unwrap();
    let mut model = Model::new();
    put_some(&store, 1, &mut model).unwrap();
    let used = store.statistics().unwrap().file_bytes;
    simulated.set_faults(Faults { capacity_bytes: Some(used), ..Faults::default() });
    let value = value_of(1, 900_000);
    let mut fill = |checkpoint: &mut Checkpoint<'_>| {
        (0..40_u8).try_for_each(|key| checkpoint.put(&facts(0, &[key], 1, None, &value), &value))
    };
    let error = store.checkpoint(&position(2), &mut fill).unwrap_err();
    assert!(error.is_full() && error.to_string().contains("free space"), "{error}");
    assert_holds(&store, &model);
    simulated.set_faults(Faults::default());
    put_some(&store, 2, &mut model).unwrap();
    assert_holds(&store, &model);
}

#[test]
fn reads_of_redb_do_not_wait_for_the_sync_of_a_growing_checkpoint() {
    let simulated = SimulatedDisk::new(1);
    let disk: Arc<dyn Disk> = Arc::new(simulated.clone());
    let store = Store::open(EngineKind::Redb, &disk, Path::new("data"), &options(false)).unwrap();
    let store = Arc::new(store);
    let mut model = Model::new();
    put_some(&store, 1, &mut model).unwrap();
    let ((_, key), (_, _, value)) = model.pop_first().unwrap();
    let known = Arc::new((key, value));
    let before = store.statistics().unwrap().file_bytes;
    // Each sync lasts until a read that begins during it has ended.
    let in_vain = Arc::new(AtomicUsize::new(0));
    let (counter, reader) = (Arc::clone(&in_vain), Arc::downgrade(&store));
    let slow_sync: SyncHook = Arc::new(move |_| {
        let (store, known) = (reader.upgrade().unwrap(), Arc::clone(&known));
        let (done, has_read) = mpsc::channel();
        thread::spawn(move || {
            let mut value = Vec::new();
            store.read(0, &known.0, &mut value).unwrap();
            assert!(value == known.1);
            let _ = done.send(());
        });
        if has_read.recv_timeout(Duration::from_secs(10)).is_err() {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    });
    let faults = Faults { slow_sync_percent: 100, slow_sync: Some(slow_sync), ..Faults::default() };
    simulated.set_faults(faults);
    let value = value_of(1, 900_000);
    let mut fill = |checkpoint: &mut Checkpoint<'_>| {
        (0..10_u8).try_for_each(|key| checkpoint.put(&facts(1, &[key], 1, None, &value), &value))
    };
    store.checkpoint(&position(2), &mut fill).unwrap();
    assert_eq!(in_vain.load(Ordering::Relaxed), 0, "reads that have waited for a sync");
    assert!(store.statistics().unwrap().file_bytes > before);
    simulated.set_faults(Faults::default());
}
