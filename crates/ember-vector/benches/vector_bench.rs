//! Measures the cost of an index: additions, searches and their recall, memory, removals.
//!
//! Prints a table of additions and of searches of the ten nearest vectors, for a graph (HNSW), lists (IVF) and an exact
//! search (FLAT) of 32-bit floats: operations per second, P50, P99, P99.9, and the recall. For a million vectors, which
//! take some minutes: `VECTORS=1000000 cargo bench --bench vector_bench`.
//!
//! `VECTORS`, `DIMENSIONS` and `FILE` (rows of 32-bit floats, little-endian; the last thousand are the queries)
//! determine the data; by default it is generated. With `SCALARS` the benchmark prints insertions, searches by width and
//! removals of graphs of bytes, floats and bits instead. With `CURVE` it prints one line for each kind of index,
//! with fields separated by tabs: `curve`, a name, microseconds per added vector, bytes per vector, and recall and
//! searches per second for each width. Then it prints the cost of filters that pass a random share of all vectors:
//! `filter`, a name, the share, recall and searches per second at a width of 100 (16 lists). The time of a query is
//! that of its fastest of [`ROUNDS`] rounds. `ONLY` selects the kinds whose names contain it.

#![allow(clippy::unwrap_used, reason = "a benchmark ends where something is wrong")]

use std::env;
use std::fs;
use std::hint::black_box;
use std::time::{Duration, Instant};

use ember_testkit::{OperationTimes, clock_time, times_table};
use ember_vector::{Config, Index, Kind, Metric, Prepared, Scalar, Scratch};

#[path = "../tests/index/data.rs"]
mod data;

const QUERIES: usize = 1000;
const LINKS: usize = 16;
const BUILD_WIDTH: usize = 200;
const NEAREST: usize = 10;
/// The number of times that each query of a curve is run.
const ROUNDS: usize = 6;
/// The number of near vectors that a search of a graph compares, and the number of lists that a search of lists reads.
const GRAPH_WIDTH: usize = 100;
const LISTS_WIDTH: usize = 16;
/// The number of searches of the table, which P99.9 needs, and the duration after which the queries are not repeated.
/// In a test each query runs once.
const SEARCHES: u64 = 10_000;
const SEARCH_TIME: Duration = Duration::from_secs(20);
/// The number of vectors per list: four times as many as lists need to be built.
const VECTORS_PER_LIST: usize = 39 * 4;
const LISTS_MAX: usize = 1024;

/// Returns whether Cargo runs the benchmark as a test, which should be short.
fn is_test() -> bool {
    !env::args().any(|argument| argument == "--bench")
}

fn number(name: &str, default: usize) -> usize {
    env::var(name).map_or(default, |text| text.parse().unwrap())
}

fn each(duration: Duration, count: usize) -> f64 {
    duration.as_secs_f64() * 1e6 / count as f64
}

fn main() {
    let dim = number("DIMENSIONS", 384);
    let count = number("VECTORS", if is_test() { 500 } else { 20_000 });
    let all: Vec<Vec<f32>> = match env::var("FILE") {
        Err(_) => data::vectors(count + QUERIES, dim, 1),
        Ok(path) => {
            let bytes = fs::read(path).unwrap();
            let floats = bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
            floats.collect::<Vec<f32>>().chunks_exact(dim).map(<[f32]>::to_vec).collect()
        }
    };
    let (vectors, queries) = all.split_at(all.len() - QUERIES);
    if env::var("CURVE").is_ok() {
        let vectors = &vectors[..count.min(vectors.len())];
        let lists = lists_for(vectors.len());
        let exact = all_nearest(vectors, queries, dim);
        let only = env::var("ONLY").unwrap_or_default();
        let graph = Kind::Hnsw { links: LINKS };
        for (scalar, kind, name) in [
            (Scalar::F32, graph, "f32".to_owned()),
            (Scalar::F16, graph, "f16".to_owned()),
            (Scalar::Bf16, graph, "bf16".to_owned()),
            (Scalar::Int8, graph, "i8".to_owned()),
            (Scalar::Binary, graph, "bits".to_owned()),
            (Scalar::F32, Kind::Ivf { lists }, format!("IVF f32, {lists} lists")),
            (Scalar::Int8, Kind::Ivf { lists }, format!("IVF i8, {lists} lists")),
            (Scalar::F32, Kind::Flat, "FLAT f32".to_owned()),
            (Scalar::Int8, Kind::Flat, "FLAT i8".to_owned()),
        ] {
            if name.contains(&only) {
                print_curve(&format!("ember-vector {name}"), (vectors, queries), &exact, (dim, scalar, kind));
            }
        }
        return;
    }
    if env::var("SCALARS").is_ok() {
        for scalar in [Scalar::Int8, Scalar::F32, Scalar::Binary] {
            measure(vectors, queries, dim, scalar);
        }
        return;
    }
    print_types(&vectors[..count.min(vectors.len())], queries, dim);
}

fn lists_for(vectors: usize) -> usize {
    (vectors / VECTORS_PER_LIST).clamp(1, LISTS_MAX)
}

/// Adds the vectors to an index of each type, searches them, and prints the times. The exact search determines the recall
/// of the other types.
fn print_types(vectors: &[Vec<f32>], queries: &[Vec<f32>], dim: usize) {
    let lists = lists_for(vectors.len());
    let mut exact: Vec<Vec<u32>> = Vec::new();
    let mut rows: Vec<(String, OperationTimes, Vec<String>)> = Vec::new();
    for (name, kind, width) in [
        ("FLAT", Kind::Flat, 1),
        ("IVF", Kind::Ivf { lists }, LISTS_WIDTH),
        ("HNSW", Kind::Hnsw { links: LINKS }, GRAPH_WIDTH),
    ] {
        let (index, added) = build_timed(vectors, dim, kind);
        let (searched, found) = search_timed(&index, queries, width);
        if kind == Kind::Flat {
            exact.clone_from(&found);
        }
        let hits: usize = found
            .iter()
            .zip(&exact)
            .map(|(found, exact)| found.iter().filter(|slot| exact.contains(slot)).count())
            .sum();
        let recall = hits as f64 / exact.iter().map(Vec::len).sum::<usize>() as f64;
        rows.push((format!("VECTOR.SEARCH, {name}"), searched, vec![format!("{recall:.3}")]));
        rows.push((format!("VECTOR.ADD, {name}"), added, vec!["-".to_owned()]));
    }
    println!(
        "\nvectors={} dimensions={dim} nearest={NEAREST} links={LINKS} graph-width={GRAPH_WIDTH} lists={lists} \
         searched-lists={LISTS_WIDTH}, one thread; each figure includes {} ns of the clock\n",
        vectors.len(),
        clock_time().as_nanos()
    );
    let rows: Vec<_> = rows.iter().map(|(name, times, cells)| (name.clone(), times, cells.clone())).collect();
    println!("{}", times_table(&["recall@10"], &rows));
}

/// Adds the vectors to an index. Lists are built when half of the vectors are added, and only the additions after that
/// are timed, because earlier ones choose no list.
fn build_timed(vectors: &[Vec<f32>], dim: usize, kind: Kind) -> (Index, OperationTimes) {
    let (metric, scalar) = (Metric::Cosine, Scalar::F32);
    let mut index = Index::new(Config { dim, metric, scalar, kind, account: |bytes| bytes }).unwrap();
    let mut scratch = Scratch::default();
    let mut times = OperationTimes::default();
    for (number, vector) in vectors.iter().enumerate() {
        if number == vectors.len() / 2 && matches!(kind, Kind::Ivf { .. }) {
            index.train();
            times = OperationTimes::default();
        }
        times.time(|| index.insert(&Prepared::new(vector, metric, scalar), BUILD_WIDTH, &mut scratch));
    }
    (index, times)
}

/// Searches each query at least once, and returns the times and the slots found.
fn search_timed(index: &Index, queries: &[Vec<f32>], width: usize) -> (OperationTimes, Vec<Vec<u32>>) {
    let mut scratch = Scratch::default();
    let mut times = OperationTimes::default();
    let start = Instant::now();
    loop {
        let mut search = |query: &Vec<f32>| {
            let mut found = Vec::new();
            times.time(|| {
                let query = Prepared::new(query, Metric::Cosine, Scalar::F32);
                found.extend(index.search(&query, NEAREST, width, &mut scratch).iter().map(|hit| hit.slot));
            });
            found
        };
        let found = queries.iter().map(&mut search).collect();
        if is_test() || times.count() >= SEARCHES || start.elapsed() >= SEARCH_TIME {
            return (times, found);
        }
    }
}

/// Returns for each query the slots of its exact nearest vectors, nearest first: the number that the filters need.
fn all_nearest(vectors: &[Vec<f32>], queries: &[Vec<f32>], dim: usize) -> Vec<Vec<u32>> {
    const METRIC: Metric = Metric::Cosine;
    let (scalar, kind, account) = (Scalar::F32, Kind::Flat, |bytes| bytes);
    let mut all = Index::new(Config { dim, metric: METRIC, scalar, kind, account }).unwrap();
    let mut scratch = Scratch::default();
    for vector in vectors {
        all.insert(&Prepared::new(vector, METRIC, scalar), 1, &mut scratch);
    }
    let nearest = |query: &Vec<f32>| {
        let hits = all.search(&Prepared::new(query, METRIC, scalar), NEAREST * 100, 1, &mut scratch);
        hits.iter().map(|hit| hit.slot).collect()
    };
    queries.iter().map(nearest).collect()
}

/// Returns whether a filter that passes a share of all vectors passes the vector of a slot.
fn is_taken(slot: u32, share: f64) -> bool {
    f64::from(slot.wrapping_mul(2_654_435_761)) < share * f64::from(u32::MAX)
}

/// Returns the recall of a search, and searches per second.
fn recall_and_rate(
    queries: &[Prepared],
    exact: &[Vec<u32>],
    share: f64,
    mut search: impl FnMut(&Prepared) -> Vec<u32>,
) -> (f64, f64) {
    let mut found: Vec<Vec<u32>> = vec![Vec::new(); queries.len()];
    let mut best = vec![f64::INFINITY; queries.len()];
    for _ in 0..ROUNDS {
        for ((query, found), best) in queries.iter().zip(&mut found).zip(&mut best) {
            let start = Instant::now();
            *found = search(query);
            *best = best.min(start.elapsed().as_secs_f64());
        }
    }
    let (mut hits, mut all) = (0, 0);
    for (found, exact) in found.iter().zip(exact) {
        let nearest: Vec<u32> = exact.iter().copied().filter(|&slot| is_taken(slot, share)).collect();
        let nearest = &nearest[..nearest.len().min(NEAREST)];
        hits += found.iter().filter(|slot| nearest.contains(slot)).count();
        all += nearest.len();
    }
    (hits as f64 / all as f64, queries.len() as f64 / best.iter().sum::<f64>())
}

fn print_curve(
    name: &str,
    (vectors, queries): (&[Vec<f32>], &[Vec<f32>]),
    exact: &[Vec<u32>],
    (dim, scalar, kind): (usize, Scalar, Kind),
) {
    let metric = Metric::Cosine;
    let mut scratch = Scratch::default();
    let mut index = Index::new(Config { dim, metric, scalar, kind, account: |bytes| bytes }).unwrap();
    let start = Instant::now();
    for vector in vectors {
        index.insert(&Prepared::new(vector, metric, scalar), BUILD_WIDTH, &mut scratch);
    }
    index.train();
    let built = each(start.elapsed(), index.len());
    let mut line = format!("curve\t{name}\t{built:.1}\t{}", index.memory_bytes() / index.len());
    let queries: Vec<Prepared> = queries.iter().map(|query| Prepared::new(query, metric, scalar)).collect();
    let (widths, usual): (&[usize], usize) = match kind {
        Kind::Hnsw { .. } => (&[10, 20, 40, 50, 80, 100, 120, 200, 400, 800], 100),
        Kind::Ivf { .. } => (&[1, 2, 4, 8, 16, 32, 64, 128], 16),
        Kind::Flat => (&[1], 1),
    };
    for &width in widths {
        let (recall, rate) = recall_and_rate(&queries, exact, 1.0, |query| {
            index.search(query, NEAREST, width, &mut scratch).iter().map(|hit| hit.slot).collect()
        });
        line += &format!("\t{recall:.4}\t{rate:.0}");
    }
    println!("{line}");
    for share in [1.0, 0.5, 0.25, 0.1, 0.01] {
        let (recall, rate) = recall_and_rate(&queries, exact, share, |query| {
            let keep = |slot| is_taken(slot, share);
            let hits = index.search_filtered(query, NEAREST, usual, keep, &mut scratch);
            hits.iter().map(|hit| hit.slot).collect()
        });
        println!("filter\t{name}\t{share}\t{recall:.4}\t{rate:.0}");
    }
}

fn measure(vectors: &[Vec<f32>], queries: &[Vec<f32>], dim: usize, scalar: Scalar) {
    let metric = Metric::Cosine;
    let kind = Kind::Hnsw { links: LINKS };
    let mut scratch = Scratch::default();
    let mut index = Index::new(Config { dim, metric, scalar, kind, account: |bytes| bytes }).unwrap();
    let prepared = |vector: &Vec<f32>| Prepared::new(vector, metric, scalar);
    let start = Instant::now();
    for vector in vectors {
        index.insert(&prepared(vector), BUILD_WIDTH, &mut scratch);
    }
    let built = start.elapsed();
    let bytes = index.memory_bytes() / index.len();
    println!("{scalar:?}, {} × {dim}: insert {:.1} µs, {bytes} bytes", index.len(), each(built, index.len()));

    let queries: Vec<Prepared> = queries.iter().map(prepared).collect();
    let rounds = 1_000_000 / index.len().max(1) + 1;
    let start = Instant::now();
    let exact: Vec<_> = queries
        .iter()
        .map(|query| index.search_all(query, NEAREST, |_| true, &mut scratch).to_vec())
        .collect();
    let scanned = start.elapsed().as_secs_f64() * 1e9 / (queries.len() * index.len()) as f64;
    println!("  scan {scanned:.1} ns a vector");
    for width in [20, 50, 100, 200, 400] {
        let mut found = 0;
        let start = Instant::now();
        for _ in 0..rounds {
            found = 0;
            for (query, exact) in queries.iter().zip(&exact) {
                let farthest = exact.last().unwrap().distance;
                let hits = index.search(query, NEAREST, width, &mut scratch);
                found += hits.iter().filter(|hit| hit.distance <= farthest).count();
            }
        }
        let time = each(start.elapsed(), queries.len() * rounds);
        let recall = found as f64 / (queries.len() * NEAREST) as f64;
        println!("  search {width:3}: {time:6.1} µs, recall {recall:.4}");
    }
    let start = Instant::now();
    let removed = index.len() / 10;
    (0..removed).for_each(|at| index.remove((at * 7 % index.len()) as u32, &mut scratch));
    println!("  remove {:.1} µs", each(start.elapsed(), removed));
    black_box(index);
}
