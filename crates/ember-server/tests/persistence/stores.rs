//! Stores: the files of each store, and the order of replies with the ordered one.

use std::collections::BTreeSet;
use std::fs;

use ember_testkit::{Random, RawClient, Value};

use crate::{Directory, MODES, digest, fill, refusal, start_in};

const STORES: [&str; 2] = ["map", "btree"];

fn with<'a>(mode: &[&'a str], store: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [mode, &["--store", store, "--enable-debug-command", "yes"], more].concat()
}

fn parameter(client: &mut RawClient, name: &str) -> String {
    match client.command(&["CONFIG", "GET", name]) {
        Value::Array(pair) => pair[1].text(),
        other => panic!("{name}: {other:?}"),
    }
}

fn keys(client: &mut RawClient, arguments: &[&str]) -> Vec<String> {
    match client.command(&[&["KEYS"], arguments].concat()) {
        Value::Array(names) => names.iter().map(Value::text).collect(),
        other => panic!("{arguments:?}: {other:?}"),
    }
}

#[test]
fn writes_acknowledged_by_a_store_survive_a_crash() {
    for mode in MODES {
        for store in STORES {
            let directory = Directory::new("store-crash");
            let server = start_in(&directory.0, &with(mode, store, &[]));
            let mut client = server.client();
            fill(&mut client);
            assert_eq!(parameter(&mut client, "appendfsync"), "always");
            assert!(client.run("INFO server").text().contains(&format!("\r\nember_store:{store}\r\n")));
            let before = digest(&mut client);
            drop(server.crash());
            assert!(directory.0.join(format!("{store}.db/appendonlydir")).is_dir());
            assert!(!directory.0.join(format!("{store}.db/dump.rdb")).exists());
            let server = start_in(&directory.0, &with(mode, store, &["--path", &format!("{store}.db")]));
            let mut client = server.client();
            assert_eq!(digest(&mut client), before, "{mode:?} {store}");
            if store == "btree" {
                assert_eq!(keys(&mut client, &["s*"]), ["set", "stream"]);
            }
            drop(server.crash());
            // The files are those of a server without a store.
            let path = format!("{store}.db");
            let plain = ["--appendonly", "yes", "--dir", &path, "--enable-debug-command", "yes"];
            let server = start_in(&directory.0, &[mode, &plain].concat());
            assert_eq!(digest(&mut server.client()), before, "{mode:?} {store}");
        }
    }
}

#[test]
fn a_store_without_fsync_keeps_written_data_and_one_in_memory_keeps_nothing() {
    for store in STORES {
        let directory = Directory::new("store-files");
        let server = start_in(&directory.0, &with(MODES[0], store, &["--fsync=false", "--path", "a folder"]));
        let mut client = server.client();
        client.run("SET k v");
        assert_eq!(parameter(&mut client, "appendfsync"), "no");
        assert_eq!(parameter(&mut client, "fsync"), "no");
        assert!(client.run("CONFIG SET store none").is_error());
        // The process is killed, the system keeps running.
        drop(server.crash());
        let server = start_in(&directory.0, &with(MODES[1], store, &["--fsync", "no", "--path", "a folder"]));
        assert_eq!(server.client().run("GET k").text(), "v");
        let directory = Directory::new("store-memory");
        let mut server = start_in(&directory.0, &with(MODES[0], store, &["--path", ":memory:"]));
        server.client().run("SET k v");
        server.signal("TERM");
        assert!(server.wait().success());
        let left = fs::read_dir(&directory.0).unwrap().map(|entry| entry.unwrap().file_name());
        assert!(left.eq(["server.log"]), "only the file of the test is left");
    }
}

#[test]
fn unknown_stores_and_contradictory_options_are_refused_with_a_reason() {
    let directory = Directory::new("store-refused");
    for (arguments, expected) in [
        (&["--store", "rocksdb"][..], "must be one of the following: none, map, btree, redb, lmdb, fjall"),
        (&["--store", "map", "--save", "60 1"], "--save: the store 'map' requires another value"),
        (&["--fsync", "no"], "--fsync: this parameter requires a store"),
        (
            &["--store", "redb", "--aof-keep-seconds", "60"],
            "--aof-keep-seconds: the store 'redb' overwrites its files at each checkpoint",
        ),
    ] {
        let said = refusal(&directory.0, arguments, None);
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
}

#[test]
fn a_btree_returns_keys_in_order_of_names() {
    for mode in MODES {
        let directory = Directory::new("store-order");
        let server = start_in(&directory.0, &with(mode, "btree", &["--path", ":memory:"]));
        let mut client = server.client();
        for line in [
            "MSET user:2 b user:10 c user:1 a item:1 x",
            "SET user:3 d PX 1",
            "SET z:[1] e",
            "RENAME item:1 item:9",
        ] {
            client.run(line);
        }
        while client.run("GET user:3") != Value::Null {}
        assert_eq!(keys(&mut client, &["user:*"]), ["user:1", "user:10", "user:2"]);
        assert_eq!(keys(&mut client, &["*", "LIMIT", "2"]), ["item:9", "user:1"]);
        assert_eq!(keys(&mut client, &["user:*", "LIMIT", "0"]), [""; 0]);
        assert_eq!(keys(&mut client, &["user:?", "LIMIT", "1"]), ["user:1"]);
        assert_eq!(keys(&mut client, &["z:\\[*"]), ["z:[1]"]);
        assert_eq!(keys(&mut client, &["item:9"]), ["item:9"]);
        // A search for a prefix of few names is not a long-running call, however many names there are.
        client.run("CONFIG SET long-call-elements 3");
        assert_eq!(keys(&mut client, &["item:*"]), ["item:9"]);
        assert_eq!(client.info_number("ember_long_calls"), 0);
        assert_eq!(keys(&mut client, &["*"]).len(), 5);
        assert_eq!(client.info_number("ember_long_calls"), 1);
        client.run("MOVE item:9 4");
        client.run("SWAPDB 0 4");
        assert_eq!(keys(&mut client, &["*"]), ["item:9"]);
        client.run("SELECT 4");
        assert_eq!(keys(&mut client, &["*"]), ["user:1", "user:10", "user:2", "z:[1]"]);
        client.run("FLUSHDB");
        assert_eq!(keys(&mut client, &["*"]), [""; 0]);
    }
}

#[test]
fn the_order_survives_every_kind_of_change() {
    for mode in MODES {
        let directory = Directory::new("store-walk");
        let more = ["--path", ":memory:", "--maxmemory", "4mb", "--maxmemory-policy", "allkeys-random"];
        let server = start_in(&directory.0, &with(mode, "btree", &more));
        let mut client = server.client();
        let mut random = Random::new(7);
        for round in 0..3000 {
            let name =
                |random: &mut Random| format!("{}{}", ["a", "b:", "c/"][random.below(3)], random.below(400));
            let (key, other) = (name(&mut random), name(&mut random));
            let line = match random.below(12) {
                0..5 => format!("SET {key} {}", "x".repeat(random.below(3000))),
                5 => format!("DEL {key} {other}"),
                6 => format!("RENAME {key} {other}"),
                7 => format!("SET {key} 1 PX {}", 1 + random.below(20)),
                8 => format!("COPY {key} {other} REPLACE"),
                9 => format!("LPUSH list:{key} 1"),
                10 => format!("LPOP list:{key}"),
                _ => format!("UNLINK {key}"),
            };
            client.run(&line);
            if round % 100 == 0 {
                // Both calls are in one transaction, because a key may expire or be evicted between them.
                client.run("MULTI");
                client.run("KEYS *");
                client.run("SCAN 0 COUNT 100000");
                client.run("KEYS b:1* LIMIT 3");
                let Value::Array(replies) = client.run("EXEC") else { panic!("{line}") };
                let names = |reply: &Value| -> Vec<String> {
                    let Value::Array(names) = reply else { panic!("{reply:?}") };
                    names.iter().map(Value::text).collect()
                };
                let Value::Array(scanned) = &replies[1] else { panic!("{replies:?}") };
                let expected: BTreeSet<String> = names(&scanned[1]).into_iter().collect();
                assert!(names(&replies[0]).iter().eq(&expected), "{mode:?} {line}");
                let first = expected.iter().filter(|name| name.starts_with("b:1")).take(3);
                assert!(names(&replies[2]).iter().eq(first), "{mode:?} {line}");
            }
        }
    }
}
