//! HOTKEYS: a hot key is found immediately among many others, with its reads and writes counted separately, across all
//! workers.

use std::time::{Duration, Instant};

use ember_testkit::{RawClient, Value};

use crate::{MODES, assert_error, assert_ok, builder, everywhere, wait_until};

const KEYS: usize = 100_000;
const BATCH: usize = 100;

/// The maximum number of rounds of three batches until a hot key is found: a second at 300,000 commands per second.
const ROUNDS_MAX: usize = 1000;

/// Sends a batch of commands: every tenth command accesses `key`, each other command a different key.
fn load(client: &mut RawClient, round: usize, command: &str, key: &str) {
    let commands: Vec<Vec<String>> = (0..BATCH)
        .map(|number| {
            let cold = (round * BATCH + number) * 7919 % KEYS;
            let key = if number % 10 == 0 { key.to_owned() } else { format!("cold:{cold}") };
            let mut words = vec![command.to_owned(), key];
            words.extend((command == "SET").then(|| "value".to_owned()));
            words
        })
        .collect();
    client.pipeline(&commands).unwrap();
}

fn hot(client: &mut RawClient, line: &str) -> Vec<(String, String)> {
    let found = client.run(line);
    let name_and_rate = |key: &Value| {
        let (name, access) = (key.get("key").unwrap().text(), key.get("access").unwrap().text());
        assert_eq!(key.get("database"), Some(Value::Integer(0)));
        assert!(key.get("per-second").unwrap().integer().unwrap() > 0, "{key:?}");
        (name, access)
    };
    found.elements().unwrap().iter().map(name_and_rate).collect()
}

#[test]
fn a_hot_key_among_a_hundred_thousand_is_found_within_a_second() {
    everywhere(&[], |_, client| {
        assert_ok(client, "HOTKEYS RESET");
        let mut round = 0;
        let mut found = Vec::new();
        while found.len() < 2 && round < ROUNDS_MAX {
            load(client, round, "SET", "hot");
            load(client, round, "GET", "hotter");
            load(client, round, "GET", "hotter");
            found = hot(client, "HOTKEYS GET COUNT 2");
            round += 1;
        }
        let pair = |key: &str, access: &str| (key.to_owned(), access.to_owned());
        found.sort();
        assert_eq!(found, [pair("hot", "write"), pair("hotter", "read")]);
        assert_eq!(hot(client, "HOTKEYS GET READ COUNT 1"), [pair("hotter", "read")]);
        assert_eq!(hot(client, "hotkeys get write count 1"), [pair("hot", "write")]);
        assert_ok(client, "HOTKEYS RESET");
        assert_eq!(client.run("HOTKEYS GET"), Value::Array(vec![]));
    });
}

#[test]
fn rates_and_shares_are_near_the_truth() {
    everywhere(&["--hotkeys-sampling", "10"], |_, client| {
        assert_ok(client, "HOTKEYS RESET");
        let begin = Instant::now();
        let mut count = 0;
        while begin.elapsed() < Duration::from_millis(500) {
            load(client, count, "GET", "hot");
            count += 1;
        }
        let found = client.run("HOTKEYS GET COUNT 1");
        let found = &found.elements().unwrap()[0];
        let percent: f64 = match found.get("percent").unwrap() {
            Value::Double(text) | Value::Bulk(text) => String::from_utf8(text).unwrap().parse().unwrap(),
            other => panic!("{other:?}"),
        };
        assert!((6.0..14.0).contains(&percent), "{found:?}");
        let rate = found.get("per-second").unwrap().integer().unwrap() as f64;
        let truth = count as f64 * BATCH as f64 / 10.0 / begin.elapsed().as_secs_f64();
        assert!((truth * 0.4..truth * 2.0).contains(&rate), "{rate} of {truth}");
    });
}

#[test]
fn keys_of_single_commands_are_sampled_and_none_with_sampling_off() {
    everywhere(&["--hotkeys-sampling", "1"], |_, client| {
        wait_until("all keys of a command are found", || {
            client.run("MGET a b c");
            client.run("COPY source target REPLACE");
            client.run("SELECT 0");
            let found = hot(client, "HOTKEYS GET COUNT 9");
            let is_there = |key: &str, access: &str| found.contains(&(key.to_owned(), access.to_owned()));
            is_there("a", "read")
                && is_there("b", "read")
                && is_there("c", "read")
                && is_there("source", "read")
                && is_there("target", "write")
        });
        assert_ok(client, "CONFIG SET hotkeys-sampling 0");
        assert_ok(client, "HOTKEYS RESET");
        (0..20).for_each(|_| drop(client.run("GET a")));
        assert_eq!(client.run("HOTKEYS GET"), Value::Array(vec![]));
        assert_ok(client, "CONFIG SET hotkeys-sampling 1");
        assert_error(client, "HOTKEYS GET COUNT 0", "ERR COUNT should be greater than 0");
        for line in
            ["HOTKEYS GET READ WRITE", "HOTKEYS GET COUNT", "HOTKEYS GET x", "HOTKEYS GET COUNT 1 COUNT 1"]
        {
            assert_error(client, line, "ERR syntax error");
        }
    });
}

#[test]
fn subscribers_are_notified_once_when_a_key_becomes_hot() {
    for mode in MODES {
        let server = builder(mode).start();
        let client = &mut server.client();
        let mut listener = server.client();
        listener.run("PSUBSCRIBE __hotkeys@*");
        let mut received: Vec<(String, String)> = std::thread::scope(|scope| {
            let listening = scope.spawn(|| {
                let messages = [listener.read_value().unwrap(), listener.read_value().unwrap()];
                let text = |message: &Value, at: usize| message.elements().unwrap()[at].text();
                messages.iter().map(|message| (text(message, 2), text(message, 3))).collect()
            });
            for round in 0.. {
                load(client, round, "SET", "hot");
                load(client, round, "GET", "hotter");
                if listening.is_finished() {
                    break;
                }
            }
            listening.join().unwrap()
        });
        received.sort();
        let pair = |channel: &str, key: &str| (channel.to_owned(), key.to_owned());
        assert_eq!(received, [pair("__hotkeys@0__:read", "hotter"), pair("__hotkeys@0__:write", "hot")]);
        assert_ok(client, "ACL SETUSER reader on nopass +@all ~* resetchannels &news");
        let mut reader = server.client();
        assert_ok(&mut reader, "AUTH reader x");
        let refused = reader.run("SUBSCRIBE __hotkeys@0__:read").text();
        assert!(refused.starts_with("NOPERM"), "{refused}");
    }
}
