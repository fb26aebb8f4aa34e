//! The contents of the RDB file when all keys are removed or replaced: never data that no longer exists.

use std::time::{Duration, Instant};

use ember_testkit::{RawClient, Server, Value};

use crate::{Directory, MODES, start_in};

/// The longest duration of a background save on a busy disk.
const PATIENCE: Duration = Duration::from_secs(180);

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
    }
}

/// Starts a server with no save rules other than those in `arguments`.
fn start(directory: &Directory, mode: &[&'static str], arguments: &[&'static str]) -> Server {
    start_in(&directory.0, &[mode, &["--enable-debug-command", "yes"], arguments].concat())
}

/// Kills the server, and returns the keys of a server that starts with its files.
fn keys_after_crash(server: Server, directory: &Directory, mode: &[&'static str]) -> Vec<String> {
    drop(server.crash());
    let mut keys: Vec<String> = start(directory, mode, &[])
        .client()
        .run("KEYS *")
        .elements()
        .unwrap()
        .iter()
        .map(Value::text)
        .collect();
    keys.sort();
    keys
}

/// Begins a BGSAVE that does not end until `rdb-key-save-delay` is 0, or its data is removed.
fn begin_slow_bgsave(client: &mut RawClient) {
    client.run("CONFIG SET rdb-key-save-delay 10000000");
    assert_eq!(client.run("BGSAVE"), Value::Simple(b"Background saving started".to_vec()));
}

#[test]
fn flushed_keys_are_not_in_the_file_when_flushall_is_answered() {
    let ways: [&[&str]; 4] = [
        &["FLUSHALL"],
        &["FLUSHALL ASYNC"],
        &["MULTI", "SET new 1", "FLUSHALL", "EXEC"],
        &["EVAL return(redis.call('FLUSHALL')) 0"],
    ];
    for mode in MODES {
        for way in ways {
            let directory = Directory::new("flushall");
            let server = start(&directory, mode, &["--save", "900 1"]);
            let mut client = server.client();
            client.run("SET a 1");
            client.run("SELECT 3");
            client.run("SET b 1");
            assert_eq!(client.run("SAVE"), Value::ok());
            for line in way {
                assert!(!client.run(line).is_error(), "{line}");
            }
            assert_eq!(client.info("rdb_changes_since_last_save"), "0", "{way:?}");
            assert_eq!(client.info("rdb_saves"), "2", "{way:?}");
            drop(server.crash());
            let server = start(&directory, mode, &[]);
            assert!(!server.client().run("INFO keyspace").text().contains("keys="), "{way:?}");
        }
        // Only the current save rules apply.
        for (rules, keys) in [("900 1", &[][..]), ("", &["a"])] {
            let directory = Directory::new("flushall-rules");
            let server = start(&directory, mode, &["--save", "800 1"]);
            let mut client = server.client();
            client.run("SET a 1");
            assert_eq!(client.run("SAVE"), Value::ok());
            assert_eq!(client.command(&["CONFIG", "SET", "save", rules]), Value::ok());
            assert_eq!(client.run("FLUSHALL"), Value::ok());
            assert_eq!(keys_after_crash(server, &directory, mode), keys, "{rules}");
        }
    }
}

#[test]
fn writes_after_flushall_in_a_transaction_are_saved_with_it() {
    let directory = Directory::new("flushall-unit");
    let server = start(&directory, MODES[0], &["--save", "900 1"]);
    let mut client = server.client();
    client.run("SET before 1");
    assert_eq!(client.run("SAVE"), Value::ok());
    let library = "#!lua name=lib\nredis.register_function('one', function() return 1 end)";
    assert_eq!(client.command(&["FUNCTION", "LOAD", library]), Value::from("lib"));
    for line in ["MULTI", "FLUSHALL", "SET after 1", "EXEC"] {
        client.run(line);
    }
    drop(server.crash());
    let server = start(&directory, MODES[0], &[]);
    assert_eq!(server.client().run("KEYS *"), Value::Array(vec![Value::from("after")]));
    assert_eq!(server.client().run("FCALL one 0"), Value::Integer(1), "functions are kept");
}

#[test]
fn a_bgsave_of_removed_keys_is_abandoned() {
    for mode in MODES {
        for rules in ["", "900 1"] {
            let directory = Directory::new("abandoned");
            let server = start(&directory, mode, &["--save", rules]);
            let mut client = server.client();
            client.run("MSET a 1 b 2");
            begin_slow_bgsave(&mut client);
            assert_eq!(client.run("FLUSHALL"), Value::ok());
            client.run("SET after 1");
            eventually("the save ends", || client.info("rdb_bgsave_in_progress") == "0");
            assert_eq!(client.info("rdb_last_bgsave_status"), "ok", "no save has failed");
            assert_eq!(client.info("rdb_saves"), if rules.is_empty() { "0" } else { "1" });
            assert!(server.log().contains("background saving is abandoned: its keys were removed"));
            assert_eq!(directory.0.join("dump.rdb").exists(), !rules.is_empty());
            // The next save is not affected.
            client.run("CONFIG SET rdb-key-save-delay 0");
            assert!(!client.run("BGSAVE").is_error());
            eventually("the file is saved", || client.info("rdb_bgsave_in_progress") == "0");
            assert_eq!(keys_after_crash(server, &directory, mode), ["after"]);
        }
    }
}

#[test]
fn a_bgsave_outlives_flushdb_and_swapdb_which_count_as_changes() {
    for mode in MODES {
        let directory = Directory::new("flushdb");
        let server = start(&directory, mode, &["--save", "900 1"]);
        let mut client = server.client();
        client.run("MSET a 1 b 2");
        begin_slow_bgsave(&mut client);
        assert_eq!(client.run("SWAPDB 0 1"), Value::ok());
        client.run("SELECT 1");
        assert_eq!(client.run("FLUSHDB"), Value::ok());
        client.run("CONFIG SET rdb-key-save-delay 0");
        eventually("the file is saved", || client.info("rdb_saves") == "1");
        assert_eq!(client.info("rdb_changes_since_last_save"), "3");
        assert_eq!(keys_after_crash(server, &directory, mode), ["a", "b"]);
    }
}

#[test]
fn debug_reload_of_the_file_abandons_a_bgsave_of_other_data() {
    for mode in MODES {
        let directory = Directory::new("reload");
        let server = start(&directory, mode, &["--save", "900 1"]);
        let mut client = server.client();
        client.run("SET a 1");
        assert_eq!(client.run("SAVE"), Value::ok());
        client.run("SET b 2");
        begin_slow_bgsave(&mut client);
        assert!(client.run("DEBUG RELOAD").is_error(), "the reload would write the same file");
        client.run("CONFIG SET key-load-delay 0");
        assert_eq!(client.run("DEBUG RELOAD NOSAVE"), Value::ok());
        assert_eq!(client.info("rdb_changes_since_last_save"), "0");
        eventually("the save ends", || client.info("rdb_bgsave_in_progress") == "0");
        assert_eq!(client.info("rdb_saves"), "1");
        assert_eq!(keys_after_crash(server, &directory, mode), ["a"]);
    }
}

#[test]
fn the_file_of_a_replica_has_only_the_data_of_its_primary() {
    for mode in MODES {
        let primary = crate::builder(mode).start();
        primary.client().run("SET of-primary 1");
        let directory = Directory::new("replica");
        let server = start(&directory, mode, &["--save", "900 1"]);
        let mut client = server.client();
        client.run("MSET own 1 other 2");
        begin_slow_bgsave(&mut client);
        client.run(&format!("REPLICAOF 127.0.0.1 {}", primary.port()));
        eventually("the replica has the data", || client.run("EXISTS of-primary") == Value::Integer(1));
        eventually("the first is over", || server.log().contains("background saving is abandoned"));
        client.run("CONFIG SET rdb-key-save-delay 0");
        eventually("the data are saved", || client.info("rdb_saves") == "1");
        assert_eq!(client.info("rdb_changes_since_last_save"), "0");
        // Keys that the primary flushes are removed from the file of the replica, too.
        assert_eq!(primary.client().run("FLUSHALL"), Value::ok());
        eventually("the flush is applied and saved", || client.info("rdb_saves") == "2");
        assert_eq!(keys_after_crash(server, &directory, mode), [] as [&str; 0]);
    }
}
