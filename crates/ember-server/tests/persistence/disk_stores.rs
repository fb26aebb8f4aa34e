//! Stores of files: the data set is in an engine's files and in a log of the changes since the last checkpoint, and
//! memory is a cache.

use std::fs;
use std::path::Path;

use ember_testkit::{RawClient, Server, Value, wait_until};

use crate::{Directory, MODES, digest, fill, refusal, start_in};

pub(super) const ENGINES: [&str; 3] = ["redb", "lmdb", "fjall"];

/// The directory of the store in the server's directory.
pub(super) const PATH: &str = "data";

pub(super) fn start(directory: &Path, mode: &[&str], store: &str, more: &[&str]) -> Server {
    let named = ["--store", store, "--path", PATH, "--enable-debug-command", "yes"];
    start_in(directory, &[mode, &named, more].concat())
}

/// Writes a checkpoint of everything to the store.
pub(super) fn checkpoint(client: &mut RawClient) {
    // The server writes checkpoints of its own, too.
    wait_until("a checkpoint can begin", || !client.run("BGREWRITEAOF").is_error());
    wait_until("the checkpoint has ended", || client.info("aof_rewrite_in_progress") == "0");
    assert_eq!(client.info("aof_last_bgrewrite_status"), "ok");
}

pub(super) fn run(client: &mut RawClient, line: &str) -> String {
    ember_testkit::render(&client.run(line)).trim_end().to_owned()
}

pub(super) fn figure(client: &mut RawClient, name: &str) -> u64 {
    let text = client.run("INFO tiers").text();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("tier_{name}:")));
    line.unwrap_or_else(|| panic!("{name} in {text}")).trim().parse().unwrap()
}

/// Returns the increments of the log.
pub(super) fn increments(directory: &Path) -> Vec<String> {
    let folder = directory.join(PATH).join("appendonlydir");
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".incr.aof")).collect();
    names.sort();
    names
}

#[test]
fn acknowledged_writes_survive_in_a_store_after_every_kind_of_change() {
    for engine in ENGINES {
        for mode in MODES {
            let directory = Directory::new("disk-store");
            let mut server = start(&directory.0, mode, engine, &[]);
            let mut client = server.client();
            assert_eq!(client.info("ember_store"), engine);
            fill(&mut client);
            let library = "#!lua name=lib\nredis.register_function('one', function() return 1 end)";
            assert!(!client.command(&["FUNCTION", "LOAD", library]).is_error());
            let mut before = digest(&mut client);
            // The rounds: the store contains no data, all data, or some data, with changes of every kind since the
            // checkpoint.
            let rounds: [&[&str]; 6] = [
                &[],
                &["checkpoint"],
                &["EXPIRE text 100000", "PERSIST number", "DEL set", "HSET hash f 2", "RENAME list queue"],
                &["checkpoint", "SWAPDB 0 3", "SET zero 0", "RPUSH queue 1"],
                &[
                    "checkpoint",
                    "SELECT 3",
                    "EXPIRE text 200000",
                    "COPY zset zset2",
                    "SELECT 5",
                    "SET five 5",
                ],
                &[
                    "checkpoint",
                    "SELECT 3",
                    "FLUSHDB",
                    "SET text again",
                    "SELECT 5",
                    "DEL five",
                    "checkpoint",
                ],
            ];
            for (number, lines) in rounds.iter().enumerate() {
                client.run("SELECT 0");
                for line in *lines {
                    if *line == "checkpoint" {
                        checkpoint(&mut client);
                    } else {
                        assert!(!client.run(line).is_error(), "{line}");
                    }
                }
                if !lines.is_empty() {
                    before = digest(&mut client);
                }
                drop(client);
                if number.is_multiple_of(2) {
                    drop(server.crash());
                } else {
                    server.signal("TERM");
                    assert!(server.wait().success());
                }
                server = start(&directory.0, mode, engine, &[]);
                client = server.client();
                assert_eq!(digest(&mut client), before, "{engine} {mode:?} {lines:?}");
                assert_eq!(run(&mut client, "FCALL one 0"), "(integer) 1", "{engine}");
                client.run("DEBUG DIGEST");
            }
            assert_eq!(run(&mut client, "DBSIZE"), "(integer) 3", "other, zero and queue");
        }
    }
}

#[test]
fn a_start_reads_keys_but_no_values() {
    for engine in ENGINES {
        let directory = Directory::new("disk-store-start");
        let server = start(&directory.0, MODES[0], engine, &["--maxmemory", "64mb"]);
        let mut client = server.client();
        for number in 0..500 {
            client.run(&format!("SET key:{number} {}", format!("{number}-").repeat(400)));
        }
        client.run("HSET fields a 1 b 2");
        client.run("HPEXPIRE fields 100000000 FIELDS 1 a");
        client.run(&format!("SET {} long", "k".repeat(700)));
        checkpoint(&mut client);
        assert_eq!(increments(&directory.0).len(), 1, "the log omits what the store has");
        drop(server.crash());
        let server = start(&directory.0, MODES[1], engine, &["--maxmemory", "64mb"]);
        let mut client = server.client();
        assert_eq!(run(&mut client, "DBSIZE"), "(integer) 502");
        assert_eq!(figure(&mut client, "cold_keys"), 501, "fields that expire are resident");
        // Small values are cold, too; they are fetched at their first use.
        assert_eq!(run(&mut client, "OBJECT ENCODING key:7"), "\"raw\"");
        assert_eq!(run(&mut client, "EXPIRE key:7 1000"), "(integer) 1");
        assert_eq!(figure(&mut client, "fetches"), 0);
        assert_eq!(run(&mut client, "STRLEN key:7"), "(integer) 800");
        assert_eq!(run(&mut client, "HTTL fields FIELDS 2 a b").lines().count(), 2);
        assert_eq!(run(&mut client, &format!("GET {}", "k".repeat(700))), "\"long\"");
        assert_eq!(figure(&mut client, "fetches"), 2);
        // Commands on the entry of a cold value do not fetch it.
        client.run("EXPIRE key:8 1000");
        client.run("DEL key:9");
        checkpoint(&mut client);
        assert_eq!(figure(&mut client, "fetches"), 2);
        // A value that is not expected to be read soon (`TIER COLD`) is demoted as soon as the store contains it.
        assert_eq!(run(&mut client, &format!("SET cold {} TIER COLD", "v".repeat(300))), "OK");
        assert!(client.run("TIERING MIGRATE cold COLD").is_error(), "the store does not have it yet");
        checkpoint(&mut client);
        wait_until("the value is cold", || run(&mut client, "TIERING TIER cold") == "\"cold\"");
        drop(server.crash());
        let server = start(&directory.0, MODES[0], engine, &[]);
        let mut client = server.client();
        assert_ne!(run(&mut client, "TTL key:8"), "(integer) -1");
        assert_eq!(run(&mut client, "EXISTS key:9"), "(integer) 0");
        assert_eq!(run(&mut client, "STRLEN key:8"), "(integer) 800");
    }
}

#[test]
fn data_may_be_larger_than_memory() {
    for (engine, mode) in ENGINES.into_iter().zip([MODES[0], MODES[1], MODES[0]]) {
        let directory = Directory::new("disk-store-large");
        let limit = 12 << 20;
        let server = start(&directory.0, mode, engine, &["--maxmemory", "12mb", "--fsync", "no"]);
        let mut client = server.client();
        let value = |number: usize| format!("{number}:").repeat(1000);
        let mut most = 0;
        for number in 0..9000 {
            let reply = client.command(&["SET", &format!("key:{number}"), &value(number)]);
            assert!(!reply.is_error(), "{engine} {number}: {reply:?}");
            if number % 100 == 0 {
                most = most.max(client.info_number("used_memory_dataset"));
            }
        }
        assert!(figure(&mut client, "cold_keys") > 4000);
        for number in (0..9000).step_by(37) {
            assert_eq!(client.command(&["GET", &format!("key:{number}")]).text(), value(number));
        }
        assert!(most < limit * 3 / 2, "{engine}: {most}");
        let before = digest(&mut client);
        drop(server.crash());
        let server = start(&directory.0, mode, engine, &["--maxmemory", "12mb", "--fsync", "no"]);
        assert_eq!(digest(&mut server.client()), before, "{engine}");
    }
}

#[test]
fn an_encrypted_store_contains_no_plaintext_keys_or_values() {
    let keys = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
    for engine in ENGINES {
        let directory = Directory::new("disk-store-sealed");
        let key_file = directory.0.join("keys");
        fs::write(&key_file, keys).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        fs::set_permissions(&key_file, mode).unwrap();
        let more = ["--encryption-key-file", key_file.to_str().unwrap()];
        let server = start(&directory.0, MODES[0], engine, &more);
        let mut client = server.client();
        client.run(&format!("SET secret-name {}", "secret-value".repeat(30)));
        checkpoint(&mut client);
        let before = digest(&mut client);
        drop(server.crash());
        assert!(!contains(&directory.0.join(PATH), b"secret-"), "{engine}");
        let said = refusal(&directory.0, &["--store", engine, "--path", PATH], None);
        assert!(said.contains("encrypted"), "{engine}: {said}");
        let server = start(&directory.0, MODES[0], engine, &more);
        assert_eq!(digest(&mut server.client()), before);
    }
}

/// Whether a file below a folder contains these bytes.
fn contains(folder: &Path, bytes: &[u8]) -> bool {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).any(|path| match path.is_dir() {
        true => contains(&path, bytes),
        false => fs::read(&path).unwrap().windows(bytes.len()).any(|window| window == bytes),
    })
}

#[test]
fn files_that_do_not_belong_together_are_refused_with_a_reason() {
    for engine in ENGINES {
        let directory = Directory::new("disk-store-refused");
        let data = directory.0.join(PATH);
        let refused = |arguments: &[&str], expected: &str| {
            let said = refusal(&directory.0, arguments, None);
            assert!(said.contains(expected), "{engine}: {said}");
        };
        let server = start(&directory.0, MODES[0], engine, &[]);
        let mut client = server.client();
        client.run("SET k 1");
        checkpoint(&mut client);
        client.run("SET k 2");
        drop(server.crash());
        refused(&["--store", "map", "--path", PATH], &format!("in a store of {engine}"));
        refused(&["--appendonly", "yes", "--dir", PATH], &format!("in a store of {engine}"));
        let other = if engine == "redb" { "lmdb" } else { "bolt" };
        refused(&["--store", other, "--path", PATH], &format!("start with --store {engine}"));
        // An older copy of the store with a newer log is refused, and vice versa.
        let copied = directory.0.join("copied");
        copy(&data, &copied);
        let server = start(&directory.0, MODES[0], engine, &[]);
        let mut client = server.client();
        checkpoint(&mut client);
        drop(server.crash());
        let log = "appendonlydir";
        for (from, to) in [(&data, &copied), (&copied, &data)] {
            let mixed = directory.0.join("mixed");
            copy(from, &mixed);
            fs::remove_dir_all(mixed.join(log)).unwrap();
            copy(&to.join(log), &mixed.join(log));
            refused(&["--store", engine, "--path", "mixed"], "do not belong together");
            fs::remove_dir_all(&mixed).unwrap();
        }
        // The store or the log alone is refused.
        fs::remove_dir_all(copied.join(log)).unwrap();
        refused(&["--store", engine, "--path", "copied"], "do not belong together");
        let lonely = directory.0.join("lonely");
        fs::create_dir(&lonely).unwrap();
        copy(&data.join(log), &lonely.join(log));
        refused(&["--store", engine, "--path", "lonely"], "the store has had no checkpoint");
        // The AOF of a server without a store is refused.
        let plain = directory.0.join("plain");
        fs::create_dir(&plain).unwrap();
        let server = start_in(&plain, &["--appendonly", "yes"]);
        let mut client = server.client();
        client.run("SET k v");
        checkpoint(&mut client);
        drop(server.crash());
        let mixed = directory.0.join("mixed");
        copy(&data, &mixed);
        fs::remove_dir_all(mixed.join(log)).unwrap();
        copy(&plain.join(log), &mixed.join(log));
        refused(&["--store", engine, "--path", "mixed"], "the log has a base");
        let server = start(&directory.0, MODES[0], engine, &[]);
        let mut client = server.client();
        assert_eq!(run(&mut client, "GET k"), "\"2\"");
        for line in ["CONFIG SET appendonly no", "DEBUG LOADAOF", "CONFIG SET dir /tmp"] {
            assert!(client.run(line).is_error(), "{line}");
        }
        let refused = client.run("CONFIG SET aof-keep-seconds 60").text();
        assert!(refused.contains("overwrites its files at each checkpoint"), "{refused}");
    }
}

pub(super) fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else if entry.path().is_file() {
            // Entries that cannot be copied are sockets.
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn a_server_with_a_store_saves_an_rdb_file_and_feeds_a_replica() {
    for engine in ENGINES {
        let directory = Directory::new("disk-store-export");
        let server = start(&directory.0, MODES[0], engine, &[]);
        let mut client = server.client();
        fill(&mut client);
        checkpoint(&mut client);
        drop(server.crash());
        let server = start(&directory.0, MODES[0], engine, &[]);
        let mut client = server.client();
        client.run("APPEND text more");
        let before = digest(&mut client);
        assert_eq!(run(&mut client, "SAVE"), "OK");
        let exported = directory.0.join("exported");
        fs::create_dir(&exported).unwrap();
        fs::copy(directory.0.join(PATH).join("dump.rdb"), exported.join("dump.rdb")).unwrap();
        let other = start_in(&exported, &["--enable-debug-command", "yes"]);
        assert_eq!(digest(&mut other.client()), before, "{engine}");
        let elsewhere = Directory::new("disk-store-replica");
        let primary = format!("{} {}", server.address().ip(), server.address().port());
        let replica = start_in(&elsewhere.0, &["--replicaof", &primary, "--enable-debug-command", "yes"]);
        let mut replica = replica.client();
        wait_until("the link is up", || replica.info("master_link_status") == "up");
        wait_until("the replica is the same", || digest(&mut replica) == before);
        // The RDB file next to the store is not part of it.
        assert_eq!(run(&mut client, "DEBUG RELOAD"), "OK");
        assert_eq!(digest(&mut client), before);
        client.run("SET after reload");
        let before = digest(&mut client);
        wait_until("no checkpoint is under way", || client.info("aof_rewrite_in_progress") == "0");
        drop(server.crash());
        let server = start(&directory.0, MODES[1], engine, &[]);
        assert_eq!(digest(&mut server.client()), before, "{engine}");
    }
}

/// Waits until a replica has the data of its primary, and has written it to its store.
fn follow(replica: &mut RawClient, primary: &mut RawClient) {
    wait_until("the link is up", || replica.info("master_link_status") == "up");
    let expected = digest(primary);
    wait_until("the replica is the same", || digest(replica) == expected);
    wait_until("its log has begun", || {
        replica.info("aof_enabled") == "1" && replica.info("aof_rewrite_in_progress") == "0"
    });
    assert_eq!(replica.info("aof_last_bgrewrite_status"), "ok");
}

#[test]
fn a_server_with_a_store_can_be_a_replica() {
    for engine in ENGINES {
        for mode in MODES {
            let [elsewhere, directory] = ["primary-of-store", "replica-store"].map(Directory::new);
            let primary = start_in(&elsewhere.0, &[mode, &["--enable-debug-command", "yes"]].concat());
            let address = format!("{} {}", primary.address().ip(), primary.address().port());
            let mut source = primary.client();
            fill(&mut source);
            let server = start(&directory.0, mode, engine, &[]);
            let mut client = server.client();
            client.run("SET own 1");
            checkpoint(&mut client);
            client.run("SET own 2");
            assert_eq!(run(&mut client, &format!("REPLICAOF {address}")), "OK");
            follow(&mut client, &mut source);
            assert_eq!(run(&mut client, "EXISTS own"), "(integer) 0", "{engine} {mode:?}");
            for line in ["APPEND text more", "DEL set", "RPUSH list last", "EXPIRE hash 100000", "SET new 1"]
            {
                assert!(!source.run(line).is_error(), "{line}");
            }
            follow(&mut client, &mut source);
            // The received data is in the log, and after a checkpoint in the store.
            drop(client);
            drop(server.crash());
            let server = start(&directory.0, mode, engine, &[]);
            let mut client = server.client();
            assert_eq!(digest(&mut client), digest(&mut source), "{engine} {mode:?}");
            assert_eq!(run(&mut client, &format!("REPLICAOF {address}")), "OK");
            follow(&mut client, &mut source);
            checkpoint(&mut client);
            drop(client);
            // An orderly shutdown records a position in the stream at which to resume.
            server.signal("TERM");
            let mut server = server;
            assert!(server.wait().success());
            source.run("APPEND text again");
            let full = source.info("sync_full");
            let server = start(&directory.0, mode, engine, &["--replicaof", &address]);
            let mut client = server.client();
            follow(&mut client, &mut source);
            assert_eq!(source.info("sync_full"), full, "{engine} {mode:?}");
            // As a primary again, the server continues with the same store.
            assert_eq!(run(&mut client, "REPLICAOF NO ONE"), "OK");
            client.run("SET own 3");
            let before = digest(&mut client);
            drop(client);
            drop(server.crash());
            let server = start(&directory.0, mode, engine, &[]);
            assert_eq!(digest(&mut server.client()), before, "{engine} {mode:?}");
        }
    }
}

#[test]
fn a_full_sync_may_be_larger_than_memory() {
    for (engine, mode) in ENGINES.into_iter().zip(MODES.into_iter().cycle()) {
        let [elsewhere, directory] = ["large-primary", "small-replica"].map(Directory::new);
        let primary = start_in(&elsewhere.0, &[mode, &["--enable-debug-command", "yes"]].concat());
        let address = format!("{} {}", primary.address().ip(), primary.address().port());
        let mut source = primary.client();
        source.run("DEBUG POPULATE 10000 key 3000");
        let more = ["--maxmemory", "16mb", "--replicaof", &address];
        let server = start(&directory.0, mode, engine, &more);
        let mut client = server.client();
        follow(&mut client, &mut source);
        wait_until("values are demoted", || client.info_number("used_memory_dataset") < 20 << 20);
        for number in 0..500 {
            source.run(&format!("APPEND key:{number} more"));
        }
        follow(&mut client, &mut source);
        drop(client);
        drop(server.crash());
        let server = start(&directory.0, mode, engine, &["--maxmemory", "16mb"]);
        assert_eq!(digest(&mut server.client()), digest(&mut source), "{engine}");
    }
}

#[test]
fn a_full_sync_is_stored_completely_or_not_at_all() {
    for engine in ENGINES {
        for mode in MODES {
            let [elsewhere, directory] = ["primary-of-part", "replica-of-part"].map(Directory::new);
            let primary = start_in(&elsewhere.0, &[mode, &["--enable-debug-command", "yes"]].concat());
            let address = format!("{} {}", primary.address().ip(), primary.address().port());
            let mut source = primary.client();
            source.run("DEBUG POPULATE 2000 theirs 100");
            let slowly = ["--key-load-delay", "5000"];
            let server = start(&directory.0, mode, engine, &slowly);
            let mut client = server.client();
            fill(&mut client);
            checkpoint(&mut client);
            client.run("SET own 2");
            let before = digest(&mut client);
            client.run(&format!("REPLICAOF {address}"));
            wait_until("a part is loaded", || client.info("loading") == "1");
            drop(client);
            drop(server.crash());
            let server = start(&directory.0, mode, engine, &[]);
            let mut client = server.client();
            assert_eq!(digest(&mut client), before, "{engine} {mode:?}");
            assert_eq!(run(&mut client, &format!("REPLICAOF {address}")), "OK");
            follow(&mut client, &mut source);
        }
    }
}

/// The size in bytes of the values that are set per round; the next constant is the maximum size of the files after the
/// first rounds.
const FILLED_BYTES: u64 = 16 << 20;
const FILES_BYTES_MAX: u64 = 6 * FILLED_BYTES;

#[test]
fn store_files_reuse_the_space_of_removed_data() {
    // fjall's files grow until it merges them.
    for engine in ["redb", "lmdb"] {
        let directory = Directory::new("disk-store-room");
        let server = start(&directory.0, MODES[0], engine, &["--fsync", "no", "--maxmemory", "256mb"]);
        let mut client = server.client();
        let mut sizes = Vec::new();
        for round in 0..8 {
            // Each round sets different keys and values, of sizes that do not fit in the freed space by chance.
            let pad = "v".repeat(1000 + 37 * round);
            for numbers in (0..FILLED_BYTES / 1000).collect::<Vec<_>>().chunks(512) {
                let set = |number: &u64| [format!("{round}:{number}"), format!("{number}{pad}")];
                let calls: Vec<_> =
                    numbers.iter().map(set).map(|[key, value]| ["SET".to_owned(), key, value]).collect();
                assert!(client.pipeline(&calls).unwrap().iter().all(|reply| !reply.is_error()));
            }
            checkpoint(&mut client);
            let filled = figure(&mut client, "stored_bytes");
            if round % 2 == 0 {
                assert_eq!(run(&mut client, "FLUSHALL"), "OK");
            } else {
                for numbers in (0..FILLED_BYTES / 1000).collect::<Vec<_>>().chunks(512) {
                    let calls: Vec<_> = numbers
                        .iter()
                        .map(|number| ["DEL".to_owned(), format!("{round}:{number}")])
                        .collect();
                    client.pipeline(&calls).unwrap();
                }
            }
            checkpoint(&mut client);
            sizes.push((filled >> 20, figure(&mut client, "stored_bytes") >> 20));
        }
        println!(
            "{engine}: MiB of {} MiB with values, and when they are removed: {sizes:?}",
            FILLED_BYTES >> 20
        );
        let most = sizes.iter().map(|&(filled, emptied)| filled.max(emptied)).max().unwrap();
        assert!(most <= FILES_BYTES_MAX >> 20, "{engine}: {sizes:?}");
        // The files do not grow after the first rounds.
        let first = sizes[..4].iter().map(|&(filled, _)| filled).max().unwrap();
        assert!(sizes[4..].iter().all(|&(filled, _)| filled <= first * 5 / 4), "{engine}: {sizes:?}");
    }
}

#[test]
fn cold_values_are_fetched_at_once_while_nothing_can_be_demoted() {
    let directory = Directory::new("store-cold");
    let server = start(&directory.0, MODES[0], "redb", &["--fsync", "no", "--maxmemory", "32mb"]);
    let mut client = server.client();
    let write = |client: &mut RawClient, name: &str, count: usize| {
        for numbers in (0..count).collect::<Vec<_>>().chunks(500) {
            let value = "v".repeat(1000);
            let calls =
                numbers.iter().map(|number| ["SET".to_owned(), format!("{name}:{number}"), value.clone()]);
            let replies = client.pipeline(&calls.collect::<Vec<_>>()).unwrap();
            assert!(replies.iter().all(|reply| !reply.is_error()));
        }
    };
    write(&mut client, "cold", 60_000);
    checkpoint(&mut client);
    // The next checkpoint does not end before the delay does, and the data that it must save fills the memory.
    client.run("CONFIG SET rdb-key-save-delay 1000000");
    let mut other = server.client();
    write(&mut client, "small", 9_000);
    let writing = std::thread::spawn(move || {
        for number in 0..20 {
            assert!(!other.command(&["SET", &format!("large:{number}"), &"v".repeat(3_000_000)]).is_error());
        }
    });
    wait_until("memory is full", || {
        let goal = figure(&mut client, "goal_bytes");
        client.info("aof_rewrite_in_progress") == "1"
            && client.info_number("used_memory_dataset") > goal + (1 << 20)
    });
    let begun = std::time::Instant::now();
    for number in 0..300 {
        assert_eq!(client.command(&["STRLEN", &format!("cold:{number}")]), Value::Integer(1000));
    }
    assert!(begun.elapsed().as_secs() < 10, "{:?}", begun.elapsed());
    assert_eq!(client.info("aof_rewrite_in_progress"), "1", "all of this was during a checkpoint");
    client.run("CONFIG SET rdb-key-save-delay 0");
    writing.join().unwrap();
}
