//! The history of keys: reads of past states, and their errors.

use ember_testkit::{RawClient, Server, Value, split_arguments, wait_until};

use super::MODES;

fn start_with(mode: &[&str], arguments: &[&str]) -> Server {
    start_covering("*", mode, arguments)
}

fn start_covering(keys: &str, mode: &[&str], arguments: &[&str]) -> Server {
    Server::builder(env!("CARGO_BIN_EXE_ember-server"))
        .arguments(mode)
        .arguments(&["--history-keys", keys])
        .arguments(arguments)
        .keeps_values()
        .start()
}

fn run(client: &mut RawClient, line: &str) -> Value {
    client.command(&split_arguments(line).unwrap())
}

fn text(client: &mut RawClient, line: &str) -> String {
    let value = run(client, line);
    match value {
        Value::Error(text) => String::from_utf8_lossy(&text).into_owned(),
        Value::Null => "(nil)".to_owned(),
        Value::Integer(number) => number.to_string(),
        Value::Array(list) => list.iter().map(|one| one.text()).collect::<Vec<_>>().join(" "),
        other => other.text(),
    }
}

fn now_ms(client: &mut RawClient) -> i64 {
    let time = client.run("TIME");
    let part = |at: usize| time.elements().unwrap()[at].text().parse::<i64>().unwrap();
    part(0) * 1000 + part(1) / 1000
}

/// Returns the current millisecond, after it has ended.
fn moment(client: &mut RawClient) -> i64 {
    let at_ms = now_ms(client);
    wait_until("the moment is over", || now_ms(client) > at_ms);
    at_ms
}

/// Returns the operations of a key's versions.
fn operations(client: &mut RawClient, key: &str) -> String {
    let versions = client.command(&["HISTORY", key]);
    let of = |version: &Value| version.elements().unwrap()[5].text();
    versions.elements().unwrap().iter().map(of).collect::<Vec<_>>().join(" ")
}

#[test]
fn keys_of_all_types_are_read_as_they_were() {
    for mode in MODES {
        let server = start_with(mode, &[]);
        let mut client = server.client();
        let before = moment(&mut client);
        for line in ["SET s one", "HSET h f 1", "RPUSH l a b", "SADD t x", "ZADD z 1 m", "XADD x 1-1 f v"] {
            client.run(line);
        }
        let first = moment(&mut client);
        for line in
            ["APPEND s two", "HINCRBY h f 4", "LPOP l", "SREM t x", "ZINCRBY z 2 m", "DEL x", "SET n 7"]
        {
            client.run(line);
        }
        let second = moment(&mut client);
        client.run("FLUSHALL");
        for (at, line, expected) in [
            (before, "GET s", "(nil)"),
            (before, "HGETALL h", ""),
            (first, "GET s", "one"),
            (first, "HGETALL h", "f 1"),
            (first, "LRANGE l 0 -1", "a b"),
            (first, "SMEMBERS t", "x"),
            (first, "ZRANGE z 0 -1 WITHSCORES", "m 1"),
            (first, "XLEN x", "1"),
            (first, "TYPE x", "stream"),
            (first, "MGET s n", "one "),
            (second, "GET s", "onetwo"),
            (second, "HGETALL h", "f 5"),
            (second, "LRANGE l 0 -1", "b"),
            (second, "EXISTS t x n", "1"),
            (second, "ZRANGE z 0 -1 WITHSCORES", "m 3"),
            (second, "OBJECT ENCODING n", "int"),
            (second, "STRLEN h", "WRONGTYPE Operation against a key holding the wrong kind of value"),
        ] {
            assert_eq!(text(&mut client, &format!("ASOF {at} {line}")), expected, "{mode:?}: {line}");
        }
        assert_eq!(text(&mut client, &format!("get s as of {first}")), "one");
        assert_eq!(text(&mut client, "GET s AS OF now"), "(nil)");
        assert_eq!(operations(&mut client, "s"), "set append flushall");
        assert_eq!(operations(&mut client, "x"), "xadd del");
    }
}

#[test]
fn what_the_server_does_to_keys_is_part_of_their_history() {
    for mode in MODES {
        let server = start_with(mode, &[]);
        let mut client = server.client();
        client.run("SET short here PX 5");
        client.run("HSET h f 1 g 2");
        client.run("HPEXPIRE h 5 FIELDS 1 f");
        let first = text(&mut client, "HISTORY.LAST short");
        assert!(first.contains("set"), "{first}");
        wait_until("the key has expired", || operations(&mut client, "short") == "set expired");
        wait_until("the field has expired", || operations(&mut client, "h").ends_with("fields-expired"));
        let at_ms =
            client.command(&["HISTORY", "short"]).elements().unwrap()[0].elements().unwrap()[1].clone();
        let at_ms = at_ms.integer().unwrap();
        assert_eq!(text(&mut client, &format!("GET short AS OF {at_ms}")), "here");
        assert_eq!(text(&mut client, &format!("GET short AS OF {}", at_ms + 6)), "(nil)", "{mode:?}");
        client.run("SET old 1");
        let renamed = moment(&mut client);
        client.run("RENAME old new");
        assert_eq!(text(&mut client, &format!("ASOF {renamed} MGET old new")), "1 ");
        assert_eq!(text(&mut client, "ASOF now MGET old new"), " 1");
        client.run("CONFIG SET maxmemory-policy allkeys-random");
        client.run("CONFIG SET maxmemory 1");
        client.run("SET refused 1");
        client.run("CONFIG SET maxmemory 0");
        wait_until("the key is evicted", || operations(&mut client, "new") == "rename evicted");
    }
}

#[test]
fn a_transaction_and_a_script_are_one_version() {
    for mode in MODES {
        let server = start_with(mode, &[]);
        let mut client = server.client();
        for line in ["MULTI", "SET a 1", "INCR a", "SET b 2", "DEL b", "EXEC"] {
            client.run(line);
        }
        run(&mut client, "EVAL \"redis.call('INCR', KEYS[1]) return redis.call('INCR', KEYS[1])\" 1 a");
        run(&mut client, "EVAL \"redis.call('INCR', 'a') redis.call('SET', 'c', 1)\" 0");
        let versions = client.command(&["HISTORY", "a", "WITHVALUES"]);
        let values: Vec<String> =
            versions.elements().unwrap().iter().map(|one| one.elements().unwrap()[11].text()).collect();
        assert_eq!(values, ["2", "4", "5"], "{mode:?}");
        assert_eq!(text(&mut client, "HISTORY.COUNT b"), "1");
        // A call that changes nothing creates no version; the first PFCOUNT stores its result in the value.
        for line in ["PFADD p x", "PFCOUNT p", "PFCOUNT p"] {
            client.run(line);
        }
        client.run("SETNX a 9");
        client.run("SREM nothing x");
        assert_eq!(
            (operations(&mut client, "p"), text(&mut client, "HISTORY.COUNT a")),
            ("pfadd pfcount".into(), "3".into())
        );
    }
}

#[test]
fn exchanged_databases_are_read_as_they_were() {
    for mode in MODES {
        let server = start_with(mode, &[]);
        let mut client = server.client();
        for line in ["SET k zero", "SELECT 1", "SET k one", "SET other 1", "SELECT 0"] {
            client.run(line);
        }
        let before = moment(&mut client);
        client.run("SWAPDB 0 1");
        let after = moment(&mut client);
        client.run("SET k new");
        assert_eq!(text(&mut client, &format!("GET k AS OF {before}")), "zero");
        assert_eq!(text(&mut client, &format!("GET k AS OF {after}")), "one");
        assert_eq!(text(&mut client, &format!("GET other AS OF {before}")), "(nil)");
        assert_eq!(text(&mut client, &format!("GET other AS OF {after}")), "1");
        assert_eq!(operations(&mut client, "k"), "set swapdb set", "{mode:?}");
        client.run("SELECT 1");
        assert_eq!(text(&mut client, &format!("GET k AS OF {before}")), "one");
        assert_eq!(text(&mut client, &format!("GET k AS OF {after}")), "zero");
    }
}

#[test]
fn versions_are_selected_by_time_and_number() {
    let server = start_with(MODES[0], &[]);
    let mut client = server.client();
    let mut moments = Vec::new();
    for number in 0..5 {
        client.run(&format!("SET k {number}"));
        moments.push(moment(&mut client));
    }
    let mut values = |options: &str| {
        let versions = run(&mut client, &format!("HISTORY k {options} WITHVALUES"));
        let versions = versions.elements().unwrap_or_else(|| panic!("{options}: {versions:?}")).to_vec();
        versions.iter().map(|one| one.elements().unwrap()[11].text()).collect::<String>()
    };
    assert_eq!(values(""), "01234");
    assert_eq!(values("ORDER DESC"), "43210");
    assert_eq!(values("LIMIT 2"), "01");
    assert_eq!(values("COUNT 2 OFFSET 1 ORDER DESC"), "32");
    assert_eq!(values("LIMIT 0"), "");
    let (from, to) = (moments[0] + 1, moments[2]);
    for order in ["ASC", "DESC"] {
        let mut both = values(&format!("FROM {from} TO {to} ORDER {order}")).into_bytes();
        both.sort_unstable();
        assert_eq!(both, b"12", "bounds are inclusive");
    }
    assert_eq!(values(&format!("SINCE {from} UNTIL now")), "1234");
    assert_eq!(values(&format!("FROM {to} TO {from}")), "");
    let last = client.run("HISTORY.LAST k");
    let names: Vec<String> = last.elements().unwrap().iter().step_by(2).map(Value::text).collect();
    assert_eq!(names, ["timestamp", "version", "operation", "type", "ttl", "value"]);
    assert_eq!(client.run("HISTORY.FIRST k").elements().unwrap()[11].text(), "0");
    assert_eq!(text(&mut client, "HISTORY.FIRST nothing"), "(nil)");
    assert_eq!(text(&mut client, "HISTORY.COUNT nothing"), "0");
    let mut three = server.client();
    three.run("HELLO 3");
    assert!(matches!(three.run("HISTORY.LAST k"), Value::Map(_)));
}

#[test]
fn a_moment_that_was_read_never_changes() {
    for mode in MODES {
        let server = start_with(mode, &[]);
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let (mut client, mut other) = (server.client(), server.client());
                std::thread::spawn(move || {
                    for _ in 0..200 {
                        let now = now_ms(&mut client);
                        let line = format!("ASOF {now} MGET a b");
                        let first = text(&mut client, &line);
                        for change in ["MULTI", "INCR a", "INCR b", "EXEC"] {
                            other.run(change);
                        }
                        assert_eq!(text(&mut client, &line), first);
                        let (a, b) = first.split_once(' ').unwrap();
                        assert_eq!(a, b, "a transaction is seen as a whole");
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}

#[test]
fn what_is_not_known_is_an_error() {
    for mode in MODES {
        let server = start_covering("* !secret:*", mode, &["--history-max-value", "1000"]);
        let mut client = server.client();
        client.run("SET k 1");
        for (line, expected) in [
            ("GET k AS OF 0", "ERR '0' is not a time"),
            ("GET k AS OF \"\"", "ERR '' is not a time"),
            ("GET k AS OF yesterday", "ERR 'yesterday' is not a time"),
            ("GET k AS OF 9999999999", "ERR the moment 9999999999000 is in the future"),
            ("GET k AS OF 2020-01-01", "TOOOLD history begins at "),
            ("HISTORY k FROM -1h", "TOOOLD history begins at "),
            ("HISTORY k FROM", "ERR syntax error"),
            ("HISTORY k LIMIT -1", "ERR LIMIT must not be negative"),
            ("GET secret:1 AS OF now", "ERR the history does not cover this key"),
            ("HISTORY secret:1", "ERR the history does not cover this key"),
            ("ASOF now SET k 2", "ERR 'set' cannot read the past"),
            ("ASOF now KEYS *", "ERR 'keys' cannot read the past"),
            ("ASOF now SRANDMEMBER k", "ERR 'srandmember' cannot read the past"),
            ("ASOF now SORT_RO k BY x*", "ERR 'sort_ro' cannot read the past"),
            ("ASOF now ASOF now GET k", "ERR 'asof' cannot read the past"),
            ("ASOF now NOTHING k", "ERR unknown command"),
            ("GET k AS 1", "ERR wrong number of arguments for 'get' command"),
            (
                "EVAL \"return redis.call('ASOF', 'now', 'GET', KEYS[1])\" 1 k",
                "ERR This Redis command is not allowed",
            ),
        ] {
            let found = text(&mut client, line);
            assert!(found.starts_with(expected), "{mode:?}: {line}: {found}");
        }
        client.run("MULTI");
        assert!(text(&mut client, "ASOF now GET k").starts_with("ERR"));
        client.run("DISCARD");
        // A state that is too large is a gap; earlier and later states are known.
        let small = moment(&mut client);
        client.command(&["SET", "k", &"x".repeat(2000)]);
        let large = moment(&mut client);
        client.run("SET k 3");
        assert_eq!(text(&mut client, &format!("GET k AS OF {small}")), "1");
        assert!(text(&mut client, &format!("GET k AS OF {large}")).starts_with("GAP "));
        assert!(text(&mut client, &format!("ASOF {large} MGET k other")).starts_with("GAP "));
        assert_eq!(text(&mut client, "GET k AS OF now"), "3");
    }
    let server = Server::start(env!("CARGO_BIN_EXE_ember-server"), &["--shards", "1"]);
    let mut client = server.client();
    for line in ["GET k AS OF now", "ASOF now GET k", "HISTORY k", "HISTORY.LAST k"] {
        assert_eq!(text(&mut client, line), "ERR the history is off: set history-keys");
    }
}

#[test]
fn rights_apply_to_the_command_that_reads_the_past() {
    let server = start_with(MODES[0], &[]);
    let mut client = server.client();
    client.run("MSET mine 1 other 2");
    client.run("ACL SETUSER reader on nopass ~mine +asof +get +history");
    let mut reader = server.client();
    reader.run("AUTH reader any");
    assert_eq!(text(&mut reader, "ASOF now GET mine"), "1");
    assert_eq!(text(&mut reader, "GET mine AS OF now"), "1");
    assert!(!reader.run("HISTORY mine").is_error());
    for line in [
        "ASOF now GET other",
        "GET other AS OF now",
        "HISTORY other",
        "ASOF now STRLEN mine",
        "HISTORY.LAST mine",
    ] {
        assert!(text(&mut reader, line).starts_with("NOPERM"), "{line}");
    }
}

#[test]
fn other_data_begin_another_history() {
    for mode in MODES {
        let server = start_with(mode, &["--enable-debug-command", "yes"]);
        let mut client = server.client();
        client.run("SET k 1");
        let before = moment(&mut client);
        client.run("SET k 2");
        assert_eq!(text(&mut client, "DEBUG RELOAD"), "OK");
        assert!(text(&mut client, &format!("GET k AS OF {before}")).starts_with("TOOOLD "), "{mode:?}");
        // The history begins one or two milliseconds after the load.
        let after = (0..4).map(|_| moment(&mut client)).max().unwrap();
        client.run("SET k 3");
        assert_eq!(text(&mut client, &format!("GET k AS OF {after}")), "2");
    }
}

#[test]
fn the_oldest_states_are_removed_before_the_files_exceed_their_limit() {
    for mode in MODES {
        let server = start_with(mode, &["--history-max-size", "8mb"]);
        let mut client = server.client();
        client.run("SET seldom first");
        client.run("SET never same");
        let begun = moment(&mut client);
        let mut moments = Vec::new();
        for round in 0..12 {
            for key in 0..20 {
                let value = format!("{round}:{key}:{}", "v".repeat(100_000));
                client.command(&["SET", &format!("often{key}"), &value]);
            }
            moments.push(moment(&mut client));
        }
        client.run("SET seldom second");
        // A read waits until all changes are stored.
        text(&mut client, "HISTORY.COUNT seldom");
        let info = client.run("TEMPORAL INFO");
        let figure = |name: &str| {
            let words = info.elements().unwrap();
            let at = words.iter().position(|word| word.text() == name).unwrap();
            words[at + 1].integer().unwrap()
        };
        assert!(figure("stored_bytes") <= 9 << 20, "{mode:?}: {info:?}");
        assert!(figure("oldest_ms") > begun && figure("lost_states") == 0, "{mode:?}: {info:?}");
        assert!(text(&mut client, &format!("GET often1 AS OF {begun}")).starts_with("TOOOLD "));
        let mut answered = 0;
        for (round, at) in moments.iter().enumerate() {
            let often = text(&mut client, &format!("GET often7 AS OF {at}"));
            if *at < figure("oldest_ms") {
                assert!(often.starts_with("TOOOLD "), "{often}");
                continue;
            }
            answered += 1;
            assert!(often.starts_with(&format!("{round}:7:")), "{mode:?}: round {round}");
            assert_eq!(text(&mut client, &format!("GET seldom AS OF {at}")), "first");
            assert_eq!(text(&mut client, &format!("GET never AS OF {at}")), "same");
        }
        assert!(answered > 0, "{mode:?}");
        assert_eq!(text(&mut client, "GET seldom AS OF now"), "second");
    }
}

#[test]
fn two_moments_differ_in_these_elements() {
    let server = start_with(MODES[0], &[]);
    let mut client = server.client();
    for line in
        ["SET s a", "HSET h same 1 old 2 both 3", "SADD t x y", "ZADD z 1 m", "RPUSH l a b", "XADD x 1-1 f v"]
    {
        run(&mut client, line);
    }
    let before = moment(&mut client);
    for line in [
        "SET s b",
        "HDEL h old",
        "HSET h both 4 new 5",
        "SREM t x",
        "SADD t w",
        "ZINCRBY z 1 m",
        "LPUSH l a",
        "XADD x 1-2 f w",
        "SET n 1",
    ] {
        run(&mut client, line);
    }
    let after = moment(&mut client);
    run(&mut client, "DEL h");
    let mut diff = |key: &str, from: &str, to: &str| {
        let value = run(&mut client, &format!("DIFF {key} {from} {to}"));
        let differences = value.elements().unwrap_or_else(|| panic!("{key}: {value:?}")).to_vec();
        let one = |difference: &Value| {
            let parts = difference.elements().unwrap().iter();
            parts
                .map(|part| if *part == Value::Null { "-".into() } else { part.text() })
                .collect::<Vec<_>>()
                .join(" ")
        };
        differences.iter().map(one).collect::<Vec<_>>().join(", ")
    };
    let (before, after) = (before.to_string(), after.to_string());
    for (key, expected) in [
        ("s", "changed value a b"),
        ("h", "changed both 3 4, added new - 5, removed old 2 -"),
        ("t", "added w - -, removed x - -"),
        ("z", "changed m 1 2"),
        ("l", "changed 1 b a, added 2 - b"),
        ("x", "added 1-2 - f w"),
        ("n", "added value - 1"),
        ("nothing", ""),
    ] {
        assert_eq!(diff(key, &before, &after), expected, "{key}");
        assert_eq!(diff(key, &before, &before), "", "{key}");
    }
    assert_eq!(diff("h", &after, "now"), "removed both 4 -, removed new 5 -, removed same 1 -");
}

#[test]
fn a_past_state_is_put_back() {
    for mode in MODES {
        let server = start_with(mode, &[]);
        let mut client = server.client();
        let nothing = moment(&mut client);
        run(&mut client, "HSET h f 1");
        run(&mut client, "PEXPIRE h 100000000");
        let before = moment(&mut client);
        run(&mut client, "HSET h f 2 g 3");
        run(&mut client, "PERSIST h");
        assert_eq!(text(&mut client, &format!("RESTORE.FROM h {before} NEWKEY copy")), "OK");
        assert_eq!(text(&mut client, "HGETALL copy"), "f 1", "{mode:?}");
        assert!(text(&mut client, "PTTL copy").parse::<i64>().unwrap() > 0);
        assert!(text(&mut client, &format!("RESTORE.FROM h {before} NEWKEY copy")).starts_with("BUSYKEY"));
        assert_eq!(text(&mut client, "HLEN h"), "2");
        assert_eq!(text(&mut client, &format!("RESTORE.FROM h {before}")), "OK");
        assert_eq!(text(&mut client, "HGETALL h"), "f 1");
        assert_eq!(operations(&mut client, "h"), "hset pexpire hset persist restore");
        assert!(
            text(&mut client, &format!("RESTORE.FROM h {nothing}")).starts_with("ERR the key did not exist")
        );
        run(&mut client, "ACL SETUSER reader on nopass ~h +@all -restore.from");
        let mut reader = server.client();
        reader.run("AUTH reader any");
        assert!(text(&mut reader, &format!("RESTORE.FROM h {before}")).starts_with("NOPERM"));
    }
}

#[test]
fn a_forgotten_key_is_in_no_file() {
    for mode in MODES {
        let server = start_with(mode, &[]);
        let mut client = server.client();
        let secret = "secret-of-this-key".repeat(100);
        client.command(&["SET", "k", &secret]);
        run(&mut client, "SET other kept");
        let before = moment(&mut client);
        // Several buffers are written to files.
        for number in 0..120 {
            client.command(&["SET", &format!("filler{}", number % 7), &"f".repeat(100_000)]);
        }
        run(&mut client, "SET other later");
        run(&mut client, "SET k public");
        let contains = || {
            let files = std::fs::read_dir(server.directory().join("history")).unwrap();
            files
                .map(|file| std::fs::read(file.unwrap().path()).unwrap())
                .any(|bytes| bytes.windows(18).any(|part| part == b"secret-of-this-key"))
        };
        wait_until("the state is in a file", contains);
        assert_eq!(text(&mut client, "TEMPORAL FORGET k"), "OK");
        assert!(!contains(), "{mode:?}");
        assert!(text(&mut client, &format!("GET k AS OF {before}")).starts_with("FORGOTTEN "), "{mode:?}");
        assert_eq!(text(&mut client, "GET k AS OF now"), "public");
        assert_eq!(text(&mut client, "HISTORY.COUNT k"), "0");
        let after = moment(&mut client);
        run(&mut client, "SET k next");
        assert_eq!(text(&mut client, &format!("GET k AS OF {after}")), "public");
        assert_eq!(text(&mut client, &format!("GET other AS OF {before}")), "kept", "{mode:?}");
        assert!(!contains());
    }
}
