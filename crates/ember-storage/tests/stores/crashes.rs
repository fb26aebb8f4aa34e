//! After a crash, a store contains the last acknowledged checkpoint, or the checkpoint that was in progress.
//!
//! redb runs on the simulated disk, whose power is cut; processes with the other engines are killed.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use ember_storage::files::SimulatedDisk;
use ember_storage::stores::Checkpoint;

use super::*;

/// Returns the number of power cuts, and of killed processes for each engine.
fn seeds() -> u64 {
    std::env::var("CRASH_SEEDS").map_or(10, |text| text.parse().unwrap())
}

fn kills() -> u64 {
    std::env::var("CRASH_KILLS").map_or(4, |text| text.parse().unwrap()).min(200)
}

/// Makes the changes of checkpoint `number`, which depend only on that number, in `model` and `checkpoint`.
fn change(number: u64, model: &mut Model, checkpoint: Option<&mut Checkpoint<'_>>) {
    let mut checkpoint = checkpoint;
    if number.is_multiple_of(13) {
        model.clear();
        if let Some(checkpoint) = &mut checkpoint {
            checkpoint.clear().unwrap();
        }
    }
    for index in 0..40_u64 {
        let mixed = (number * 40 + index).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let key = format!("key {}", mixed % 100).into_bytes();
        let database = (mixed % 3) as u32;
        if mixed.is_multiple_of(5) {
            model.remove(&(database, key.clone()));
            if let Some(checkpoint) = &mut checkpoint {
                checkpoint.remove(database, &key).unwrap();
            }
        } else {
            let len = if mixed.is_multiple_of(97) { 1_500_000 } else { (mixed % 5000) as usize };
            let value = value_of(mixed, len);
            if let Some(checkpoint) = &mut checkpoint {
                // A write fails after the power cut.
                let _ = checkpoint.put(&facts(database, &key, 1, None, &value), &value);
            }
            model.insert((database, key), (1, None, value));
        }
    }
}

fn model_at(number: u64) -> Model {
    let mut model = Model::new();
    (1..=number).for_each(|number| change(number, &mut model, None));
    model
}

#[test]
fn redb_is_at_a_checkpoint_after_every_power_cut() {
    let path = Path::new("data/store");
    for seed in 0..seeds() {
        let simulated = SimulatedDisk::new(seed);
        let disk: Arc<dyn Disk> = Arc::new(simulated.clone());
        let store = Store::open(EngineKind::Redb, &disk, path, &options(seed.is_multiple_of(4))).unwrap();
        let mut model = Model::new();
        let last = 1 + seed % 6;
        for number in 1..=last {
            let mut fill = |checkpoint: &mut Checkpoint<'_>| {
                change(number, &mut model, Some(checkpoint));
                Ok(())
            };
            store.checkpoint(&position(number), &mut fill).unwrap();
        }
        // The next checkpoint is in progress: some of its writes are done, and no sync has ended.
        let stuck = simulated.clone();
        let (cut, after) = std::sync::mpsc::channel();
        let mut faults = ember_storage::files::Faults { slow_sync_percent: 100, ..Default::default() };
        faults.slow_sync = Some(Arc::new(move |_| {
            let _ = cut.send(stuck.after_power_cut(seed));
        }));
        simulated.set_faults(faults);
        let mut fill = |checkpoint: &mut Checkpoint<'_>| {
            change(last + 1, &mut model, Some(checkpoint));
            Ok(())
        };
        store.checkpoint(&position(last + 1), &mut fill).unwrap();
        let mut cuts: Vec<SimulatedDisk> = after.try_iter().collect();
        assert!(!cuts.is_empty());
        simulated.set_faults(Default::default());
        cuts.push(simulated.after_power_cut(seed));
        let count = cuts.len();
        for (index, cut) in cuts.into_iter().enumerate() {
            let disk: Arc<dyn Disk> = Arc::new(cut);
            let store = Store::open(EngineKind::Redb, &disk, path, &options(seed.is_multiple_of(4))).unwrap();
            let number = store.position().unwrap().number;
            let is_expected = number == last + 1 || (number == last && index + 1 < count);
            assert!(is_expected, "seed {seed}: {number} of {last}, cut {index} of {count}");
            assert_holds(&store, &model_at(number));
            let mut wrong = Vec::new();
            store.check(&mut |error| wrong.push(error.to_string())).unwrap();
            assert!(wrong.is_empty(), "seed {seed}: {wrong:?}");
        }
    }
}

const CHILD: &str = "EMBER_STORES_CHILD";

/// Not a test: the code that the killed processes run.
#[test]
fn child_that_is_killed() {
    let Ok(what) = std::env::var(CHILD) else { return };
    let (kind, folder) = what.split_once(' ').unwrap();
    let store = open(kind.parse().unwrap(), Path::new(folder), false);
    let from = store.position().map_or(0, |position| position.number);
    println!("at {from}");
    for number in from + 1..from + 10_000 {
        let mut fill = |checkpoint: &mut Checkpoint<'_>| {
            change(number, &mut Model::new(), Some(checkpoint));
            Ok(())
        };
        store.checkpoint(&position(number), &mut fill).unwrap();
        println!("at {number}");
    }
}

fn killed_processes_lose_nothing(kind: EngineKind) {
    let folder = Folder::new();
    let mut known = 0;
    for kill in 0..kills() {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["crashes::child_that_is_killed", "--exact", "--nocapture", "--test-threads=1"])
            .env(CHILD, format!("{kind} {}", folder.0.display()))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let mut numbers = lines.filter_map(|line| line.strip_prefix("at ")?.parse::<u64>().ok());
        let begun = numbers.next().unwrap();
        assert!(begun >= known, "{kind}: acknowledged {known}, there {begun}");
        known = begun;
        // The process is killed after this number of acknowledgements, at an arbitrary point of the next checkpoint.
        for number in numbers.by_ref().take(1 + (kill * 7 % 5) as usize) {
            known = number;
        }
        let spin = kill.wrapping_mul(0x9E37_79B9) % 3_000_000;
        (0..spin).for_each(|turn| _ = std::hint::black_box(turn));
        child.kill().unwrap();
        known = numbers.last().unwrap_or(known);
        child.wait().unwrap();
        let store = open(kind, &folder.0, false);
        let number = store.position().unwrap().number;
        assert!(number == known || number == known + 1, "{kind}: acknowledged {known}, there {number}");
        known = number;
        assert_holds(&store, &model_at(number));
        let mut wrong = Vec::new();
        store.check(&mut |error| wrong.push(error.to_string())).unwrap();
        assert!(wrong.is_empty(), "{kind}: {wrong:?}");
    }
}

#[test]
fn killed_processes_with_redb_lose_nothing() {
    killed_processes_lose_nothing(EngineKind::Redb);
}

#[test]
fn killed_processes_with_lmdb_lose_nothing() {
    killed_processes_lose_nothing(EngineKind::Lmdb);
}

#[test]
fn killed_processes_with_fjall_lose_nothing() {
    killed_processes_lose_nothing(EngineKind::Fjall);
}
