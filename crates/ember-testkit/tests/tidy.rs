//! Conventions of the repository: checks that a reviewer would otherwise make by hand.

#![allow(clippy::unwrap_used, reason = "the whole file is a test")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Folders that are not checked: build output, version control, installed modules, findings of fuzzers, measured
/// figures.
const SKIPPED_FOLDERS: [&str; 8] =
    ["target", ".git", "node_modules", "__pycache__", "corpus", "artifacts", "classes", "results"];

/// The folder of a server that was started in the repository, at its root.
const DATA_FOLDER: &str = "data";

/// Files written by tools.
const GENERATED_FILES: [&str; 3] = ["Cargo.lock", "package-lock.json", "go.sum"];

/// Folders of texts written by tools, whose lines may have any length.
const GENERATED_FOLDERS: [&str; 3] = ["deploy/completions/", "deploy/licenses/", "deploy/man/"];

const LINE_CHARACTERS_MAX: usize = 125;

/// Files that may contain the word `unsafe` in code, each with its reason.
const UNSAFE_FILES: &[(&str, &str)] = &[
    ("crates/ember-core/src/entries/entry.rs", "manual layout of an entry"),
    ("crates/ember-core/src/entries/entry/editing.rs", "in-place changes of values in that layout"),
    ("crates/ember-core/src/entries/entry/moving.rs", "moves entries to other allocations"),
    ("crates/ember-core/src/memory/mod.rs", "a prefetch, and another owner of bytes behind a shared pointer"),
    (
        "crates/ember-core/src/types/sorted_set/indexed.rs",
        "the order of a sorted set points to entries that its member table owns",
    ),
    ("crates/ember-core/tests/allocations.rs", "a counting allocator"),
    ("crates/ember-lua/src/lib.rs", "calls ember's C additions to Lua"),
    ("crates/ember-scripting/src/stack.rs", "script arguments and results on Lua's stack"),
    (
        "crates/ember-server/src/system/allocator.rs",
        "maps very large allocations, collapses pages, and defines the symbol of jemalloc's options",
    ),
    ("crates/ember-server/src/system/time_slice.rs", "system calls that no library wraps"),
    ("crates/ember-storage/benches/engines.rs", "LMDB without ember, for comparison"),
    ("crates/ember-storage/src/stores/engines/lmdb.rs", "memory-mapped file"),
    ("crates/ember-vector/src/arena.rs", "views cache lines as bytes"),
    ("crates/ember-vector/src/kernels/mod.rs", "calls kernels through function pointers"),
    ("crates/ember-vector/src/kernels/neon.rs", "CPU-specific instructions"),
    ("crates/ember-vector/src/kernels/portable.rs", "the common signature of the kernels"),
    ("crates/ember-vector/src/kernels/x86.rs", "CPU-specific instructions"),
];

/// Files whose tests or tools may sleep, each with its reason.
const SLEEPING_FILES: &[(&str, &str)] = &[
    ("crates/ember-storage/src/files/lock.rs", "retries a lock that another process holds briefly"),
    ("crates/ember-cli/src/pause.rs", "`-i` is a pause between commands"),
    ("crates/ember-peers/src/walk.rs", "servers started by documents do not signal when they listen"),
    ("crates/ember-server/src/commands/server/debug/mod.rs", "DEBUG SLEEP sleeps"),
    ("crates/ember-server/src/snapshot/delay.rs", "rdb-key-save-delay and key-load-delay are delays"),
    ("crates/ember-server/src/aof/loading.rs", "other workers publish without notification"),
    ("crates/ember-server/src/aof/subscriber.rs", "DEBUG AOF-FLUSH-SLEEP sleeps"),
    ("crates/ember-server/src/aof/rewriting.rs", "other workers publish without notification"),
    ("crates/ember-server/src/system/huge_pages.rs", "the kernel does not report newly used pages"),
    ("crates/ember-testkit/src/pace.rs", "slow by design"),
    ("crates/ember-testkit/src/server.rs", "processes do not signal when they have started or stopped"),
    ("crates/ember-testkit/src/waiting.rs", "polls a condition"),
];

/// Library files that may print, each with its reason.
const PRINTING_FILES: &[(&str, &str)] = &[
    ("crates/ember-benchmark/src/lib.rs", "a command-line tool that prints its results"),
    (
        "crates/ember-benchmark/src/matrix/stores.rs",
        "reports skipped stores, and explains columns of machine-readable output",
    ),
    (
        "crates/ember-client/src/address.rs",
        "warns that a password on the command line is visible to other users",
    ),
    ("crates/ember-testkit/src/random.rs", "prints the seed for failing tests"),
    ("crates/ember-peers/src/driver.rs", "prints differences as they are found"),
];

/// Phrases that comments and documents do not use, each with a term of the glossary.
const VAGUE_PHRASES: &[(&[&str], &str)] = &[
    (&["in vain", "anew", "anyhow"], "without success, again, in any case"),
    (&["is told", "are told", "was told", "were told", "be told", "been told"], "is notified, receives"),
    (&["bystander", "bystanders", "whoever", "those who"], "other clients, a client that"),
    (&["stand still", "stands still", "standing still"], "stalls"),
    (&["go away", "goes away", "gone away", "put away", "put aside"], "is removed, is demoted, is freed"),
    (&["come back", "comes back", "came back", "coming back"], "reconnects, is fetched, is promoted"),
    (&["let go", "lets go"], "releases"),
    (&["looked at", "looks at", "look at", "looked into"], "is read, scanned, compared"),
    (&["makes room", "make room", "no room"], "headroom, budget, limit"),
    (
        &["who has", "who is", "who may", "who wants", "who reads", "who writes", "who waits"],
        "name the subject",
    ),
    (&["home worker", "home shard", "external value", "external values"], "owner, cold value"),
    (&["how late", "at the moment of"], "latency, when"),
];

struct Source {
    /// The path relative to the root of the repository, with `/`.
    path: String,
    text: String,
}

impl Source {
    fn has_extension(&self, extensions: &[&str]) -> bool {
        extensions.iter().any(|extension| self.path.ends_with(&format!(".{extension}")))
    }

    fn is_rust(&self) -> bool {
        self.has_extension(&["rs"])
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Returns all text files of the repository.
fn sources() -> Vec<Source> {
    let root = root();
    let mut sources = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        let is_root = folder == root;
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                let is_skipped = SKIPPED_FOLDERS.contains(&name.as_str()) || is_root && name == DATA_FOLDER;
                if !is_skipped {
                    folders.push(path);
                }
            } else if let Ok(text) = fs::read_to_string(&path)
                && !GENERATED_FILES.contains(&name.as_str())
                // In a linked worktree `.git` is a file.
                && name != ".git"
            {
                let path = path.strip_prefix(&root).unwrap().to_string_lossy().into_owned();
                sources.push(Source { path, text });
            }
        }
    }
    assert!(sources.len() > 10, "the repository was not found");
    sources.sort_by(|left, right| left.path.cmp(&right.path));
    sources
}

/// Runs a check on every line of the files to which it applies; `check` returns the problem of a line.
fn check_lines(applies: impl Fn(&Source) -> bool, check: impl Fn(&Source, &str) -> Option<String>) {
    let mut wrong = Vec::new();
    for source in sources().iter().filter(|source| applies(source)) {
        for (index, line) in source.text.lines().enumerate() {
            wrong.extend(check(source, line).map(|what| format!("{}:{}: {what}", source.path, index + 1)));
        }
    }
    assert_none(&wrong);
}

fn assert_none(wrong: &[String]) {
    assert!(wrong.is_empty(), "{} findings:\n{}", wrong.len(), wrong.join("\n"));
}

fn listed(list: &[(&str, &str)], path: &str) -> bool {
    list.iter().any(|(listed, _)| *listed == path)
}

/// Returns a line of Rust without its comment. (A `//` inside a string removes too much, never too little.)
fn code(line: &str) -> &str {
    line.split("//").next().unwrap_or_default()
}

/// Whether a file is a test or a tool for tests as a whole.
fn is_test(path: &str) -> bool {
    path.contains("/tests/")
        || path.ends_with("tests.rs")
        || path.ends_with("testing.rs")
        || path.contains("/benches/")
        || path.contains("/fuzz/")
}

/// Returns the part of a file before its unit tests.
fn before_tests(text: &str) -> &str {
    text.find("#[cfg(test)]\nmod ").map_or(text, |index| &text[..index])
}

/// Whether a file's first line describes the file: at least a noun phrase that ends like a sentence.
fn is_described(line: &str) -> bool {
    line.len() >= "//! GET.".len()
}

#[test]
fn every_rust_file_begins_with_a_description() {
    let wrong: Vec<String> = sources()
        .iter()
        .filter(|source| source.is_rust())
        .filter(|source| {
            !source.text.starts_with("//! ")
                || source.text.lines().next().is_some_and(|line| !is_described(line))
        })
        .map(|source| format!("{} does not begin with a //! description", source.path))
        .collect();
    assert_none(&wrong);
}

#[test]
fn every_rust_file_is_part_of_a_crate() {
    let sources = sources();
    let rust: BTreeSet<&str> =
        sources.iter().filter(|source| source.is_rust()).map(|source| source.path.as_str()).collect();
    let is_root = |path: &str| {
        let parts: Vec<&str> = path.split('/').collect();
        let Some((file, folders)) = parts.split_last() else { return false };
        let folder = folders.last().copied().unwrap_or_default();
        matches!(*file, "lib.rs" | "main.rs" if folder == "src")
            || *file == "build.rs"
            || ["bin", "benches", "examples", "tests", "fuzz_targets"].contains(&folder)
            || (*file == "main.rs"
                && folders.iter().rev().nth(1).is_some_and(|name| ["tests", "benches"].contains(name)))
    };
    let mut reached: BTreeSet<String> = BTreeSet::new();
    let mut open: Vec<String> =
        rust.iter().filter(|path| is_root(path)).map(|path| (*path).to_owned()).collect();
    while let Some(path) = open.pop() {
        if !reached.insert(path.clone()) {
            continue;
        }
        let source =
            sources.iter().find(|source| source.path == path).expect("only existing files are opened");
        for candidate in modules(source) {
            if rust.contains(candidate.as_str()) {
                open.push(candidate);
            }
        }
    }
    let wrong: Vec<String> = rust
        .iter()
        .filter(|path| !reached.contains(**path))
        .map(|path| format!("{path}: no `mod` includes this file"))
        .collect();
    assert_none(&wrong);
}

/// Returns the paths to which the `mod name;` lines of a file may refer.
fn modules(source: &Source) -> Vec<String> {
    let (folder, file) = source.path.rsplit_once('/').unwrap_or(("", &source.path));
    let stem = file.trim_end_matches(".rs");
    let mut candidates = Vec::new();
    let mut explicit: Option<String> = None;
    // The modules that an inline module declares are in a folder with its name.
    let in_place = |line: &str| Some(line.strip_suffix(" {")?.rsplit_once("mod ")?.1.to_owned());
    let in_place: Vec<String> = source.text.lines().filter_map(in_place).collect();
    for line in source.text.lines().map(str::trim) {
        if let Some(path) = line.strip_prefix("#[path = \"").and_then(|rest| rest.strip_suffix("\"]")) {
            explicit = Some(path.to_owned());
        }
        let declaration = line.strip_suffix(';').and_then(|line| line.split_once("mod "));
        let Some((visibility, name)) = declaration else { continue };
        if !(visibility.is_empty() || visibility.starts_with("pub")) {
            continue;
        }
        if let Some(path) = explicit.take() {
            candidates.push(format!("{folder}/{path}"));
            continue;
        }
        let in_place = in_place.iter().map(|module| format!("{folder}/{module}"));
        for base in [folder.to_owned(), format!("{folder}/{stem}")].into_iter().chain(in_place) {
            candidates.push(format!("{base}/{name}.rs"));
            candidates.push(format!("{base}/{name}/mod.rs"));
        }
    }
    candidates
}

#[test]
fn no_todo_is_left() {
    let words: Vec<String> = ["TO-DO", "FIX-ME", "XX-X", "to-do!(", "unimple-mented!("]
        .iter()
        .map(|word| word.replace('-', ""))
        .collect();
    check_lines(
        |source| {
            source.has_extension(&["rs", "sh", "py", "go", "js", "java", "toml"]) || source.path == "Makefile"
        },
        |_, line| {
            words.iter().find(|word| has_word(line, word)).map(|word| format!("{word} marks unfinished work"))
        },
    );
}

/// Whether a line contains `word` without a letter or digit before or after it.
fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(index, _)| {
        let before = line[..index].chars().next_back();
        let after = line[index + word.len()..].chars().next();
        let part_of_word = |letter: char| letter.is_alphanumeric() || letter == '_';
        !before.is_some_and(part_of_word) && (word.ends_with('(') || !after.is_some_and(part_of_word))
    })
}

/// Whether a line is prose: a comment, or any line of a document.
fn is_prose(source: &Source, line: &str) -> bool {
    let line = line.trim_start();
    match source.path.rsplit('.').next() {
        Some("md") => true,
        Some("rs" | "js" | "c" | "h") => line.starts_with("//") || line.starts_with("* "),
        Some("sh" | "py" | "yml" | "toml" | "conf") => line.starts_with('#'),
        _ => false,
    }
}

#[test]
fn prose_uses_the_terms_of_the_field() {
    check_lines(
        |_| true,
        |source, line| {
            if !is_prose(source, line) {
                return None;
            }
            let line = line.to_lowercase();
            let found = VAGUE_PHRASES.iter().find_map(|(phrases, better)| {
                phrases.iter().find(|phrase| has_word(&line, phrase)).map(|phrase| (phrase, better))
            });
            found.map(|(phrase, better)| format!("\"{phrase}\" is vague; better: {better}"))
        },
    );
}

#[test]
fn unwrap_is_for_tests() {
    let mut wrong = Vec::new();
    for source in sources().iter().filter(|source| source.is_rust() && !is_test(&source.path)) {
        for (index, line) in before_tests(&source.text).lines().enumerate() {
            if code(line).contains(".unwrap()") {
                wrong.push(format!(
                    "{}:{}: state the invariant with expect, or return the error",
                    source.path,
                    index + 1
                ));
            }
        }
    }
    assert_none(&wrong);
}

#[test]
fn libraries_do_not_print() {
    let sources = sources();
    let programs: Vec<String> = sources
        .iter()
        .filter_map(|source| source.path.strip_suffix("src/main.rs"))
        .map(String::from)
        .collect();
    let mut wrong = Vec::new();
    for source in sources.iter().filter(|source| source.is_rust() && source.path.contains("/src/")) {
        if is_test(&source.path) || listed(PRINTING_FILES, &source.path) {
            continue;
        }
        let in_program = programs.iter().any(|program| source.path.starts_with(program.as_str()));
        for (index, line) in before_tests(&source.text).lines().enumerate() {
            let prints = ["println!(", "eprintln!(", "print!(", "eprint!("]
                .iter()
                .any(|call| has_word(code(line), call));
            if has_word(code(line), "dbg!(") || (prints && !in_program) {
                wrong.push(format!("{}:{}: libraries must not print", source.path, index + 1));
            }
        }
    }
    assert_none(&wrong);
}

#[test]
fn no_code_sleeps_as_synchronization() {
    check_lines(
        |source| {
            source.is_rust()
                && !listed(SLEEPING_FILES, &source.path)
                && source.path != "crates/ember-testkit/tests/tidy.rs"
        },
        |_, line| {
            code(line).contains("thread::sleep").then(|| "wait for the event instead of sleeping".to_owned())
        },
    );
}

#[test]
fn unsafe_code_is_only_where_it_is_listed() {
    let this_file = "crates/ember-testkit/tests/tidy.rs";
    check_lines(
        |source| source.is_rust() && source.path != this_file && !listed(UNSAFE_FILES, &source.path),
        |_, line| {
            let outside_strings = code(line).split('"').step_by(2).collect::<String>();
            has_word(&outside_strings, "unsafe")
                .then(|| "unsafe code outside the files listed in tidy.rs".to_owned())
        },
    );
}

#[test]
fn the_lists_of_this_test_name_existing_files() {
    let wrong: Vec<String> = [UNSAFE_FILES, SLEEPING_FILES, PRINTING_FILES]
        .concat()
        .iter()
        .filter(|(path, reason)| !root().join(path).is_file() || reason.is_empty())
        .map(|(path, _)| format!("{path} is listed without a reason, or does not exist"))
        .collect();
    assert_none(&wrong);
}

#[test]
fn no_path_of_a_personal_machine_is_in_the_tree() {
    let prefixes = ["/ho-me/", "/ro-ot/", "/wo-rk/", "/Us-ers/"].map(|prefix| prefix.replace('-', ""));
    check_lines(
        |_| true,
        |_, line| {
            let found = prefixes.iter().find(|prefix| {
                line.match_indices(prefix.as_str()).any(|(index, _)| {
                    !line[..index]
                        .ends_with(|letter: char| letter.is_alphanumeric() || "_-.}".contains(letter))
                })
            });
            found.map(|prefix| format!("{prefix}… is a path of one machine"))
        },
    );
}

/// Whether a document describes the code, and thus names its files and methods.
fn describes_code(path: &str) -> bool {
    path == "ARCHITECTURE.md" || path.starts_with("docs/internals/") || path.starts_with("docs/decisions/")
}

/// Returns the texts between backticks in a document, excluding its code blocks.
fn quoted(text: &str) -> Vec<&str> {
    let prose = text.split("```").step_by(2);
    prose.flat_map(|part| part.split('`').skip(1).step_by(2)).collect()
}

/// Whether a text in backticks is the path of a file or folder of the repository: `keyspace/shard.rs`, `commands/`.
fn is_path(text: &str) -> bool {
    let in_path = |letter: char| letter.is_ascii_alphanumeric() || "_-./".contains(letter);
    let is_file =
        [".rs", ".md", ".toml", ".sh", ".py", ".lua", ".site"].iter().any(|end| text.ends_with(end));
    (is_file || text.ends_with('/')) && !text.starts_with('.') && text.chars().all(in_path)
}

/// Splits a text in backticks of the form `Type::member`.
fn member(text: &str) -> Option<(&str, &str)> {
    let (kind, member) = text.split_once("::")?;
    let is_name =
        |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    (kind.starts_with(|c: char| c.is_ascii_uppercase()) && is_name(kind) && is_name(member))
        .then_some((kind, member))
}

#[test]
fn documents_of_the_code_name_existing_files_and_members() {
    let sources = sources();
    let has_path = |name: &str| {
        let inner = format!("/{name}");
        sources.iter().any(|source| {
            let path = format!("/{}", source.path);
            if name.ends_with('/') { path.contains(&inner) } else { path.ends_with(&inner) }
        })
    };
    let rust = || sources.iter().filter(|source| source.is_rust() && !is_test(&source.path));
    let has_member = |kind: &str, member: &str| {
        let declares = |line: &str| {
            ["struct", "enum", "trait", "type"].iter().any(|word| has_word(line, word))
                && has_word(line, kind)
        };
        rust().any(|source| source.text.lines().any(declares))
            && rust().any(|source| source.text.lines().any(|line| has_word(code(line), member)))
    };
    let documents = sources.iter().filter(|source| describes_code(&source.path));
    let mut wrong = Vec::new();
    let mut names = 0;
    for document in documents {
        for text in quoted(&document.text) {
            let exists = match member(text) {
                Some((kind, member)) => has_member(kind, member),
                None if is_path(text) => has_path(text),
                None => continue,
            };
            names += 1;
            if !exists {
                wrong.push(format!("{}: `{text}` does not exist", document.path));
            }
        }
    }
    assert!(names > 100, "only {names} names found in the internal documents");
    assert_none(&wrong);
}

/// The maximum size of ARCHITECTURE.md in bytes, so that it can be read in a quarter of an hour; longer texts belong in
/// `docs/internals` or `docs/decisions`.
const ARCHITECTURE_BYTES_MAX: usize = 16 << 10;

#[test]
fn the_architecture_is_a_map() {
    let bytes = fs::metadata(root().join("ARCHITECTURE.md")).unwrap().len();
    assert!(bytes <= ARCHITECTURE_BYTES_MAX as u64, "ARCHITECTURE.md has {bytes} bytes");
}

#[test]
fn lines_are_short_and_end_cleanly() {
    check_lines(
        |source| source.path != "LICENSE",
        |source, line| {
            let tabs_belong = source.has_extension(&["go", "mod"]) || source.path.ends_with("Makefile");
            let is_generated = GENERATED_FOLDERS.iter().any(|folder| source.path.starts_with(folder));
            let may_be_long = is_generated || source.has_extension(&["svg", "json", "xml"])
                // Lines with long strings are allowed.
                || (source.is_rust() && line.contains('"'))
                || (source.has_extension(&["md"]) && (line.starts_with('|') || line.contains("://")));
            if line.ends_with([' ', '\t']) {
                Some("trailing white space".to_owned())
            } else if line.contains('\t') && !tabs_belong {
                Some("a tab".to_owned())
            } else if line.contains('\r') {
                Some("a carriage return".to_owned())
            } else if line.chars().count() > LINE_CHARACTERS_MAX && !may_be_long {
                Some(format!("{} characters, the limit is {LINE_CHARACTERS_MAX}", line.chars().count()))
            } else {
                None
            }
        },
    );
    let wrong: Vec<String> = sources()
        .iter()
        .filter(|source| {
            !source.text.is_empty() && (!source.text.ends_with('\n') || source.text.ends_with("\n\n"))
        })
        .map(|source| format!("{}: a file must end with exactly one newline", source.path))
        .collect();
    assert_none(&wrong);
}

#[test]
fn links_between_documents_resolve() {
    let root = root();
    let mut wrong = Vec::new();
    for source in sources().iter().filter(|source| source.has_extension(&["md"])) {
        let folder = root.join(&source.path).parent().unwrap().to_owned();
        for (index, line) in source.text.lines().enumerate() {
            for link in line.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
                let path = link.split(['#', ' ']).next().unwrap_or_default();
                let elsewhere = path.contains("://") || path.starts_with("mailto:") || path.is_empty();
                if !elsewhere && !folder.join(path).exists() {
                    wrong.push(format!("{}:{}: {path} does not exist", source.path, index + 1));
                }
            }
        }
    }
    assert_none(&wrong);
}

#[test]
fn every_page_is_in_the_list_of_pages() {
    let sources = sources();
    let is_page =
        |path: &&str| path.starts_with("docs/") && path.ends_with(".md") && *path != "docs/README.md";
    let mut wrong = Vec::new();
    for page in sources.iter().map(|source| source.path.as_str()).filter(is_page) {
        // A folder with its own list lists its pages; that list is a page of docs/README.md.
        let folder = page.rsplit_once('/').map_or("", |(folder, _)| folder);
        let own = format!("{folder}/README.md");
        let has_own = page != own && sources.iter().any(|source| source.path == own);
        let (list, base) = if has_own { (own.as_str(), folder) } else { ("docs/README.md", "docs") };
        let text = &sources.iter().find(|source| source.path == list).expect("the list is a page").text;
        let name =
            page.strip_prefix(base).expect("a page is in the folder of its list").trim_start_matches('/');
        if !text.contains(&format!("\n| [{name}]({name}) | ")) {
            wrong.push(format!("{page} has no line in {list}"));
        }
    }
    assert_none(&wrong);
}

#[test]
fn the_changelog_has_its_shape() {
    const SECTIONS: [&str; 6] = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"];
    let text = fs::read_to_string(root().join("CHANGELOG.md")).unwrap();
    let mut wrong = Vec::new();
    let mut versions = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        if let Some(section) = line.strip_prefix("### ") {
            if !SECTIONS.contains(&section) {
                wrong.push(format!("line {number}: {section} is not one of {SECTIONS:?}"));
            }
            if versions.is_empty() {
                wrong.push(format!("line {number}: section before the first version"));
            }
        } else if let Some(version) = line.strip_prefix("## ") {
            versions.push(version.to_owned());
        } else if line.starts_with('*') {
            wrong.push(format!("line {number}: entries must begin with a dash"));
        }
    }
    if !text.starts_with("# Changelog\n") {
        wrong.push("the file must begin with `# Changelog`".to_owned());
    }
    if versions.first().is_none_or(|version| version != "Unreleased") {
        wrong.push("the first version must be Unreleased".to_owned());
    }
    assert_none(&wrong);
}

#[test]
fn shell_scripts_stop_at_the_first_failure() {
    let wrong: Vec<String> = sources()
        .iter()
        .filter(|source| source.has_extension(&["sh"]) || source.text.starts_with("#!/usr/bin/env bash"))
        .filter(|source| {
            !source.path.ends_with("common.sh") && !source.text.contains("\nset -euo pipefail\n")
        })
        .map(|source| format!("{}: must begin with set -euo pipefail", source.path))
        .collect();
    assert_none(&wrong);
}
