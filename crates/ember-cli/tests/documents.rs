//! Every command line that docs/cli.md shows is run, in order, beside a server and with the files it names.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use ember_persistence::aof::AofDirectory;
use ember_persistence::encryption::Encryption;
use ember_persistence::files::{Disk, OsDisk};
use ember_persistence::rdb_file::FILE_VERSION;
use ember_testkit::code_blocks;

#[path = "../../ember-persistence/tests/support/mod.rs"]
mod support;

use support::{sample, save, write_keys};

/// The files that the document speaks of.
fn prepare(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    let disk: Arc<dyn Disk> = Arc::new(OsDisk);
    let local = sample(false);
    save(&local, &disk, &folder.join("dump.rdb"), FILE_VERSION);
    let directory = folder.join("appendonlydir");
    let mut aof = AofDirectory::open(&disk, &directory, "appendonly.aof", &Encryption::off()).unwrap();
    let (_writer, rewrite) = aof.begin_anew().unwrap();
    let base = aof.begin_base().unwrap();
    aof.write_base(&base, true, |writer| write_keys(&local, writer)).unwrap();
    aof.finish_rewrite(rewrite, base).unwrap();
    fs::write(folder.join("keys"), "42".repeat(32)).unwrap();
}

fn document() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cli.md");
    fs::read_to_string(path).unwrap()
}

#[test]
fn the_command_lines_of_the_document_work() {
    let folder = std::env::temp_dir().join(format!("ember-cli-documents-{}", std::process::id()));
    prepare(&folder);
    let program = PathBuf::from(env!("CARGO_BIN_EXE_ember-cli"));
    let programs = program.parent().unwrap().display().to_string();
    let path = format!("{programs}:{}", std::env::var("PATH").unwrap());
    let mut count = 0;
    for block in code_blocks(&document()).iter().filter(|block| block.language == "sh") {
        for line in block.text.lines().filter(|line| line.contains("ember-cli ")) {
            let output = Command::new("sh")
                .args(["-c", line])
                .current_dir(&folder)
                .env("PATH", &path)
                .output()
                .unwrap();
            assert!(output.status.success(), "{line}: {output:?}");
            count += 1;
        }
    }
    assert!(count >= 7, "{count} command lines");
    fs::remove_dir_all(&folder).unwrap();
}
