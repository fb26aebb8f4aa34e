//! Insertions, removals, replacements, copies and restorations in any order, compared with a list.

use std::collections::VecDeque;

use ember_vector::{
    Config, Index, Kind, LEVEL_MAX, Metric, Plan, Prepared, Restore, RestoreError, Scalar, Scratch,
};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::building::{config, filled};
use crate::data::{Numbers, vectors};

const DIM: usize = 9;

#[derive(Clone, Debug)]
enum Step {
    Insert(u8),
    /// Removes the vector of any slot, whether removed already or not.
    Remove(u16),
    Kill(u16),
    Replace(u16, u8),
    Freeze,
    Restore {
        damages: u8,
    },
    Add(u8),
    Exchange(u16, u8),
    /// Plans the links of this number of vectors.
    Plan(u8),
    /// Commits planned links.
    Commit,
    LinkHere(u8),
    /// Begins to build lists.
    BeginTraining,
    /// Continues the training for this number of distances.
    Train(u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => any::<u8>().prop_map(Step::Insert),
        4 => any::<u16>().prop_map(Step::Remove),
        4 => any::<u16>().prop_map(Step::Kill),
        2 => (any::<u16>(), any::<u8>()).prop_map(|(at, seed)| Step::Replace(at, seed)),
        1 => Just(Step::Freeze),
        1 => any::<u8>().prop_map(|damages| Step::Restore { damages }),
        8 => any::<u8>().prop_map(Step::Add),
        2 => (any::<u16>(), any::<u8>()).prop_map(|(at, seed)| Step::Exchange(at, seed)),
        4 => (1..5u8).prop_map(Step::Plan),
        8 => Just(Step::Commit),
        1 => (1..9u8).prop_map(Step::LinkHere),
        1 => Just(Step::BeginTraining),
        3 => any::<u8>().prop_map(Step::Train),
    ]
}

fn configs() -> impl Strategy<Value = Config> {
    let metrics = vec![Metric::Cosine, Metric::L2, Metric::InnerProduct];
    let scalars = vec![Scalar::F32, Scalar::F16, Scalar::Bf16, Scalar::Int8, Scalar::Binary];
    let kinds = vec![
        Kind::Hnsw { links: 4 },
        Kind::Hnsw { links: 5 },
        Kind::Hnsw { links: 16 },
        Kind::Ivf { lists: 1 },
        Kind::Ivf { lists: 2 },
        Kind::Ivf { lists: 7 },
        Kind::Flat,
    ];
    (prop::sample::select(metrics), prop::sample::select(scalars), prop::sample::select(kinds))
        .prop_map(|(metric, scalar, kind)| config(DIM, metric, scalar, kind))
}

/// Returns one of few different vectors, so that some vectors of an index are equal.
fn vector(seed: u8) -> Vec<f32> {
    let mut numbers = Numbers(u64::from(seed % 97));
    (0..DIM).map(|_| numbers.about_zero() * 5.0).collect()
}

fn prepared(config: &Config, seed: u8) -> Prepared {
    Prepared::new(&vector(seed), config.metric, config.scalar)
}

/// The expected vector of a slot, and whether it is removed.
type Expected = (u8, bool);

fn check(index: &Index, model: &[Expected], scratch: &mut Scratch) {
    let config = *index.config();
    index.check_invariants();
    assert_eq!(index.slots(), model.len());
    for (slot, &(seed, is_dead)) in model.iter().enumerate() {
        assert_eq!(index.stored(slot as u32), prepared(&config, seed));
        assert_eq!(index.is_dead(slot as u32), is_dead);
    }
    let query = prepared(&config, 42);
    let live = (0..model.len() as u32).filter(|&slot| !model[slot as usize].1);
    let mut distances: Vec<f32> = live.map(|slot| index.distance(&query, slot)).collect();
    assert_eq!(index.len(), distances.len());
    distances.sort_by(f32::total_cmp);
    for hits in [
        index.search_all(&query, 5, |_| true, scratch).to_vec(),
        // A search of this width visits all reachable nodes.
        index
            .search_within(&query, 5, model.len(), model.len().saturating_sub(1), |_| true, scratch)
            .to_vec(),
    ] {
        let found: Vec<f32> = hits.iter().map(|hit| hit.distance).collect();
        assert_eq!(found, distances[..distances.len().min(5)]);
        for hit in hits {
            assert!(!model[hit.slot as usize].1, "removed vectors are not found");
            assert_eq!(index.distance(&query, hit.slot), hit.distance);
        }
    }
}

/// The secret of the restoration, which is unknown to the server that has saved an index.
const SECRET: [u64; 2] = [0x1234_5678_9ABC_DEF0, 0x0FED_CBA9_8765_4321];

fn push(restore: &mut Restore, vector: &Prepared, level: usize) -> Result<(), RestoreError> {
    restore.push(vector.bytes(), vector.facts(), level)
}

/// Restores the index from its vectors and links, after damaging some of the links.
fn restored(index: &Index, damages: u8, scratch: &mut Scratch) -> Index {
    let mut restore = Restore::new(*index.config(), SECRET).unwrap();
    let slots = 0..index.len() as u32;
    for slot in slots.clone() {
        push(&mut restore, &index.stored(slot), index.level(slot)).unwrap();
    }
    let mut numbers = Numbers(damages.into());
    for slot in slots {
        for level in 0..=index.level(slot) {
            let mut links = index.neighbors(slot, level);
            if damages > 128 && numbers.below(8) == 0 {
                match numbers.below(4) {
                    0 => links.clear(),
                    1 => links.push(numbers.below(index.len()) as u32),
                    2 => links.push(u32::MAX),
                    _ => links.extend_from_within(..),
                }
            }
            restore.link(slot, level, links);
        }
    }
    if let Some((centres, trained_len)) = index.centres() {
        let lists = (0..index.len() as u32).map(|slot| index.list_of(slot).unwrap_or(0));
        restore.lists(&centres, trained_len, &lists.collect::<Vec<u32>>()).unwrap();
    }
    let (restored, mended) = restore.finish(index.inserted(), scratch);
    let is_pending = |&slot: &u32| index.is_pending(slot);
    let levels = (0..index.len() as u32).filter(is_pending).map(|slot| index.level(slot) + 1);
    assert!(damages > 128 || mended <= levels.sum(), "these links are correct");
    restored
}

/// Links pending vectors, by plans.
fn link_all(index: &mut Index, plans: VecDeque<Plan>, scratch: &mut Scratch) {
    plans.iter().for_each(|plan| index.commit(plan, scratch));
    while let Some(linking) = index.begin_linking(3) {
        linking.plan(scratch).iter().for_each(|plan| index.commit(plan, scratch));
        index.check_invariants();
    }
    assert_eq!(index.pending(), 0);
}

/// Removes all dead slots from the index and the model.
fn free_removed(index: &mut Index, model: &mut Vec<Expected>, scratch: &mut Scratch) {
    while let Some(&slot) = index.dead_slots().last() {
        index.remove(slot, scratch);
        assert!(model.swap_remove(slot as usize).1);
        index.check_invariants();
    }
    assert_eq!(index.dead(), 0);
}

fn run(config: Config, steps: &[Step]) {
    let mut scratch = Scratch::default();
    let mut index = Index::new(config).unwrap();
    let mut model: Vec<Expected> = Vec::new();
    let mut frozen = (index.clone(), model.clone());
    let mut plans: VecDeque<Plan> = VecDeque::new();
    let mut training = None;
    for step in steps {
        match *step {
            Step::Insert(seed) => {
                assert_eq!(index.insert(&prepared(&config, seed), 20, &mut scratch) as usize, model.len());
                model.push((seed, false));
            }
            Step::Kill(at) if index.is_mended() && !index.is_empty() => {
                let live: Vec<usize> = (0..model.len()).filter(|&slot| !model[slot].1).collect();
                let slot = live[usize::from(at) % live.len()];
                index.kill(slot as u32);
                model[slot].1 = true;
            }
            Step::Remove(at) if !model.is_empty() => {
                let slot = usize::from(at) % model.len();
                index.remove(slot as u32, &mut scratch);
                model.swap_remove(slot);
            }
            Step::Replace(at, seed) if !model.is_empty() && !model[usize::from(at) % model.len()].1 => {
                let slot = usize::from(at) % model.len();
                index.replace(slot as u32, &prepared(&config, seed), 20, &mut scratch);
                model[slot].0 = seed;
            }
            Step::Exchange(at, seed) if !model.is_empty() && !model[usize::from(at) % model.len()].1 => {
                let slot = usize::from(at) % model.len();
                index.exchange(slot as u32, &prepared(&config, seed), 20, &mut scratch);
                model[slot].0 = seed;
            }
            Step::Remove(_) | Step::Kill(_) | Step::Replace(..) | Step::Exchange(..) => {}
            Step::Add(seed) => {
                assert_eq!(index.add(&prepared(&config, seed), 20) as usize, model.len());
                model.push((seed, false));
            }
            Step::Plan(most) => {
                if let Some(linking) = index.begin_linking(most.into()) {
                    plans.extend(linking.plan(&mut scratch));
                }
            }
            Step::Commit => {
                if let Some(plan) = plans.pop_front() {
                    index.commit(&plan, &mut scratch);
                }
            }
            Step::LinkHere(most) => index.link_pending(most.into(), &mut scratch),
            Step::BeginTraining => {
                index.request_training();
                if let Some(begun) = index.begin_training() {
                    training = Some(begun);
                }
            }
            Step::Train(distances) => {
                if let Some(some) = &mut training {
                    some.step(usize::from(distances) * 16 + 1);
                    if !index.advance_training(some) {
                        training = None;
                    }
                }
            }
            Step::Freeze => {
                check(&frozen.0, &frozen.1, &mut scratch);
                frozen = (index.clone(), model.clone());
            }
            Step::Restore { damages } => {
                free_removed(&mut index, &mut model, &mut scratch);
                index = restored(&index, damages, &mut scratch);
            }
        }
        index.check_invariants();
    }
    check(&frozen.0, &frozen.1, &mut scratch);
    check(&index, &model, &mut scratch);
    if let Some(mut training) = training {
        while index.advance_training(&mut training) {
            training.step(1000);
        }
    }
    link_all(&mut index, plans, &mut scratch);
    check(&index, &model, &mut scratch);
    free_removed(&mut index, &mut model, &mut scratch);
    check(&index, &model, &mut scratch);
    while !model.is_empty() {
        let slot = model.len() / 2;
        index.remove(slot as u32, &mut scratch);
        model.swap_remove(slot);
        index.check_invariants();
    }
    assert!(index.is_empty() && index.memory_bytes() < 1000);
}

proptest! {
    // `PROPTEST_CASES` sets another number of cases.
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases.max(300),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn an_index_equals_a_list_of_vectors_after_any_operations(config in configs(), steps in vec(step(), 1..300)) {
        run(config, &steps);
    }
}

#[test]
fn a_plan_has_no_effect_on_another_index() {
    let mut scratch = Scratch::default();
    let config = config(DIM, Metric::Cosine, Scalar::F32, Kind::Hnsw { links: 4 });
    let large = (0..200).map(|seed| vector(seed as u8)).collect::<Vec<_>>();
    let mut first = filled(config, &large, 20, &mut scratch);
    first.add(&prepared(&config, 1), 20);
    let plans = first.begin_linking(1).unwrap().plan(&mut scratch);
    // The other index has a pending vector with the same insertion number, and fewer vectors before it.
    let mut other = Index::new(config).unwrap();
    other.count_from(200);
    other.add(&prepared(&config, 1), 20);
    other.begin_linking(1).unwrap();
    other.commit(&plans[0], &mut scratch);
    assert_eq!(other.pending(), 1);
    other.check_invariants();
    // A copy can also commit the plan.
    let mut copy = first.clone();
    for index in [&mut first, &mut copy] {
        index.commit(&plans[0], &mut scratch);
        assert_eq!(index.pending(), 0);
        index.check_invariants();
    }
}

#[test]
fn many_equal_vectors_stay_connected() {
    let mut scratch = Scratch::default();
    for links in [4, 16] {
        let config = config(DIM, Metric::Cosine, Scalar::Int8, Kind::Hnsw { links });
        let mut index = filled(config, &vec![vector(1); 500], 30, &mut scratch);
        index.check_invariants();
        for at in 0..400 {
            index.remove(at * 7 % index.len() as u32, &mut scratch);
            index.check_invariants();
        }
    }
}

#[test]
fn restored_data_are_validated() {
    let config = config(DIM, Metric::Cosine, Scalar::F32, Kind::Hnsw { links: 4 });
    let mut restore = Restore::new(config, SECRET).unwrap();
    let other = Prepared::new(&[1.0; 3], Metric::Cosine, Scalar::F32);
    assert_eq!(push(&mut restore, &other, 0), Err(RestoreError::Dimensions));
    let fits = Prepared::new(&[1.0; DIM], Metric::Cosine, Scalar::F32);
    assert_eq!(push(&mut restore, &fits, LEVEL_MAX + 1), Err(RestoreError::Level));
    let odd = Prepared::new(&[f32::MAX; DIM], Metric::Cosine, Scalar::F32);
    assert_eq!(push(&mut restore, &odd, 0), Err(RestoreError::Numbers));
    assert_eq!(push(&mut restore, &fits, LEVEL_MAX), Ok(()));
    restore.finish(1, &mut Scratch::default()).0.check_invariants();
}

#[test]
fn a_snapshot_view_stays_unchanged_and_shares_unchanged_blocks() {
    let mut scratch = Scratch::default();
    let config = config(32, Metric::L2, Scalar::F32, Kind::Hnsw { links: 8 });
    let all = vectors(4000, 32, 1);
    let mut index = filled(config, &all[..3000], 50, &mut scratch);
    let frozen = index.clone();
    for vector in &all[3000..] {
        index.insert(&Prepared::new(vector, config.metric, config.scalar), 50, &mut scratch);
    }
    (0..2000).for_each(|slot| index.remove(slot, &mut scratch));
    index.check_invariants();
    frozen.check_invariants();
    for (slot, vector) in all[..3000].iter().enumerate() {
        assert_eq!(frozen.vector(slot as u32), *vector);
    }
}
