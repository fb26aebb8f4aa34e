//! The recall of searches.

use ember_vector::{Config, Index, Kind, Metric, Prepared, Scalar, Scratch};

use crate::building::{config, filled};
use crate::data::vectors;

const DIM: usize = 96;
const COUNT: usize = 10_000;
const HNSW: Kind = Kind::Hnsw { links: 16 };

/// Returns the share of the ten nearest vectors that searches of this width find.
fn recall(index: &Index, queries: &[Vec<f32>], width: usize, keep: impl Fn(u32) -> bool) -> f64 {
    let mut scratch = Scratch::default();
    let Config { metric, scalar, .. } = *index.config();
    let (mut found, mut all) = (0, 0);
    for query in queries {
        let query = Prepared::new(query, metric, scalar);
        let nearest = index.search_all(&query, 10, &keep, &mut scratch).to_vec();
        let farthest = nearest.last().map_or(0.0, |hit| hit.distance);
        let hits = index.search_filtered(&query, 10, width, &keep, &mut scratch);
        assert_eq!(hits.len(), nearest.len());
        found += hits.iter().filter(|hit| hit.distance <= farthest).count();
        all += nearest.len();
    }
    found as f64 / all as f64
}

#[test]
fn a_search_finds_nearly_all_nearest_neighbors() {
    let all = vectors(COUNT, DIM, 1);
    let queries = vectors(200, DIM, 2);
    let mut scratch = Scratch::default();
    for (metric, scalar, least) in [
        (Metric::Cosine, Scalar::Int8, 0.98),
        (Metric::Cosine, Scalar::Binary, 0.9),
        (Metric::L2, Scalar::F32, 0.98),
        (Metric::InnerProduct, Scalar::F16, 0.9),
    ] {
        let index = filled(config(DIM, metric, scalar, HNSW), &all, 200, &mut scratch);
        let recall = recall(&index, &queries, 100, |_| true);
        assert!(recall >= least, "{metric:?} {scalar:?}: {recall}");
    }
}

#[test]
fn links_built_concurrently_are_as_good_as_links_built_in_sequence() {
    let all = vectors(COUNT, DIM, 7);
    let queries = vectors(200, DIM, 8);
    let mut scratch = Scratch::default();
    let config = config(DIM, Metric::Cosine, Scalar::F32, HNSW);
    let fresh = filled(config, &all, 100, &mut scratch);
    let mut index = Index::new(config).unwrap();
    let mut linkings = std::collections::VecDeque::new();
    for (number, vector) in all.iter().enumerate() {
        index.add(&Prepared::new(vector, config.metric, config.scalar), 100);
        // Two linkings are in progress at a time, with four vectors each.
        if number % 4 == 3 {
            linkings.extend(index.begin_linking(4));
        }
        if linkings.len() > 2
            && let Some(linking) = linkings.pop_front()
        {
            linking.plan(&mut scratch).iter().for_each(|plan| index.commit(plan, &mut scratch));
        }
    }
    assert!((8..100).contains(&index.pending()), "{}", index.pending());
    for width in [20, 50] {
        let (concurrent, fresh) =
            (recall(&index, &queries, width, |_| true), recall(&fresh, &queries, width, |_| true));
        assert!(concurrent >= fresh - 0.01, "{width}: {concurrent}, one by one {fresh}");
    }
    index.link_pending(usize::MAX, &mut scratch);
    index.check_invariants();
}

#[test]
fn lists_built_during_changes_find_nearly_all_nearest_neighbors() {
    let all = vectors(COUNT * 2, DIM, 9);
    let queries = vectors(200, DIM, 10);
    let mut scratch = Scratch::default();
    for (metric, scalar, least) in [
        (Metric::Cosine, Scalar::Int8, 0.95),
        (Metric::Cosine, Scalar::Binary, 0.7),
        (Metric::L2, Scalar::F32, 0.95),
        (Metric::InnerProduct, Scalar::F16, 0.9),
    ] {
        let config = config(DIM, metric, scalar, Kind::Ivf { lists: 64 });
        let mut index = filled(config, &all[..COUNT], 1, &mut scratch);
        assert_eq!((index.is_training_due(), index.lists(), index.pending()), (true, 0, 0));
        let mut training = index.begin_training().unwrap();
        assert!(index.begin_training().is_none(), "only one training at a time");
        let mut next = COUNT;
        loop {
            let is_placed = training.step(200_000);
            if !index.advance_training(&mut training) {
                break;
            }
            // During the training, as many vectors are added and removed as there were at its beginning.
            if next < all.len() && !is_placed {
                for vector in &all[next..next + 250] {
                    index.remove((next * 31 % index.len()) as u32, &mut scratch);
                    index.add(&Prepared::new(vector, metric, scalar), 1);
                    next += 1;
                }
            }
        }
        assert!(next > COUNT && index.lists() == 64 && index.pending() <= 64);
        index.check_invariants();
        index.link_pending(usize::MAX, &mut scratch);
        let recall = recall(&index, &queries, 16, |_| true);
        assert!(recall >= least, "{metric:?} {scalar:?}: {recall}");
        assert!(!index.is_training_due());
    }
}

#[test]
fn lists_are_searched_until_enough_vectors_are_found() {
    let all = vectors(COUNT, DIM, 5);
    let mut scratch = Scratch::default();
    let mut index =
        filled(config(DIM, Metric::L2, Scalar::F32, Kind::Ivf { lists: 50 }), &all, 1, &mut scratch);
    index.train();
    assert_eq!((index.lists(), index.pending()), (50, 0));
    assert!(index.distances_of_search(5) < COUNT / 5);
    let query = Prepared::new(&all[0], Metric::L2, Scalar::F32);
    assert_eq!(index.search(&query, COUNT, 1, &mut scratch).len(), COUNT);
    assert_eq!(index.search_filtered(&query, 10, 1, |slot| slot % 1000 == 0, &mut scratch).len(), 10);
    // A low limit of distances permits few lists.
    assert!(index.search_within(&query, COUNT, 1, 500, |_| true, &mut scratch).len() < 1000);
    let frozen = index.clone();
    (0..COUNT as u32 - 10).for_each(|_| index.remove(3, &mut scratch));
    index.check_invariants();
    frozen.check_invariants();
    assert_eq!(index.search(&query, 100, 1, &mut scratch).len(), 10);
}

#[test]
fn a_graph_after_removals_and_insertions_is_as_good_as_a_new_one() {
    let all = vectors(COUNT * 5 / 2, DIM, 3);
    let queries = vectors(200, DIM, 4);
    let mut scratch = Scratch::default();
    let config = config(DIM, Metric::Cosine, Scalar::F32, HNSW);
    let mut index = filled(config, &all[..COUNT], 100, &mut scratch);
    let mut next = COUNT;
    for _ in 0..3 {
        for at in 0..COUNT / 2 {
            index.remove((at * 31 % index.len()) as u32, &mut scratch);
        }
        for vector in &all[next..next + COUNT / 2] {
            index.insert(&Prepared::new(vector, config.metric, config.scalar), 100, &mut scratch);
        }
        next += COUNT / 2;
    }
    index.check_invariants();
    let left: Vec<Vec<f32>> = (0..index.len() as u32).map(|slot| index.vector(slot)).collect();
    let fresh = filled(config, &left, 100, &mut scratch);
    for width in [20, 50] {
        let (churned, fresh) =
            (recall(&index, &queries, width, |_| true), recall(&fresh, &queries, width, |_| true));
        assert!(churned >= fresh - 0.01, "{width}: {churned}, new {fresh}");
    }
}

#[test]
fn filtered_searches_find_nearly_all_matches_for_any_selectivity() {
    let all = vectors(COUNT, DIM, 5);
    let queries = vectors(100, DIM, 6);
    let index = filled(config(DIM, Metric::Cosine, Scalar::Int8, HNSW), &all, 100, &mut Scratch::default());
    for one_in in [2, 10, 100, 1000, 100_000] {
        let recall = recall(&index, &queries, 100, |slot| slot % one_in == 0);
        assert!(recall >= 0.95, "1 in {one_in}: {recall}");
    }
    // The vectors that pass the filter are far from the query.
    let first = Prepared::new(&all[0], Metric::Cosine, Scalar::Int8);
    let is_far = |slot: u32| index.distance(&first, slot) > 0.9;
    let recall = recall(&index, &all[..50], 100, is_far);
    assert!(recall >= 0.95, "{recall}");
}
