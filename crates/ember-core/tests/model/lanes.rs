//! A replica that applies on all cores, under a model checker: rounds of units in lanes, run by the worker of the
//! replication link and by helpers that join at any time, while readers, snapshots and a change of the role run
//! concurrently. Runs with `RUSTFLAGS="--cfg shuttle" cargo test -p emberkv-core --test model lanes`.

use std::sync::Arc;

use emberkv_core::gate::Gate;
use emberkv_core::lanes::{Following, Lanes, Plan, Runner};
use emberkv_core::sync::{AtomicBool, Mutex, MutexGuard, Ordering};
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;

const SCHEDULES: usize = 3000;
const SHARDS: usize = 4;
const LANES: usize = 2;
const ROUNDS: usize = 3;
/// The number of workers: worker 0, which has the replication link, two helpers, and a worker that takes snapshots and
/// changes the role.
const WORKERS: usize = 4;

/// The shards that each unit of a round changes atomically.
const UNITS: [&[usize]; 7] = [&[0], &[3], &[0, 2], &[2], &[1, 3], &[0, 1, 2, 3], &[1]];

fn lane_of(shard: usize) -> usize {
    shard * LANES / SHARDS
}

/// The shared state: for each shard, the numbers of the units of all rounds that have changed it, in order.
struct Replica {
    gate: Gate,
    shards: Vec<Mutex<Vec<usize>>>,
    round: Mutex<Option<Arc<Lanes>>>,
    /// The number of applied units, which is exact for a reader with exclusive access.
    applied: Mutex<usize>,
    is_cut: AtomicBool,
}

impl Replica {
    /// Returns the contents of a shard when exactly the first `units` units are applied.
    fn prefix(units: usize, shard: usize) -> Vec<usize> {
        (0..units).filter(|unit| UNITS[unit % UNITS.len()].contains(&shard)).collect()
    }
}

/// Applies units, and holds the lock of a shard from one unit to the next, as workers do.
struct Applier<'r> {
    replica: &'r Replica,
    first_unit: usize,
    guard: Option<(usize, MutexGuard<'r, Vec<usize>>)>,
}

impl Runner for Applier<'_> {
    fn run(&mut self, unit: usize, following: Following<'_>) -> bool {
        assert!(following.len() < UNITS.len());
        let number = self.first_unit + unit;
        if let [shard] = UNITS[unit] {
            if self.guard.as_ref().is_none_or(|(held, _)| held != shard) {
                self.guard = None;
                self.guard = Some((*shard, self.replica.shards[*shard].lock()));
            }
            self.guard.iter_mut().for_each(|(_, data)| data.push(number));
        } else {
            self.guard = None;
            let mut held: Vec<_> =
                UNITS[unit].iter().map(|&shard| self.replica.shards[shard].lock()).collect();
            held.iter_mut().for_each(|data| data.push(number));
        }
        true
    }

    fn rest(&mut self) {
        self.guard = None;
    }
}

fn apply(replica: &Replica) {
    for round in 0..ROUNDS {
        replica.gate.enter(0);
        if replica.is_cut.load(Ordering::SeqCst) {
            replica.gate.leave(0);
            return;
        }
        let mut plan = Plan::new(LANES);
        for shards in UNITS {
            plan.add_to_all(shards.iter().map(|&shard| lane_of(shard)).collect());
        }
        let lanes = Arc::new(Lanes::new(plan));
        *replica.round.lock() = Some(Arc::clone(&lanes));
        let first_unit = round * UNITS.len();
        assert!(lanes.lead(0, &mut Applier { replica, first_unit, guard: None }));
        *replica.applied.lock() = first_unit + UNITS.len();
        replica.gate.leave(0);
    }
}

fn help(replica: &Replica, worker: usize) {
    for _ in 0..ROUNDS {
        let round = replica.round.lock().clone();
        replica.gate.enter(worker);
        if let Some(lanes) = round {
            // A finished round has no commands left, so its number does not matter.
            let first_unit = *replica.applied.lock();
            lanes.help(worker % LANES, &mut Applier { replica, first_unit, guard: None });
        }
        replica.gate.leave(worker);
        thread::yield_now();
    }
}

/// Reads two shards atomically: a unit that changes both shards must be visible in both or in neither.
fn read(replica: &Replica) {
    let (one, other) = (thread_rng().gen_range(0..SHARDS - 1), SHARDS - 1);
    let (one_data, other_data) = (replica.shards[one].lock(), replica.shards[other].lock());
    let both = |units: &Vec<usize>| -> Vec<usize> {
        let all = units.iter().copied();
        all.filter(|unit| [one, other].iter().all(|shard| UNITS[unit % UNITS.len()].contains(shard)))
            .collect()
    };
    assert_eq!(both(&one_data), both(&other_data), "part of a unit is visible");
    for (shard, data) in [(one, &one_data), (other, &other_data)] {
        let all = Replica::prefix(ROUNDS * UNITS.len(), shard);
        assert!(all.starts_with(data), "shard {shard} has another order: {:?}", **data);
    }
}

/// Takes a snapshot and, if `promotes`, changes the role, with exclusive access: the data must be a prefix of the
/// history, of exactly the recorded length.
fn take_snapshot(replica: &Replica, worker: usize, promotes: bool) {
    replica.gate.enter(worker);
    let exclusive = replica.gate.close(worker);
    let applied = *replica.applied.lock();
    for (shard, data) in replica.shards.iter().enumerate() {
        assert_eq!(*data.lock(), Replica::prefix(applied, shard), "{applied} units are applied");
    }
    if promotes {
        replica.is_cut.store(true, Ordering::SeqCst);
    }
    drop(exclusive);
    replica.gate.leave(worker);
}

#[test]
fn units_are_atomic_and_ordered_and_snapshots_consistent() {
    shuttle::check_random(
        || {
            let replica = Arc::new(Replica {
                gate: Gate::new(WORKERS),
                shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
                round: Mutex::default(),
                applied: Mutex::default(),
                is_cut: AtomicBool::new(false),
            });
            let start = |act: fn(&Replica, usize), worker: usize| {
                let replica = Arc::clone(&replica);
                thread::spawn(move || act(&replica, worker))
            };
            let threads = [
                start(|replica, _| apply(replica), 0),
                start(help, 1),
                start(help, 2),
                start(
                    |replica, worker| {
                        let promotes = thread_rng().gen_bool(0.3);
                        take_snapshot(replica, worker, false);
                        take_snapshot(replica, worker, promotes);
                    },
                    3,
                ),
                start(|replica, _| (0..3).for_each(|_| read(replica)), 4),
            ];
            for thread in threads {
                thread.join().unwrap();
            }
            let applied = *replica.applied.lock();
            let is_cut = replica.is_cut.load(Ordering::SeqCst);
            assert!(is_cut || applied == ROUNDS * UNITS.len());
            for (shard, data) in replica.shards.iter().enumerate() {
                assert_eq!(*data.lock(), Replica::prefix(applied, shard));
            }
        },
        SCHEDULES,
    );
}
