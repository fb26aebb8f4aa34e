//! `import-mode`: a server that is being filled from another server does not remove expired keys itself.

use ember_testkit::{RawClient, Server, Value, split_arguments, wait_until};

use crate::blocking::shown;
use crate::{MODES, clients, start, start_with_values};

fn ask(client: &mut RawClient, line: &str) -> String {
    shown(&client.command(&split_arguments(line).unwrap()))
}

fn importing(mode: &[&str]) -> Server {
    start(&[mode, &["--import-mode", "yes", "--enable-debug-command", "yes"]].concat())
}

/// Opens a connection that imports data.
fn source(server: &Server) -> RawClient {
    let mut source = server.client();
    assert_eq!(ask(&mut source, "CLIENT IMPORT-SOURCE ON"), "OK");
    source
}

/// Waits until only the import source can read a key.
fn wait_for_expiry(client: &mut RawClient, key: &str) {
    wait_until("the key expires", || ask(client, &format!("EXISTS {key}")) == "(integer) 0");
}

#[test]
fn import_sources_are_recognized_only_in_import_mode() {
    for mode in MODES {
        let server = start(mode);
        let mut client = server.client();
        let refused = "(error) ERR Server is not in import mode";
        assert_eq!(ask(&mut client, "CLIENT IMPORT-SOURCE ON"), refused);
        assert_eq!(ask(&mut client, "CLIENT IMPORT-SOURCE what"), refused);
        assert_eq!(ask(&mut client, "CLIENT IMPORT-SOURCE OFF"), "OK");
        assert_eq!(ask(&mut client, "CONFIG SET import-mode yes"), "OK");
        assert_eq!(ask(&mut client, "CLIENT IMPORT-SOURCE what"), "(error) ERR syntax error");
        assert_eq!(ask(&mut client, "CLIENT IMPORT-SOURCE ON"), "OK");
        assert!(client.run("CLIENT INFO").text().contains(" flags=I "));
        assert_eq!(ask(&mut client, "RESET"), "RESET");
        assert!(client.run("CLIENT INFO").text().contains(" flags=N "));
    }
}

#[test]
fn expired_keys_stay_and_are_visible_only_to_import_sources() {
    for mode in MODES {
        let server = importing(mode);
        let mut source = source(&server);
        for mut client in clients(&server) {
            source.run("FLUSHALL");
            source.run("SET s 1 PX 1");
            source.run("HSET h f v g w");
            source.run("HPEXPIRE h 1 FIELDS 1 f");
            source.run("RPUSH l a b");
            source.run("PEXPIRE l 1");
            wait_for_expiry(&mut client, "s");
            wait_for_expiry(&mut client, "l");
            wait_until("the field expires", || ask(&mut client, "HEXISTS h f") == "(integer) 0");
            // Reading does not remove the keys.
            let hidden = [
                ("GET s", "(nil)"),
                ("TTL s", "(integer) -2"),
                ("LRANGE l 0 -1", "(empty array)"),
                ("KEYS *", "1) \"h\""),
                ("RANDOMKEY", "\"h\""),
                ("SCAN 0 COUNT 10000", "1) \"0\"\n2) 1) \"h\""),
                ("HLEN h", "(integer) 2"),
                ("HKEYS h", "1) \"g\""),
                ("HRANDFIELD h", "\"g\""),
                ("HRANDFIELD h 5", "1) \"g\""),
                ("HRANDFIELD h -2", "1) \"g\"\n2) \"g\""),
                ("HPTTL h FIELDS 1 f", "1) (integer) -2"),
                ("SORT l", "(empty array)"),
                ("OBJECT ENCODING s", "(nil)"),
                ("DUMP s", "(nil)"),
                ("EVAL \"return redis.call('GET', 's')\" 0", "(nil)"),
                ("WATCH s", "OK"),
                ("UNWATCH", "OK"),
                ("DBSIZE", "(integer) 3"),
            ];
            for (line, answer) in hidden {
                assert_eq!(ask(&mut client, line).replace("ERR no such key", ""), answer, "{mode:?} {line}");
            }
            let seen = [
                ("GET s", "\"1\""),
                ("TTL s", "(integer) 0"),
                ("PTTL s", "(integer) 0"),
                ("INCR s", "(integer) 2"),
                ("LRANGE l 0 -1", "1) \"a\"\n2) \"b\""),
                ("RPUSH l c", "(integer) 3"),
                ("HGET h f", "\"v\""),
                ("HEXISTS h f", "(integer) 1"),
                ("EXISTS s l h", "(integer) 3"),
                ("MGET s", "1) \"2\""),
                ("EVAL \"return redis.call('GET', KEYS[1])\" 1 s", "\"2\""),
                ("HPTTL h FIELDS 1 g", "1) (integer) -1"),
                ("DBSIZE", "(integer) 3"),
            ];
            for (line, answer) in seen {
                assert_eq!(ask(&mut source, line), answer, "{mode:?} {line}");
            }
            assert_eq!(source.run("KEYS *").elements().unwrap().len(), 3);
            let scanned = source.run("SCAN 0 COUNT 10000");
            assert_eq!(scanned.elements().unwrap()[1].elements().unwrap().len(), 3);
            // One pipeline reads as an ordinary client and as the import source.
            let lines = ["CLIENT IMPORT-SOURCE OFF", "GET s", "CLIENT IMPORT-SOURCE ON", "GET s"];
            let words = lines.map(|line| line.split(' ').collect::<Vec<_>>());
            let answers = source.pipeline(&words).unwrap();
            assert_eq!((shown(&answers[1]), shown(&answers[3])), ("(nil)".to_owned(), "\"2\"".to_owned()));
        }
        // The key is removed once the server itself expires keys again.
        assert_eq!(ask(&mut source, "CONFIG SET import-mode no"), "OK");
        let mut client = server.client();
        wait_until("all keys have expired", || ask(&mut client, "DBSIZE") == "(integer) 1");
        wait_until("the field too", || ask(&mut client, "HLEN h") == "(integer) 1");
        assert_eq!(ask(&mut source, "GET s"), "(nil)", "the source is an ordinary client again");
    }
}

#[test]
fn an_expiry_that_has_passed_is_kept() {
    for mode in MODES {
        let server = importing(mode);
        let (mut source, mut client) = (source(&server), server.client());
        let mut dumped = server.client();
        dumped.run("SET other v");
        let Value::Bulk(payload) = dumped.run("DUMP other") else { panic!("DUMP answers bytes") };
        dumped.run("DEL other");
        for line in [
            "SET a v PXAT 1000",
            "SET b v",
            "PEXPIREAT b 1000",
            "SET c v",
            "GETEX c EXAT 1",
            "MSETEX 1 d v PXAT 1000",
            "HSET e f v",
            "HPEXPIREAT e 1000 FIELDS 1 f",
            "HSETEX g PXAT 1000 FIELDS 1 f v",
            "SET i v",
            "EXPIRE i -1",
        ] {
            assert!(!source.run(line).is_error(), "{line}");
        }
        let words: [&[u8]; 5] = [b"RESTORE", b"h", b"1000", &payload, b"ABSTTL"];
        assert_eq!(source.command(&words), Value::ok());
        assert_eq!(ask(&mut source, "EXISTS a b c d e g h i"), "(integer) 8", "{mode:?}");
        assert_eq!(ask(&mut source, "MGET a b c d h i"), ask(&mut source, "MGET a a a a a a"));
        assert_eq!(ask(&mut source, "HGET g f"), "\"v\"");
        assert_eq!(ask(&mut source, "PEXPIRETIME a"), "(integer) 1000");
        assert_eq!(ask(&mut source, "HPEXPIRETIME e FIELDS 1 f"), "1) (integer) 1000");
        assert_eq!(ask(&mut client, "MGET a b c"), "1) (nil)\n2) (nil)\n3) (nil)");
        // A write to a key that is hidden from the client creates a new key.
        assert_eq!(ask(&mut client, "APPEND a x"), "(integer) 1");
        assert_eq!(ask(&mut source, "GET a"), "\"x\"");
        assert_eq!(ask(&mut source, "TTL a"), "(integer) -1");
    }
}

#[test]
fn a_watched_key_that_expires_ends_the_transaction() {
    for mode in MODES {
        let server = importing(mode);
        let (mut source, mut client) = (source(&server), server.client());
        let exec = |client: &mut RawClient| {
            client.run("MULTI");
            client.run("PING");
            ask(client, "EXEC")
        };
        source.run("SET k v PX 1");
        wait_for_expiry(&mut client, "k");
        client.run("WATCH k");
        assert_eq!(exec(&mut client), "1) PONG", "{mode:?}: the key was hidden before, too");
        // Long enough for both clients to watch the key on a busy machine.
        source.run("SET k v PX 1000");
        client.run("WATCH k");
        source.run("WATCH k");
        wait_for_expiry(&mut server.client(), "k");
        assert_eq!(exec(&mut client), "(nil)", "{mode:?}");
        assert_eq!(exec(&mut source), "1) PONG", "{mode:?}: for the source nothing has expired");
        assert_eq!(ask(&mut source, "GET k"), "\"v\"");
    }
}

#[test]
fn nothing_is_evicted_in_import_mode() {
    for mode in MODES {
        let more = ["--import-mode", "yes", "--maxmemory-policy", "allkeys-lru"];
        let server = start_with_values(&[mode, &more].concat());
        let mut client = source(&server);
        for number in 0..100 {
            client.run(&format!("SET k{number} v"));
        }
        assert_eq!(ask(&mut client, "CONFIG SET maxmemory 1000"), "OK");
        let short = "(error) OOM command not allowed when used memory > 'maxmemory'.";
        assert_eq!(ask(&mut client, "SET more v"), short, "{mode:?}");
        assert_eq!(ask(&mut client, "GET k1"), "\"v\"");
        assert_eq!(ask(&mut client, "DBSIZE"), "(integer) 100");
        assert_eq!(ask(&mut client, "CONFIG SET import-mode no"), "OK");
        wait_until("keys are evicted", || ask(&mut client, "DBSIZE") != "(integer) 100");
    }
}
