//! The append-only file: data after a crash, torn and damaged files, rewriting, enabling and disabling.

use std::fs::{self, OpenOptions, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use ember_testkit::{RawClient, Server, Value};
use rustix::process::{Resource, getrlimit};

use crate::{Directory, MODES, builder, digest, fill, program, refusal, start_in};

const ALWAYS: [&str; 6] = ["--appendonly", "yes", "--appendfsync", "always", "--enable-debug-command", "yes"];

fn always(mode: &[&'static str]) -> Vec<&'static str> {
    [mode, &ALWAYS[..]].concat()
}

/// Waits until other threads have made a condition true.
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        thread::yield_now();
    }
}

fn increments(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory.join("appendonlydir")).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.to_string_lossy().ends_with(".incr.aof"));
    files.sort_by_key(|path| path.file_name().map(|name| (name.len(), name.to_owned())));
    files
}

#[test]
fn acknowledged_writes_survive_a_crash_in_every_mode() {
    for (mode, other) in [(MODES[0], MODES[1]), (MODES[1], MODES[0])] {
        let directory = Directory::new("aof-crash");
        let server = start_in(&directory.0, &always(mode));
        let mut client = server.client();
        client.run("SET gone 1");
        client.run("FLUSHALL");
        fill(&mut client);
        let library = "#!lua name=lib\nredis.register_function('twice', function(_, a) return 2 * a[1] end)";
        assert_eq!(client.command(&["FUNCTION", "LOAD", library]), Value::from("lib"));
        for line in ["MULTI", "INCR m", "SPOP set", "SELECT 5", "APPEND there x", "SELECT 0", "EXEC"] {
            assert!(!client.run(line).is_error(), "{line}");
        }
        let script =
            "redis.call('SET', KEYS[1], redis.call('INCR', 'undeclared')) return redis.call('TIME')[1]";
        assert!(!client.command(&["EVAL", script, "1", "declared"]).is_error());
        client.run("EXPIRE number 1000");
        client.run("SWAPDB 5 6");
        let before = digest(&mut client);
        drop(server.crash());
        let server = start_in(&directory.0, &always(other));
        let mut client = server.client();
        assert_eq!(digest(&mut client), before);
        assert_eq!(client.run("FCALL twice 0 21"), Value::Integer(42));
        let Value::Integer(ttl) = client.run("TTL number") else { panic!("TTL is a number") };
        assert!((900..=1000).contains(&ttl), "{ttl}");
    }
}

#[test]
fn an_orderly_shutdown_loses_nothing_with_any_policy() {
    for policy in ["always", "everysec", "no"] {
        let directory = Directory::new("aof-end");
        let arguments = ["--appendonly", "yes", "--appendfsync", policy];
        for round in 1..=3 {
            let mut server = start_in(&directory.0, &arguments);
            let mut client = server.client();
            assert_eq!(client.run("INCR rounds"), Value::Integer(round));
            client.send(b"SHUTDOWN NOSAVE\r\n").unwrap();
            assert!(client.read_value().is_err());
            assert_eq!(server.wait().code(), Some(0), "{}", server.log());
        }
        assert!(!directory.0.join("dump.rdb").exists());
    }
}

#[test]
fn a_shutdown_waits_until_the_first_base_is_complete() {
    for mode in MODES {
        for ending in ["SHUTDOWN", "SHUTDOWN NOSAVE", "SHUTDOWN SAVE", "TERM", "SHUTDOWN FORCE"] {
            let directory = Directory::new("aof-first-base");
            let arguments = [mode, &["--save", "", "--appendonly", "no"]].concat();
            let mut server = start_in(&directory.0, &arguments);
            let mut client = server.client();
            assert_eq!(client.run("SET key value"), Value::ok());
            // Writing each key takes a minute: the base is not complete until the delay is reset.
            assert_eq!(client.run("CONFIG SET rdb-key-save-delay 60000000"), Value::ok());
            assert_eq!(client.run("CONFIG SET appendonly yes"), Value::ok());
            if ending == "SHUTDOWN FORCE" {
                client.send(b"SHUTDOWN FORCE\r\n").unwrap();
                assert!(client.read_value().is_err());
                assert_eq!(server.wait().code(), Some(0), "{}", server.log());
                assert!(server.log().contains("Writing initial AOF. Exit anyway."), "{}", server.log());
                continue;
            }
            if ending == "TERM" {
                server.signal("TERM");
            } else {
                assert_eq!(client.run(ending).text(), "ERR Errors trying to SHUTDOWN. Check logs.");
            }
            eventually("the log says why", || server.log().contains("Writing initial AOF, can't exit"));
            assert_eq!(client.run("CONFIG SET rdb-key-save-delay 0"), Value::ok());
            eventually("the base is complete", || client.info("aof_rewrite_in_progress") == "0");
            client.send(b"SHUTDOWN NOSAVE\r\n").unwrap();
            assert_eq!(server.wait().code(), Some(0), "{}", server.log());
            let server = start_in(&directory.0, &[mode, &["--appendonly", "yes"]].concat());
            assert_eq!(server.client().run("GET key"), Value::from("value"), "{ending}");
        }
    }
}

#[test]
fn switching_the_aof_off_ends_a_rewrite_that_is_under_way() {
    for mode in MODES {
        let directory = Directory::new("aof-off");
        let debug = ["--enable-debug-command", "yes"];
        let server = start_in(&directory.0, &[mode, &debug, &["--save", "", "--appendonly", "no"]].concat());
        let mut client = server.client();
        for number in 0..10 {
            client.run(&format!("SET key:{number} value"));
        }
        for is_first in [true, false] {
            if !is_first {
                assert_eq!(client.run("CONFIG SET appendonly yes"), Value::ok());
                eventually("the base is complete", || client.info("aof_rewrite_in_progress") == "0");
            }
            // Writing each key takes a minute.
            assert_eq!(client.run("CONFIG SET rdb-key-save-delay 60000000"), Value::ok());
            let begins = if is_first { "CONFIG SET appendonly yes" } else { "BGREWRITEAOF" };
            assert!(!client.run(begins).is_error());
            eventually("a base is being written", || client.info("aof_rewrite_in_progress") == "1");
            assert_eq!(client.run("CONFIG SET appendonly no"), Value::ok());
            eventually("the rewrite ends", || client.info("aof_rewrite_in_progress") == "0");
            assert_eq!(client.run("CONFIG SET rdb-key-save-delay 0"), Value::ok());
            for command in ["BGREWRITEAOF", "BGSAVE"] {
                assert!(!client.run(command).is_error(), "{command}: {}", server.log());
                eventually("the rewrite ends", || {
                    client.info("aof_rewrite_in_progress") == "0"
                        && client.info("rdb_bgsave_in_progress") == "0"
                });
            }
            assert_eq!(client.info("aof_last_bgrewrite_status"), "ok");
            let files = fs::read_dir(directory.0.join("appendonlydir")).unwrap();
            let mut names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
            assert!(!names.any(|name| name.starts_with("temp-")), "{}", server.log());
        }
        // The AOF is enabled again right after it was disabled.
        assert_eq!(client.run("CONFIG SET appendonly yes"), Value::ok());
        assert_eq!(client.run("CONFIG SET appendonly no"), Value::ok());
        assert_eq!(client.run("CONFIG SET appendonly yes"), Value::ok());
        eventually("the base is complete", || client.info("aof_rewrite_in_progress") == "0");
        client.run("SET after value");
        let before = digest(&mut client);
        drop(server.crash());
        let server = start_in(&directory.0, &[mode, &debug, &["--appendonly", "yes"]].concat());
        assert_eq!(digest(&mut server.client()), before);
    }
}

#[test]
fn a_torn_end_is_truncated_with_a_warning_by_whole_transactions() {
    let directory = Directory::new("aof-torn");
    let server = start_in(&directory.0, &always(MODES[0]));
    let mut client = server.client();
    client.run("SET before 1");
    for line in ["MULTI", "SET a 1", "SET b 2", "EXEC"] {
        client.run(line);
    }
    drop(server.crash());
    let file = increments(&directory.0).pop().unwrap();
    let size = fs::metadata(&file).unwrap().len();
    OpenOptions::new().write(true).open(&file).unwrap().set_len(size - 20).unwrap();
    let refused = refusal(&directory.0, &["--appendonly", "yes", "--aof-load-truncated", "no"], None);
    assert!(
        refused.contains("aof-load-truncated")
            && refused.contains("`ember-cli repair appendonlydir --output NEW_DIRECTORY`"),
        "{refused}"
    );
    let server = start_in(&directory.0, &always(MODES[0]));
    let mut client = server.client();
    assert_eq!(client.run("KEYS *"), Value::Array(vec![Value::from("before")]));
    let log = server.log();
    assert!(log.contains("WARN") && log.contains("bytes are truncated"), "{log}");
    // Later records follow a complete end.
    client.run("SET after 1");
    drop(server.crash());
    let server = start_in(&directory.0, &always(MODES[0]));
    assert_eq!(server.client().run("DBSIZE"), Value::Integer(2));
}

#[test]
fn damage_in_the_middle_prevents_the_start() {
    let directory = Directory::new("aof-damage");
    let server = start_in(&directory.0, &always(MODES[0]));
    let mut client = server.client();
    for number in 0..100 {
        client.run(&format!("SET key:{number} value"));
    }
    drop(server.crash());
    let file = increments(&directory.0).pop().unwrap();
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.windows(6).position(|window| window == b"key:50").unwrap();
    bytes[middle] ^= 1;
    fs::write(&file, &bytes).unwrap();
    let refused = refusal(&directory.0, &["--appendonly", "yes"], None);
    // The problem is one line in the log, and the same line on standard error.
    let is_problem = |line: &&str| !line.contains(" INFO ") && !line.contains(" ERROR ");
    assert_eq!(refused.lines().filter(is_problem).count(), 1, "{refused}");
    for word in [
        file.file_name().unwrap().to_str().unwrap(),
        "at offset",
        "`ember-cli repair appendonlydir --output NEW_DIRECTORY`",
    ] {
        assert!(refused.contains(word), "{word}: {refused}");
    }
    assert_eq!(fs::read(&file).unwrap(), bytes, "the file is unchanged");
}

#[test]
fn missing_and_inserted_bytes_prevent_the_start_even_before_any_fsync() {
    let directory = Directory::new("aof-missing");
    let server = start_in(&directory.0, &["--appendonly", "yes", "--appendfsync", "no"]);
    let mut client = server.client();
    for number in 0..80 {
        client.run(&format!("SET key:{number} value"));
    }
    eventually("the file has all writes", || {
        let file = increments(&directory.0).pop().unwrap();
        fs::read(file).unwrap().windows(6).any(|window| window == b"key:79")
    });
    drop(server.crash());
    let file = increments(&directory.0).pop().unwrap();
    let bytes = fs::read(&file).unwrap();
    let place = bytes.windows(6).position(|window| window == b"key:69").unwrap();
    let missing = [&bytes[..place], &bytes[place + 3..]].concat();
    let inserted = [&bytes[..place], b"xyz", &bytes[place..]].concat();
    for damaged in [missing, inserted] {
        fs::write(&file, &damaged).unwrap();
        let refused = refusal(&directory.0, &["--appendonly", "yes"], None);
        let name = file.file_name().unwrap().to_str().unwrap();
        for part in
            [name, "at offset", "missing or were inserted", "`ember-cli repair appendonlydir --output"]
        {
            assert!(refused.contains(part), "{part}: {refused}");
        }
        assert_eq!(fs::read(&file).unwrap(), damaged, "the file is unchanged");
    }
    fs::write(&file, &bytes).unwrap();
    let server = start_in(&directory.0, &["--appendonly", "yes"]);
    assert_eq!(server.client().run("DBSIZE"), Value::Integer(80));
}

#[test]
fn a_closed_file_that_lost_bytes_prevents_the_start() {
    for mode in MODES {
        let directory = Directory::new("aof-short");
        let server = start_in(&directory.0, &always(mode));
        let mut client = server.client();
        client.run("SET base 1");
        client.run("BGREWRITEAOF");
        eventually("there is a base", || {
            client.info("aof_rewrite_in_progress") == "0" && has_base(&directory.0)
        });
        for number in 0..5 {
            client.run(&format!("SET closed:{number} 1"));
        }
        drop(server.crash());
        // The earlier increment is then closed.
        let server = start_in(&directory.0, &always(mode));
        server.client().run("SET last 1");
        drop(server.crash());
        let manifest = directory.0.join("appendonlydir/appendonly.aof.manifest");
        let with_sizes = fs::read_to_string(&manifest).unwrap();
        let without: String =
            with_sizes.lines().map(|line| format!("{}\n", line.split(" size ").next().unwrap())).collect();
        assert_ne!(with_sizes, without);
        let closed = increments(&directory.0).remove(0);
        for file in [base(&directory.0), closed.clone()] {
            let whole = fs::read(&file).unwrap();
            let last_batch =
                whole.windows(4).rposition(|window| window == b"#CRC").unwrap_or(whole.len() - 1);
            for left in [0, last_batch] {
                fs::write(&file, &whole[..left]).unwrap();
                for truncates in ["yes", "no"] {
                    let arguments = ["--appendonly", "yes", "--aof-load-truncated", truncates];
                    let refused = refusal(&directory.0, &[mode, &arguments[..]].concat(), None);
                    let name = file.file_name().unwrap().to_str().unwrap();
                    let sizes = format!("{name} has {left} bytes but had {} when it was closed", whole.len());
                    assert!(refused.contains(&sizes) && refused.contains("restore a backup"), "{refused}");
                    assert_eq!(refused.contains("`ember-cli repair"), left > 0, "{refused}");
                }
            }
            fs::write(&file, &whole).unwrap();
        }
        // The manifest is as written by an earlier version of ember, and by Redis.
        fs::write(&manifest, &without).unwrap();
        let whole = fs::read(base(&directory.0)).unwrap();
        fs::write(base(&directory.0), b"").unwrap();
        let refused = refusal(&directory.0, &["--appendonly", "yes"], None);
        assert!(refused.contains("base.rdb is empty, but a base in RDB format is never empty"), "{refused}");
        fs::write(base(&directory.0), &whole).unwrap();
        let server = start_in(&directory.0, &always(mode));
        assert_eq!(server.client().run("DBSIZE"), Value::Integer(7));
        let manifest = fs::read_to_string(&manifest).unwrap();
        let sizes = manifest.lines().filter(|line| line.contains(" size ")).count();
        assert_eq!(sizes + 1, manifest.lines().count(), "all but the last are closed: {manifest}");
    }
}

fn has_base(directory: &Path) -> bool {
    let mut entries = fs::read_dir(directory.join("appendonlydir")).unwrap();
    entries.any(|entry| entry.is_ok_and(|entry| entry.file_name().to_string_lossy().contains("1.base.rdb")))
}

#[test]
fn a_rewrite_under_writes_loses_nothing() {
    for mode in MODES {
        let directory = Directory::new("aof-rewrite");
        let server = start_in(&directory.0, &always(mode));
        thread::scope(|scope| {
            for thread in 0..3 {
                let mut client = server.client();
                scope.spawn(move || {
                    for number in 0..300 {
                        client.run(&format!("RPUSH list:{thread} {number}"));
                        client.run(&format!("INCRBYFLOAT sum {number}.5"));
                        client.run(&format!("SET own:{thread}:{} {number}", number % 10));
                    }
                });
            }
            let mut client = server.client();
            for round in 1..=3 {
                let form = if round == 2 { "yes" } else { "no" };
                client.run(&format!("CONFIG SET aof-use-rdb-preamble {form}"));
                eventually("a rewrite can begin", || !client.run("BGREWRITEAOF").is_error());
                eventually("the rewrite ends", || client.info("aof_rewrite_in_progress") == "0");
                assert_eq!(client.info("aof_rewrites"), round.to_string());
                assert_eq!(client.info("aof_last_bgrewrite_status"), "ok");
            }
        });
        let mut client = server.client();
        let before = digest(&mut client);
        assert_eq!(increments(&directory.0).len(), 1, "the rewritten increments are removed");
        drop(server.crash());
        let server = start_in(&directory.0, &always(mode));
        assert_eq!(digest(&mut server.client()), before);
    }
}

/// Returns the path of the only base.
fn base(directory: &Path) -> PathBuf {
    let entries = fs::read_dir(directory.join("appendonlydir")).unwrap();
    let mut files = entries.map(|entry| entry.unwrap().path());
    files.find(|path| path.to_string_lossy().contains(".base.")).unwrap()
}

#[test]
fn a_base_of_commands_has_everything_an_rdb_base_has() {
    for (mode, other) in [(MODES[0], MODES[1]), (MODES[1], MODES[0])] {
        let directory = Directory::new("aof-commands");
        let plain = [&always(mode)[..], &["--aof-use-rdb-preamble", "no"]].concat();
        let server = start_in(&directory.0, &plain);
        let mut client = server.client();
        fill(&mut client);
        let library = "#!lua name=lib\nredis.register_function('twice', function(_, a) return 2 * a[1] end)";
        assert_eq!(client.command(&["FUNCTION", "LOAD", library]), Value::from("lib"));
        for line in [
            "EXPIRE number 1000",
            "HSET fields a 1 b 2",
            "HPEXPIREAT fields 33177117420000 FIELDS 1 a",
            "XADD events 1-1 a 1",
            "XADD events 2-1 a 1",
            "XGROUP CREATE events group 0",
            "XREADGROUP GROUP group one STREAMS events >",
            "XDEL events 1-1",
            "SELECT 7",
            "SET elsewhere 1",
            "SELECT 0",
        ] {
            assert!(!client.run(line).is_error(), "{line}");
        }
        let before = digest(&mut client);
        let pending = client.run("XPENDING events group - + 10");
        assert!(!client.run("BGREWRITEAOF").is_error());
        eventually("the file is rewritten", || client.info("aof_rewrites") == "1");
        eventually("the rewrite ends", || client.info("aof_rewrite_in_progress") == "0");
        let base = base(&directory.0);
        assert!(base.to_string_lossy().ends_with(".base.aof"), "{}", base.display());
        let bytes = fs::read(&base).unwrap();
        assert!(bytes.windows(13).any(|window| window == &b"$9\r\nelsewhere"[..13]));
        drop(server.crash());
        let server = start_in(&directory.0, &always(other));
        let mut client = server.client();
        assert_eq!(digest(&mut client), before);
        assert_eq!(client.run("XPENDING events group - + 10").elements().map(<[_]>::len), Some(2));
        let ids = |reply: &Value| {
            let entries = reply.elements().unwrap().iter();
            entries.map(|entry| entry.elements().unwrap()[0].text()).collect::<Vec<_>>()
        };
        assert_eq!(ids(&client.run("XPENDING events group - + 10")), ids(&pending));
        assert_eq!(client.run("FCALL twice 0 21"), Value::Integer(42));
        assert_eq!(
            client.run("HPEXPIRETIME fields FIELDS 1 a"),
            Value::Array(vec![Value::Integer(33_177_117_420_000)])
        );
        let Value::Integer(ttl) = client.run("TTL number") else { panic!("TTL is a number") };
        assert!((900..=1000).contains(&ttl), "{ttl}");
    }
}

#[test]
fn an_rdb_file_becomes_a_base_of_commands() {
    let directory = Directory::new("aof-commands-of-rdb");
    let server = start_in(&directory.0, &["--enable-debug-command", "yes"]);
    let mut client = server.client();
    fill(&mut client);
    let before = digest(&mut client);
    assert_eq!(client.run("SAVE").text(), "OK");
    drop(server.crash());
    for _ in 0..2 {
        let plain = [&always(MODES[0])[..], &["--aof-use-rdb-preamble", "no"]].concat();
        let server = start_in(&directory.0, &plain);
        assert_eq!(digest(&mut server.client()), before);
        assert!(base(&directory.0).to_string_lossy().ends_with(".1.base.aof"));
        drop(server.crash());
    }
}

#[test]
fn a_file_that_has_grown_is_rewritten_automatically() {
    let directory = Directory::new("aof-grown");
    let grows = [
        "--appendonly",
        "yes",
        "--auto-aof-rewrite-min-size",
        "100kb",
        "--auto-aof-rewrite-percentage",
        "50",
    ];
    let server = start_in(&directory.0, &grows);
    let mut client = server.client();
    let value = "x".repeat(1000);
    let mut rounds = 0;
    eventually("the file is rewritten twice", || {
        client.run(&format!("SET key:{} {value}", rounds % 7));
        rounds += 1;
        client.info_number("aof_rewrites") >= 2
    });
    eventually("the rewrite ends", || client.info("aof_rewrite_in_progress") == "0");
    let size = client.info_number("aof_current_size");
    assert!(size < 200_000, "{size}");
}

#[test]
fn the_aof_can_be_switched_on_and_off_under_writes() {
    for mode in MODES {
        let directory = Directory::new("aof-switch");
        let debug = ["--enable-debug-command", "yes"];
        let server = start_in(&directory.0, &[mode, &debug[..]].concat());
        let mut client = server.client();
        client.run("SET before 1");
        let library = "#!lua name=lib\nredis.register_function('f', function() return 1 end)";
        assert_eq!(client.command(&["FUNCTION", "LOAD", library]), Value::from("lib"));
        thread::scope(|scope| {
            for thread in 0..2 {
                let mut client = server.client();
                scope.spawn(move || {
                    for number in 0..500 {
                        client.run(&format!("RPUSH list:{thread} {number}"));
                    }
                });
            }
            // Commands that arrive in the same read as this one are also recorded.
            let switch = &b"CONFIG SET appendonly yes appendfsync always\r\n"[..];
            client.send(&[switch, &b"INCR behind\r\n".repeat(100)].concat()).unwrap();
            assert_eq!(client.read_value().unwrap(), Value::ok());
            (1..=100).for_each(|number| assert_eq!(client.read_value().unwrap(), Value::Integer(number)));
        });
        eventually("the base is written", || client.info("aof_rewrite_in_progress") == "0");
        client.run("SET after 1");
        let before = digest(&mut client);
        drop(server.crash());
        let server = start_in(&directory.0, &always(mode));
        let mut client = server.client();
        assert_eq!(digest(&mut client), before);
        assert_eq!(client.run("FCALL f 0"), Value::Integer(1));
        // The AOF is disabled: later writes are not recorded.
        assert_eq!(client.run("CONFIG SET appendonly no"), Value::ok());
        assert_eq!(client.info("aof_enabled"), "0");
        client.run("SET too-late 1");
        drop(server.crash());
        let server = start_in(&directory.0, &always(mode));
        assert_eq!(digest(&mut server.client()), before);
    }
}

#[test]
fn switching_the_aof_on_fails_in_an_unwritable_directory() {
    let directory = Directory::new("aof-refused");
    let server = start_in(&directory.0, &[]);
    fs::write(directory.0.join("appendonlydir"), "in the way").unwrap();
    let mut client = server.client();
    let refused = client.run("CONFIG SET appendonly yes").text();
    assert!(refused.contains("'appendonly') - Unable to turn on AOF. Check server logs."), "{refused}");
    assert_eq!(client.run("CONFIG GET appendonly"), Value::Array(vec!["appendonly".into(), "no".into()]));
    assert!(!client.run("SET a 1").is_error());
}

#[test]
fn writes_are_refused_at_the_limit_of_file_sizes_and_accepted_above_it() {
    for mode in MODES {
        let directory = Directory::new("aof-file-size");
        let limited = directory.0.join("limited.sh");
        let script = format!("#!/bin/sh\nulimit -S -f 256\nexec '{}' \"$@\"\n", program().display());
        fs::write(&limited, script).unwrap();
        fs::set_permissions(&limited, Permissions::from_mode(0o755)).unwrap();
        let arguments = [mode, &["--appendonly", "yes", "--enable-debug-command", "yes"]].concat();
        let mut server = Server::builder(&limited).arguments(&arguments).directory(&directory.0).start();
        let mut client = server.client();
        let value = "x".repeat(10_000);
        let set = |client: &mut RawClient| client.command(&["SET", "key", value.as_str()]);
        eventually("the limit is met", || {
            // A client whose write does not fit in the file receives no reply; later clients receive an error.
            let mut writing = server.client();
            writing.send_command(&["SET", "key", value.as_str()]).unwrap();
            let reply = writing.read_value();
            reply.is_ok_and(|reply| reply.text().starts_with("MISCONF Errors writing to the AOF"))
        });
        assert_eq!(client.run("GET key"), Value::from(value.as_str()));
        assert_eq!(client.info("aof_last_write_status"), "err");
        let pid = rustix::process::Pid::from_raw(server.pid().cast_signed());
        rustix::process::prlimit(pid, Resource::Fsize, getrlimit(Resource::Fsize)).unwrap();
        eventually("writes are accepted again", || set(&mut client) == Value::ok());
        client.run("SET after 1");
        let before = digest(&mut client);
        client.send(b"SHUTDOWN NOSAVE\r\n").unwrap();
        assert_eq!(server.wait().code(), Some(0), "{}", server.log());
        let server = start_in(&directory.0, &arguments);
        assert_eq!(digest(&mut server.client()), before);
    }
}

#[test]
fn the_keys_of_an_rdb_file_become_the_base_of_the_first_aof() {
    let directory = Directory::new("aof-from-rdb");
    let debug = ["--enable-debug-command", "yes"];
    let server = start_in(&directory.0, &debug);
    let mut client = server.client();
    fill(&mut client);
    client.run("SAVE");
    let before = digest(&mut client);
    drop(server.crash());
    let server = start_in(&directory.0, &always(MODES[0]));
    assert_eq!(digest(&mut server.client()), before);
    drop(server.crash());
    fs::remove_file(directory.0.join("dump.rdb")).unwrap();
    let server = start_in(&directory.0, &always(MODES[0]));
    assert_eq!(digest(&mut server.client()), before);
}

#[test]
fn waitaof_replies_when_the_write_is_durable() {
    let directory = Directory::new("aof-wait");
    let server = start_in(&directory.0, &["--appendonly", "yes", "--appendfsync", "everysec"]);
    let mut client = server.client();
    assert_eq!(client.run("WAITAOF 0 0 0"), Value::Array(vec![1.into(), 0.into()]), "no write happened");
    client.run("SET a 1");
    assert_eq!(client.run("WAITAOF 1 0 0"), Value::Array(vec![1.into(), 0.into()]));
    let file = increments(&directory.0).pop().unwrap();
    assert!(fs::read_to_string(file).unwrap().contains("SET\r\n"));
    assert_eq!(client.run("WAITAOF 1 1 10"), Value::Array(vec![1.into(), 0.into()]), "there is no replica");
    client.run("CONFIG SET appendonly no");
    assert!(client.run("WAITAOF 1 0 0").is_error());
}

#[test]
fn expired_keys_stay_expired_after_a_crash() {
    let directory = Directory::new("aof-expiry");
    let server = start_in(&directory.0, &always(MODES[0]));
    let mut client = server.client();
    client.run("SET short 1 PX 20");
    client.run("SET long 1 PX 1000000");
    client.run("HSET hash f 1 g 2");
    client.run("HPEXPIRE hash 20 FIELDS 1 f");
    eventually("the key expires", || client.run("DBSIZE") == Value::Integer(2));
    eventually("the field expires", || client.run("HLEN hash") == Value::Integer(1));
    client.run("SET last 1");
    drop(server.crash());
    let file = increments(&directory.0).pop().unwrap();
    let text = String::from_utf8_lossy(&fs::read(file).unwrap()).into_owned();
    assert!(text.contains("DEL\r\n$5\r\nshort") && text.contains("HDEL\r\n$4\r\nhash\r\n$1\r\nf"), "{text}");
    let server = start_in(&directory.0, &always(MODES[0]));
    let mut client = server.client();
    assert_eq!(client.run("DBSIZE"), Value::Integer(3));
    assert_eq!(client.run("HLEN hash"), Value::Integer(1));
}

#[test]
fn a_waiter_is_answered_when_its_pop_is_durable() {
    for mode in MODES {
        let directory = Directory::new("aof-waiter");
        let server = start_in(&directory.0, &always(mode));
        let (mut pusher, mut waiter) = (server.client(), server.client());
        for number in 0..20 {
            waiter.send(b"BLPOP queue 0\r\n").unwrap();
            pusher.run(&format!("RPUSH queue {number}"));
            let expected = Value::Array(vec!["queue".into(), number.to_string().as_str().into()]);
            assert_eq!(waiter.read_value().unwrap(), expected);
        }
        drop(server.crash());
        let server = start_in(&directory.0, &always(mode));
        assert_eq!(server.client().run("EXISTS queue"), Value::Integer(0));
    }
}

#[test]
fn timestamps_are_recorded_when_enabled() {
    let directory = Directory::new("aof-times");
    let server =
        builder(&["--appendonly", "yes", "--aof-timestamp-enabled", "yes", "--appendfsync", "always"]);
    let server = server.directory(&directory.0).start();
    server.client().run("SET a 1");
    drop(server.crash());
    let text = fs::read_to_string(increments(&directory.0).pop().unwrap()).unwrap();
    assert!(text.contains("#TS:"), "{text}");
    let server = start_in(&directory.0, &always(MODES[0]));
    assert_eq!(server.client().run("GET a"), Value::from("1"));
}

#[test]
fn the_aof_can_be_switched_on_right_after_it_was_switched_off() {
    for mode in MODES {
        let server = builder(mode).arguments(&["--appendonly", "yes"]).start();
        let mut client = server.client();
        for round in 0..5 {
            assert_eq!(client.run(&format!("SET key:{round} value")), Value::ok());
            assert_eq!(client.run("CONFIG SET appendonly no"), Value::ok());
            let switched = client.run("CONFIG SET appendonly yes");
            assert_eq!(switched, Value::ok(), "{mode:?} {round}");
            eventually("its base is written", || client.info("aof_rewrite_in_progress") == "0");
        }
    }
}

#[test]
fn an_aof_switched_on_during_a_snapshot_begins_after_it() {
    for mode in MODES {
        for ends_before in [false, true] {
            let directory = Directory::new("aof-awaited");
            let debug = ["--enable-debug-command", "yes", "--appendfsync", "always"];
            let server = start_in(&directory.0, &[mode, &debug[..]].concat());
            let mut client = server.client();
            client.run("SET before 1");
            assert_eq!(client.run("CONFIG SET rdb-key-save-delay 10000000"), Value::ok());
            assert!(!client.run("BGSAVE").is_error());
            assert_eq!(client.run("CONFIG SET appendonly yes"), Value::ok());
            assert_eq!(client.info("aof_enabled"), "1");
            // The thread that writes the files reports the failed attempt.
            eventually("the AOF is scheduled", || client.info("aof_rewrite_scheduled") == "1");
            // Replies do not wait for files that do not exist yet; WAITAOF does.
            assert_eq!(client.run("INCR counted"), Value::Integer(1));
            assert_eq!(
                client.run("WAITAOF 1 0 50"),
                Value::Array(vec![Value::Integer(0), Value::Integer(0)])
            );
            if ends_before {
                assert_eq!(client.run("CONFIG SET appendonly no"), Value::ok());
                eventually("the AOF is not scheduled any more", || {
                    client.info("aof_rewrite_scheduled") == "0"
                });
                assert_eq!(client.run("CONFIG SET appendonly yes"), Value::ok());
                assert_eq!(client.run("INCR counted"), Value::Integer(2));
            }
            client.send(b"WAITAOF 1 0 0\r\n").unwrap();
            assert_eq!(server.client().run("CONFIG SET rdb-key-save-delay 0"), Value::ok());
            assert_eq!(
                client.read_value().unwrap(),
                Value::Array(vec![Value::Integer(1), Value::Integer(0)])
            );
            assert_eq!(client.info("aof_rewrite_scheduled"), "0");
            client.run("INCR counted");
            let before = digest(&mut client);
            drop(server.crash());
            let server = start_in(&directory.0, &always(mode));
            assert_eq!(digest(&mut server.client()), before, "{mode:?} {ends_before}");
        }
    }
}

#[test]
fn migrated_keys_are_recorded_as_removed() {
    for mode in MODES {
        let directory = Directory::new("aof-migrate");
        let there = Server::start(program(), mode);
        let server = start_in(&directory.0, &always(mode));
        let mut client = server.client();
        client.run("MSET a 1 b 2");
        let port = there.port().to_string();
        let words = ["MIGRATE", "127.0.0.1", &port, "", "0", "5000", "KEYS", "a", "none", "b"];
        assert_eq!(client.command(&words), Value::ok(), "{mode:?}");
        for line in ["MULTI", "SET c 3", &format!("MIGRATE 127.0.0.1 {port} c 0 5000")] {
            client.run(line);
        }
        assert_eq!(client.run("EXEC"), Value::Array(vec![Value::ok(), Value::ok()]), "{mode:?}");
        let recorded = fs::read(increments(&directory.0).last().unwrap()).unwrap();
        let recorded = String::from_utf8_lossy(&recorded);
        let removed = recorded.find("*3\r\n$3\r\nDEL\r\n$1\r\na\r\n$1\r\nb\r\n");
        let removed_later = recorded.find("*2\r\n$3\r\nDEL\r\n$1\r\nc\r\n");
        assert!(removed.is_some() && removed < removed_later, "{recorded}");
        assert!(!recorded.contains("MIGRATE"), "{recorded}");
        drop(server.crash());
        let server = start_in(&directory.0, &always(mode));
        assert_eq!(server.client().run("DBSIZE"), Value::Integer(0));
    }
}
