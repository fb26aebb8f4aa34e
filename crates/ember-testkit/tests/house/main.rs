//! Limits of the import structure: the number of files of each crate in one import cycle, and the number of files
//! directly in `src`.
//!
//! `scripts/house.sh` prints the figures.

#![allow(clippy::unwrap_used, reason = "the whole program is a test")]

mod imports;
mod storeys;

use std::fs;
use std::path::{Path, PathBuf};

fn crates() -> Vec<(String, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut crates: Vec<(String, PathBuf)> = fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path().join("src")))
        .filter(|(_, src)| src.is_dir())
        .collect();
    crates.sort();
    crates
}

#[test]
fn figures() {
    println!("| crate | files | in the largest cycle | directly in src |\n|---|--:|--:|--:|");
    for (name, src) in crates() {
        let imports = imports::of_crate(&src);
        let circle = imports::largest_circle(&imports).len();
        let loose = imports.keys().filter(|path| !path.contains('/')).count();
        assert!(!imports.is_empty(), "{name}");
        println!("| {name} | {} | {circle} | {loose} |", imports.len());
    }
}
