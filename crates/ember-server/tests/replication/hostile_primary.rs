//! A primary that lies, babbles or sends what none would: nothing of it harms, and nothing of it goes unnoticed.

use ember_testkit::{Random, Server, Value, wait_until};

use crate::primary::{ID, Link, Primary, rdb};
use crate::{MODES, linked, replicaof, start};

const MIB: u64 = 1024 * 1024;

fn assert_answers(server: &Server) {
    assert_eq!(server.client().run("PING").text(), "PONG", "{}", server.log());
}

/// Lets a primary answer the first PSYNC with these bytes and hang up.
fn answer_with(server: &Server, primary: &Primary, bytes: &[u8]) {
    let mut client = server.client();
    replicaof(&mut client, primary.port());
    let mut link = primary.accept();
    link.hear();
    link.send(bytes);
}

fn full(length: &str, data: &[u8]) -> Vec<u8> {
    [format!("+FULLRESYNC {ID} 0\r\n${length}\r\n").as_bytes(), data].concat()
}

#[test]
fn nonsense_in_the_handshake_is_told_and_costs_nothing() {
    for mode in MODES {
        let server = start(mode, &["--repl-timeout", "2"]);
        let before = server.usage().unwrap().rss_bytes;
        let garbage = vec![b'a'; 200_000];
        let answers: [(&[u8], &str); 10] = [
            (b"+WHAT\r\n", "answers PSYNC with '+WHAT'"),
            (b"-NOMASTERLINK Can't SYNC\r\n", "-NOMASTERLINK"),
            (b"+CONTINUE\r\n", "answers PSYNC with '+CONTINUE'"),
            (b"+FULLRESYNC short 1\r\n", "answers PSYNC with '+FULLRESYNC short 1'"),
            (b"+FULLRESYNC 0123456789abcdef0123456789abcdef01234567 -5\r\n", "-5'"),
            (&garbage, "its answer is too long"),
            (&full("x", b""), "sends '$x' in the place of data"),
            (&full("EOF:short", b""), "sends '$EOF:short' in the place of data"),
            (&full("18446744073709551616", b""), "in the place of data"),
            (b"", "it is silent"),
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
fn data_that_are_damaged_are_not_kept() {
    for mode in MODES {
        let good = rdb(&[("k", "v")]);
        let random = Random::new(1).bytes(100_000);
        // Sizes of a database: 2^40 keys.
        let promise = b"REDIS0010\xFE\x00\xFB\x81\x00\x00\x01\x00\x00\x00\x00\x00\x00";
        let short = format!("{}", good.len() + 1);
        let copies: [(Vec<u8>, &str); 8] = [
            (full("9223372036854775807", &good), "end at byte"),
            (full(&short, &[&good[..], b"x"].concat()), "end at byte"),
            (full("1000", &random), "cannot load the data"),
            (full("1000", b"REDIS9999"), "cannot load the data"),
            (full("100000000000", promise), "cannot load the data"),
            (full(&short, &good[..good.len() - 9]), "cannot load the data"),
            (full(&format!("EOF:{ID}"), &[&good[..], &[b'x'; 40]].concat()), "do not end with their mark"),
            (full(&format!("EOF:{ID}"), &good), "have no end"),
        ];
        for (copy, expected) in copies {
            let (server, primary) = (start(mode, &[]), Primary::new());
            server.client().run("SET own 1");
            let before = server.usage().unwrap().rss_bytes;
            answer_with(&server, &primary, &copy);
            wait_until("the log says why", || server.log().contains(expected));
            let mut client = server.client();
            wait_until("nothing is loaded any more", || !client.run("GET k").is_error());
            assert_eq!(client.run("EXISTS k"), Value::Integer(0), "half of the data is worse than none");
            assert!(client.run("SET a 1").text().starts_with("READONLY"));
            let grown = server.usage().unwrap().rss_bytes.saturating_sub(before);
            assert!(grown < 128 * MIB, "{grown} bytes");
            // The next one that comes is right.
            let mut link = primary.accept();
            link.copy(0, &[("k", "v")]);
            wait_until("the link is up", || client.info("master_link_status") == "up");
            assert_eq!(client.run("GET k").text(), "v");
        }
    }
}

/// What stops a link, and the reason that the log then has.
fn assert_stops(mode: &[&str], say: impl Fn(&mut Link), reason: &str) {
    let (server, _primary, mut link) = linked(mode, &[], &[]);
    link.write("SELECT 0");
    link.write("SET before 1");
    say(&mut link);
    link.wait_for_close();
    let mut client = server.client();
    wait_until("it is told", || client.run("INFO replication").text().contains("ember_link_stopped"));
    let why = client.info("ember_link_stopped");
    assert!(why.contains(reason), "{why}");
    assert!(server.log().contains(reason));
    assert_eq!(client.run("EXISTS before behind"), Value::Integer(1));
    assert_answers(&server);
    assert_eq!(client.run("ROLE").elements().unwrap()[3].text(), "connect");
}

#[test]
fn what_no_primary_sends_stops_the_link() {
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
            let reason = format!(
                "command '{name}' at offset 55 is not applied: it is no command that a primary sends"
            );
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
fn bytes_that_are_no_commands_stop_the_link() {
    for mode in MODES {
        let cases: [(&[u8], &str); 5] = [
            (b"*1\r\nPING\r\n", "it is no command at offset 55"),
            (b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$9223372036854775807\r\n", "it is no command at offset 55"),
            (b"*9999999999\r\n", "it is no command at offset 55"),
            (b"PING\r\n*1\r\n$4\r\nPING\r\n", "are not in their usual form"),
            (b"*0\r\n", "are not in their usual form"),
        ];
        for (bytes, reason) in cases {
            assert_stops(mode, |link| link.send(bytes), reason);
        }
    }
}

#[test]
fn a_large_argument_that_never_comes_costs_nothing() {
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
