//! A replica that sends false or random data or disconnects in the middle: the primary continues, ignores impossible
//! claims, and keeps no state for it.

use ember_testkit::{Random, RawClient, Server, Value, wait_until};

use crate::pairs::{ARGUMENTS, assert_same, follow};
use crate::{MODES, start};

const NO_ID: &str = "0123456789abcdef0123456789abcdef01234567";

fn primary(mode: &[&str]) -> Server {
    start(mode, &[&ARGUMENTS[..], &["--save", ""]].concat())
}

/// Waits until no replica is connected, and checks that a new one still receives everything.
fn assert_serves(mode: &[&str], server: &Server) {
    let mut client = server.client();
    wait_until("no replica is connected", || client.info_number("connected_slaves") == 0);
    let good = start(mode, &ARGUMENTS);
    let mut other = good.client();
    follow(&mut other, server);
    assert_eq!(client.run("INCR n"), Value::Integer(1));
    assert_same(&mut client, &mut other);
}

/// Requests a full sync and reads its announcement.
fn ask(client: &mut RawClient) {
    client.send(b"PSYNC ? -1\r\n").unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\n") || answer == b"\n" {
        if answer == b"\n" {
            answer.clear();
        }
        answer.extend(client.read_bytes(1).unwrap());
    }
    assert!(answer.starts_with(b"+FULLRESYNC "), "{}", answer.escape_ascii());
}

#[test]
fn impossible_offsets_are_ignored() {
    for mode in MODES {
        let server = primary(mode);
        let mut client = server.client();
        let mut liar = server.client();
        ask(&mut liar);
        wait_until("the replica is connected", || client.info_number("connected_slaves") == 1);
        assert_eq!(client.run("SET k 1"), Value::ok());
        let offsets = ["9223372036854775807", "-1", "18446744073709551616", "x", "", "99999999"];
        for offset in offsets {
            let words = ["REPLCONF", "ACK", offset, "FACK", offset];
            liar.send_command(&words).unwrap();
        }
        let expected = format!("cmdstat_replconf:calls={},", offsets.len());
        wait_until("all acknowledgements are processed", || {
            client.run("INFO commandstats").text().contains(&expected)
        });
        let facts = client.info("slave0");
        let offset = facts.split(',').find_map(|fact| fact.strip_prefix("offset=")).unwrap();
        assert!(offset.parse::<u64>().unwrap() <= client.info_number("master_repl_offset"), "{facts}");
        // The offset that the replica acknowledges does not exist.
        assert_eq!(client.run("SET k 2"), Value::ok());
        assert_eq!(client.run("WAIT 1 100"), Value::Integer(0));
        drop(liar);
        for offset in ["9223372036854775807", "-9223372036854775808", "0", "4611686018427387904"] {
            for id in [NO_ID, "?", "short", &"x".repeat(100_000), &client.info("master_replid")] {
                let mut other = server.client();
                other.send_command(&["PSYNC", id, offset]).unwrap();
                let answer = other.read_bytes(1).unwrap();
                assert!(answer == b"+" || answer == b"\n" || answer == b"-", "{}", answer.escape_ascii());
            }
        }
        assert_serves(mode, &server);
    }
}

#[test]
fn replicas_that_disconnect_during_a_full_sync_leave_no_state() {
    for mode in MODES {
        let server = primary(mode);
        let mut client = server.client();
        client.run("DEBUG POPULATE 20000 key 200");
        let mut random = Random::new(7);
        for round in 0..30 {
            let mut other = server.client();
            if round % 3 == 0 {
                other.send(b"REPLCONF listening-port 1 capa eof capa psync2\r\n").unwrap();
            }
            other.send(b"PSYNC ? -1\r\n").unwrap();
            if round % 2 == 0 {
                let _ = other.read_bytes(random.below(100_000));
            }
        }
        assert_serves(mode, &server);
    }
}

#[test]
fn garbage_from_a_replica_does_no_harm() {
    for mode in MODES {
        let server = primary(mode);
        let mut random = Random::new(11);
        for round in 0..20 {
            let mut other = server.client();
            ask(&mut other);
            let length = random.below(20_000);
            let bytes = random.bytes(length);
            let commands: &[u8] = match round % 4 {
                0 => b"*1\r\n$-1\r\n*1000000000\r\n",
                1 => b"PSYNC ? -1\r\nSYNC\r\nPSYNC ? -1\r\nMULTI\r\nEXEC\r\nSUBSCRIBE c\r\nMONITOR\r\n",
                2 => b"REPLCONF ACK\r\nREPLCONF ACK 1 FACK\r\nREPLCONF GETACK *\r\nREPLCONF listening-port 5\r\nRESET\r\n",
                _ => &bytes,
            };
            // The server may close the connection while this thread writes.
            let _ = other.send(commands);
            let _ = other.send(commands);
        }
        assert_serves(mode, &server);
    }
}

#[test]
fn an_endless_handshake_costs_no_memory() {
    let server = primary(MODES[0]);
    let mut other = server.client();
    let words: Vec<Vec<String>> =
        (0..500).map(|_| vec!["REPLCONF".to_owned(), "ip-address".to_owned(), "a".repeat(200)]).collect();
    let before = server.usage().unwrap().rss_bytes;
    for _ in 0..200 {
        other.pipeline(&words).unwrap();
    }
    assert!(server.usage().unwrap().rss_bytes < before + (32 << 20));
    let long = other.command(&["REPLCONF", "ip-address", &"a".repeat(1000)]);
    assert!(long.text().starts_with("ERR REPLCONF ip-address"), "{}", long.text());
    assert_serves(MODES[0], &server);
}

#[test]
fn a_silent_replica_is_disconnected() {
    for mode in MODES {
        let server = primary(mode);
        let mut client = server.client();
        assert_eq!(client.run("CONFIG SET repl-timeout 1"), Value::ok());
        let mut silent = server.client();
        ask(&mut silent);
        // The replica receives its full sync and the stream, and acknowledges nothing.
        wait_until("the replica is disconnected", || client.info_number("connected_slaves") == 0);
        assert!(server.log().contains("has sent nothing for 1 seconds"), "{}", server.log());
        assert_serves(mode, &server);
    }
}
