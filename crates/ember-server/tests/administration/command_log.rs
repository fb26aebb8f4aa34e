//! COMMANDLOG: large requests and replies are logged with their sizes, and SLOWLOG shows the log of slow calls.

use ember_testkit::{RawClient, Value};

use crate::{assert_error, assert_ok, everywhere};

const SMALL: &[&str] =
    &["--commandlog-request-larger-than", "1000", "--commandlog-reply-larger-than", "2000"];

/// Returns the amounts and names of the calls in a log, newest first.
fn logged(client: &mut RawClient, kind: &str) -> Vec<(i64, String)> {
    let calls = client.run(&format!("COMMANDLOG GET -1 {kind}"));
    let entry = |call: &Value| {
        let fields = call.elements().unwrap();
        assert_eq!(fields.len(), 6);
        assert!(fields[4].text().starts_with("127.0.0.1:"), "{call:?}");
        assert_eq!(fields[5], Value::from("big"), "{call:?}");
        (fields[2].integer().unwrap(), fields[3].elements().unwrap()[0].text())
    };
    calls.elements().unwrap().iter().map(entry).collect()
}

fn reset(client: &mut RawClient) {
    assert_ok(client, "CLIENT SETNAME big");
    for kind in ["slow", "large-request", "large-reply", "large-key"] {
        assert_ok(client, &format!("COMMANDLOG RESET {kind}"));
        assert_eq!(client.run(&format!("COMMANDLOG LEN {kind}")), Value::Integer(0));
    }
}

#[test]
fn large_requests_and_replies_are_logged_with_their_sizes() {
    everywhere(SMALL, |_, client| {
        reset(client);
        // The request in RESP consists of *3, $3 SET, $1 and the key, $1000 and the value.
        for key in ["a", "b", "c", "d"] {
            client.command(&["SET", key, &"x".repeat(1000)]);
            client.command(&["SET", key, &"x".repeat(900)]);
        }
        assert_eq!(logged(client, "large-request"), vec![(1029, "SET".to_owned()); 4]);
        // Emptying a log does not reset its counter.
        assert_ok(client, "COMMANDLOG RESET large-request");
        let counted = client.run("INFO stats").text();
        let counted = counted.lines().find_map(|line| line.strip_prefix("ember_large_requests:")).unwrap();
        assert!(counted.parse::<u64>().unwrap() >= 4, "{counted}");
        // The reply of INFO was large itself.
        assert_ok(client, "COMMANDLOG RESET large-reply");
        client.run("MGET a b");
        client.run("MGET a b c");
        assert_eq!(logged(client, "LARGE-REPLY"), [(2728, "MGET".to_owned())]);
        for key in ["e", "f", "g", "h"] {
            client.run(&format!("SETRANGE {key} 50000 x"));
            client.run(&format!("GET {key}"));
        }
        // A value of this size is received and sent in a separate buffer.
        client.command(&["SET", "e", &"y".repeat(70_000)]);
        client.run("GET e");
        let replies = logged(client, "large-reply");
        assert_eq!(replies[0], (70_010, "GET".to_owned()));
        assert_eq!(replies[1..5], vec![(50_011, "GET".to_owned()); 4]);
        assert_eq!(logged(client, "large-request")[0], (70_030, "SET".to_owned()));
        client.run("FLUSHALL");
    });
}

#[test]
fn transactions_and_blocking_calls_are_logged_too() {
    everywhere(SMALL, |server, client| {
        reset(client);
        client.run("MULTI");
        client.command(&["SET", "a", &"x".repeat(3000)]);
        client.run("GET a");
        client.run("EXEC");
        assert_eq!(logged(client, "large-request"), [(3029, "SET".to_owned())]);
        assert_eq!(
            logged(client, "large-reply"),
            [(3009, "GET".to_owned())],
            "EXEC itself is in no log, as in Redis"
        );
        client.send_command(&["BLPOP", "l", "0"]).unwrap();
        let mut other = server.client();
        other.run("CLIENT SETNAME big");
        crate::wait_until("the client waits", || other.info("blocked_clients") == "1");
        other.command(&["RPUSH", "l", &"x".repeat(3000)]);
        client.read_value().unwrap();
        assert_eq!(logged(client, "large-reply")[0].1, "BLPOP");
        assert_eq!(logged(client, "large-request")[0].1, "RPUSH");
        client.run("FLUSHALL");
    });
}

#[test]
fn thresholds_and_lengths_change_at_once() {
    everywhere(SMALL, |_, client| {
        reset(client);
        client.command(&["SET", "a", &"x".repeat(5000)]);
        assert_ok(client, "CONFIG SET commandlog-request-larger-than -1");
        client.command(&["SET", "a", &"x".repeat(5000)]);
        assert_eq!(client.run("COMMANDLOG LEN large-request"), Value::Integer(1));
        assert_ok(client, "CONFIG SET commandlog-request-larger-than 0 commandlog-large-request-max-len 3");
        (0..9).for_each(|_| drop(client.run("PING")));
        assert_eq!(client.run("COMMANDLOG LEN large-request"), Value::Integer(3));
        assert_ok(client, "CONFIG SET commandlog-reply-larger-than 0 commandlog-large-reply-max-len 0");
        client.run("GET a");
        assert_eq!(client.run("COMMANDLOG LEN large-reply"), Value::Integer(0));
        assert_ok(
            client,
            "CONFIG SET commandlog-request-larger-than 1000 commandlog-large-request-max-len 128 \
             commandlog-reply-larger-than 2000 commandlog-large-reply-max-len 128",
        );
    });
}

#[test]
fn the_log_of_slow_calls_equals_slowlog() {
    everywhere(&["--commandlog-execution-slower-than", "0"], |_, client| {
        assert_ok(client, "COMMANDLOG RESET slow");
        client.run("ECHO x");
        assert_ok(client, "CONFIG SET slowlog-log-slower-than -1");
        assert_eq!(client.run("COMMANDLOG GET -1 slow"), client.run("SLOWLOG GET -1"));
        assert_eq!(client.run("COMMANDLOG LEN slow"), client.run("SLOWLOG LEN"));
        assert_ok(client, "SLOWLOG RESET");
        assert_eq!(client.run("COMMANDLOG LEN slow"), Value::Integer(0));
        let config = client.run("CONFIG GET commandlog-execution-slower-than");
        assert_eq!(config.get("commandlog-execution-slower-than"), Some(Value::from("-1")));
        assert_ok(client, "CONFIG SET commandlog-execution-slower-than 0");
        let wrong = "ERR type should be one of the following: slow, large-request, large-reply, large-key";
        assert_error(client, "COMMANDLOG GET 1 fast", wrong);
        assert_error(client, "COMMANDLOG LEN fast", wrong);
        assert_error(client, "COMMANDLOG RESET fast", wrong);
        assert_error(client, "COMMANDLOG GET -2 slow", "ERR count should be greater than or equal to -1");
        assert_error(
            client,
            "COMMANDLOG GET slow",
            "ERR wrong number of arguments for 'commandlog|get' command",
        );
    });
}

#[test]
fn calls_that_make_a_key_large_are_logged_once() {
    everywhere(&["--commandlog-key-larger-than", "20000"], |_, client| {
        reset(client);
        client.command(&["SET", "string", &"x".repeat(15_000)]);
        assert_eq!(logged(client, "large-key"), []);
        client.command(&["APPEND", "string", &"x".repeat(6000)]);
        client.command(&["APPEND", "string", &"x".repeat(6000)]);
        client.command(&["SET", "new", &"x".repeat(40_000)]);
        let values: Vec<String> = (0..3000).map(|number| format!("element:{number}")).collect();
        for (command, key) in [("RPUSH", "list"), ("SADD", "set")] {
            for chunk in values.chunks(100) {
                let mut words = vec![command, key];
                words.extend(chunk.iter().map(String::as_str));
                assert!(!client.command(&words).is_error());
            }
        }
        client.command(&["EVAL", "return redis.call('SETRANGE', 'scripted', 30000, 'x')", "0"]);
        let calls = logged(client, "large-key");
        let names: Vec<&str> = calls.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(names, ["EVAL", "SADD", "RPUSH", "SET", "APPEND"]);
        assert!(calls.iter().all(|&(bytes, _)| (20_000..60_000).contains(&bytes)), "{calls:?}");
        assert_ok(client, "CONFIG SET commandlog-key-larger-than -1");
        client.command(&["SET", "newer", &"x".repeat(40_000)]);
        assert_eq!(logged(client, "large-key").len(), 5);
        assert_ok(client, "CONFIG SET commandlog-key-larger-than 20000");
        client.run("FLUSHALL");
    });
}
