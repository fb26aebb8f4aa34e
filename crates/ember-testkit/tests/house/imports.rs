//! Determines which files of a crate import which others.
//!
//! A file's imports are the paths in its code, in `use` and elsewhere, that begin with `crate`, `super`, `self` or a
//! module of its own. Unit tests and comments are ignored. A path leads to the file of the deepest module that it
//! names.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The files of one crate, by their paths below `src`, with the files that each imports.
pub(crate) type Imports = BTreeMap<String, BTreeSet<String>>;

/// Reads the imports of a crate.
pub(crate) fn of_crate(src: &Path) -> Imports {
    let mut files = BTreeMap::new();
    collect(src, src, &mut files);
    let modules: BTreeMap<Vec<String>, String> =
        files.keys().map(|path: &String| (module_of(path), path.clone())).collect();
    files
        .iter()
        .map(|(path, text)| {
            let module = module_of(path);
            let found = paths(&code(text)).into_iter().filter_map(|path| resolve(&module, &path, &modules));
            (path.clone(), found.filter(|file| file != path).collect())
        })
        .collect()
}

fn collect(src: &Path, folder: &Path, files: &mut BTreeMap<String, String>) {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    for path in entries.collect::<Vec<PathBuf>>() {
        if path.is_dir() {
            collect(src, &path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path.strip_prefix(src).unwrap().to_string_lossy().into_owned();
            if !name.ends_with("tests.rs") && !name.ends_with("testing.rs") {
                files.insert(name, fs::read_to_string(&path).unwrap());
            }
        }
    }
}

/// Returns the module of a file: `a/mod.rs` and `a.rs` are `a`; `lib.rs` and `main.rs` are the crate.
fn module_of(path: &str) -> Vec<String> {
    let mut parts: Vec<String> = path.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if matches!(parts.last().map(String::as_str), Some("mod" | "lib" | "main")) {
        parts.pop();
    }
    parts
}

/// Returns the code of a file without comments, strings and unit tests.
fn code(text: &str) -> String {
    let text = text.find("#[cfg(test)]\nmod tests {").map_or(text, |at| &text[..at]);
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.map(|line| line.split('"').step_by(2).collect::<String>() + "\n").collect()
}

/// Returns all paths in code that may lead to a module, with the groups of `use` expanded.
fn paths(code: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for part in code.split(';') {
        let statement = part.trim_start();
        let uses = statement.lines().position(|line| {
            let line = line.trim_start();
            line.starts_with("use ") || (line.starts_with("pub") && line.contains(" use "))
        });
        if let Some(first) = uses {
            let rest: String = statement.lines().skip(first).collect::<Vec<_>>().join(" ");
            let tree = rest.split_once("use ").map_or("", |(_, tree)| tree);
            expand(&[], tree, &mut found);
        }
    }
    let is_name = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == ':';
    // The prefix of a group was read with the group.
    let is_path = |word: &&str| word.contains("::") && !word.ends_with("::");
    let words = code.split(|letter| !is_name(letter)).filter(is_path);
    found.extend(words.map(|path| path.split("::").map(str::to_owned).collect()));
    found
}

/// Expands `a::{b, c::d}`.
fn expand(prefix: &[String], tree: &str, found: &mut Vec<Vec<String>>) {
    let (head, group) = match tree.split_once('{') {
        Some((head, rest)) => (head, Some(rest.rsplit_once('}').map_or(rest, |(inside, _)| inside))),
        None => (tree, None),
    };
    let names = head.split("::").map(|name| name.split(" as ").next().unwrap_or_default().trim());
    let mut path = prefix.to_vec();
    path.extend(names.filter(|name| !name.is_empty()).map(str::to_owned));
    let Some(group) = group else { return found.push(path) };
    let (mut depth, mut from) = (0, 0);
    for (at, letter) in group.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                expand(&path, &group[from..at], found);
                from = at + 1;
            }
            _ => {}
        }
    }
    expand(&path, &group[from..], found);
}

/// Returns the file to which a path in a module leads, if that file belongs to the crate.
fn resolve(module: &[String], path: &[String], modules: &BTreeMap<Vec<String>, String>) -> Option<String> {
    let mut at: Vec<String> = module.to_vec();
    let mut names = path.iter().map(String::as_str).peekable();
    match names.peek() {
        Some(&"crate") => {
            at.clear();
            names.next();
        }
        Some(&"self") => _ = names.next(),
        Some(&"super") => {
            while names.next_if_eq(&"super").is_some() {
                at.pop();
            }
        }
        Some(name) => {
            // A path without `crate`, `super` or `self` begins with another crate, or a child of this module.
            let child = [module, &[(*name).to_owned()]].concat();
            modules.get(&child)?;
        }
        None => return None,
    }
    for name in names {
        at.push(name.to_owned());
        if !modules.contains_key(&at) {
            at.pop();
            break;
        }
    }
    modules.get(&at).cloned()
}

/// Returns the files of the largest import cycle, each of which reaches all others by imports.
pub(crate) fn largest_circle(imports: &Imports) -> Vec<String> {
    let reach: BTreeMap<&String, BTreeSet<&String>> =
        imports.keys().map(|file| (file, reachable(imports, file))).collect();
    let circles = imports.keys().map(|file| {
        let others = reach[file].iter().filter(|other| reach[**other].contains(file));
        others.map(|other| (*other).clone()).collect::<Vec<String>>()
    });
    circles.max_by_key(Vec::len).unwrap_or_default()
}

fn reachable<'i>(imports: &'i Imports, from: &String) -> BTreeSet<&'i String> {
    let mut found = BTreeSet::new();
    let mut ways: Vec<&String> = imports[from].iter().collect();
    while let Some(file) = ways.pop() {
        if found.insert(file) {
            ways.extend(imports[file].iter());
        }
    }
    found
}

#[test]
fn paths_are_found_wherever_they_stand() {
    let code = "use crate::a::{self, b::{C, d}};\nfn f(x: &crate::e::G) { super::h::i() }\nuse j::K as L;\n";
    let found: Vec<String> = paths(code).iter().map(|path| path.join("::")).collect();
    for path in ["crate::a::self", "crate::a::b::C", "crate::a::b::d", "j::K", "crate::e::G", "super::h::i"] {
        assert!(found.contains(&path.to_owned()), "{path}: {found:?}");
    }
}
