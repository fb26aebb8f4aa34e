//! Waiting for cold values: several clients of the same key, pipelines, blocked clients, and changes while they wait.

use ember_testkit::{Value, encode};

use crate::{MODES, demote, figure, shown, start};

/// Returns a value that is long enough to be demoted.
fn value(number: usize) -> String {
    format!("{number}:{}", "v".repeat(200))
}

#[test]
fn two_thousand_clients_of_one_key_cause_one_read() {
    for mode in MODES {
        let server = start(mode);
        let mut client = server.client();
        client.command(&["SET", "key", &value(1)]);
        demote(&mut client, "key");
        let mut waiting: Vec<_> = (0..2000).map(|_| server.client()).collect();
        // No read begins before all clients have sent their requests: DEBUG SLEEP has exclusive access, so the workers
        // run no other command.
        client.send(&encode(&["DEBUG", "SLEEP", "0.5"])).unwrap();
        for other in &mut waiting {
            other.send_command(&["GET", "key"]).unwrap();
        }
        assert_eq!(client.read_value().unwrap(), Value::ok());
        for other in &mut waiting {
            assert_eq!(other.read_value().unwrap().text(), value(1));
        }
        assert_eq!(figure(&mut client, "fetches") + figure(&mut client, "fetches_unwanted"), 1, "{mode:?}");
    }
}

#[test]
fn a_pipeline_of_cold_keys_answers_in_order() {
    for mode in MODES {
        let server = start(mode);
        let mut client = server.client();
        let keys: Vec<String> = (0..300).map(|number| format!("key:{number}")).collect();
        for (number, key) in keys.iter().enumerate() {
            client.command(&["SET", key, &value(number)]);
            if number % 3 != 0 {
                demote(&mut client, key);
            }
        }
        let mut calls: Vec<Vec<&str>> = Vec::new();
        for key in &keys {
            calls.extend([
                vec!["GET", key],
                vec!["STRLEN", key],
                vec!["APPEND", key, "x"],
                vec!["INCR", "count"],
            ]);
        }
        calls.push(keys.iter().map(String::as_str).fold(vec!["MGET"], |mut call, key| {
            call.push(key);
            call
        }));
        let replies = client.pipeline(&calls).unwrap();
        for (number, replies) in replies.chunks_exact(4).enumerate() {
            assert_eq!(replies[0].text(), value(number), "{mode:?} {number}");
            assert_eq!(replies[1], Value::Integer(value(number).len() as i64));
            assert_eq!(replies[2], Value::Integer(value(number).len() as i64 + 1));
            assert_eq!(replies[3], Value::Integer(number as i64 + 1));
        }
        let all = replies.last().unwrap().elements().unwrap();
        assert!(all.iter().enumerate().all(|(number, found)| found.text() == value(number) + "x"));
    }
}

/// The number of turns of all workers' event loops, in a reply to INFO.
fn turns(info: &Value) -> u64 {
    let text = info.text();
    let line = text.lines().find_map(|line| line.strip_prefix("eventloop_cycles:"));
    line.unwrap().trim().parse().unwrap()
}

#[test]
fn values_that_the_system_has_cached_are_read_in_the_turn_of_their_call() {
    let info: &[&str] = &["INFO", "stats"];
    for concurrent in ["yes", "no"] {
        let server = start(&["--shards", "1", "--concurrent", concurrent]);
        let mut client = server.client();
        for call in
            [&["GET", "one"][..], &["STRLEN", "two"], &["MGET", "one", "two", "one"], &["APPEND", "one", ""]]
        {
            // The system may deliver a pipeline in two parts, which are read in two turns.
            let is_same_turn = (0..10).any(|_| {
                for (key, number) in [("one", 1), ("two", 2)] {
                    client.command(&["SET", key, &value(number)]);
                    demote(&mut client, key);
                }
                let fetched = figure(&mut client, "fetches");
                let replies = client.pipeline(&[info, call, &["GET", "two"], info]);
                let replies = replies.unwrap();
                assert_eq!(replies[2].text(), value(2));
                assert!(figure(&mut client, "fetches") > fetched, "the value was cold: {call:?}");
                turns(&replies[0]) == turns(&replies[3])
            });
            assert!(is_same_turn, "{call:?}, concurrent {concurrent}");
        }
    }
}

#[test]
fn a_replaced_or_removed_value_does_not_reappear() {
    for mode in MODES {
        let server = start(mode);
        let (mut client, mut other) = (server.client(), server.client());
        for round in 0..200 {
            client.command(&["SET", "key", &value(round)]);
            demote(&mut client, "key");
            other.send_command(&["GET", "key"]).unwrap();
            let replacement = value(round + 1000);
            match round % 3 {
                0 => _ = client.command(&["SET", "key", &replacement]),
                1 => _ = client.command(&["DEL", "key"]),
                _ => _ = client.command(&["FLUSHALL"]),
            }
            let seen = other.read_value().unwrap();
            let after = client.command(&["GET", "key"]);
            if round % 3 == 0 {
                assert_eq!(after.text(), replacement);
                assert!([value(round), replacement].contains(&seen.text()));
            } else {
                assert_eq!(after, Value::Null);
                assert!(seen == Value::Null || seen.text() == value(round));
            }
        }
    }
}

#[test]
fn a_blocked_client_is_served_from_a_cold_list() {
    for mode in MODES {
        let server = start(mode);
        let (mut blocked, mut client) = (server.client(), server.client());
        // The destination list is cold when there is an element to move.
        client.run("RPUSH target a b c");
        demote(&mut client, "target");
        blocked.send_command(&["BLMOVE", "source", "target", "LEFT", "RIGHT", "0"]).unwrap();
        ember_testkit::wait_until("the call waits", || client.info("blocked_clients") == "1");
        let is_cold = shown(&mut client, "TIERING TIER target") != "hot";
        if !is_cold {
            demote(&mut client, "target");
        }
        client.run("RPUSH source moved");
        assert_eq!(blocked.read_value().unwrap().text(), "moved");
        assert_eq!(shown(&mut client, "LLEN target"), "(integer) 4");
        assert_eq!(shown(&mut client, "EXISTS source"), "(integer) 0");
    }
}

#[test]
fn a_live_query_sees_fetched_values() {
    let server = start(MODES[0]);
    let (mut watcher, mut client) = (server.client(), server.client());
    client.run("HELLO 3");
    watcher.run("HELLO 3");
    client.command(&["SET", "key", &value(1)]);
    demote(&mut client, "key");
    let first = watcher.run("GET.WATCH key");
    assert!(ember_testkit::render(&first).contains("vvvv"), "{first:?}");
}
