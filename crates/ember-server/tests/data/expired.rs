//! Keys that have expired and were not accessed since: the first command that visits them removes them.

use ember_testkit::{RawClient, Server, Value};

use crate::{MODES, clients, start, words};

/// Starts a server that removes expired keys only when a command accesses them.
fn keeping(mode: &[&str]) -> Server {
    let server = start(&[mode, &["--enable-debug-command", "yes"]].concat());
    assert_eq!(server.client().run("DEBUG SET-ACTIVE-EXPIRE 0"), Value::ok());
    server
}

/// Creates keys that have expired when this function returns.
fn expired(client: &mut RawClient, keys: &[&str]) {
    for key in keys {
        assert_eq!(client.run(&format!("SET {key} value PX 1")), Value::ok());
    }
    // Waiting by reading the time to live would remove the keys.
    assert_eq!(client.run("DEBUG SLEEP 0.005"), Value::ok());
}

#[test]
fn scan_removes_expired_keys_it_visits() {
    for mode in MODES {
        let server = keeping(mode);
        for mut client in clients(&server) {
            assert_eq!(client.run("FLUSHALL"), Value::ok());
            client.run("MSET a 1 b 2 c 3");
            expired(&mut client, &["x", "y"]);
            assert_eq!(client.run("DBSIZE"), Value::Integer(5), "{mode:?}");
            let before = client.info_number("expired_keys");
            let found = client.run("SCAN 0 COUNT 1000 TYPE string");
            assert_eq!(found.elements().unwrap()[1].elements().unwrap().len(), 3, "{mode:?}");
            assert_eq!(client.run("DBSIZE"), Value::Integer(3), "{mode:?}");
            assert_eq!(client.info_number("expired_keys"), before + 2, "{mode:?}");
        }
    }
}

#[test]
fn debug_object_reads_an_expired_key_without_removing_it() {
    for mode in MODES {
        let server = keeping(mode);
        for mut client in clients(&server) {
            expired(&mut client, &["x"]);
            let reply = client.run("DEBUG OBJECT x").text();
            assert!(reply.starts_with("Value at:"), "{mode:?} {reply}");
            assert_eq!(client.run("DBSIZE"), Value::Integer(1), "{mode:?}");
            assert_eq!(client.run("GET x"), Value::Null, "{mode:?}");
            assert_eq!(client.run("DEBUG OBJECT x").text(), "ERR no such key", "{mode:?}");
        }
    }
}

#[test]
fn swapdb_does_not_remove_expired_keys() {
    for mode in MODES {
        let server = keeping(mode);
        for mut client in clients(&server) {
            // The databases that contain an expired key; the watched key is in database 1.
            for databases in [&[0][..], &[1], &[0, 1]] {
                assert_eq!(client.run("FLUSHALL"), Value::ok());
                for database in databases {
                    client.run(&format!("SELECT {database}"));
                    expired(&mut client, &["x"]);
                }
                client.run("SELECT 1");
                client.run("WATCH x");
                client.run("SWAPDB 0 1");
                client.run("MULTI");
                client.run("PING");
                let replies = client.run("EXEC");
                assert!(replies.elements().is_some(), "{mode:?} {databases:?} {replies:?}");
            }
            client.run("SELECT 0");
        }
    }
}

#[test]
fn a_watched_key_that_has_expired_has_changed() {
    for mode in MODES {
        let server = keeping(mode);
        for mut client in clients(&server) {
            client.pipeline(&["SET x value PX 300", "WATCH x"].map(words)).unwrap();
            client.run("DEBUG SLEEP 0.31");
            client.run("SWAPDB 0 1");
            client.run("MULTI");
            client.run("PING");
            assert_eq!(client.run("EXEC"), Value::Null, "{mode:?}");
            client.run("SWAPDB 0 1");
        }
    }
}

#[test]
fn a_waiting_client_is_not_served_from_an_expired_key() {
    for mode in MODES {
        let server = keeping(mode);
        let (mut waiting, mut client) = (server.client(), server.client());
        waiting.send(b"BLPOP list 0\r\n").unwrap();
        while !client.run("INFO clients").text().contains("blocked_clients:1") {
            std::thread::yield_now();
        }
        client.run("MULTI");
        client.run("RPUSH list gone");
        client.run("PEXPIRE list 10");
        client.run("DEBUG SLEEP 0.02");
        assert!(client.run("EXEC").elements().is_some(), "{mode:?}");
        client.run("RPUSH list there");
        let served = waiting.read_value().unwrap();
        assert_eq!(served.elements().unwrap()[1].text(), "there", "{mode:?}");
    }
}
