//! BGSAVE, save rules, failed saves, and startup while a large file is read.

use std::fs;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ember_testkit::{OnDrop, RawClient, Server, Value};

use crate::{Directory, MODES, program, start_in};

/// The timeout for background work: an fsync can take half a minute on a disk that is busy with a build.
const PATIENCE: Duration = Duration::from_secs(180);

/// The text of MISCONF.
const MISCONF: &str = "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. \
                       Commands that may modify the data set are disabled, because this instance is configured to report \
                       errors during writes if RDB snapshotting fails (stop-writes-on-bgsave-error option). Please check \
                       the Redis logs for details about the RDB error.";

/// Waits until a field of INFO has a value.
fn wait_for(client: &mut RawClient, field: &str, value: &str) {
    let begun = Instant::now();
    while client.info(field) != value {
        assert!(
            begun.elapsed() < PATIENCE,
            "{field} is not {value}: {}",
            client.run("INFO persistence").text()
        );
    }
}

/// Creates this number of keys with values of about 50 bytes.
fn populate(client: &mut RawClient, keys: usize) {
    let script =
        "for number = 1, ARGV[1] do redis.call('SET', 'bulk:' .. number, string.rep(number .. ' ', 8)) end";
    assert!(!client.command(&["EVAL", script, "0", &keys.to_string()]).is_error());
}

/// Replaces the RDB file by a directory, so that no user can write the file, not even root.
fn obstruct(directory: &Directory) {
    let _ = fs::remove_file(directory.0.join("dump.rdb"));
    fs::create_dir_all(directory.0.join("dump.rdb/in-the-way")).unwrap();
}

fn clear(directory: &Directory) {
    fs::remove_dir_all(directory.0.join("dump.rdb")).unwrap();
}

#[test]
fn a_bgsave_is_a_consistent_snapshot_under_writes() {
    for mode in MODES {
        let directory = Directory::new("moment");
        let server = start_in(&directory.0, mode);
        let mut client = server.client();
        populate(&mut client, 30_000);
        client.run("MSET a 0 b 0 n 0");
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let _ends_writing = OnDrop(|| is_over.store(true, Ordering::Relaxed));
            for _ in 0..2 {
                let mut client = server.client();
                let is_over = &is_over;
                scope.spawn(move || {
                    while !is_over.load(Ordering::Relaxed) {
                        client.run("MULTI");
                        client.run("INCR a");
                        client.run("DECR b");
                        assert!(!client.run("EXEC").is_error());
                    }
                });
            }
            // In a consistent snapshot, the keys `number:1` to `number:n` exist, and no key with a higher number.
            let (mut other, is_over) = (server.client(), &is_over);
            scope.spawn(move || {
                for number in 1.. {
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                    // The key exists in any round.
                    let bulk = format!("bulk:{}", (number - 1) % 30_000 + 1);
                    let (key, number) = (format!("number:{number}"), number.to_string());
                    other.run("MULTI");
                    other.command(&["SET", "n", &number]);
                    other.command(&["SET", &key, &number]);
                    other.command(&["APPEND", &bulk, "x"]);
                    assert!(!other.run("EXEC").is_error());
                }
            });
            let mut has_copied = false;
            for round in 1..=5 {
                assert_eq!(client.run("BGSAVE"), Value::Simple(b"Background saving started".to_vec()));
                wait_for(&mut client, "rdb_saves", &round.to_string());
                // On a busy machine a save may end before another client has written.
                has_copied |= client.info("rdb_last_cow_size") != "0";
                let copy = Directory::new("moment-copy");
                fs::copy(directory.0.join("dump.rdb"), copy.0.join("dump.rdb")).unwrap();
                let started = start_in(&copy.0, &["--shards", "1"]);
                let mut client = started.client();
                let mut number = |key: &str| client.run(&format!("GET {key}")).text().parse::<i64>().unwrap();
                assert_eq!(number("a") + number("b"), 0);
                let count = number("n");
                assert_eq!(client.run("DBSIZE"), Value::Integer(30_003 + count));
                let appended = "local n = 0 for i = 1, 30000 do \
                                if redis.call('GET', 'bulk:' .. i):sub(-1) == 'x' then n = n + 1 end end return n";
                assert_eq!(client.command(&["EVAL", appended, "0"]), Value::Integer(count.min(30_000)));
            }
            assert!(has_copied, "no write happened during a save");
        });
        wait_for(&mut client, "rdb_bgsave_in_progress", "0");
        assert_eq!(client.info("rdb_last_bgsave_status"), "ok");
        assert_ne!(client.info("rdb_last_bgsave_time_sec"), "-1");
        assert_eq!(client.info("rdb_current_bgsave_time_sec"), "-1");
        assert_eq!(client.info("current_save_keys_processed"), "0");
        assert!(server.log().contains("bytes were kept because they changed meanwhile"), "{}", server.log());
    }
}

/// Returns the peak memory of a process so far, in KiB.
fn peak_kib(server: &Server) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn large_values_that_change_during_a_snapshot_are_not_copied() {
    const LARGE_KIB: u64 = 60 * 1024;
    for mode in MODES {
        let directory = Directory::new("large");
        let server = start_in(&directory.0, &[mode, &["--enable-debug-command", "yes"]].concat());
        let mut client = server.client();
        client.run(&format!("SETRANGE string {} end", LARGE_KIB * 1024));
        // The APPEND allocates the spare capacity of the string, whose memory does not grow afterwards.
        client.run("APPEND string .");
        let script = "for i = 1, 80000 do redis.call('RPUSH', KEYS[1], i .. ':' .. string.rep('x', 200)) end";
        assert!(!client.command(&["EVAL", script, "1", "list"]).is_error());
        assert_eq!(client.run("HSET hash f 1"), Value::Integer(1));
        let digest = client.run("DEBUG DIGEST");
        let before = peak_kib(&server);
        // All calls have started before anything is saved.
        client.send(b"BGSAVE\r\n").unwrap();
        let mut writers = [server.client(), server.client(), server.client()];
        assert!(!client.read_value().unwrap().is_error());
        let lines = [
            ["APPEND string more", "SETRANGE string 0 begin"],
            ["LPUSH list first", "RPOP list"],
            ["HSET hash f 2", "DEL hash"],
        ];
        for (writer, [first, second]) in writers.iter_mut().zip(lines) {
            writer.send(format!("{first}\r\n{second}\r\n").as_bytes()).unwrap();
        }
        for writer in &mut writers {
            assert!(!writer.read_value().unwrap().is_error());
            assert!(!writer.read_value().unwrap().is_error());
        }
        wait_for(&mut client, "rdb_saves", "1");
        let grown = peak_kib(&server).saturating_sub(before);
        assert!(grown < LARGE_KIB / 3, "{grown} KiB more than {before}");
        assert_eq!(client.run("STRLEN string"), Value::Integer((LARGE_KIB * 1024 + 3 + 1 + 4) as i64));
        drop(server.crash());
        let server = start_in(&directory.0, &[mode, &["--enable-debug-command", "yes"]].concat());
        assert_eq!(server.client().run("DEBUG DIGEST"), digest);
    }
}

#[test]
fn commands_that_cannot_wait_leave_a_large_value_to_the_snapshot() {
    let directory = Directory::new("cannot-wait");
    let server = start_in(&directory.0, &["--enable-debug-command", "yes", "--shards", "2"]);
    let mut client = server.client();
    let script = "for i = 1, 20000 do redis.call('SADD', KEYS[1], 'member-' .. i) end";
    for key in ["undeclared", "expired", "flushed", "renamed"] {
        assert!(!client.command(&["EVAL", script, "1", key]).is_error());
    }
    client.run("SETRANGE flushed:too 3000000 x");
    let digest = client.run("DEBUG DIGEST");
    client.run("MULTI");
    client.run("BGSAVE");
    assert_eq!(
        client.run("EXEC").elements().unwrap()[0],
        Value::Simple(b"Background saving scheduled".to_vec())
    );
    wait_for(&mut client, "rdb_saves", "1");
    client.send(b"BGSAVE\r\n").unwrap();
    assert!(!client.read_value().unwrap().is_error());
    let undeclared = "redis.call('SADD', 'undeclared', 'one more') redis.call('PEXPIREAT', 'expired', 1) \
                      redis.call('RENAME', 'renamed', 'other')";
    assert!(!client.command(&["EVAL", undeclared, "0"]).is_error());
    assert_eq!(client.run("SCARD other"), Value::Integer(20_000));
    assert_eq!(client.run("SCARD undeclared"), Value::Integer(20_001));
    assert_eq!(client.run("FLUSHDB"), Value::ok());
    assert_eq!(client.run("DBSIZE"), Value::Integer(0));
    wait_for(&mut client, "rdb_saves", "2");
    drop(server.crash());
    let server = start_in(&directory.0, &["--enable-debug-command", "yes"]);
    assert_eq!(server.client().run("DEBUG DIGEST"), digest);
}

/// `rdb-key-save-delay` simulates a slow disk.
#[test]
fn values_retained_by_a_snapshot_count_and_delay_writes_at_the_limit() {
    const LIMIT: u64 = 48 << 20;
    const NEW_KEYS: usize = 20_000;
    for mode in MODES {
        let directory = Directory::new("held-back");
        let server = start_in(&directory.0, mode);
        let mut client = server.client();
        client.run(&format!("CONFIG SET maxmemory {LIMIT} maxmemory-policy allkeys-lru"));
        let value = "x".repeat(1000);
        let fill = |number: usize| ["SET".to_owned(), format!("old:{number}"), value.clone()];
        client.pipeline(&(0..60_000).map(fill).collect::<Vec<_>>()).unwrap();
        let before = client.info_number("used_memory");
        // Writing a key takes a second, so the save writes at most a few hundred keys.
        client.run("CONFIG SET rdb-key-save-delay 1000000 rdbcompression no");
        client.run("BGSAVE");
        let is_last_there = |client: &mut RawClient| client.run(&format!("EXISTS new:{}", NEW_KEYS - 1));
        thread::scope(|scope| {
            let ending = OnDrop(|| _ = server.client().run("CONFIG SET rdb-key-save-delay 0"));
            let mut writer = server.client();
            writer.set_timeout(PATIENCE).unwrap();
            let value = &value;
            scope.spawn(move || {
                for number in 0..NEW_KEYS {
                    assert_eq!(writer.command(&["SET", &format!("new:{number}"), value]).text(), "OK");
                }
            });
            let begun = Instant::now();
            while client.info_number("mem_snapshot_buffer") < LIMIT / 16 {
                assert!(begun.elapsed() < PATIENCE, "{}", client.run("INFO memory").text());
            }
            let used = client.info_number("used_memory");
            // Almost nothing is saved yet: evicted values are retained, up to their limit, and free no memory.
            assert!(
                used < before + LIMIT / 16 + LIMIT / 32,
                "{used}, {before} before: {}",
                client.run("INFO memory").text()
            );
            // If a write did not wait, the values evicted for it would be retained, too.
            let handed = client.info_number("mem_snapshot_buffer");
            assert!(handed <= LIMIT / 16 + LIMIT / 32, "{handed}");
            assert_eq!(is_last_there(&mut client), Value::Integer(0), "the write waits");
            drop(ending);
        });
        assert_eq!(is_last_there(&mut client), Value::Integer(1));
        wait_for(&mut client, "rdb_bgsave_in_progress", "0");
        assert_eq!(client.info("rdb_last_bgsave_status"), "ok");
        assert_eq!(client.info("mem_snapshot_buffer"), "0");
    }
}

#[test]
fn only_one_bgsave_runs_at_a_time() {
    let directory = Directory::new("one");
    let server = start_in(&directory.0, &[]);
    let mut client = server.client();
    populate(&mut client, 50_000);
    client.send(b"BGSAVE\r\nBGSAVE\r\nBGSAVE SCHEDULE\r\nSAVE\r\nBGSAVE x\r\nBGSAVE SCHEDULE x\r\n").unwrap();
    assert_eq!(client.read_value().unwrap(), Value::Simple(b"Background saving started".to_vec()));
    for _ in 0..3 {
        assert_eq!(client.read_value().unwrap().text(), "ERR Background save already in progress");
    }
    assert_eq!(client.read_value().unwrap().text(), "ERR syntax error");
    assert_eq!(client.read_value().unwrap().text(), "ERR syntax error");
    wait_for(&mut client, "rdb_saves", "1");
    wait_for(&mut client, "rdb_bgsave_in_progress", "0");
    assert_eq!(client.run("SAVE"), Value::ok());
    // The save is aborted at the shutdown, and leaves no file.
    client.send(b"BGSAVE\r\nSHUTDOWN NOSAVE\r\n").unwrap();
    assert!(!client.read_value().unwrap().is_error());
    assert!(client.read_value().is_err());
    let mut server = server;
    assert_eq!(server.wait().code(), Some(0), "{}", server.log());
    let names = fs::read_dir(&directory.0).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(!names.into_iter().any(|name| name.to_string_lossy().contains("temp")), "{}", server.log());
}

#[test]
fn save_rules_trigger_saves_and_one_at_shutdown() {
    let directory = Directory::new("rules");
    let server = start_in(&directory.0, &["--save", "100000 1", "--save", "1 3"]);
    let mut client = server.client();
    let get = |client: &mut RawClient| client.run("CONFIG GET save").elements().unwrap()[1].text();
    assert_eq!(get(&mut client), "100000 1 1 3");
    client.run("MSET a 1 b 2");
    assert_eq!(client.info("rdb_changes_since_last_save"), "2");
    client.run("SET c 3");
    wait_for(&mut client, "rdb_saves", "1");
    assert_eq!(client.info("rdb_changes_since_last_save"), "0");
    assert!(server.log().contains("3 changes in 1 seconds: saving"), "{}", server.log());
    for (value, error) in [("1", "Invalid save parameters"), ("0 1", "Invalid save parameters")] {
        let refused = client.command(&["CONFIG", "SET", "save", value]).text();
        assert_eq!(refused, format!("ERR CONFIG SET failed (possibly related to argument 'save') - {error}"));
    }
    assert_eq!(client.command(&["CONFIG", "SET", "save", "3600 1 300 100"]), Value::ok());
    assert_eq!(get(&mut client), "3600 1 300 100");
    drop(server.crash());
    for (ending, is_kept) in [("SHUTDOWN", true), ("SHUTDOWN NOSAVE", false), ("TERM", true), ("", false)] {
        let mut server = start_in(&directory.0, &["--save", "3600 1"]);
        let mut client = server.client();
        let before = client.run("GET round");
        client.command(&["SET", "round", ending]);
        match ending {
            "TERM" => server.signal("TERM"),
            "" => {
                client.command(&["CONFIG", "SET", "save", ""]);
                server.signal("INT");
            }
            line => client.send(format!("{line}\r\n").as_bytes()).unwrap(),
        }
        assert_eq!(server.wait().code(), Some(0), "{}", server.log());
        let server = start_in(&directory.0, &[]);
        let expected = if is_kept { Value::from(ending) } else { before };
        assert_eq!(server.client().run("GET round"), expected, "{ending}");
    }
}

#[test]
fn writes_are_refused_after_a_failure_until_saving_succeeds() {
    for mode in MODES {
        let directory = Directory::new("misconf");
        let mut server = start_in(&directory.0, &[mode, &["--save", "100000 1"]].concat());
        let mut client = server.client();
        client.run("MSET a 1 b 1");
        obstruct(&directory);
        client.run("BGSAVE");
        wait_for(&mut client, "rdb_last_bgsave_status", "err");
        for line in ["SET a 2", "DEL a", "FLUSHALL", "PING", "EVAL return(redis.call('SET','a','2')) 0"] {
            let refused = client.run(line).text();
            assert!(refused.starts_with(MISCONF), "{line}: {refused}");
        }
        let replies = client.pipeline(&[&["GET", "a"][..], &["SET", "b", "2"], &["GET", "b"]]).unwrap();
        assert_eq!((&replies[0], &replies[2]), (&Value::from("1"), &Value::from("1")));
        assert_eq!(replies[1].text(), MISCONF);
        client.run("MULTI");
        assert_eq!(client.run("SET a 2").text(), MISCONF);
        assert!(client.run("EXEC").text().starts_with("EXECABORT"));
        let script = "#!lua\nreturn redis.call('GET', KEYS[1])";
        assert_eq!(client.command(&["EVAL", script, "1", "a"]).text(), MISCONF);
        let script = "#!lua flags=no-writes\nreturn redis.call('GET', KEYS[1])";
        assert_eq!(client.command(&["EVAL", script, "1", "a"]), Value::from("1"));
        // SHUTDOWN is refused, too, unless it is forced.
        assert_eq!(client.run("SHUTDOWN").text(), "ERR Errors trying to SHUTDOWN. Check logs.");
        server.signal("TERM");
        let begun = Instant::now();
        // The error is logged once for each of the two attempts.
        while server.log().matches("Error trying to save the DB, can't exit").count() < 2 {
            assert!(begun.elapsed() < PATIENCE, "{}", server.log());
        }
        for (parameter, value, result) in [
            ("stop-writes-on-bgsave-error", "no", "OK"),
            ("stop-writes-on-bgsave-error", "yes", MISCONF),
            ("save", "", "OK"),
            ("save", "1 1", MISCONF),
        ] {
            assert_eq!(client.command(&["CONFIG", "SET", parameter, value]), Value::ok());
            assert_eq!(client.run("SET a 3").text(), result, "{parameter} {value}");
        }
        // The save rule retries automatically.
        clear(&directory);
        wait_for(&mut client, "rdb_last_bgsave_status", "ok");
        assert_eq!(client.run("SET a 4"), Value::ok());
        obstruct(&directory);
        client.send(b"SHUTDOWN FORCE\r\n").unwrap();
        assert!(client.read_value().is_err());
        assert_eq!(server.wait().code(), Some(0), "{}", server.log());
    }
}

/// Returns an RDB file with a large sorted set of unsorted members. One thread builds the set, so loading takes a while
/// on any number of cores.
fn slow_file(members: u32) -> Vec<u8> {
    let mut file = [&b"REDIS0010\xFE\x00\x05\x01z\x80"[..], &members.to_be_bytes()].concat();
    for number in 0..u64::from(members) {
        let scattered = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        file.push(8);
        file.extend_from_slice(&scattered.to_be_bytes());
        file.extend_from_slice(&(scattered as f64).to_le_bytes());
    }
    file.extend_from_slice(b"\xFF\0\0\0\0\0\0\0\0");
    file
}

#[test]
fn commands_get_loading_errors_while_the_data_set_is_loaded() {
    let directory = Directory::new("loading");
    fs::write(directory.0.join("dump.rdb"), slow_file(1_000_000)).unwrap();
    let mut child = Command::new(program())
        .args(["--port", "0", "--unixsocket", "s", "--save", "", "--shards", "2"])
        .current_dir(&directory.0)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    let mut client = loop {
        if let Ok(client) = RawClient::connect_unix(&directory.0.join("s")) {
            break client;
        }
        assert!(begun.elapsed() < PATIENCE);
    };
    let lines =
        [&["GET", "bulk:1"][..], &["INFO", "persistence"], &["PING"], &["SAVE"], &["CONFIG", "GET", "hz"]];
    let replies = client.pipeline(&lines).unwrap();
    for refused in [0, 2, 3] {
        assert_eq!(replies[refused].text(), "LOADING Redis is loading the dataset in memory");
    }
    assert_eq!(replies[4].elements().unwrap()[0], Value::from("hz"));
    let info = replies[1].text();
    assert!(info.contains("\r\nloading:1\r\nasync_loading:0\r\n"), "{info}");
    for field in [
        "loading_start_time",
        "loading_total_bytes",
        "loading_rdb_used_mem",
        "loading_loaded_bytes",
        "loading_loaded_perc",
        "loading_eta_seconds",
    ] {
        assert!(info.contains(&format!("\r\n{field}:")), "{field}: {info}");
    }
    while client.run("PING").is_error() {
        assert!(begun.elapsed() < PATIENCE);
    }
    assert_eq!(client.run("ZCARD z"), Value::Integer(1_000_000));
    assert_eq!(client.info("loading"), "0");
    assert!(!client.run("INFO persistence").text().contains("loading_start_time"));
    client.send(b"SHUTDOWN NOSAVE\r\n").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    // SHUTDOWN is also accepted while loading, and then saves nothing.
    let file = fs::read(directory.0.join("dump.rdb")).unwrap();
    let mut server = Command::new(program())
        .args(["--port", "0", "--unixsocket", "t", "--save", "3600 1"])
        .current_dir(&directory.0)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut client = loop {
        if let Ok(client) = RawClient::connect_unix(&directory.0.join("t")) {
            break client;
        }
        assert!(begun.elapsed() < PATIENCE);
    };
    client.send(b"SHUTDOWN\r\n").unwrap();
    assert_eq!(server.wait().unwrap().code(), Some(0));
    assert_eq!(fs::read(directory.0.join("dump.rdb")).unwrap(), file);
}

#[test]
fn without_save_rules_a_failure_refuses_no_writes() {
    let directory = Directory::new("no-rules");
    let server = start_in(&directory.0, &[]);
    obstruct(&directory);
    let mut client = server.client();
    client.run("BGSAVE");
    wait_for(&mut client, "rdb_last_bgsave_status", "err");
    assert_eq!(client.run("SET a 1"), Value::ok());
}
