//! Long-running commands have the same replies and effects as short ones, and delay no other client.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use ember_testkit::{Directory, OnDrop, Random, RawClient, Server, Value};

use crate::blocking::{read, shown, wait_for_blocked};
use crate::{MODES, clients, start};

/// Starts a server that treats a call that reads more than two elements as long-running.
pub(crate) fn start_with_long_calls(mode: &[&str], more: &[&str]) -> Server {
    let arguments = [mode, &["--long-call-elements", "2"], more].concat();
    Server::start(env!("CARGO_BIN_EXE_ember-server"), &arguments)
}

const GIVEN: &[&str] = &[
    "SADD s 1 2 3 4 5 6",
    "SADD t 4 5 6 7",
    "SADD names a b c d",
    "ZADD z 1 a 2 b 3 c 4 d",
    "ZADD y 3 b 4 e 5 f",
    "RPUSH l a b c d e",
    "HSET h a 1 b 2 c 3 d 4",
    "SET one 1",
    "XADD x 1-1 a 1",
    "XADD x 2-1 a 2",
    "XADD x 3-1 a 3",
    "GEOADD g 13.361389 38.115556 Palermo 15.087269 37.502669 Catania 13.583333 37.316667 Agrigento",
    "BF.INSERT q1 CAPACITY 1000 ITEMS a",
    "CF.ADD q2 a",
    "CMS.INITBYDIM q3 400 3",
    "CMS.INCRBY q3 a 2",
    "TDIGEST.CREATE q4",
    "TDIGEST.ADD q4 1 2 3",
];

const CALLS: &[&str] = &[
    "SMEMBERS s",
    "SINTER s t",
    "SINTERCARD 2 s t LIMIT 2",
    "SUNION s t names",
    "SDIFF s t",
    "SINTERSTORE to s t",
    "SDIFFSTORE to s t",
    "SUNIONSTORE s s t",
    "SDIFFSTORE names names s",
    "LRANGE l 1 -1",
    "LRANGE l 1 1",
    "LPOS l e",
    "HGETALL h",
    "HKEYS h",
    "HVALS h",
    "ZRANGE z 0 -1 WITHSCORES",
    "ZRANGEBYLEX z - + LIMIT 0 3",
    "ZREVRANGEBYSCORE z 4 1",
    "ZRANGESTORE to z 0 -1",
    "ZUNION 2 z y WITHSCORES",
    "ZINTERSTORE to 2 z y WEIGHTS 2 1",
    "ZDIFFSTORE to 2 z y",
    "ZINTERCARD 2 z y",
    "ZUNIONSTORE z 2 z y",
    "SINTER s one",
    "SMEMBERS none",
    "SUNION s l",
    "XRANGE x - +",
    "XREVRANGE x + 1-1 COUNT 3",
    "XRANGE x - + COUNT 2",
    "SORT s DESC",
    "SORT l ALPHA LIMIT 1 2",
    "SORT l BY nosort GET #",
    "SORT l ALPHA STORE to",
    "SORT l",
    "GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 400 km ASC WITHDIST",
    "GEOSEARCHSTORE to g FROMMEMBER Palermo BYBOX 400 400 km",
    "GEORADIUSBYMEMBER_RO g Palermo 400 km DESC",
    "GEORADIUS g 15 37 400 km STORE to",
    "BF.SCANDUMP q1 1",
    "CF.SCANDUMP q2 1",
    "CF.COMPACT q2",
    "CMS.MERGE q3 1 q3 WEIGHTS 3",
    "TDIGEST.MERGE q4 1 q4",
    "KEYS *",
    "KEYS [a-h]",
];

#[test]
fn long_calls_return_and_store_the_same_as_short_ones() {
    for mode in MODES {
        let (long, short) = (start_with_long_calls(mode, &[]), start(mode));
        for (mut client, mut other) in clients(&long).into_iter().zip(clients(&short)) {
            for line in ["FLUSHALL", "DEL none"].iter().chain(GIVEN) {
                assert_eq!(client.run(line), other.run(line));
            }
            for line in CALLS {
                let (reply, expected) = (shown(&client.run(line)), shown(&other.run(line)));
                let sorted = |text: &str| {
                    let mut lines: Vec<String> =
                        text.lines().map(|line| line.split(") ").last().unwrap().to_owned()).collect();
                    lines.sort_unstable();
                    lines
                };
                assert_eq!(sorted(&reply), sorted(&expected), "{mode:?} {line}");
                let digest = client.run("DEBUG DIGEST");
                assert_eq!(digest, other.run("DEBUG DIGEST"), "{mode:?} {line}");
            }
        }
        assert!(long.client().info_number("ember_long_calls") >= 2 * (CALLS.len() as u64 - 9));
        assert_eq!(short.client().info_number("ember_long_calls"), 0);
        assert_eq!(long.client().info_number("blocked_clients"), 0);
        // Each call is counted once.
        let stats = long.client().run("INFO commandstats").text();
        assert!(stats.contains("cmdstat_sdiffstore:calls=4,"), "{stats}");
    }
}

#[test]
fn replies_keep_the_order_of_the_calls() {
    for mode in MODES {
        let server = start_with_long_calls(mode, &[]);
        let mut client = server.client();
        GIVEN.iter().for_each(|line| _ = client.run(line));
        let lines =
            ["GET one", "LRANGE l 0 -1", "INCR one", "SINTERSTORE to s t", "SCARD to", "DEL s", "EXISTS to"];
        let lines: Vec<String> = (0..50).flat_map(|_| lines).map(|line| format!("{line}\r\n")).collect();
        client.send(lines.concat().as_bytes()).unwrap();
        for round in 0..50 {
            let there = usize::from(round == 0);
            assert_eq!(read(&mut client), format!("\"{}\"", round + 1), "{mode:?}");
            assert_eq!(read(&mut client).lines().count(), 5);
            assert_eq!(read(&mut client), format!("(integer) {}", round + 2));
            let stored = format!("(integer) {}", 3 * there);
            assert_eq!((read(&mut client), read(&mut client)), (stored.clone(), stored));
            assert_eq!(read(&mut client), format!("(integer) {there}"));
            assert_eq!(read(&mut client), format!("(integer) {there}"));
        }
    }
}

#[test]
fn many_short_searches_count_as_a_long_one() {
    for mode in MODES {
        let server = start(mode);
        let mut client = server.client();
        let add = |number: u32| format!("VADD v VALUES 2 {} 1 {number}", f64::from(number) / 100.0);
        for number in 0..400 {
            client.run(&add(number));
        }
        // The search takes 400 steps.
        let search = "VSIM v VALUES 2 1 1 COUNT 3";
        client.run("CONFIG SET long-call-elements 800");
        let found = client.run(search);
        assert_eq!(client.info_number("ember_long_calls"), 0);
        let words: Vec<&str> = search.split(' ').collect();
        assert_eq!(client.pipeline(&[&words[..]; 9]).unwrap(), vec![found.clone(); 9]);
        // A single search in a turn runs under the locks.
        assert!((4..=8).contains(&client.info_number("ember_long_calls")), "{mode:?}");
        // A transaction runs all of its searches under the locks.
        let before = client.info_number("ember_long_calls");
        client.run("MULTI");
        (0..5).for_each(|_| _ = client.run(search));
        assert_eq!(client.run("EXEC"), Value::Array(vec![found; 5]));
        assert_eq!(client.info_number("ember_long_calls"), before);
    }
}

#[test]
fn transactions_and_scripts_run_long_calls_under_the_locks() {
    for mode in MODES {
        let server = start_with_long_calls(mode, &[]);
        let mut client = server.client();
        GIVEN.iter().for_each(|line| _ = client.run(line));
        for line in ["MULTI", "SDIFFSTORE to s t", "SCARD to"] {
            client.run(line);
        }
        assert_eq!(shown(&client.run("EXEC")), "1) (integer) 3\n2) (integer) 3", "{mode:?}");
        let script = "return #redis.call('LRANGE', KEYS[1], 0, -1)";
        assert_eq!(client.command(&["EVAL", script, "1", "l"]), Value::Integer(5));
        assert_eq!(client.info_number("ember_long_calls"), 0);
        assert_eq!(client.run("CONFIG SET long-call-elements 0"), Value::Simple("OK".into()));
        client.run("SMEMBERS s");
        assert_eq!(client.info_number("ember_long_calls"), 0);
        client.run("CONFIG SET long-call-elements 5");
        client.run("SMEMBERS s");
        client.run("SMEMBERS t");
        assert_eq!(client.info_number("ember_long_calls"), 1);
    }
}

#[test]
fn other_clients_observe_a_long_call_and_its_events_once() {
    for mode in MODES {
        let server = start_with_long_calls(mode, &["--notify-keyspace-events", "KEAn"]);
        let (mut client, mut monitor, mut listener) = (server.client(), server.client(), server.client());
        let mut cache = server.client();
        GIVEN.iter().for_each(|line| _ = client.run(line));
        cache.run("HELLO 3");
        cache.run("CLIENT TRACKING ON");
        cache.run("SCARD to");
        listener.run("PSUBSCRIBE __key*__:*");
        monitor.run("MONITOR");
        let mut watching = server.client();
        watching.run("WATCH to");
        watching.run("MULTI");
        watching.run("PING");
        client.run("CONFIG SET slowlog-log-slower-than 0");
        assert_eq!(shown(&client.run("SDIFFSTORE to s t")), "(integer) 3", "{mode:?}");
        client.run("CONFIG SET slowlog-log-slower-than -1");
        client.run("ECHO end");
        let mut seen = String::new();
        while !seen.contains("\"end\"") {
            seen += &read(&mut monitor);
        }
        assert_eq!(seen.matches("SDIFFSTORE").count(), 1, "{seen}");
        let events: Vec<String> = (0..4).map(|_| read(&mut listener)).collect();
        assert!(events[0].contains("\"new\"") && events[2].contains("\"sdiffstore\""), "{events:?}");
        // Overwriting a key does not send the `new` notification.
        assert_eq!(shown(&client.run("SDIFFSTORE to t s")), "(integer) 1", "{mode:?}");
        let events: Vec<String> = (0..2).map(|_| read(&mut listener)).collect();
        assert!(events.iter().all(|event| event.contains("sdiffstore")), "{events:?}");
        assert!(shown(&cache.read_value().unwrap()).contains("invalidate"));
        assert_eq!(shown(&watching.run("EXEC")), "(nil)");
        let log = shown(&client.run("SLOWLOG GET -1"));
        assert_eq!(log.matches("\"SDIFFSTORE\"").count(), 1, "{log}");
    }
}

/// Sends a call that takes at least 0.1 s: LCS of two long strings.
fn send_lcs(client: &mut RawClient, lengths: usize) {
    set_long_strings(client, lengths);
    client.send(b"LCS a b LEN\r\n").unwrap();
}

/// Sets two keys `a` and `b` for which LCS is slow.
pub(crate) fn set_long_strings(client: &mut RawClient, lengths: usize) {
    let mut random = Random::new(1);
    client.run("CONFIG SET proto-max-bulk-len 1000gb");
    client.command(&[&b"SET"[..], b"a", &random.bytes(lengths)]);
    client.command(&[&b"SET"[..], b"b", &random.bytes(lengths)]);
}

#[test]
fn a_long_call_blocks_only_writers_to_its_keys() {
    let server = start(&["--shards", "1"]);
    let (mut client, mut other, mut writer) = (server.client(), server.client(), server.client());
    send_lcs(&mut client, 100_000);
    // The worker serves other clients.
    wait_for_blocked(&server, 1);
    writer.send(b"APPEND a x\r\n").unwrap();
    wait_for_blocked(&server, 2);
    assert_eq!(shown(&other.run("STRLEN a")), "(integer) 100000", "readers do not wait");
    assert!(matches!(client.read_value().unwrap(), Value::Integer(_)));
    assert_eq!(read(&mut writer), "(integer) 100001");
    // The call of a disconnected client gets no reply, and its keys are released.
    send_lcs(&mut client, 50_000);
    drop(client);
    writer.run("SET a free");
    wait_for_blocked(&server, 0);
    assert_eq!(shown(&other.run("GET a")), "\"free\"");
}

#[test]
fn a_client_waiting_for_a_key_precedes_the_next_long_call() {
    for mode in MODES {
        let server = start_with_long_calls(mode, &[]);
        let mut client = server.client();
        client.run("SADD s 1 2 3");
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let _ending = OnDrop(|| is_over.store(true, Ordering::Relaxed));
            for _ in 0..4 {
                let mut reader = server.client();
                let is_over = &is_over;
                scope.spawn(move || {
                    while !is_over.load(Ordering::Relaxed) {
                        assert!(!reader.run("SMEMBERS s").is_error());
                    }
                });
            }
            for number in 0..200 {
                assert_eq!(client.run(&format!("SADD s m{number}")), Value::Integer(1), "{mode:?}");
            }
        });
    }
}

#[test]
fn results_of_long_calls_are_recorded_in_order() {
    for mode in MODES {
        let directory = Directory::new("long-calls");
        let path = directory.0.to_str().unwrap();
        let server = start_with_long_calls(
            mode,
            &["--data-dir", path, "--appendonly", "yes", "--enable-debug-command", "yes"],
        );
        thread::scope(|scope| {
            for seed in 0..4 {
                let mut client = server.client();
                scope.spawn(move || {
                    let mut random = Random::new(seed);
                    for _ in 0..400 {
                        let mut key = || format!("s{}", random.below(4));
                        let (to, one, two) = (key(), key(), key());
                        let member = random.below(40);
                        let line = match random.below(9) {
                            0 => format!("SDIFFSTORE {to} {one} {two}"),
                            1 => format!("SUNIONSTORE {to} {one} {two}"),
                            2 => format!("SINTERSTORE {to} {one} {two}"),
                            3 => format!("SREM {to} {member}"),
                            4 => format!("RENAME {one} {to}"),
                            5 => format!("EVAL redis.call('SADD','{to}',{member}) 0"),
                            6 => format!("SMEMBERS {one}"),
                            _ => format!("SADD {to} {member} x{member}"),
                        };
                        let reply = shown(&client.run(&line));
                        assert!(
                            !reply.starts_with("(error)") || reply.contains("no such key"),
                            "{line}: {reply}"
                        );
                    }
                });
            }
        });
        let mut client = server.client();
        assert!(client.info_number("ember_long_calls") > 100);
        let digest = client.run("DEBUG DIGEST");
        assert_eq!(shown(&client.run("DEBUG LOADAOF")), "OK");
        assert_eq!(client.run("DEBUG DIGEST"), digest, "{mode:?}");
    }
}

/// The number of elements of each value of [`changes`], so high that a call with all of them as arguments is
/// long-running.
const ELEMENTS: usize = 1200;

/// Returns calls that change or copy values of many elements, each after the calls that create its value.
fn changes() -> Vec<String> {
    let words = |prefix: &str, suffix: &str| -> String {
        (1..=ELEMENTS).map(|number| format!(" {prefix}{number}{suffix}")).collect()
    };
    let pairs = words("m", "").replace(" m", " 7 m");
    let entries = (1..=ELEMENTS).map(|number| format!("XADD x {number}-1 a {number}"));
    let lines = [
        format!("HSET h{pairs}"),
        format!("SADD s{}", words("m", "")),
        format!("ZADD z{pairs}"),
        format!("ZADD y{pairs}"),
        format!("RPUSH l{}", words("", "")),
        "COPY h copy".to_owned(),
        "COPY z copy DB 1".to_owned(),
        "COPY l copy REPLACE".to_owned(),
        "SORT l DESC STORE sorted".to_owned(),
        "ZREMRANGEBYRANK z 0 999".to_owned(),
        "ZREMRANGEBYSCORE y 7 7".to_owned(),
        "ZPOPMAX z 1000".to_owned(),
        "LPOP l 1000".to_owned(),
        "LREM l 0 1150".to_owned(),
        format!("SREM s{}", words("m", "").replace(" m1 ", " other ")),
        format!("HDEL h{}", words("m", "").replace(" m", " ").replace(" 1 ", " other ")),
        "XGROUP CREATE x g 0 MKSTREAM".to_owned(),
    ];
    let reads = [
        "XREADGROUP GROUP g c STREAMS x >".to_owned(),
        "XAUTOCLAIM x g d 0 0 COUNT 1000 JUSTID".to_owned(),
        format!("XACK x g{}", words("", "-1").replace(" 1-1", "")),
        format!("XDEL x{}", words("", "-1").replace(" 5-1", "")),
        "XINFO STREAM x".to_owned(),
    ];
    lines.into_iter().chain(entries).chain(reads).collect()
}

#[test]
fn changes_of_many_elements_are_offloaded_with_equal_results() {
    for mode in MODES {
        let directory = Directory::new("long-changes");
        let path = directory.0.to_str().unwrap();
        let journaled = ["--data-dir", path, "--appendonly", "yes", "--enable-debug-command", "yes"];
        let long = start_with_long_calls(mode, &journaled);
        let short = start(&[mode, &["--enable-debug-command", "yes"]].concat());
        let (mut client, mut other) = (long.client(), short.client());
        for line in changes() {
            let (reply, expected) = (client.run(&line), other.run(&line));
            assert_eq!(reply, expected, "{mode:?} {}", &line[..line.len().min(40)]);
        }
        assert!(client.info_number("ember_long_calls") >= 15, "{mode:?}");
        assert_eq!(client.run("DEBUG DIGEST"), other.run("DEBUG DIGEST"), "{mode:?}");
        // The removed members are random, so the journal must contain their names.
        let members: String = (0..ELEMENTS).map(|number| format!(" m{number}")).collect();
        assert_eq!(client.run(&format!("SADD p{members}")), Value::Integer(ELEMENTS as i64));
        let before = client.info_number("ember_long_calls");
        assert!(matches!(client.run("SPOP p 1000"), Value::Array(popped) if popped.len() == 1000));
        assert_eq!(client.info_number("ember_long_calls"), before + 1, "{mode:?}");
        assert_eq!(client.run("SCARD p"), Value::Integer(200));
        let digest = client.run("DEBUG DIGEST");
        assert_eq!(shown(&client.run("DEBUG LOADAOF")), "OK");
        assert_eq!(client.run("DEBUG DIGEST"), digest, "{mode:?}");
    }
}

#[test]
fn a_value_that_does_not_fit_twice_is_changed_in_place() {
    let server = start_with_long_calls(&["--shards", "2"], &["--maxmemory", "45mb"]);
    let mut client = server.client();
    let long = "x".repeat(24 << 20);
    client.command(&["SET", "a", &long]);
    client.run("CONFIG SET maxmemory-policy noeviction");
    client.command(&["APPEND", "a", &long[..12 << 20]]);
    assert_eq!(client.info_number("ember_long_calls"), 0, "24 MiB twice are too much");
    assert_eq!(client.run("STRLEN a"), Value::Integer(36 << 20));
    client.run("CONFIG SET maxmemory 0");
    client.command(&["APPEND", "a", &long[..12 << 20]]);
    assert_eq!(client.info_number("ember_long_calls"), 1);
    assert_eq!(client.run("STRLEN a"), Value::Integer(48 << 20));
    assert_eq!(client.run("GETRANGE a -3 -1"), Value::from("xxx"));
}

#[test]
fn long_replies_and_payloads_are_built_on_other_threads() {
    for mode in MODES {
        let server = start_with_long_calls(mode, &[]);
        let mut client = server.client();
        let members: String = (0..ELEMENTS).map(|number| format!(" {number}")).collect();
        client.run(&format!("SADD s{members}"));
        client.run(&format!("HSET h{members}"));
        client.run(&format!("RPUSH l{}", members.repeat(40)));
        client.run(&format!("ZADD z{members}"));
        for line in [
            "SRANDMEMBER s -1000",
            "HRANDFIELD h -1000",
            "ZRANDMEMBER z -1000",
            "SSCAN s 0 COUNT 2000",
            "HSCAN h 0 COUNT 2000",
            "ZSCAN z 0 COUNT 2000",
        ] {
            let before = client.info_number("ember_long_calls");
            assert!(matches!(client.run(line), Value::Array(_)), "{line}");
            assert_eq!(client.info_number("ember_long_calls"), before + 1, "{mode:?} {line}");
        }
        let Value::Bulk(payload) = client.run("DUMP l") else { panic!("a payload") };
        assert!(payload.len() > 32 * 1024, "a long payload: {}", payload.len());
        let before = client.info_number("ember_long_calls");
        assert_eq!(client.command(&[&b"RESTORE"[..], b"to", b"0", &payload]), Value::ok());
        assert_eq!(client.info_number("ember_long_calls"), before + 1, "{mode:?}");
        assert_eq!(client.run("LRANGE to 0 -1"), client.run("LRANGE l 0 -1"));
    }
}

#[test]
fn a_part_of_a_long_string_is_sent_without_copying_it() {
    for mode in MODES {
        let server = start(mode);
        for mut client in clients(&server) {
            let text: String = (0..200_000).map(|number| char::from(b'a' + (number % 26) as u8)).collect();
            client.command(&["SET", "t", &text]);
            for (start, end) in [(0, 199_999), (1, 199_998), (26, 40_000), (5, 9), (150_000, 149_999)] {
                let expected = text.get(start..end + 1).unwrap_or_default();
                client.run("SET between 1");
                assert_eq!(
                    client.run(&format!("GETRANGE t {start} {end}")),
                    Value::from(expected),
                    "{mode:?}"
                );
            }
            assert_eq!(client.run("GETRANGE t -3 -1"), Value::from(&text[199_997..]));
        }
    }
}
