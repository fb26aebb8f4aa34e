//! A primary that sends false, random or impossible data: such data does no harm, and all of it is reported.

use std::thread;

use ember_testkit::{Random, Server, Value, wait_until};

use crate::primary::{ID, Link, Primary, rdb};
use crate::{MODES, linked, replicaof, start};

/// The number of damaged full syncs in each mode.
const CHANGED_COPIES: usize = 100;

const MIB: u64 = 1024 * 1024;

fn assert_answers(server: &Server) {
    assert_eq!(server.client().run("PING").text(), "PONG", "{}", server.log());
}

/// Makes a primary reply to the first PSYNC with these bytes and disconnect.
fn answer_with(server: &Server, primary: &Primary, bytes: &[u8]) {
    let mut client = server.client();
    replicaof(&mut client, primary.port());
    let mut link = primary.accept();
    link.read_handshake();
    link.send(bytes);
}

fn full(length: &str, data: &[u8]) -> Vec<u8> {
    [format!("+FULLRESYNC {ID} 0\r\n${length}\r\n").as_bytes(), data].concat()
}

#[test]
fn garbage_in_the_handshake_is_logged_and_costs_nothing() {
    for mode in MODES {
        let server = start(mode, &["--repl-timeout", "2"]);
        let before = server.usage().unwrap().rss_bytes;
        let garbage = vec![b'a'; 200_000];
        let answers: [(&[u8], &str); 10] = [
            (b"+WHAT\r\n", "replied to PSYNC with '+WHAT'"),
            (b"-NOMASTERLINK Can't SYNC\r\n", "-NOMASTERLINK"),
            (b"+CONTINUE\r\n", "replied to PSYNC with '+CONTINUE'"),
            (b"+FULLRESYNC short 1\r\n", "replied to PSYNC with '+FULLRESYNC short 1'"),
            (b"+FULLRESYNC 0123456789abcdef0123456789abcdef01234567 -5\r\n", "-5'"),
            (&garbage, "its reply is too long"),
            (&full("x", b""), "sent '$x' instead of data"),
            (&full("EOF:short", b""), "sent '$EOF:short' instead of data"),
            (&full("18446744073709551616", b""), "instead of data"),
            (b"", "no data within repl-timeout"),
        ];
        for (answer, expected) in answers {
            let primary = Primary::new();
            answer_with(&server, &primary, answer);
            wait_until("the log says why", || server.log().contains(expected));
            assert_eq!(server.client().info("master_link_status"), "down");
        }
        assert_eq!(server.client().run("REPLICAOF NO ONE"), Value::ok());
        let grown = server.usage().unwrap().rss_bytes.saturating_sub(before);
        assert!(grown < 16 * MIB, "{grown} bytes");
    }
}

#[test]
fn an_endless_handshake_is_aborted() {
    for mode in MODES {
        let (server, primary) = (start(mode, &["--repl-timeout", "1"]), Primary::new());
        replicaof(&mut server.client(), primary.port());
        let mut link = primary.accept();
        // The primary sends only keepalive bytes, and never a reply.
        wait_until("the handshake is aborted", || {
            link.send(b"\n");
            server.log().contains("Timeout connecting to the MASTER: timed out")
        });
        assert_eq!(server.client().info("master_link_status"), "down");
        // The replica tries another connection.
        primary.accept();
    }
}

#[test]
fn a_full_sync_that_never_arrives_can_be_aborted() {
    for mode in MODES {
        let (server, primary) = (start(mode, &[]), Primary::new());
        let mut client = server.client();
        replicaof(&mut client, primary.port());
        let mut link = primary.accept();
        link.read_handshake();
        link.send(format!("+FULLRESYNC {ID} 0\r\n").as_bytes());
        // Sends keepalive bytes until the replica closes the connection.
        thread::spawn(move || link.send_until_closed(&[b'\n'; 1000]));
        assert_eq!(client.run("REPLICAOF NO ONE"), Value::ok());
        assert_eq!(client.run("SET a 1"), Value::ok());
    }
}

#[test]
fn an_endless_full_sync_costs_no_memory() {
    for mode in MODES {
        for head in [format!("EOF:{ID}"), u64::MAX.to_string()] {
            let (mut server, primary) = (start(mode, &[]), Primary::new());
            let mut client = server.client();
            let before = server.usage().unwrap().rss_bytes;
            replicaof(&mut client, primary.port());
            let mut link = primary.accept();
            link.read_handshake();
            link.send(&full(&head, b"REDIS0010"));
            // Sends unknown auxiliary fields endlessly.
            let endless = thread::spawn(move || link.send_until_closed(&b"\xFA\x01a\x01b".repeat(1000)));
            wait_until("much is received", || {
                client.info("master_sync_in_progress") == "1"
                    && client.info_number("master_sync_read_bytes") > 4 * MIB
            });
            assert!(server.usage().unwrap().rss_bytes < before + 32 * MIB);
            client.send(b"SHUTDOWN NOSAVE\r\n").unwrap();
            assert!(server.wait().success(), "{}", server.log());
            endless.join().unwrap();
        }
    }
}

#[test]
fn altered_bytes_in_a_full_sync_do_no_harm() {
    for mode in MODES {
        let source = start(mode, &[]);
        let mut client = source.client();
        for line in [
            "RPUSH list a 1 2 3 100000 b",
            "SADD numbers 1 2 3",
            "SADD set a b c",
            "ZADD zset 1 a 2.5 b",
            "HSET hash a 1 b 2",
            "HPEXPIRE hash 1000000 FIELDS 1 a",
            "XADD stream 1-1 a b",
            "XGROUP CREATE stream group 0",
            "XREADGROUP GROUP group consumer STREAMS stream >",
            "SET text abc PX 1000000",
            "PFADD hll a b c",
            "SELECT 5",
            "SET other 1",
        ] {
            assert!(!client.run(line).is_error(), "{line}");
        }
        client.send(b"SYNC\r\n").unwrap();
        let mut length = Vec::new();
        while !length.ends_with(b"\r\n") {
            length.extend(client.read_bytes(1).unwrap());
        }
        // Empty lines before the length are keepalives.
        let length = String::from_utf8(length).unwrap().trim().trim_start_matches('$').parse().unwrap();
        let good = client.read_bytes(length).unwrap();
        let server = start(mode, &[]);
        let mut client = server.client();
        let before = server.usage().unwrap().rss_bytes;
        let mut random = Random::new(5);
        for _ in 0..CHANGED_COPIES {
            let mut bytes = good.clone();
            for _ in 0..=random.below(3) {
                let at = 9 + random.below(bytes.len() - 17);
                bytes[at] = random.next_u64() as u8;
            }
            // Removes the checksum; otherwise only the checksum would be tested.
            let end = bytes.len() - 8;
            bytes[end..].fill(0);
            let length = bytes.len().to_string();
            answer_with(&server, &Primary::new(), &full(&length, &bytes));
            // The role can be changed again after any outcome.
            wait_until("nothing is loaded", || client.run("REPLICAOF NO ONE") == Value::ok());
            assert_answers(&server);
        }
        wait_until("the server serves clients", || client.run("FLUSHALL") == Value::ok());
        assert!(server.usage().unwrap().rss_bytes < before + 128 * MIB);
    }
}

#[test]
fn a_damaged_full_sync_is_discarded() {
    for mode in MODES {
        let good = rdb(&[("k", "v")]);
        let random = Random::new(1).bytes(100_000);
        // The file announces a database of 2^40 keys.
        let promise = b"REDIS0010\xFE\x00\xFB\x81\x00\x00\x01\x00\x00\x00\x00\x00\x00";
        let short = format!("{}", good.len() + 1);
        let copies: [(Vec<u8>, &str); 8] = [
            (full("9223372036854775807", &good), "end at byte"),
            (full(&short, &[&good[..], b"x"].concat()), "end at byte"),
            (full("1000", &random), "cannot load the data"),
            (full("1000", b"REDIS9999"), "cannot load the data"),
            (full("100000000000", promise), "cannot load the data"),
            (full(&short, &good[..good.len() - 9]), "cannot load the data"),
            (
                full(&format!("EOF:{ID}"), &[&good[..], &[b'x'; 40]].concat()),
                "do not end with the announced mark",
            ),
            (full(&format!("EOF:{ID}"), &good), "have no end mark"),
        ];
        for (copy, expected) in copies {
            let (server, primary) = (start(mode, &[]), Primary::new());
            server.client().run("SET own 1");
            let before = server.usage().unwrap().rss_bytes;
            answer_with(&server, &primary, &copy);
            wait_until("the log says why", || server.log().contains(expected));
            let mut client = server.client();
            wait_until("nothing is loaded any more", || !client.run("GET k").is_error());
            assert_eq!(client.run("EXISTS k"), Value::Integer(0), "a part of the data is not kept");
            assert!(client.run("SET a 1").text().starts_with("READONLY"));
            let grown = server.usage().unwrap().rss_bytes.saturating_sub(before);
            assert!(grown < 128 * MIB, "{grown} bytes");
            // The next full sync is correct.
            let mut link = primary.accept();
            link.copy(0, &[("k", "v")]);
            wait_until("the link is up", || client.info("master_link_status") == "up");
            assert_eq!(client.run("GET k").text(), "v");
        }
    }
}

/// Asserts that bytes from the primary stop replication, and that the log contains the reason.
fn assert_stops(mode: &[&str], say: impl Fn(&mut Link), reason: &str) {
    let (server, _primary, mut link) = linked(mode, &[], &[]);
    link.write("SELECT 0");
    link.write("SET before 1");
    say(&mut link);
    link.wait_for_close();
    let mut client = server.client();
    wait_until("INFO reports it", || client.run("INFO replication").text().contains("ember_link_stopped"));
    let why = client.info("ember_link_stopped");
    assert!(why.contains(reason), "{why}");
    assert!(server.log().contains(reason));
    assert_eq!(client.run("EXISTS before behind"), Value::Integer(1));
    assert_answers(&server);
    assert_eq!(client.run("ROLE").elements().unwrap()[3].text(), "connect");
}

#[test]
fn commands_that_no_primary_sends_stop_the_link() {
    for mode in MODES {
        for line in [
            "SHUTDOWN NOSAVE",
            "CONFIG SET maxmemory 1",
            "REPLICAOF NO ONE",
            "BLPOP l 0",
            "XREAD BLOCK 0 STREAMS s $",
            "SUBSCRIBE c",
            "CLIENT REPLY ON",
            "GET a",
            "DEBUG SLEEP 10",
            "QUIT",
            "RESET",
            "AUTH a b",
        ] {
            let name = line.split(' ').next().unwrap();
            let reason =
                format!("command '{name}' at offset 55 is not applied: a primary does not send this command");
            let say = |link: &mut Link| {
                link.write(line);
                link.write("SET behind 1");
            };
            assert_stops(mode, say, &reason);
        }
    }
}

#[test]
fn a_write_that_fails_stops_the_link() {
    for mode in MODES {
        for (lines, reason) in [
            (&["LPUSH before 1"][..], "command 'LPUSH' at offset 55 is not applied: WRONGTYPE"),
            (&["SET a"], "command 'SET' at offset 55 is not applied: ERR wrong number of arguments"),
            (&["SELECT 99"], "command 'SELECT' at offset 55 is not applied: ERR DB index is out of range"),
            (&["MULTI", "SADD before 1", "EXEC"], "command 'EXEC' at offset 103 is not applied: WRONGTYPE"),
            (
                &["MULTI", "NOSUCH", "EXEC"],
                "command 'NOSUCH' at offset 70 is not applied: ERR unknown command",
            ),
            (&["EXEC"], "command 'EXEC' at offset 55 is not applied: ERR EXEC without MULTI"),
        ] {
            let say = |link: &mut Link| {
                lines.iter().for_each(|line| link.write(line));
                link.write("SET behind 1");
            };
            assert_stops(mode, say, reason);
        }
    }
}

#[test]
fn bytes_that_are_not_commands_stop_the_link() {
    for mode in MODES {
        let cases: [(&[u8], &str); 5] = [
            (b"*1\r\nPING\r\n", "invalid command at offset 55"),
            (b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$9223372036854775807\r\n", "invalid command at offset 55"),
            (b"*9999999999\r\n", "invalid command at offset 55"),
            (b"PING\r\n*1\r\n$4\r\nPING\r\n", "are not in the canonical form"),
            (b"*0\r\n", "are not in the canonical form"),
        ];
        for (bytes, reason) in cases {
            assert_stops(mode, |link| link.send(bytes), reason);
        }
    }
}

#[test]
fn a_large_argument_that_never_arrives_costs_nothing() {
    for mode in MODES {
        let (server, _primary, mut link) = linked(mode, &[], &[]);
        let before = server.usage().unwrap().rss_bytes;
        link.send(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$536870912\r\nabc");
        assert_answers(&server);
        let grown = server.usage().unwrap().rss_bytes.saturating_sub(before);
        assert!(grown < 16 * MIB, "{grown} bytes");
    }
}

#[test]
fn random_bytes_in_the_stream_do_no_harm() {
    for mode in MODES {
        let mut random = Random::new(3);
        for _ in 0..5 {
            let (server, _primary, mut link) = linked(mode, &[], &[]);
            let length = 1 + random.below(20_000);
            let bytes = random.bytes(length);
            link.send(&bytes);
            link.send(b"\r\n");
            assert_answers(&server);
        }
    }
}
