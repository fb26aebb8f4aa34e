//! Runs every command line of ember-cli that docs/cli.md, docs/append-only-file.md and docs/benchmark-tool.md show, in
//! order, with a server and with the files that they name.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::thread;

use ember_persistence::aof::AofDirectory;
use ember_persistence::encryption::Encryption;
use ember_persistence::files::{Disk, OsDisk};
use ember_persistence::rdb_file::FILE_VERSION;
use ember_testkit::{Server, code_blocks, find_ember_server};

#[path = "../../ember-persistence/tests/support/mod.rs"]
mod support;

use support::{begin_aof, sample, save};

/// The files that the document names.
fn prepare(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    let disk: Arc<dyn Disk> = Arc::new(OsDisk);
    let local = sample(false);
    save(&local, &disk, &folder.join("dump.rdb"), FILE_VERSION);
    let directory = folder.join("appendonlydir");
    let mut aof = AofDirectory::open(&disk, &directory, "appendonly.aof", &Encryption::off()).unwrap();
    begin_aof(&mut aof, &local);
    let keys = folder.join("keys");
    fs::write(&keys, "42".repeat(32)).unwrap();
    fs::set_permissions(&keys, fs::Permissions::from_mode(0o600)).unwrap();
}

/// Runs the command lines of a document in a separate folder, in order, `together` at a time; returns their number.
fn run_document(name: &str, together: usize) -> usize {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    let document = fs::read_to_string(document).unwrap();
    let folder = std::env::temp_dir().join(format!("ember-cli-{name}-{}", std::process::id()));
    prepare(&folder);
    let program = PathBuf::from(env!("CARGO_BIN_EXE_ember-cli"));
    let server = Server::start(find_ember_server(), &["--save", "", "--maxmemory-policy", "allkeys-lfu"]);
    let other = Server::start(find_ember_server(), &[]);
    // The servers of the document are at other ports in this test.
    let script = format!(
        "#!/bin/sh\ncase $1 in check|repair|convert|restore) exec {0} \"$@\";; \
         benchmark) shift; exec {0} benchmark -p {1} \"$@\";; esac\nexec {0} -p {1} \"$@\"\n",
        program.display(),
        server.port()
    );
    let programs = folder.join("programs");
    fs::create_dir_all(&programs).unwrap();
    fs::write(programs.join("ember-cli"), script).unwrap();
    fs::set_permissions(programs.join("ember-cli"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let blocks = code_blocks(&document);
    let lines = blocks.iter().filter(|block| block.language == "sh").flat_map(|block| block.text.lines());
    let lines: Vec<&str> = lines.filter(|line| line.contains("ember-cli ")).collect();
    let run = |line: &str| {
        let line = line.replace("127.0.0.1:6379", &server.address().to_string());
        let line = line.replace("127.0.0.1:6380", &other.address().to_string());
        let mut command = Command::new("sh");
        let output = command.args(["-c", &line]).current_dir(&folder).env("PATH", &path).output().unwrap();
        assert!(output.status.success(), "{line}: {output:?}");
    };
    for chunk in lines.chunks(together) {
        thread::scope(|scope| chunk.iter().for_each(|line| _ = scope.spawn(|| run(line))));
    }
    fs::remove_dir_all(&folder).unwrap();
    lines.len()
}

#[test]
fn the_command_lines_of_the_command_line_work() {
    assert!(run_document("cli.md", 1) >= 16);
}

#[test]
fn the_command_lines_for_the_append_only_file_work() {
    assert!(run_document("append-only-file.md", 1) >= 2);
}

#[test]
fn the_command_lines_of_the_benchmark_work() {
    // No command line depends on the results of another.
    assert!(run_document("benchmark-tool.md", 3) >= 10);
}
