//! What an index costs: distances, insertions, searches and how much they find, memory, removals.
//!
//! `VECTORS`, `DIMENSIONS` and `FILE` (rows of 32-bit floats, little-endian; the last thousand are the queries) choose the
//! data; else they are generated. With `CURVE` it prints one line for each kind of index, with tabs: `curve`, a name,
//! microseconds to add a vector, bytes for each, and recall and searches a second for each width.

#![allow(clippy::unwrap_used, reason = "a benchmark ends where something is wrong")]

use std::env;
use std::fs;
use std::hint::black_box;
use std::time::{Duration, Instant};

use ember_vector::{Config, Index, Kind, Metric, Prepared, Scalar, Scratch};

#[path = "../tests/index/data.rs"]
mod data;

const QUERIES: usize = 1000;
const LINKS: usize = 16;
const BUILD_WIDTH: usize = 200;
const NEAREST: usize = 10;

fn number(name: &str, default: usize) -> usize {
    env::var(name).map_or(default, |text| text.parse().unwrap())
}

fn each(duration: Duration, count: usize) -> f64 {
    duration.as_secs_f64() * 1e6 / count as f64
}

fn main() {
    let dim = number("DIMENSIONS", 384);
    // Cargo runs benchmarks as tests too; those are to be short.
    let is_test = !env::args().any(|argument| argument == "--bench");
    let count = number("VECTORS", if is_test { 500 } else { 20_000 });
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
        let lists = (vectors.len() / 39 / 4).clamp(1, 1024);
        for (scalar, name) in [(Scalar::F32, "f32"), (Scalar::Int8, "i8"), (Scalar::Binary, "bits")] {
            let kind = Kind::Hnsw { links: LINKS };
            print_curve(&format!("ember-vector {name}"), vectors, queries, (dim, scalar, kind));
        }
        for (scalar, name) in [(Scalar::F32, "f32"), (Scalar::Int8, "i8")] {
            let name = format!("ember-vector IVF {name}, {lists} lists");
            print_curve(&name, vectors, queries, (dim, scalar, Kind::Ivf { lists }));
        }
        return;
    }
    for scalar in [Scalar::Int8, Scalar::F32, Scalar::Binary] {
        measure(vectors, queries, dim, scalar);
    }
}

fn print_curve(
    name: &str,
    vectors: &[Vec<f32>],
    queries: &[Vec<f32>],
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
    // What is nearest by the floats as they were given.
    let flat = Config { kind: Kind::Flat, scalar: Scalar::F32, ..*index.config() };
    let mut all = Index::new(flat).unwrap();
    for vector in vectors {
        all.insert(&Prepared::new(vector, metric, Scalar::F32), 1, &mut scratch);
    }
    let exact: Vec<Vec<u32>> = queries
        .iter()
        .map(|query| {
            let query = Prepared::new(query, metric, Scalar::F32);
            all.search_all(&query, NEAREST, |_| true, &mut scratch).iter().map(|hit| hit.slot).collect()
        })
        .collect();
    let queries: Vec<Prepared> = queries.iter().map(|query| Prepared::new(query, metric, scalar)).collect();
    let widths: &[usize] = match kind {
        Kind::Hnsw { .. } => &[10, 20, 40, 80, 120, 200, 400, 800],
        _ => &[1, 2, 4, 8, 16, 32, 64, 128],
    };
    for &width in widths {
        let start = Instant::now();
        let mut found = 0;
        for (query, exact) in queries.iter().zip(&exact) {
            let hits = index.search(query, NEAREST, width, &mut scratch);
            found += hits.iter().filter(|hit| exact.contains(&hit.slot)).count();
        }
        let rate = queries.len() as f64 / start.elapsed().as_secs_f64();
        line += &format!("\t{:.4}\t{rate:.0}", found as f64 / (queries.len() * NEAREST) as f64);
    }
    println!("{line}");
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
