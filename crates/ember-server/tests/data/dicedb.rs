//! Live queries as in DiceDB: the cases of DiceDB's integration tests of November 2024, in RESP2.

use ember_testkit::{RawClient, Server, Value};

use crate::{MODES, start};

/// Receives the next state of a subscriber: the command, the fingerprint, and the result as bulk strings.
fn state(client: &mut RawClient) -> (String, String, Value) {
    let value = client.read_value().unwrap();
    let parts = value.elements().unwrap_or_else(|| panic!("{value:?}")).to_vec();
    assert_eq!(parts.len(), 3, "{parts:?}");
    (parts[0].text(), parts[1].text(), parts[2].clone())
}

/// Opens connections that watch one query and have read the first state.
fn subscribers<const COUNT: usize>(server: &Server, line: &str, fingerprint: &str) -> [RawClient; COUNT] {
    let command = line.split('.').next().unwrap();
    std::array::from_fn(|_| {
        let mut client = server.client();
        client.send(format!("{line}\r\n").as_bytes()).unwrap();
        let first = state(&mut client);
        assert_eq!((first.0.as_str(), first.1.as_str()), (command, fingerprint), "{line}");
        client
    })
}

fn list(words: &[&str]) -> Value {
    Value::Array(words.iter().copied().map(Value::from).collect())
}

/// Applies changes, and checks that each subscriber receives the result of each.
fn every_change_reaches_every_subscriber(line: &str, fingerprint: &str, changes: &[(&str, Value)]) {
    for mode in MODES {
        let server = start(mode);
        let mut publisher = server.client();
        let mut all = subscribers::<3>(&server, line, fingerprint);
        for (change, result) in changes {
            assert!(!publisher.run(change).is_error(), "{change}");
            for client in &mut all {
                let command = line.split('.').next().unwrap().to_owned();
                assert_eq!(state(client), (command, fingerprint.to_owned(), result.clone()), "{change}");
            }
        }
    }
}

#[test]
fn getwatch_sends_each_update_to_all_subscribers() {
    let changes =
        ["value1", "value2", "value3", "value4"].map(|value| (format!("SET getwatchkey {value}"), value));
    let changes: Vec<_> = changes.iter().map(|(line, value)| (line.as_str(), Value::from(*value))).collect();
    every_change_reaches_every_subscriber("GET.WATCH getwatchkey", "2714318480", &changes);
}

#[test]
fn zrangewatch_sends_the_range_in_its_order() {
    let scores = |pairs: &[(&str, &str)]| list(&pairs.iter().flat_map(|&(a, b)| [a, b]).collect::<Vec<_>>());
    every_change_reaches_every_subscriber(
        "ZRANGE.WATCH zrangewatchkey 0 -1 REV WITHSCORES",
        "1178068413",
        &[
            ("ZADD zrangewatchkey 1.0 member1", scores(&[("member1", "1")])),
            ("ZADD zrangewatchkey 2.0 member2", scores(&[("member2", "2"), ("member1", "1")])),
            (
                "ZADD zrangewatchkey 3.0 member3",
                scores(&[("member3", "3"), ("member2", "2"), ("member1", "1")]),
            ),
            // DiceDB sent no states for these changes.
            ("ZREM zrangewatchkey member2", scores(&[("member3", "3"), ("member1", "1")])),
            ("ZPOPMIN zrangewatchkey", scores(&[("member3", "3")])),
            ("ZINCRBY zrangewatchkey 4 member3", scores(&[("member3", "7")])),
            ("DEL zrangewatchkey", list(&[])),
        ],
    );
}

#[test]
fn pfcountwatch_sends_counts() {
    for mode in MODES {
        let server = start(mode);
        let mut publisher = server.client();
        let mut all = subscribers::<3>(&server, "PFCOUNT.WATCH hllkey", "1832643469");
        for (change, count) in [
            ("PFADD hllkey a", 1),
            ("PFADD hllkey b c", 3),
            ("PFADD other x y", 0),
            ("PFMERGE hllkey other", 5),
        ] {
            publisher.run(change);
            for client in all.iter_mut().filter(|_| count > 0) {
                assert_eq!(state(client).2, Value::Integer(count), "{change}");
            }
        }
    }
}

#[test]
fn smemberswatch_sends_the_members() {
    for mode in MODES {
        let server = start(mode);
        let mut publisher = server.client();
        let mut all = subscribers::<3>(&server, "SMEMBERS.WATCH smemberswatchkey", "3660753939");
        for (change, members) in [
            ("SADD smemberswatchkey m1", &["m1"][..]),
            ("SADD smemberswatchkey m2 m3", &["m1", "m2", "m3"]),
            ("SREM smemberswatchkey m1", &["m2", "m3"]),
        ] {
            publisher.run(change);
            for client in &mut all {
                let mut found: Vec<_> = state(client).2.elements().unwrap().iter().map(Value::text).collect();
                found.sort();
                assert_eq!(found, members, "{change}");
            }
        }
    }
}

#[test]
fn unwatching_stops_states_for_that_client_only() {
    for mode in MODES {
        let server = start(mode);
        let mut publisher = server.client();
        let mut all = subscribers::<3>(&server, "GET.WATCH getunwatchkey", "426696421");
        publisher.run("SET getunwatchkey one");
        all.iter_mut().for_each(|client| assert_eq!(state(client).2, Value::from("one")));
        let [first, second, third] = &mut all;
        assert_eq!(first.run("GET.UNWATCH 426696421"), Value::ok());
        assert_eq!(second.run("UNWATCH 426696421"), Value::ok());
        assert_eq!(second.run("UNWATCH 426696421"), Value::ok(), "the fingerprint is not watched any more");
        publisher.run("SET getunwatchkey two");
        assert_eq!(state(third).2, Value::from("two"));
        // A client that does not watch may run all commands again: the next message is the reply.
        for client in [first, second] {
            assert_eq!(client.run("GET getunwatchkey"), Value::from("two"));
        }
    }
}

#[test]
fn calls_with_a_wrong_number_of_arguments_watch_nothing() {
    let server = start(MODES[0]);
    let mut client = server.client();
    for (name, lines) in [
        ("get", &["GET.WATCH", "GET.WATCH k v"][..]),
        ("hget", &["HGET.WATCH", "HGET.WATCH k"]),
        ("hgetall", &["HGETALL.WATCH", "HGETALL.WATCH k f"]),
        ("zcard", &["ZCARD.WATCH", "ZCARD.WATCH k v"]),
        ("zcount", &["ZCOUNT.WATCH", "ZCOUNT.WATCH k", "ZCOUNT.WATCH k 1"]),
        ("zrange", &["ZRANGE.WATCH", "ZRANGE.WATCH k", "ZRANGE.WATCH k 1"]),
        ("zrank", &["ZRANK.WATCH", "ZRANK.WATCH k"]),
    ] {
        for line in lines {
            let expected = format!("ERR wrong number of arguments for '{name}.watch' command");
            assert_eq!(client.run(line).text(), expected, "{line}");
        }
    }
    assert_eq!(client.run("GET k"), Value::Null, "no query is watched");
}
