//! The gate under all schedules that the model checker finds: access is exclusive, and all workers enter again
//! afterwards.

use std::sync::Arc;

use emberkv_core::gate::Gate;
use emberkv_core::sync::{AtomicBool, Ordering};
use shuttle::thread;

const SCHEDULES: usize = 3000;
const WORKERS: usize = 3;

#[test]
fn no_worker_is_inside_while_one_has_exclusive_access() {
    shuttle::check_random(
        || {
            let gate = Arc::new(Gate::new(WORKERS));
            let inside: Arc<Vec<AtomicBool>> =
                Arc::new((0..WORKERS).map(|_| AtomicBool::new(false)).collect());
            let workers: Vec<_> = (0..WORKERS)
                .map(|worker| {
                    let (gate, inside) = (Arc::clone(&gate), Arc::clone(&inside));
                    thread::spawn(move || {
                        for round in 0..3 {
                            gate.enter(worker);
                            inside[worker].store(true, Ordering::SeqCst);
                            if (worker + round) % 2 == 0 {
                                inside[worker].store(false, Ordering::SeqCst);
                                let exclusive = gate.close(worker);
                                for _ in 0..2 {
                                    assert!(!inside.iter().any(|inside| inside.load(Ordering::SeqCst)));
                                    thread::yield_now();
                                }
                                drop(exclusive);
                                inside[worker].store(true, Ordering::SeqCst);
                            }
                            thread::yield_now();
                            inside[worker].store(false, Ordering::SeqCst);
                            gate.leave(worker);
                        }
                    })
                })
                .collect();
            workers.into_iter().for_each(|worker| worker.join().unwrap());
        },
        SCHEDULES,
    );
}
