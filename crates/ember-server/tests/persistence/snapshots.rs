//! SAVE, SHUTDOWN SAVE and startup from an RDB file.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::thread;

use ember_testkit::{RawClient, Value};

use crate::{Directory, MODES, builder, digest, fill, refusal, start_in};

#[test]
fn saved_data_are_loaded_at_startup_in_every_mode() {
    for (saved_in, started_in) in [(MODES[0], MODES[1]), (MODES[1], MODES[0])] {
        let directory = Directory::new("save");
        let debug = ["--enable-debug-command", "yes"];
        let server = start_in(&directory.0, &[saved_in, &debug[..]].concat());
        let mut client = server.client();
        fill(&mut client);
        let library = "#!lua name=lib\nredis.register_function('twice', function(_, a) return 2 * a[1] end)";
        assert_eq!(client.command(&["FUNCTION", "LOAD", library]), Value::from("lib"));
        assert!(client.run("INFO persistence").text().contains("rdb_changes_since_last_save:1"));
        assert_eq!(client.run("SAVE"), Value::ok());
        let info = client.run("INFO persistence").text();
        assert!(
            info.contains("rdb_changes_since_last_save:0\r\n") && info.contains("rdb_saves:1\r\n"),
            "{info}"
        );
        let before = digest(&mut client);
        client.run("SET after-the-save 1");
        drop(server.crash());
        let server = start_in(&directory.0, &[started_in, &debug[..]].concat());
        let mut client = server.client();
        assert_eq!(digest(&mut client), before);
        assert_eq!(client.run("FCALL twice 0 21"), Value::Integer(42));
        let Value::Integer(ttl) = client.run("PTTL number") else { panic!("PTTL is a number") };
        assert!((1..=100_000_000).contains(&ttl), "{ttl}");
        assert!(client.run("INFO persistence").text().contains("rdb_last_load_keys_loaded:9\r\n"));
    }
}

#[test]
fn shutdown_save_keeps_all_writes() {
    let directory = Directory::new("shutdown");
    for round in 1..=3 {
        let mut server = start_in(&directory.0, &[]);
        let mut client = server.client();
        assert_eq!(client.run("INCR rounds"), Value::Integer(round));
        client.send(b"SHUTDOWN SAVE\r\n").unwrap();
        assert!(client.read_value().is_err());
        assert_eq!(server.wait().code(), Some(0), "{}", server.log());
    }
    // Without SAVE and without save rules, nothing is saved.
    let mut server = start_in(&directory.0, &[]);
    let mut client = server.client();
    client.run("INCR rounds");
    client.send(b"SHUTDOWN\r\n").unwrap();
    assert_eq!(server.wait().code(), Some(0));
    assert_eq!(start_in(&directory.0, &[]).client().run("GET rounds"), Value::from("3"));
}

#[test]
fn a_save_contains_only_whole_transactions() {
    for mode in MODES {
        let directory = Directory::new("whole");
        let server = start_in(&directory.0, mode);
        server.client().run("MSET a 0 b 0");
        thread::scope(|scope| {
            for _ in 0..3 {
                let mut client = server.client();
                scope.spawn(move || {
                    for _ in 0..200 {
                        client.run("MULTI");
                        client.run("INCR a");
                        client.run("DECR b");
                        assert!(!client.run("EXEC").is_error());
                    }
                });
            }
            let mut client = server.client();
            for _ in 0..20 {
                assert_eq!(client.run("SAVE"), Value::ok());
                let number = |server: &ember_testkit::Server, key: &str| -> i64 {
                    server.client().run(&format!("GET {key}")).text().parse().unwrap()
                };
                let copy = Directory::new("whole-copy");
                fs::copy(directory.0.join("dump.rdb"), copy.0.join("dump.rdb")).unwrap();
                let other = start_in(&copy.0, &["--shards", "1"]);
                assert_eq!(number(&other, "a") + number(&other, "b"), 0);
            }
        });
    }
}

#[test]
fn a_failed_save_reports_the_reason_and_leaves_the_old_file() {
    let directory = Directory::new("fails");
    let server = start_in(&directory.0, &[]);
    let mut client = server.client();
    client.run("SET a 1");
    assert_eq!(client.run("SAVE"), Value::ok());
    let saved = fs::read(directory.0.join("dump.rdb")).unwrap();
    client.run("SET a 2");
    // A directory instead of the file prevents every user from writing the file, even root.
    fs::rename(directory.0.join("dump.rdb"), directory.0.join("kept")).unwrap();
    fs::create_dir_all(directory.0.join("dump.rdb/in-the-way")).unwrap();
    let refused = client.run("SAVE").text();
    assert!(
        refused.starts_with("ERR the data set could not be saved: ") && refused.contains("dump.rdb"),
        "{refused}"
    );
    assert_eq!(client.run("SHUTDOWN SAVE").text(), "ERR Errors trying to SHUTDOWN. Check logs.");
    assert_eq!(client.run("GET a"), Value::from("2"));
    assert_eq!(fs::read(directory.0.join("kept")).unwrap(), saved);
    fs::remove_dir_all(directory.0.join("dump.rdb")).unwrap();
    assert_eq!(client.run("SAVE"), Value::ok());
    let mode = fs::metadata(directory.0.join("dump.rdb")).unwrap().permissions().mode();
    assert_eq!(mode & 0o077 & !0o044, 0, "no other user may write it: {mode:o}");
    assert_eq!(
        fs::read_dir(&directory.0)
            .unwrap()
            .filter(|entry| { entry.as_ref().unwrap().file_name().to_string_lossy().contains("temp") })
            .count(),
        0
    );
}

#[test]
fn a_damaged_file_prevents_the_start() {
    let directory = Directory::new("damaged");
    let server = start_in(&directory.0, &[]);
    fill(&mut server.client());
    assert_eq!(server.client().run("SAVE"), Value::ok());
    drop(server);
    let file = directory.0.join("dump.rdb");
    let whole = fs::read(&file).unwrap();
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 0x10;
    for bytes in [&whole[..whole.len() - 12], &flipped, b"no RDB file"] {
        fs::write(&file, bytes).unwrap();
        let said = refusal(&directory.0, &[], None);
        assert!(said.contains("cannot load the data set") && said.contains("dump.rdb at offset"), "{said}");
    }
}

#[test]
fn expired_keys_are_not_loaded() {
    let directory = Directory::new("expired");
    let server = start_in(&directory.0, &[]);
    let mut client = server.client();
    client.run("SET stays 1");
    client.run("SET goes 1 PX 2000");
    client.run("HSET hash f 1 g 2");
    client.run("HPEXPIRE hash 2000 FIELDS 1 f");
    assert_eq!(client.run("SAVE"), Value::ok());
    drop(server);
    let is_loaded = |client: &mut RawClient, keys: usize| {
        client.run("INFO persistence").text().contains(&format!("rdb_last_load_keys_loaded:{keys}\r\n"))
    };
    assert!(is_loaded(&mut start_in(&directory.0, &[]).client(), 3));
    let server = loop {
        let server = start_in(&directory.0, &[]);
        if is_loaded(&mut server.client(), 2) {
            break server;
        }
    };
    let mut client = server.client();
    assert_eq!(client.run("EXISTS goes"), Value::Integer(0));
    assert_eq!(client.run("HLEN hash"), Value::Integer(1));
    assert!(client.run("INFO persistence").text().contains("rdb_last_load_keys_expired:1"));
}

#[test]
fn a_file_that_announces_too_many_keys_is_loaded_without_extra_memory() {
    for mode in MODES {
        let directory = Directory::new("promise");
        let promise = [&b"\xFB"[..], b"\x81", &[0xFF; 8], b"\x81", &[0xFF; 8]].concat();
        let body = [&b"REDIS0010\xFE\x00"[..], &promise.repeat(1000), b"\x00\x01a\x01b"].concat();
        let more = [&b"\xFE\x03"[..], &promise, b"\x00\x01c\xC0\x05\xFF\0\0\0\0\0\0\0\0"].concat();
        fs::write(directory.0.join("dump.rdb"), [body, more].concat()).unwrap();
        let server = start_in(&directory.0, mode);
        let mut client = server.client();
        assert_eq!(client.run("GET a"), Value::from("b"));
        assert_eq!(client.run("DBSIZE"), Value::Integer(1));
        client.run("SELECT 3");
        assert_eq!(client.run("INCR c"), Value::Integer(6));
        // Loading allocates what a file of this length could contain, and frees it afterwards.
        let bytes = client.info_number("used_memory_dataset");
        assert!(bytes < 64 * 1024 * 1024, "{bytes}");
    }
}

#[test]
fn keys_without_elements_are_skipped_with_a_warning() {
    // Values of kinds 2, 4 and 5 begin with the number of their elements, and kind 14 with the number of its nodes,
    // here one ziplist without entries; kinds 13 and 16 are a single packed value.
    const ZIPLIST: &[u8] = b"\x0B\x0B\0\0\0\x0A\0\0\0\0\0\xFF";
    const LISTPACK: &[u8] = b"\x07\x07\0\0\0\0\0\xFF";
    let empty: [(&str, u8, &[u8]); 6] = [
        ("set", 2, b"\0"),
        ("hash", 4, b"\0"),
        ("zset", 5, b"\0"),
        ("quicklist", 14, &[&b"\x01"[..], ZIPLIST].concat()),
        ("hash_ziplist", 13, ZIPLIST),
        ("hash_listpack", 16, LISTPACK),
    ];
    let mut bytes = b"REDIS0010\xFE\0".to_vec();
    for (name, kind, value) in empty {
        bytes.extend_from_slice(&[&[kind, name.len() as u8][..], name.as_bytes(), value].concat());
    }
    bytes.extend_from_slice(b"\0\x01a\x01b\xFF\0\0\0\0\0\0\0\0");
    for mode in MODES {
        let directory = Directory::new("empty-keys");
        fs::write(directory.0.join("dump.rdb"), &bytes).unwrap();
        let server = start_in(&directory.0, mode);
        assert_eq!(server.client().run("KEYS *"), Value::Array(vec![Value::from("a")]));
        let log = server.log();
        for (name, ..) in empty {
            assert!(log.contains(&format!("skipping empty key: {name}")), "{name}: {log}");
        }
        assert!(log.contains("empty keys skipped: 6"), "{log}");
    }
    // A list whose large node has no bytes, which no server writes.
    let server = builder(&[]).start();
    let payload = b"\x12\x01\x01\0\x0A\0\x8F\xC6\xC0\x57\x1C\x0A\xB3\x3C";
    let mut client = server.client();
    let restored = client.command(&[&b"RESTORE"[..], b"list", b"0", payload]);
    assert_eq!(restored.text(), "ERR Bad data format");
}

#[test]
fn a_file_of_redis_stack_is_refused_or_loaded_without_the_values_of_unknown_modules() {
    let file = include_bytes!("../../../ember-persistence/tests/redis_stack/indexed.rdb");
    for mode in MODES {
        let directory = Directory::new("stack-file");
        fs::write(directory.0.join("dump.rdb"), file).unwrap();
        let said = refusal(&directory.0, mode, None);
        assert!(
            said.contains("the module 'TSDB-TYPE'") && said.contains("rdb-skip-unknown-modules"),
            "{said}"
        );
        let skipping = [mode, &["--rdb-skip-unknown-modules", "yes"]].concat();
        let server = start_in(&directory.0, &skipping);
        let mut client = server.client();
        assert_eq!(client.run("GET greeting").text(), "hello");
        assert_eq!(client.run("DBSIZE"), Value::Integer(2));
        let log = server.log();
        for part in ["'TSDB-TYPE': 1 keys, 0 auxiliary blocks", "'ft_index0': 0 keys, 1 auxiliary blocks"] {
            assert!(log.contains(part), "{part} in {log}");
        }
    }
}

#[test]
fn the_file_has_the_configured_name() {
    let directory = Directory::new("name");
    let server = start_in(&directory.0, &["--dbfilename", "data.rdb", "--rdbcompression", "no"]);
    let mut client = server.client();
    assert_eq!(client.command(&["SET", "long", &"ab".repeat(4000)]), Value::ok());
    assert_eq!(client.run("SAVE"), Value::ok());
    let unpacked = fs::metadata(directory.0.join("data.rdb")).unwrap().len();
    assert!(unpacked > 8000, "{unpacked}");
    client.run("CONFIG SET rdbcompression yes");
    assert_eq!(client.run("SAVE"), Value::ok());
    assert!(fs::metadata(directory.0.join("data.rdb")).unwrap().len() < 1000);
    let failed = std::panic::catch_unwind(|| builder(&["--dbfilename", "a/b"]).start());
    assert!(failed.is_err());
}

#[test]
fn save_is_refused_where_redis_refuses_it() {
    let server = builder(&[]).start();
    let mut client = server.client();
    client.run("MULTI");
    assert!(client.run("SAVE").text().contains("not allowed inside a transaction"));
    client.run("DISCARD");
    assert!(
        client
            .command(&["EVAL", "return redis.call('SAVE')", "0"])
            .text()
            .contains("not allowed from script")
    );
}

#[test]
fn an_unfinished_file_is_removed_at_startup() {
    let directory = Directory::new("leftover");
    for name in ["temp-ember-1-0-dump.rdb", "temp-ember-1-0-other.rdb"] {
        fs::write(directory.0.join(name), b"REDIS0010").unwrap();
    }
    let server = start_in(&directory.0, &[]);
    assert_eq!(server.client().run("DBSIZE"), Value::Integer(0));
    assert!(!directory.0.join("temp-ember-1-0-dump.rdb").exists());
    assert!(directory.0.join("temp-ember-1-0-other.rdb").exists());
}

#[test]
fn an_unfinished_base_is_removed_at_startup() {
    let directory = Directory::new("leftover-base");
    let arguments = ["--appendonly", "yes"];
    drop(start_in(&directory.0, &arguments));
    let files = directory.0.join("appendonlydir");
    let own = ["temp-ember-1-0-appendonly.aof.2.base.rdb", "temp-ember-1-1-appendonly.aof.manifest"];
    let others = ["temp-ember-1-0-other.aof.manifest", "temp-ember-notes.manifest"];
    for name in own.iter().chain(&others) {
        fs::write(files.join(name), b"REDIS0010").unwrap();
    }
    let server = start_in(&directory.0, &arguments);
    assert!(server.log().contains("2 incomplete files are removed"), "{}", server.log());
    assert!(own.iter().all(|name| !files.join(name).exists()));
    assert!(others.iter().all(|name| files.join(name).exists()));
}

#[test]
fn a_damaged_payload_of_restore_is_logged_with_its_sender_once_a_second() {
    for mode in MODES {
        let server = builder(&[mode, &["--enable-debug-command", "yes"]].concat()).start();
        let mut client = server.client();
        assert_eq!(client.run("DEBUG SET-SKIP-CHECKSUM-VALIDATION 1"), Value::ok());
        // A sorted set as a ziplist whose header announces a greater length; a hash that ends too early.
        let damaged = [
            &b"\x0C\x0B\xFF\0\0\0\x0A\0\0\0\0\0\xFF\x0B\0\0\0\0\0\0\0\0\0"[..],
            b"\x04\x02\x01f\x0B\0\0\0\0\0\0\0\0\0",
        ];
        for payload in damaged {
            let answer = client.command(&[&b"RESTORE"[..], b"key", b"0", payload]);
            assert_eq!(answer.text(), "ERR Bad data format");
        }
        let Value::Integer(id) = client.run("CLIENT ID") else { panic!("CLIENT ID is a number") };
        // In sharded mode, the payload may be refused by another worker than the client's.
        let line = match mode == MODES[0] {
            true => format!("RESTORE refuses a payload from client {id} at 127.0.0.1:"),
            false => "RESTORE refuses a payload".to_owned(),
        };
        let log = server.log();
        assert!(log.contains(&line) && log.contains("Zset ziplist integrity check failed"), "{log}");
        assert_eq!(log.matches("integrity check failed").count(), 1, "{log}");
    }
}

#[test]
fn files_have_the_version_of_their_target_server() {
    for mode in MODES {
        let directory = Directory::new("target");
        let server = start_in(&directory.0, mode);
        let mut client = server.client();
        let mut saved = |target: &str| {
            assert_eq!(client.command(&["CONFIG", "SET", "rdb-target", target]), Value::ok());
            assert_eq!(client.run("SAVE"), Value::ok());
            let bytes = fs::read(directory.0.join("dump.rdb")).unwrap();
            String::from_utf8_lossy(&bytes[..9]).into_owned()
        };
        let all = ["redis", "redis-7.2", "redis-8", "valkey-9"];
        assert_eq!(all.map(&mut saved), ["REDIS0010", "REDIS0011", "REDIS0012", "VALKEY080"]);
        assert!(!server.log().contains("cannot read it"), "{}", server.log());
        server.client().run("HSET h a 1 b 2");
        server.client().run("HPEXPIREAT h 4000000000000 FIELDS 1 a");
        // If the requested version cannot represent the data, the file has a newer version.
        assert_eq!(all.map(&mut saved), ["REDIS0012", "REDIS0012", "REDIS0012", "VALKEY080"]);
        let warnings = server.log().matches("has hash fields that expire: redis-7.2").count();
        assert_eq!(warnings, 1, "{}", server.log());
        server.client().run("VADD v VALUES 2 1 0 e");
        assert_eq!(saved("valkey-9"), "VALKEY080");
        assert!(server.log().contains("has vector sets: valkey-9"), "{}", server.log());
        drop(server.crash());
        let server = start_in(&directory.0, mode);
        let mut client = server.client();
        assert_eq!(client.run("HPEXPIRETIME h FIELDS 2 a b").elements().unwrap().len(), 2);
        assert_eq!(client.run("VCARD v"), Value::Integer(1));
    }
}
