//! The examples of README.md and docs/ are correct: sessions are run and their replies compared, and the programs of
//! shell commands exist.

#![allow(clippy::unwrap_used, reason = "the whole file is a test")]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use ember_testkit::{Block, Server, code_blocks, run_session, session_exchanges, split_arguments};
use emberkv_core::call::{DataCommand, Run};
use emberkv_core::commands::FAMILIES;

/// Words with which a shell command in a document may begin, in addition to the repository's scripts and the server.
const PROGRAMS: [&str; 14] = [
    "cargo",
    "make",
    "cd",
    "git",
    "docker",
    "man",
    "redis-cli",
    "redis-benchmark",
    "ember-cli",
    "head",
    "printf",
    "chmod",
    "pip",
    "python3",
];

/// Documents that `crates/ember-peers/tests/walks` runs from the first line to the last: their commands depend on the
/// results of earlier commands.
const WALKED: [&str; 3] = ["docs/getting-started.md", "docs/migration.md", "docs/tls.md"];

/// The key file that flags in documents may name, in the directory where the server is started, and its only key.
const KEY_FILE: (&str, &str) = ("keys", "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f");

/// Flags that would change the address or the directory of the server; they are omitted with their values.
const PLACE_FLAGS: [&str; 7] =
    ["--port", "-p", "--bind", "--host", "--unixsocket", "--dir", "--metrics-port"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn server_program() -> PathBuf {
    std::env::var_os("EMBER_SERVER").map_or_else(|| env!("CARGO_BIN_EXE_ember-server").into(), PathBuf::from)
}

/// Returns the code blocks in one language of all user documents except [`WALKED`], with the paths of the documents.
fn blocks(language: &str) -> Vec<(String, Vec<Block>)> {
    let mut paths: Vec<PathBuf> = fs::read_dir(root())
        .unwrap()
        .chain(fs::read_dir(root().join("docs")).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    paths.sort();
    paths.retain(|path| !WALKED.iter().any(|walked| path.ends_with(walked)));
    let of = |path: &PathBuf| {
        let text = fs::read_to_string(path).unwrap();
        let blocks = code_blocks(&text).into_iter().filter(|block| block.language == language).collect();
        (path.strip_prefix(root()).unwrap().to_string_lossy().into_owned(), blocks)
    };
    paths.iter().map(of).collect()
}

#[test]
fn sessions_in_documents_print_the_output_shown() {
    let mut differences = Vec::new();
    let mut commands = 0;
    for (path, blocks) in blocks("session") {
        if blocks.is_empty() {
            continue;
        }
        // The sessions of a document build on each other: they use one server, in order, each on a separate connection,
        // until a session requires a server with other arguments.
        // On a busy machine any command may be slow, and the sessions show an empty slow log.
        let mut server = Server::start(server_program(), &["--save", "", "--slowlog-log-slower-than", "-1"]);
        for block in blocks {
            if !block.arguments.is_empty() {
                server = Server::builder(server_program()).arguments(&block.arguments).start();
            }
            let exchanges = session_exchanges(&block);
            assert!(!exchanges.is_empty(), "{path} line {}: a session without a prompt", block.line);
            commands += exchanges.len();
            let found = run_session(&mut server.client(), &exchanges);
            differences.extend(found.iter().map(|difference| format!("{path}, {difference}")));
        }
    }
    assert!(commands >= 20, "only {commands} commands found in the documents");
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn shell_commands_in_documents_exist() {
    let makefile = fs::read_to_string(root().join("Makefile")).unwrap();
    let mut wrong = Vec::new();
    for (path, blocks) in blocks("sh") {
        for block in blocks {
            for (index, line) in block.text.lines().enumerate() {
                if let Err(what) = check_shell_line(line, &makefile) {
                    wrong.push(format!("{path} line {}: {line}: {what}", block.line + index));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn check_shell_line(line: &str, makefile: &str) -> Result<(), String> {
    let line = line.split(" #").next().unwrap_or_default();
    let words = split_arguments(line).ok_or("an open quote")?;
    let words: Vec<String> =
        words.into_iter().map(|word| String::from_utf8_lossy(&word).into_owned()).collect();
    let is_assignment = |word: &String| {
        word.split('=').next().is_some_and(|name| name != word && name == name.to_uppercase())
    };
    let words: Vec<&str> = words.iter().skip_while(|word| is_assignment(word)).map(String::as_str).collect();
    let Some((program, arguments)) = words.split_first() else { return Ok(()) };
    match *program {
        "make" => {
            let targets = arguments.iter().filter(|argument| !argument.contains('='));
            let missing = targets
                .filter(|target| !makefile.lines().any(|line| line.starts_with(&format!("{target}:"))));
            none(&missing.collect::<Vec<_>>(), "no such target of the Makefile")
        }
        "cargo" => {
            let packages = arguments.windows(2).filter(|pair| pair[0] == "-p").map(|pair| pair[1]);
            let missing = packages.filter(|package| !is_package(package));
            none(&missing.collect::<Vec<_>>(), "no such package")?;
            let paths = arguments.windows(2).filter(|pair| pair[0] == "--path").map(|pair| pair[1]);
            let missing = paths.filter(|path| !root().join(path).join("src/main.rs").is_file());
            none(&missing.collect::<Vec<_>>(), "no such program")
        }
        "./target/release/ember-cli" => Ok(()),
        program if program.ends_with("ember-server") => check_server_starts(arguments),
        program
            if program.starts_with("bench/")
                || program.starts_with("scripts/")
                || program.starts_with(".ci/") =>
        {
            if root().join(program).is_file() {
                Ok(())
            } else {
                Err("no such script".to_owned())
            }
        }
        program if PROGRAMS.contains(&program) => Ok(()),
        program => Err(format!("{program} is not a program documents use")),
    }
}

fn none(missing: &[impl std::fmt::Debug], what: &str) -> Result<(), String> {
    if missing.is_empty() { Ok(()) } else { Err(format!("{what}: {missing:?}")) }
}

fn is_package(name: &str) -> bool {
    let manifests =
        fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path().join("Cargo.toml"));
    let wanted = format!("name = \"{name}\"");
    manifests
        .filter_map(|path| fs::read_to_string(path).ok())
        .any(|text| text.lines().any(|line| line == wanted))
}

/// Starts the server with flags from a document, at an address and in a directory chosen by the test; the server must
/// reply.
fn check_server_starts(arguments: &[&str]) -> Result<(), String> {
    if arguments.contains(&"--help") || arguments.contains(&"--version") {
        return Ok(());
    }
    let mut kept = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if PLACE_FLAGS.contains(argument) {
            rest.next().ok_or_else(|| format!("{argument} without a value"))?;
        } else {
            // The server of the test does not run in the folder in which the reader's server runs.
            let path = root().join(argument);
            kept.push(if path.is_file() { path.display().to_string() } else { (*argument).to_owned() });
        }
    }
    let kept: Vec<&str> = kept.iter().map(String::as_str).collect();
    let directory = std::env::temp_dir().join(format!("ember-documents-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let (name, key) = KEY_FILE;
    fs::write(directory.join(name), key).unwrap();
    fs::set_permissions(directory.join(name), Permissions::from_mode(0o600)).unwrap();
    let started = std::panic::catch_unwind(|| {
        Server::builder(server_program()).arguments(&kept).directory(&directory).start()
    });
    let result = started.map(drop).map_err(|_| "it does not start".to_owned());
    fs::remove_dir_all(&directory).unwrap();
    result
}

/// Returns the names of all data commands, with the way in which each runs; names of subcommands include the
/// container's name.
fn data_commands() -> Vec<(String, Run)> {
    let mut all = Vec::new();
    for command in FAMILIES.iter().copied().flatten().copied().flatten() {
        let name = command.spec.name.to_uppercase();
        all.push((name.clone(), command.run));
        let subcommand = |it: &DataCommand| (format!("{name} {}", it.spec.name.to_uppercase()), it.run);
        all.extend(command.subcommands.iter().map(subcommand));
    }
    all
}

/// Returns the rows, as cells, of the table whose header begins with these words.
fn table_rows(text: &str, head: &str) -> Vec<Vec<String>> {
    let lines = text.lines().skip_while(|line| !line.starts_with(head)).skip(2);
    let rows = lines.take_while(|line| line.starts_with('|'));
    rows.map(|row| row.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect()).collect()
}

/// Returns the words in backticks in a cell.
fn names_in(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn the_table_of_long_commands_is_complete_and_gives_reasons() {
    let text = fs::read_to_string(root().join("docs/execution-modes.md")).unwrap();
    let commands = data_commands();
    let run_of = |name: &str| commands.iter().find(|(known, _)| known == name).map(|(_, run)| *run);
    let mut listed = Vec::new();
    for row in table_rows(&text, "| commands | counted |") {
        assert!(row.len() == 2 && !row[1].is_empty(), "{row:?}");
        for name in names_in(&row[0]) {
            let run = run_of(&name).unwrap_or_else(|| panic!("{name} is no command on data"));
            assert!(run.may_be_long(), "{name} always runs on its worker");
            listed.push(name);
        }
    }
    for (name, run) in &commands {
        // Blocking commands need not be in the table of long-running commands.
        let is_long = run.may_be_long() && !matches!(run, Run::Blocking(_));
        assert!(!is_long || listed.contains(name), "{name} may run on a thread, and is not in the table");
    }
    let reasons = table_rows(&text, "| commands | reason |");
    assert!(reasons.len() >= 4, "{reasons:?}");
    for row in reasons {
        assert!(row.len() == 2 && row[1].ends_with('.'), "{row:?}");
        assert!(!names_in(&row[0]).is_empty(), "{row:?}");
    }
}
