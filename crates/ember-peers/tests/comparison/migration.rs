//! MIGRATE from ember to redis-server and back, and the errors of both.

use ember_peers::{Mode, start_ember, start_redis};
use ember_testkit::{RawClient, Server, Value, free_port};

use crate::payloads::{cases, described};

const MODES: [Mode; 2] = [Mode::Concurrent, Mode::Sharded];

/// The error of an older server for a value in an unknown format.
const TOO_NEW: &str =
    "ERR Target instance replied with error: ERR DUMP payload version or checksum are wrong";

fn migrate(client: &mut RawClient, to: &Server, key: &str, rest: &str) -> Value {
    client.run(&format!("MIGRATE 127.0.0.1 {} {key} 0 5000{rest}", to.port()))
}

fn empty(clients: [&mut RawClient; 2]) {
    clients.into_iter().for_each(|client| assert_eq!(client.run("FLUSHALL"), Value::ok()));
}

/// Moves every kind of value from one server to the other; returns how many the other does not support.
fn move_all(from: &Server, to: &Server) -> usize {
    let (mut source, mut target) = (from.client(), to.client());
    let mut unknown = 0;
    for case in cases() {
        empty([&mut source, &mut target]);
        case.lines.iter().for_each(|line| assert!(!source.run(line).is_error(), "{line}"));
        source.run(&format!("EXPIRE {} 1000", case.key));
        let before = described(&mut source, &case);
        let answer = migrate(&mut source, to, case.key, "");
        if answer == Value::Error(TOO_NEW.into()) {
            assert_eq!(described(&mut source, &case), before, "{}", case.key);
            unknown += 1;
            continue;
        }
        assert_eq!(answer, Value::ok(), "{}", case.key);
        assert_eq!(described(&mut target, &case), before, "{}", case.key);
        assert_eq!(source.run("DBSIZE"), Value::Integer(0));
        let ttl = target.run(&format!("TTL {}", case.key)).integer();
        assert!(ttl.is_some_and(|ttl| (900..=1000).contains(&ttl)), "{}: {ttl:?}", case.key);
    }
    unknown
}

#[test]
fn every_value_moves_from_ember_to_redis_and_back() {
    let redis = start_redis();
    for mode in MODES {
        let ember = start_ember(mode);
        let unknown = move_all(&ember, &redis);
        assert!(unknown <= cases().iter().filter(|case| case.is_newer).count(), "{unknown}");
        assert_eq!(move_all(&redis, &ember), 0);
    }
}

#[test]
fn both_servers_give_the_same_reply_to_every_failure() {
    let target = start_redis();
    let mut other = target.client();
    for mode in MODES {
        let (ember, redis) = (start_ember(mode), start_redis());
        let (mut one, mut two) = (ember.client(), redis.client());
        let unused = free_port();
        let port = target.port();
        other.run("FLUSHALL");
        other.run("SET taken x");
        let calls = [
            format!("MIGRATE 127.0.0.1 {port} none 0 5000"),
            format!("MIGRATE 127.0.0.1 {unused} a 0 5000"),
            format!("MIGRATE 127.0.0.1 {port} taken 0 5000"),
            format!("MIGRATE 127.0.0.1 {port} a 99 5000"),
            format!("MIGRATE 127.0.0.1 {port} a 0 5000 AUTH2 nobody password"),
            format!("MIGRATE 127.0.0.1 {port} a 0 5000 KEYS b"),
            format!("MIGRATE 127.0.0.1 {port} a 0 5000 COPY WHAT"),
            format!("MIGRATE 127.0.0.1 {port} a zero 5000"),
            format!("MIGRATE 127.0.0.1 {port} a 0 five"),
            format!("MIGRATE 127.0.0.1 {port} a 0 5000 AUTH"),
            format!("MIGRATE 127.0.0.1 {port} b 0 5000 COPY"),
            format!("MIGRATE 127.0.0.1 {port} b 0 5000 COPY REPLACE"),
            format!("MIGRATE 127.0.0.1 {port} taken 0 -1 REPLACE"),
        ];
        for client in [&mut one, &mut two] {
            client.run("MSET a 1 b 2 taken 3 c 4");
        }
        for call in &calls {
            // Both servers find the same key at the target.
            other.run("DEL a b");
            other.run("SET taken x");
            let answer = one.run(call);
            other.run("DEL a b");
            other.run("SET taken x");
            assert_eq!(answer, two.run(call), "{mode:?} {call}");
        }
        let several = |client: &mut RawClient| {
            let port = port.to_string();
            let words = ["MIGRATE", "127.0.0.1", &port, "", "0", "5000", "KEYS", "b", "none", "a", "c"];
            client.command(&words)
        };
        other.run("DEL b c");
        other.run("SET a there");
        let answer = several(&mut one);
        other.run("DEL b c");
        assert_eq!(answer, several(&mut two), "{mode:?}");
        assert_eq!(one.run("MGET a b c taken"), two.run("MGET a b c taken"), "{mode:?}");
        for words in [&["COMMAND", "GETKEYS"][..], &["COMMAND", "GETKEYSANDFLAGS"]] {
            for rest in ["h 1 k 0 9", "h 1 k 0 9 AUTH keys COPY", "h 1 k 0 9 KEYS a"] {
                let call: Vec<&str> =
                    words.iter().copied().chain(["MIGRATE"]).chain(rest.split(' ')).collect();
                assert_eq!(one.command(&call), two.command(&call), "{rest}");
            }
            let call = [words, &["MIGRATE", "h", "1", "", "0", "9", "AUTH2", "keys", "x", "KEYS", "a", "b"]];
            assert_eq!(one.command(&call.concat()), two.command(&call.concat()));
        }
    }
}
