//! Other threads search copies of an index and link vectors in them, while the original index changes. The results are
//! correct, whatever the original appends to shared blocks.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;

use ember_vector::{Index, Kind, Linking, Metric, Plan, Prepared, Scalar, Scratch};

use crate::building::config;
use crate::data::Numbers;

const DIM: usize = 40;

/// The number of changes; the next constants are the number of changes between copies, and the number of searching
/// threads.
const CHANGES: u64 = 4000;
const CHANGES_PER_VIEW: u64 = 16;
const SEARCHERS: u64 = 2;

/// Returns the vector of change `number`.
fn vector(number: u64) -> Vec<f32> {
    let mut numbers = Numbers(number);
    (0..DIM).map(|_| numbers.about_zero()).collect()
}

fn distance(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}

/// A copy of the index, and for each slot the number of the change that set its vector.
struct View {
    index: Index,
    numbers: Vec<u64>,
}

/// A guard that stops the other threads when the owner's thread ends, even by a panic.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Searches copies until the owner ends; returns the number of checked hits.
fn search(seed: u64, current: &Mutex<Option<Arc<View>>>, is_over: &AtomicBool) -> usize {
    let (mut random, mut scratch) = (Numbers(seed), Scratch::default());
    let mut looked_at = 0;
    while !is_over.load(Ordering::Relaxed) {
        let Some(view) = current.lock().unwrap().clone() else { continue };
        let asked = vector(random.next() >> 8);
        let query = Prepared::new(&asked, Metric::L2, Scalar::F32);
        let hits = match random.below(3) {
            0 => view.index.search_all(&query, 20, |_| true, &mut scratch),
            1 => view.index.search(&query, 20, 30, &mut scratch),
            _ => view.index.search_filtered(&query, 20, 30, |slot| slot % 3 != 0, &mut scratch),
        };
        for hit in hits {
            let expected = distance(&asked, &vector(view.numbers[hit.slot as usize]));
            assert!((hit.distance - expected).abs() < 1e-3, "{hit:?} is {expected} away");
        }
        assert!(hits.is_sorted_by(|a, b| a.distance <= b.distance));
        looked_at += hits.len();
    }
    looked_at
}

#[test]
fn copies_are_searched_and_linked_while_the_index_changes() {
    let config = config(DIM, Metric::L2, Scalar::F32, Kind::Hnsw { links: 6 });
    let current: Mutex<Option<Arc<View>>> = Mutex::default();
    let is_over = AtomicBool::new(false);
    let (to_linker, batches) = sync_channel::<Linking>(4);
    let (to_owner, plans) = channel::<Vec<Plan>>();
    thread::scope(|scope| {
        let searchers: Vec<_> = (0..SEARCHERS)
            .map(|seed| {
                let (current, is_over) = (&current, &is_over);
                scope.spawn(move || search(seed, current, is_over))
            })
            .collect();
        scope.spawn(move || {
            let mut scratch = Scratch::default();
            for batch in batches {
                if to_owner.send(batch.plan(&mut scratch)).is_err() {
                    return;
                }
            }
        });
        let ending = Ending(&is_over);
        let (mut index, mut scratch) = (Index::new(config).unwrap(), Scratch::default());
        let (mut numbers, mut random) = (Vec::new(), Numbers(5));
        for number in 0..CHANGES {
            let new = Prepared::new(&vector(number), Metric::L2, Scalar::F32);
            // A third of the changes are replacements or removals.
            match random.below(6) {
                0 if numbers.len() > 100 => {
                    let slot = random.below(numbers.len());
                    index.exchange(slot as u32, &new, 20, &mut scratch);
                    numbers[slot] = number;
                }
                1 if numbers.len() > 100 => {
                    let slot = random.below(numbers.len());
                    index.remove(slot as u32, &mut scratch);
                    numbers.swap_remove(slot);
                }
                _ => {
                    index.add(&new, 20);
                    numbers.push(number);
                }
            }
            if let Some(linking) = index.begin_linking(4)
                && let Err(error) = to_linker.try_send(linking)
            {
                drop(error);
                index.link_pending(4, &mut scratch);
            }
            for plan in plans.try_iter().flatten() {
                index.commit(&plan, &mut scratch);
            }
            if number % CHANGES_PER_VIEW == 0 {
                let view = View { index: index.clone(), numbers: numbers.clone() };
                *current.lock().unwrap() = Some(Arc::new(view));
            }
        }
        drop(to_linker);
        for plan in plans.iter().flatten() {
            index.commit(&plan, &mut scratch);
        }
        index.link_pending(usize::MAX, &mut scratch);
        index.check_invariants();
        drop(ending);
        for searcher in searchers {
            assert!(searcher.join().unwrap() > 0, "copies were searched");
        }
    });
}
