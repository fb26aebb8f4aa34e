//! Live queries: a client that watches a command receives its result, and each new result, whichever command has
//! changed it.

use std::time::{Duration, Instant};

use ember_testkit::{RawClient, Server, Value, split_arguments, wait_until};

use crate::{MODES, clients, start, words};

/// Opens a connection with RESP3.
pub(crate) fn resp3(server: &Server) -> RawClient {
    let mut client = server.client();
    assert!(!client.run("HELLO 3").is_error());
    client
}

/// Receives a pushed state: fingerprint, version, result.
pub(crate) fn pushed(client: &mut RawClient) -> (String, String, Value) {
    let value = client.read_value().unwrap();
    let Value::Push(parts) = &value else { panic!("no push: {value:?}") };
    assert_eq!((parts.len(), parts[0].text()), (4, "watch".to_owned()), "{value:?}");
    (parts[1].text(), parts[2].text(), parts[3].clone())
}

/// Receives the next state and returns its result.
pub(crate) fn next_result(client: &mut RawClient) -> Value {
    pushed(client).2
}

/// Whether no state arrives before the reply to a PING.
pub(crate) fn receives_nothing(client: &mut RawClient, other: &mut RawClient) -> bool {
    // Messages between workers arrive before replies to later commands.
    (0..20).for_each(|_| _ = other.run("PING"));
    (0..5).all(|_| client.run("PING").text() == "PONG")
}

#[test]
fn states_have_the_layout_of_dicedb_in_resp2_and_are_pushes_in_resp3() {
    for mode in MODES {
        let server = start(mode);
        let [mut two, mut three] = clients(&server);
        let mut writer = server.client();
        writer.run("SET getwatchkey value1");
        two.send(b"get.watch getwatchkey\r\n").unwrap();
        let raw = two.read_raw().unwrap();
        assert_eq!(raw, b"*3\r\n$3\r\nGET\r\n$10\r\n2714318480\r\n$6\r\nvalue1\r\n");
        let first = three.run("GET.WATCH getwatchkey");
        assert_eq!(first.get("command").unwrap().text(), "GET");
        assert_eq!(first.get("fingerprint").unwrap().text(), "2714318480");
        assert_eq!(first.get("result").unwrap().text(), "value1");
        let version = first.get("version").unwrap().text();
        writer.run("SET getwatchkey value2");
        let raw = two.read_raw().unwrap();
        assert_eq!(raw, b"*3\r\n$3\r\nGET\r\n$10\r\n2714318480\r\n$6\r\nvalue2\r\n");
        let (fingerprint, newer, result) = pushed(&mut three);
        assert_eq!((fingerprint.as_str(), result.text()), ("2714318480", "value2".to_owned()));
        assert_eq!(newer.split('-').next(), version.split('-').next(), "one history");
        let number = |version: &str| version.split('-').nth(1).unwrap().parse::<u64>().unwrap();
        assert!(number(&newer) > number(&version), "{version} {newer}");
        let open = server.client().run("WATCH.OPEN COMMAND GET getwatchkey");
        let open = open.elements().unwrap();
        assert_eq!((open.len(), open[0].text(), open[3].text()), (4, "GET".to_owned(), "value2".to_owned()));
    }
}

#[test]
fn a_connection_of_resp2_that_watches_may_only_watch() {
    for mode in MODES {
        let server = start(mode);
        let mut client = server.client();
        client.run("GET.WATCH k");
        assert!(client.run("GET k").text().contains("allowed in this context"));
        assert!(!client.run("STRLEN.WATCH k").is_error());
        assert!(!client.run("WATCH.LIST").is_error());
        let fingerprints: Vec<String> = client
            .run("WATCH.LIST")
            .elements()
            .unwrap()
            .iter()
            .map(|entry| entry.elements().unwrap()[1].text())
            .collect();
        assert_eq!(fingerprints.len(), 2);
        assert_eq!(client.run(&format!("GET.UNWATCH {}", fingerprints[0])), Value::ok());
        assert_eq!(client.run(&format!("UNWATCH {} 17", fingerprints[1])), Value::ok());
        assert_eq!(client.run("GET k"), Value::Null);
        client.run("GET.WATCH k");
        assert_eq!(client.run("RESET").text(), "RESET");
        assert_eq!(client.run("GET k"), Value::Null);
        assert_eq!(client.run("UNWATCH").text(), "OK");
        assert_eq!(client.run("UNWATCH x").text(), "ERR invalid fingerprint");
        assert_eq!(client.run("GET.UNWATCH 4294967296").text(), "ERR invalid fingerprint");
    }
}

/// Sorts the elements of a result if their order is undefined.
fn sorted(mut result: Value) -> Value {
    match &mut result {
        Value::Set(members) => members.sort_by_key(|member| format!("{member:?}")),
        Value::Map(pairs) => pairs.sort_by_key(|pair| format!("{pair:?}")),
        _ => {}
    }
    result
}

#[test]
fn every_cause_of_a_change_notifies_watchers() {
    // Watched commands, each with the lines to send before it and the lines that each cause one state.
    let cases: &[(&str, &[&str], &[&str])] = &[
        (
            "GET a",
            &["SET a 1"],
            &["INCR a", "APPEND a x", "SETRANGE a 0 y", "GETDEL a", "RESTORE a 0 *", "DEL a"],
        ),
        (
            "GET a",
            &["SET a 1", "SET b 2"],
            &["RENAME b a", "RENAME a b", "COPY b a", "MOVE a 1", "SWAPDB 0 1"],
        ),
        (
            "GET a",
            &["SET a 1"],
            &["FLUSHALL", "MSET a 1 b 2", "FLUSHDB", "SETEX a 1 x", "SET a 1 PX 1", "GETSET a 2"],
        ),
        ("EXPIRETIME a", &["SET a 1"], &["EXPIREAT a 99999999999", "PERSIST a", "SET a 1 EXAT 99999999990"]),
        (
            "HGETALL h",
            &["HSET h f 1"],
            &["HINCRBY h f 1", "HSET h g 2", "HPEXPIRE h 1 FIELDS 1 g", "HDEL h f"],
        ),
        (
            "LRANGE l 0 -1",
            &["RPUSH l a b"],
            &["LPOP l", "LINSERT l BEFORE b c", "RPOPLPUSH l m", "LMOVE m l LEFT LEFT"],
        ),
        ("SMEMBERS s", &["SADD s a b c"], &["SREM s a", "SMOVE s t b", "SPOP s", "SUNIONSTORE s t"]),
        ("SINTER s t", &["SADD s a b", "SADD t b"], &["SADD t a", "SREM s b", "DEL t"]),
        (
            "ZRANGE z 0 -1 REV WITHSCORES",
            &["ZADD z 1 a 2 b"],
            &["ZINCRBY z 5 a", "ZPOPMIN z", "ZREM z a", "ZADD z 3 c"],
        ),
        ("XRANGE x - +", &["XADD x 1-1 f v"], &["XADD x 2-1 f v", "XDEL x 1-1", "XTRIM x MAXLEN 0"]),
        ("PFCOUNT p", &["PFADD p a"], &["PFADD p b c", "PFMERGE p p2 p", "DEL p"]),
        ("MGET a b", &["MSET a 1 b 2"], &["SET b 3", "DEL a"]),
        ("GEODIST g a b", &["GEOADD g 13 38 a 15 37 b"], &["GEOADD g 14 38 a", "ZREM g b"]),
        ("BITCOUNT k", &["SETBIT k 7 1"], &["SETBIT k 8 1", "BITOP NOT k k"]),
        (
            "GET a",
            &["SET a 1"],
            &[
                "EVAL \"return redis.call('SET', KEYS[1], ARGV[1])\" 1 a 7",
                "EVAL \"redis.call('INCR', 'a')\" 0",
            ],
        ),
    ];
    for mode in MODES {
        let server = start(mode);
        for (call, given, changes) in cases {
            let mut writer = server.client();
            writer.run("FLUSHALL");
            given.iter().for_each(|line| assert!(!writer.run(line).is_error(), "{line}"));
            let mut client = resp3(&server);
            let (name, rest) = call.split_once(' ').unwrap();
            let first = client.run(&format!("{name}.WATCH {rest}"));
            let mut reader = resp3(&server);
            assert_eq!(first.get("result").map(sorted), Some(sorted(reader.run(call))), "{mode:?} {call}");
            for change in *changes {
                let before = sorted(reader.run(call));
                if change.starts_with("RESTORE") {
                    let dump = {
                        writer.run("SET dumped 1");
                        writer.command(&["DUMP", "dumped"])
                    };
                    let Value::Bulk(dump) = dump else { panic!("{dump:?}") };
                    let words: [&[u8]; 5] = [b"RESTORE", b"a", b"0", &dump, b"REPLACE"];
                    assert_eq!(writer.command(&words), Value::ok());
                } else {
                    assert!(!writer.command(&split_arguments(change).unwrap()).is_error(), "{change}");
                }
                if change.contains(" PX 1") || change.contains("PEXPIRE") {
                    wait_until("the key has expired", || {
                        sorted(reader.run(call)) != before && reader.run("DBSIZE").integer() < Some(9)
                    });
                }
                let after = sorted(reader.run(call));
                if before == after {
                    continue;
                }
                let deadline = Instant::now() + Duration::from_secs(10);
                loop {
                    let value = client.read_value();
                    let value = value.unwrap_or_else(|error| panic!("{mode:?} {call}: {change}: {error}"));
                    let Value::Push(parts) = &value else { panic!("{mode:?} {call}: {change}: {value:?}") };
                    if sorted(parts[3].clone()) == after {
                        break;
                    }
                    assert!(Instant::now() < deadline, "{mode:?} {call}: {change}");
                }
            }
            assert!(receives_nothing(&mut client, &mut writer), "{mode:?} {call}");
        }
    }
}

#[test]
fn expiry_and_eviction_notify_watchers_without_any_access() {
    for mode in MODES {
        let server = start(mode);
        let (mut client, mut writer) = (resp3(&server), server.client());
        writer.run("HSET h f 1 g 2");
        client.run("HGETALL.WATCH h");
        // Both commands run at the same time of the server's clock, so the key has not expired when it is watched.
        client.pipeline(&["SET a 1 PX 150", "GET.WATCH a"].map(words)).unwrap();
        assert_eq!(next_result(&mut client), Value::Null, "{mode:?}");
        writer.run("HPEXPIRE h 1 FIELDS 1 f");
        assert_eq!(next_result(&mut client).pairs().unwrap().len(), 1);
        writer.run("SET a 1");
        assert_eq!(next_result(&mut client).text(), "1");
        writer.run("CONFIG SET maxmemory-policy allkeys-random maxmemory 1");
        let mut results = vec![next_result(&mut client), next_result(&mut client)];
        results.retain(|result| *result != Value::Null);
        assert_eq!(results.len(), 1, "one is the key, one the hash: {results:?}");
    }
}

#[test]
fn states_equal_to_the_last_one_are_sent_only_on_request() {
    for mode in MODES {
        let server = start(mode);
        let (mut client, mut every, mut writer) = (resp3(&server), resp3(&server), server.client());
        writer.run("SET a 1");
        client.run("GET.WATCH a");
        every.run("WATCH.OPEN EVERY COMMAND get a");
        for _ in 0..3 {
            writer.run("SET a 1");
            assert_eq!(next_result(&mut every).text(), "1");
        }
        assert!(receives_nothing(&mut client, &mut writer), "{mode:?}");
        // When the table grows, the order of its elements changes.
        writer.run("SADD s 0 a");
        client.run("SMEMBERS.WATCH s");
        for number in 1..100 {
            writer.run(&format!("SADD s {number} b{number}"));
        }
        while next_result(&mut client).elements().map(<[Value]>::len) != Some(200) {}
        writer.run("SADD s 0");
        assert!(receives_nothing(&mut client, &mut writer), "{mode:?}");
    }
}

#[test]
fn no_state_shows_part_of_a_transaction() {
    for mode in MODES {
        let server = start(mode);
        let mut client = resp3(&server);
        let mut writer = server.client();
        client.run("MGET.WATCH a b c");
        for number in 1..200 {
            if number % 2 == 0 {
                writer
                    .send(
                        format!("MULTI\r\nSET a {number}\r\nSET b {number}\r\nSET c {number}\r\nEXEC\r\n")
                            .as_bytes(),
                    )
                    .unwrap();
                (0..5).for_each(|_| _ = writer.read_value().unwrap());
            } else {
                let script = "for _, key in ipairs(KEYS) do redis.call('SET', key, ARGV[1]) end";
                let number = number.to_string();
                writer.command(&["EVAL", script, "3", "a", "b", "c", &number]);
            }
        }
        loop {
            let result = next_result(&mut client);
            let values: Vec<String> = result.elements().unwrap().iter().map(Value::text).collect();
            assert!(values.iter().all(|value| *value == values[0]), "{mode:?}: {values:?}");
            if values[0] == "199" {
                break;
            }
        }
    }
}

#[test]
fn watchers_of_one_query_do_not_disturb_each_other() {
    for mode in MODES {
        let server = start(mode);
        let mut writer = server.client();
        let mut watchers: Vec<RawClient> = (0..6).map(|_| resp3(&server)).collect();
        for client in &mut watchers {
            let first = client.run("GET.WATCH getwatchkey");
            assert_eq!(first.get("fingerprint").unwrap().text(), "2714318480");
        }
        for number in 0..10 {
            writer.run(&format!("SET getwatchkey {number}"));
            for client in &mut watchers {
                assert_eq!(next_result(client).text(), number.to_string(), "{mode:?}");
            }
        }
        assert_eq!(watchers[0].run("UNWATCH 2714318480"), Value::ok());
        drop(watchers.remove(1));
        writer.run("SET getwatchkey last");
        for client in &mut watchers[1..] {
            assert_eq!(next_result(client).text(), "last");
        }
        assert!(receives_nothing(&mut watchers[0], &mut writer));
        assert!(writer.run("CLIENT LIST").text().contains(" queries=1"));
        drop(watchers);
        wait_until("all watches are removed", || writer.info_number("mem_watches") == 0);
        assert_eq!(writer.info_number("ember_live_queries"), 0);
    }
}

#[test]
fn a_state_can_be_resumed() {
    for mode in MODES {
        let server = start(mode);
        let mut writer = server.client();
        writer.run("SET a 1");
        let open = |since: &str| {
            let mut client = resp3(&server);
            let reply = client.run(format!("WATCH.OPEN {since} COMMAND GET a").replace("  ", " ").as_str());
            (reply.clone(), reply.get("version").map(|version| version.text()).unwrap_or_default(), client)
        };
        let (first, version, _) = open("");
        assert_eq!(first.get("result").unwrap().text(), "1");
        writer.run("SET a 2");
        writer.run("SET a 1");
        let (same, again, mut client) = open(&format!("SINCE {version}"));
        assert_eq!((again.as_str(), same.get("result")), (version.as_str(), Some(Value::Null)), "unchanged");
        writer.run("SET a 3");
        assert_eq!(next_result(&mut client).text(), "3");
        let (newer, _, _) = open(&format!("SINCE {version}"));
        assert_eq!(newer.get("result").unwrap().text(), "3");
        // For a version of a different history, the comparison of results decides.
        let elsewhere = format!("SINCE 00000000-99999999-{}", version.split('-').nth(2).unwrap());
        assert_eq!(open(&elsewhere).0.get("result").unwrap().text(), "3");
        writer.run("SET a 1");
        assert_eq!(open(&elsewhere).0.get("result"), Some(Value::Null));
        let ahead: Vec<&str> = version.split('-').collect();
        let ahead = format!("SINCE {}-99999999-{}", ahead[0], ahead[2]);
        assert!(open(&ahead).0.text().starts_with("BEHIND"));
        assert!(open("SINCE x").0.text().starts_with("ERR SINCE"));
    }
}

#[test]
fn an_interval_merges_states_and_the_last_one_arrives() {
    for mode in MODES {
        let server = start(mode);
        let (mut client, mut writer) = (resp3(&server), server.client());
        client.run("WATCH.OPEN INTERVAL 200 COMMAND GET a");
        let begun = Instant::now();
        for number in 0..100 {
            writer.run(&format!("SET a {number}"));
        }
        let mut states = 1;
        while next_result(&mut client).text() != "99" {
            states += 1;
        }
        assert!(begun.elapsed() >= Duration::from_millis(180), "{mode:?}");
        let intervals = begun.elapsed().as_millis() / 200;
        assert!(states <= intervals + 1, "{mode:?}: {states} in {:?}", begun.elapsed());
    }
}

#[test]
fn a_stalled_reader_gets_the_last_state_and_delays_no_client() {
    for mode in MODES {
        let server = start(mode);
        let (mut slow, mut quick, mut writer) = (resp3(&server), resp3(&server), server.client());
        let value = |number: usize| format!("{number}{}", "x".repeat(20_000));
        slow.run("GET.WATCH a");
        quick.run("GET.WATCH a");
        for number in 0..1000 {
            writer.command(&["SET", "a", &value(number)]);
            if number % 10 == 0 {
                while next_result(&mut quick).text() != value(number) {}
            }
        }
        let line = writer.run("CLIENT LIST").text();
        let omem = line.lines().map(|line| {
            let bytes = line.split(" omem=").nth(1).unwrap().split(' ').next().unwrap();
            bytes.parse::<u64>().unwrap()
        });
        assert!(omem.max().unwrap() <= 128 * 1024, "{mode:?}: {line}");
        let mut last = String::new();
        let mut states = 0;
        while last != value(999) {
            last = next_result(&mut slow).text();
            states += 1;
        }
        assert!(states < 1000, "{mode:?}: {states}");
        assert_eq!(writer.info_number("client_output_buffer_limit_disconnections"), 0);
    }
}

#[test]
fn rights_are_checked_again_when_they_have_changed() {
    for mode in MODES {
        let server = start(mode);
        let mut admin = server.client();
        admin.run("ACL SETUSER ann on >x ~a* +@all");
        admin.run("ACL SETUSER bob on >x ~* +@all -get");
        let mut ann = resp3(&server);
        ann.run("AUTH ann x");
        assert!(ann.run("GET.WATCH b").text().starts_with("NOPERM"), "{mode:?}");
        assert!(ann.run("WATCH.OPEN COMMAND GET b").text().starts_with("NOPERM"));
        assert!(!ann.run("GET.WATCH a1").is_error());
        assert!(!ann.run("GET.WATCH a2").is_error());
        let mut bob = resp3(&server);
        bob.run("AUTH bob x");
        assert!(bob.run("GET.WATCH b").text().starts_with("NOPERM"), "without GET, no GET.WATCH");
        admin.run("SET a1 1");
        assert_eq!(next_result(&mut ann).text(), "1");
        admin.run("ACL SETUSER ann resetkeys ~a1");
        admin.run("SET a2 secret");
        let refused = next_result(&mut ann);
        assert!(refused.text().starts_with("NOPERM"), "{refused:?}");
        admin.run("SET a2 secret2");
        admin.run("SET a1 2");
        assert_eq!(next_result(&mut ann).text(), "2");
        assert_eq!(ann.run("WATCH.LIST").elements().unwrap().len(), 1);
        admin.run("ACL SETUSER ann -@pubsub");
        admin.run("SET a1 3");
        assert!(next_result(&mut ann).text().starts_with("NOPERM"));
        admin.run("ACL DELUSER ann");
    }
}

#[test]
fn rights_to_channels_and_their_keys_are_checked_again_too() {
    for mode in MODES {
        let server = start(mode);
        let mut admin = server.client();
        for lost in ["resetchannels", "resetkeys ~b", "-get"] {
            admin.run("ACL SETUSER ann reset on >x ~* +@all &*");
            let mut ann = server.client();
            ann.run("AUTH ann x");
            ann.send_command(&["SUBSCRIBE", "__watch@0__:GET a"]).unwrap();
            assert_eq!(ann.read_value().unwrap().elements().unwrap()[0].text(), "subscribe");
            message(&mut ann);
            admin.run(&format!("ACL SETUSER ann {lost}"));
            assert_eq!(admin.command(&["SET", "a", lost]), Value::ok());
            let (_, text) = message(&mut ann);
            assert!(text.contains("NOPERM") && !text.contains(lost), "{mode:?} {lost}: {text}");
            assert_eq!(admin.info_number("ember_live_watchers"), 0, "{mode:?} {lost}");
            admin.run("SET a later");
            assert_eq!(ann.run("PING").elements().unwrap()[0].text(), "pong", "no state arrives any more");
        }
    }
}

#[test]
fn unwatchable_commands_are_errors() {
    let server = start(MODES[0]);
    let mut client = resp3(&server);
    for (call, reason) in [
        ("TTL a", "depends on time or chance"),
        ("SRANDMEMBER a", "depends on time or chance"),
        ("SET a 1", "not a command that only reads keys"),
        ("KEYS *", "only reads keys"),
        ("PING x", "does not read keys"),
        ("SORT_RO a BY w_*", "keys that its arguments do not name"),
        ("nothing a", "unknown command"),
        ("GET a b", "wrong number of arguments"),
        ("XREAD STREAMS a 0", "only reads keys"),
    ] {
        let answer = client.run(&format!("WATCH.OPEN COMMAND {call}")).text();
        assert!(answer.contains(reason), "{call}: {answer}");
    }
    assert!(client.run("TTL.WATCH a").text().contains("unknown command"));
    for wrong in ["WATCH.OPEN GET a b", "WATCH.OPEN EVERY SINCE", "WATCH.OPEN INTERVAL -1 COMMAND GET a"] {
        assert!(client.run(wrong).text().starts_with("ERR"), "{wrong}");
    }
    client.run("MULTI");
    assert!(client.run("GET.WATCH a").is_error());
    client.run("DISCARD");
    assert!(client.run("EVAL \"return redis.call('GET.WATCH', 'a')\" 0").is_error());
    assert!(!client.run("SORT_RO.WATCH a").is_error());
    assert!(client.run("HELLO 2").text().contains("protocol cannot change"));
    let keys = client.run("COMMAND GETKEYS WATCH.OPEN EVERY COMMAND SINTER a b");
    assert_eq!(keys.elements().unwrap().iter().map(Value::text).collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn errors_are_sent_as_results() {
    for mode in MODES {
        let server = start(mode);
        let (mut client, mut writer) = (resp3(&server), server.client());
        writer.run("SET a 1");
        let first = client.run("LRANGE.WATCH a 0 -1");
        assert!(first.get("result").unwrap().text().starts_with("WRONGTYPE"), "{mode:?}");
        writer.run("DEL a");
        assert_eq!(next_result(&mut client), Value::Array(Vec::new()));
        writer.run("RPUSH a x");
        assert_eq!(next_result(&mut client).elements().unwrap().len(), 1);
        writer.run("CONFIG SET watch-max-reply 100");
        let long = "y".repeat(200);
        writer.command(&["RPUSH", "a", &long]);
        assert!(next_result(&mut client).text().contains("run the command to read it"));
    }
}

#[test]
fn limits_apply_per_client_and_in_total() {
    let server = start(MODES[0]);
    let (mut client, mut admin) = (resp3(&server), server.client());
    admin.run("CONFIG SET watch-max-per-client 3");
    for number in 0..3 {
        assert!(!client.run(&format!("GET.WATCH k{number}")).is_error());
    }
    assert!(client.run("GET.WATCH k3").text().contains("watch-max-per-client"));
    let bytes = admin.info_number("mem_watches");
    assert!((300..3000).contains(&bytes), "{bytes}");
    admin.run(&format!("CONFIG SET watch-max-per-client 100 watch-max-memory {}", bytes + 10));
    assert!(client.run("GET.WATCH k4").text().contains("watch-max-memory"));
    assert_eq!(admin.info_number("ember_live_queries"), 3);
    assert_eq!(client.run("RESET").text(), "RESET");
    assert_eq!(admin.info_number("mem_watches"), 0);
}

#[test]
fn reloaded_data_notify_watchers() {
    for mode in MODES {
        let server = Server::builder(env!("CARGO_BIN_EXE_ember-server"))
            .arguments(mode)
            .arguments(&["--enable-debug-command", "yes"])
            // A state is sent once the journal contains the data that it shows, which does not happen for data loaded
            // by DEBUG.
            .keeps_values()
            .start();
        let (mut client, mut writer) = (resp3(&server), server.client());
        writer.run("SET a saved");
        writer.run("SAVE");
        writer.run("SET a newer");
        client.run("GET.WATCH a");
        assert_eq!(writer.run("DEBUG RELOAD NOSAVE"), Value::ok());
        while next_result(&mut client).text() != "saved" {}
        assert!(receives_nothing(&mut client, &mut writer), "{mode:?}");
    }
}

/// Receives the next message in RESP2: its channel and its text.
pub(crate) fn message(client: &mut RawClient) -> (String, String) {
    let value = client.read_value().unwrap();
    let parts = value.elements().unwrap_or_else(|| panic!("no message: {value:?}"));
    assert_eq!(parts[0].text(), "message", "{value:?}");
    (parts[1].text(), parts[2].text())
}

#[test]
fn channels_publish_states_as_json() {
    for mode in MODES {
        let server = start(mode);
        let [mut two, mut three] = clients(&server);
        let mut writer = server.client();
        writer.run("HSET h f 1");
        let channel = "__watch@0__:HGETALL h";
        for client in [&mut two, &mut three] {
            client.send_command(&["SUBSCRIBE", channel, "news"]).unwrap();
            let confirmed = client.read_value().unwrap();
            let parts = match &confirmed {
                Value::Push(parts) | Value::Array(parts) => parts,
                other => panic!("{mode:?}: {other:?}"),
            };
            assert_eq!(parts[0].text(), "subscribe");
        }
        let (name, text) = message(&mut two);
        assert_eq!(name, channel);
        assert!(
            text.starts_with("{\"result\":{\"f\":\"1\"},\"version\":\"")
                || text.contains("\"result\":{\"f\":\"1\"}"),
            "{text}"
        );
        assert_eq!(two.read_value().unwrap().elements().unwrap()[2], Value::Integer(2), "news");
        writer.run("HSET h f 2");
        assert!(message(&mut two).1.contains("\"result\":{\"f\":\"2\"}"));
        assert!(writer.command(&["PUBLISH", channel, "forged"]).text().contains("clients cannot publish"));
        let mut pattern = server.client();
        pattern.run("PSUBSCRIBE *");
        writer.run("HSET h f 3");
        assert!(message(&mut two).1.contains("\"result\":{\"f\":\"3\"}"));
        assert_eq!(pattern.run("PING").elements().unwrap()[0].text(), "pong", "patterns do not match it");
        two.send_command(&["UNSUBSCRIBE", channel]).unwrap();
        assert_eq!(two.read_value().unwrap().elements().unwrap()[2], Value::Integer(1));
        two.run("UNSUBSCRIBE");
        assert_eq!(two.run("GET x"), Value::Null);
        drop(three);
        wait_until("all watches are removed", || writer.info_number("mem_watches") == 0);
        for wrong in ["__watch@99__:GET a", "__watch@0__:TTL a", "__watch@0__:", "__watch@0__:GET"] {
            assert!(two.command(&["SUBSCRIBE", wrong]).is_error(), "{wrong}");
        }
        assert_eq!(two.run("GET x"), Value::Null);
        two.run("MULTI");
        two.command(&["SUBSCRIBE", "__watch@0__:GET a"]);
        assert!(two.run("EXEC").elements().unwrap()[0].is_error());
    }
}

#[test]
fn states_are_held_until_they_are_durable() {
    for mode in MODES {
        let server = Server::builder(env!("CARGO_BIN_EXE_ember-server"))
            .arguments(mode)
            .arguments(&["--appendonly", "yes", "--appendfsync", "always"])
            .start();
        let (mut client, mut writer) = (resp3(&server), server.client());
        client.run("GET.WATCH a");
        for number in 0..50 {
            writer.run(&format!("SET a {number}"));
            while next_result(&mut client).text() != number.to_string() {}
        }
        // After a kill, the next server has all data whose states were sent.
        writer.send(b"SET a last\r\n").unwrap();
        let version = loop {
            let (_, version, result) = pushed(&mut client);
            if result.text() == "last" {
                break version;
            }
        };
        let directory = server.crash();
        let again = Server::builder(env!("CARGO_BIN_EXE_ember-server"))
            .arguments(mode)
            .directory(directory)
            .arguments(&["--appendonly", "yes"])
            .start();
        assert_eq!(again.client().run("GET a").text(), "last", "{mode:?}");
        let resumed = resp3(&again).run(&format!("WATCH.OPEN SINCE {version} COMMAND GET a"));
        assert_eq!(resumed.get("version").unwrap().text(), version, "unchanged in another run of the server");
        assert_eq!(resumed.get("result"), Some(Value::Null));
    }
}

#[test]
fn watching_clients_are_not_idle() {
    let server = Server::builder(env!("CARGO_BIN_EXE_ember-server"))
        .arguments(MODES[0])
        .arguments(&["--timeout", "1"])
        .start();
    let (mut client, mut idle) = (resp3(&server), server.client());
    client.run("GET.WATCH a");
    idle.run("PING");
    assert!(idle.read_value().is_err(), "the connection is closed");
    server.client().run("SET a 1");
    assert_eq!(next_result(&mut client).text(), "1");
}

#[test]
fn many_queries_change_at_once() {
    for mode in MODES {
        let server = start(mode);
        let (mut client, mut writer) = (resp3(&server), server.client());
        let count = 2000;
        for number in 0..count {
            client.send_command(&["GET.WATCH", &format!("k{number}")]).unwrap();
        }
        (0..count).for_each(|_| assert!(client.read_value().unwrap().get("version").is_some()));
        for round in 0..5 {
            let words: Vec<String> =
                (0..count).flat_map(|number| [format!("k{number}"), round.to_string()]).collect();
            writer.command(&[vec!["MSET".to_owned()], words].concat());
        }
        let mut last = 0;
        while last < count {
            last += usize::from(next_result(&mut client).text() == "4");
        }
        assert!(receives_nothing(&mut client, &mut writer), "{mode:?}");
        drop(client);
        wait_until("all watches are removed", || writer.info_number("mem_watches") == 0);
    }
}

#[test]
fn similarity_searches_are_watched() {
    for mode in MODES {
        let server = start(mode);
        let mut writer = server.client();
        for (name, x, y) in [("a", 1, 0), ("b", 0, 1)] {
            writer.run(&format!("VADD points VALUES 2 {x} {y} {name}"));
        }
        let mut client = resp3(&server);
        let names =
            |result: &Value| -> Vec<String> { result.elements().unwrap().iter().map(Value::text).collect() };
        let first = client.run("VSIM.WATCH points VALUES 2 1 0 COUNT 2").get("result").unwrap();
        assert_eq!(names(&first), ["a", "b"]);
        writer.run("VADD points VALUES 2 10 1 c");
        assert_eq!(names(&next_result(&mut client)), ["a", "c"]);
        writer.run("VADD points VALUES 2 -1 0 far");
        assert!(receives_nothing(&mut client, &mut writer), "the new element is not among the nearest");
        writer.run("VREM points a");
        assert_eq!(names(&next_result(&mut client)), ["c", "b"]);
        writer.run("DEL points");
        assert_eq!(names(&next_result(&mut client)), Vec::<String>::new());
    }
}
