//! A new store imports the persistence files in its directory, atomically.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ember_persistence::encryption::Encryption;
use ember_persistence::files::{Disk, OsDisk};
use ember_storage::stores::{Import, Store, StoreOptions};
use ember_testkit::{RawClient, Server, Value};

use crate::disk_stores::{ENGINES, PATH, checkpoint, copy, figure, increments, run, start};
use crate::{Directory, MODES, digest, fill, program, refusal, start_in};

const LIBRARY: &str = "#!lua name=lib\nredis.register_function('one', function() return 1 end)";

/// Starts a server without a store, whose files are in the directory of the future store.
fn plain(directory: &Path, more: &[&str]) -> Server {
    fs::create_dir_all(directory.join(PATH)).unwrap();
    start_in(directory, &[&["--dir", PATH, "--enable-debug-command", "yes"], more].concat())
}

/// Writes data of all types, some of it after `between`.
fn fill_around(client: &mut RawClient, between: impl FnOnce(&mut RawClient)) {
    fill(client);
    assert!(!client.command(&["FUNCTION", "LOAD", LIBRARY]).is_error());
    client.run("SWAPDB 3 7");
    client.run("SET gone 1");
    client.run(&format!("SET large {}", "v".repeat(3 << 20)));
    between(client);
    for line in ["DEL gone", "APPEND text more", "SELECT 9", "SET nine 9", "SWAPDB 9 2", "SELECT 0"] {
        assert!(!client.run(line).is_error(), "{line}");
    }
}

#[test]
fn a_new_store_imports_existing_files() {
    for (engine, mode) in ENGINES.into_iter().zip([MODES[0], MODES[1], MODES[0]]) {
        for source in ["RDB", "AOF", "single file"] {
            let directory = Directory::new("import");
            let data = directory.0.join(PATH);
            let appendonly = if source == "RDB" { "no" } else { "yes" };
            let server = plain(&directory.0, &["--appendonly", appendonly]);
            let mut client = server.client();
            fill_around(&mut client, |client| {
                if source != "RDB" {
                    checkpoint(client);
                }
            });
            if source != "AOF" {
                assert_eq!(run(&mut client, "SAVE"), "OK");
            }
            let mut before = digest(&mut client);
            let size = run(&mut client, "DBSIZE");
            drop(server.crash());
            let rdb = data.join("dump.rdb");
            if source == "single file" {
                // The AOF is a single file with an RDB preamble, as in Redis before 7.
                fs::remove_dir_all(data.join("appendonlydir")).unwrap();
                fs::rename(&rdb, data.join("appendonly.aof")).unwrap();
            }
            for round in 0..3 {
                let server = start(&directory.0, mode, engine, &[]);
                let mut client = server.client();
                assert_eq!(digest(&mut client), before, "{engine} from {source}, start {round}");
                assert_eq!(run(&mut client, "DBSIZE"), size);
                assert_eq!(run(&mut client, "FCALL one 0"), "(integer) 1");
                if round == 0 {
                    assert!(server.log().contains("imported all "), "{}", server.log());
                    assert_eq!(increments(&directory.0).len(), 1);
                    assert_eq!(rdb.exists(), source == "RDB", "such a file stays");
                    let names: Vec<_> = fs::read_dir(data.join("appendonlydir")).unwrap().collect();
                    let is_base = |name: &Result<fs::DirEntry, _>| {
                        name.as_ref().unwrap().file_name().to_string_lossy().contains(".base.")
                    };
                    assert!(!names.iter().any(is_base), "{names:?}");
                } else {
                    assert!(!server.log().contains("imported all "), "the store has data of its own");
                }
                client.run("APPEND text again");
                if round == 1 {
                    checkpoint(&mut client);
                }
                before = digest(&mut client);
                drop(server.crash());
            }
        }
    }
}

#[test]
fn imported_data_may_be_larger_than_memory() {
    let limit = 12 << 20;
    for (engine, source) in [("redb", "AOF"), ("lmdb", "RDB"), ("fjall", "RDB"), ("redb", "RDB")] {
        let directory = Directory::new("import-large");
        let appendonly = if source == "RDB" { "no" } else { "yes" };
        let server = plain(&directory.0, &["--appendonly", appendonly, "--appendfsync", "no"]);
        let mut client = server.client();
        let mut pipeline = Vec::new();
        for number in 0..9000 {
            let (key, value) = (format!("key:{number}"), format!("{number}:").repeat(800));
            pipeline.push(vec!["SET".to_owned(), key, value]);
        }
        for line in &pipeline {
            client.command(&line.iter().map(String::as_str).collect::<Vec<_>>());
        }
        if source == "RDB" {
            assert_eq!(run(&mut client, "SAVE"), "OK");
        } else {
            checkpoint(&mut client);
            for line in pipeline.iter().step_by(7) {
                client.command(&["APPEND", &line[1], "more"]);
            }
        }
        let before = digest(&mut client);
        drop(server.crash());
        let server = start(&directory.0, MODES[0], engine, &["--maxmemory", "12mb"]);
        let mut client = server.client();
        assert!(client.info_number("used_memory_dataset") < limit * 5 / 4, "{engine} from {source}");
        assert!(figure(&mut client, "cold_keys") > 4000);
        assert!(server.log().matches("imported all ").count() == 1);
        assert_eq!(digest(&mut client), before, "{engine} from {source}");
    }
}

#[test]
fn a_killed_import_is_absent_or_complete() {
    for engine in ENGINES {
        for source in ["RDB", "AOF"] {
            let origin = Directory::new("import-origin");
            let appendonly = if source == "RDB" { "no" } else { "yes" };
            let server = plain(&origin.0, &["--appendonly", appendonly, "--appendfsync", "no"]);
            let mut client = server.client();
            for number in 0..400 {
                client.command(&["SET", &format!("key:{number}"), &format!("{number}:").repeat(3000)]);
            }
            if source == "AOF" {
                checkpoint(&mut client);
                client.run("APPEND key:1 more");
            } else {
                assert_eq!(run(&mut client, "SAVE"), "OK");
            }
            let before = digest(&mut client);
            drop(server.crash());
            // The delays before a kill increase, so that all attempts together take several times as long as one import
            // on any machine. If no server was killed during an import, the test is repeated with a different first
            // delay.
            for first_ms in 2.. {
                let directory = Directory::new("import-killed");
                copy(&origin.0.join(PATH), &directory.0.join(PATH));
                let not_there = kill_imports(&directory.0, engine, Duration::from_millis(first_ms), &before);
                let server = start(&directory.0, MODES[1], engine, &[]);
                assert_eq!(digest(&mut server.client()), before, "{engine} from {source}");
                if not_there > 0 {
                    break;
                }
                assert!(first_ms < 50, "{engine} from {source}: no import was under way");
            }
        }
    }
}

/// Starts servers that import the data of a directory, and kills each after a longer time than the one before, until
/// all data is imported. Returns the number of servers that were killed during the import.
fn kill_imports(directory: &Path, engine: &str, first: Duration, before: &Value) -> u32 {
    // The limit causes checkpoints in between.
    let arguments = ["--store", engine, "--path", PATH, "--maxmemory", "3mb"];
    let mut not_there = 0;
    let mut pause = first;
    loop {
        let log = directory.join("log");
        let mut command = Command::new(program());
        let command = command.args(["--port", "0", "--unixsocket", "s"]).args(arguments);
        let command = command.current_dir(directory).stdin(Stdio::null());
        let said = fs::File::create(&log).unwrap();
        let mut server = command.stdout(said.try_clone().unwrap()).stderr(said).spawn().unwrap();
        let mut is_over = imports_within(&log, pause);
        server.kill().unwrap();
        server.wait().unwrap();
        let _ = fs::remove_file(directory.join(PATH).join("s"));
        let bare = directory.join("bare");
        copy(&directory.join(PATH), &bare);
        match import_of(engine, &bare) {
            None => {}
            Some(Import::UnderWay) => {
                not_there += 1;
                // A store with an incomplete import is not accepted as the data set without the files that the import
                // reads.
                let _ = fs::remove_file(bare.join("dump.rdb"));
                let _ = fs::remove_dir_all(bare.join("appendonlydir"));
                let said = refusal(directory, &["--store", engine, "--path", "bare"], None);
                assert!(said.contains("was interrupted"), "{said}");
            }
            Some(Import::Done | Import::None) => {
                // The server may have been killed before it logged the end of the import; later servers then have
                // nothing to import.
                is_over = true;
                let _ = fs::remove_file(bare.join("dump.rdb"));
                let more = ["--store", engine, "--path", "bare", "--enable-debug-command", "yes"];
                let server = start_in(directory, &more);
                assert_eq!(&digest(&mut server.client()), before, "{engine}");
            }
        }
        fs::remove_dir_all(&bare).unwrap();
        if is_over {
            return not_there;
        }
        pause = pause * 3 / 2;
    }
}

/// Whether a server's log reports the end of an import within `time`.
fn imports_within(log: &Path, time: Duration) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < time {
        if fs::read_to_string(log).unwrap().contains("imported all ") {
            return true;
        }
        std::thread::yield_now();
    }
    false
}

/// Returns the progress of the import that a store has recorded; `None` if it has recorded none yet.
fn import_of(engine: &str, data: &Path) -> Option<Import> {
    let disk: Arc<dyn Disk> = Arc::new(OsDisk);
    let kind = Store::find(disk.as_ref(), data)?;
    assert_eq!(kind.name(), engine);
    let options =
        StoreOptions { cache_bytes: 1 << 20, write_buffer_bytes: 1 << 20, encryption: Encryption::off() };
    Some(Store::open(kind, &disk, data, &options).unwrap().position()?.import)
}
