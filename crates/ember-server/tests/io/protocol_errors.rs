//! Protocol errors close the connection after the preceding replies; inline commands are executed.

use crate::{MODES, encode, exchange, start, together};

#[test]
fn a_protocol_error_follows_earlier_replies_and_closes_only_that_connection() {
    let _machine = together();
    for mode in MODES {
        let server = start(mode);
        let mut other = server.client();
        let good =
            [encode(&["SET", "a", "1"]), encode(&["SET", "b", "2"]), encode(&["MGET", "a", "b"])].concat();
        for (bad, error) in [
            (&b"*1\r\n!3\r\n"[..], "expected '$', got '!'"),
            (b"*2\r\n$3\r\nGET\r\n$-5\r\n", "invalid bulk length"),
            (b"*2\r\n$3\r\nGET\r\n$99999999999\r\n", "invalid bulk length"),
            (b"*99999999999\r\n", "invalid multibulk length"),
            (b"GET \"a\r\n", "unbalanced quotes in request"),
        ] {
            let request = [&good[..], bad, &encode(&["SET", "a", "never"])].concat();
            let got = String::from_utf8(exchange(server.address(), &request, usize::MAX)).unwrap();
            let expected =
                format!("+OK\r\n+OK\r\n*2\r\n$1\r\n1\r\n$1\r\n2\r\n-ERR Protocol error: {error}\r\n");
            assert_eq!(got, expected, "{mode:?}");
        }
        assert_eq!(other.run("GET a").text(), "1", "other connections stay open");
    }
}

#[test]
fn an_error_reply_reaches_a_peer_that_continues_sending() {
    let _machine = together();
    let server = start(&["--shards", "1"]);
    for _ in 0..50 {
        let mut client = server.client();
        let flood = [&b"*1\r\n?\r\n"[..], &vec![b'x'; 500_000]].concat();
        // The server may close the connection while this is being sent.
        let _ = client.send(&flood);
        let got = client.read_raw().unwrap();
        assert_eq!(got, b"-ERR Protocol error: expected '$', got '?'\r\n");
    }
}

#[test]
fn inline_commands_and_others_may_be_mixed() {
    let _machine = together();
    for mode in MODES {
        let server = start(mode);
        let request =
            b"SET a 1\r\nset \"b c\" 'x y'\n\r\n*2\r\n$3\r\nGET\r\n$1\r\na\r\nGET \"b c\"\r\nPING\r\n";
        for chunk in [1, 5, usize::MAX] {
            let got = exchange(server.address(), request, chunk);
            let got = String::from_utf8(got).unwrap();
            assert_eq!(got, "+OK\r\n+OK\r\n$1\r\n1\r\n$3\r\nx y\r\n+PONG\r\n", "{mode:?} {chunk}");
        }
    }
}

#[test]
fn quit_is_answered_and_later_commands_are_not() {
    let _machine = together();
    for mode in MODES {
        let server = start(mode);
        let request = [encode(&["SET", "a", "1"]), encode(&["QUIT"]), encode(&["SET", "a", "2"])].concat();
        assert_eq!(exchange(server.address(), &request, usize::MAX), b"+OK\r\n+OK\r\n", "{mode:?}");
        assert_eq!(server.client().run("GET a").text(), "1");
    }
}

#[test]
fn a_request_over_http_closes_its_connection_before_its_body_is_run() {
    let _machine = together();
    for mode in MODES {
        let server = start(mode);
        for head in ["POST / HTTP/1.1\r\n", "host: localhost\r\n"] {
            let request = format!("SET a 1\r\n{head}SET a 2\r\n");
            exchange(server.address(), request.as_bytes(), usize::MAX);
            assert_eq!(server.client().run("GET a").text(), "1", "{mode:?} {head}");
        }
    }
}

#[test]
fn unknown_names_are_quoted_byte_by_byte_up_to_a_nul_and_128_of_them() {
    let _machine = together();
    for mode in MODES {
        let server = start(mode);
        let long = [b'x'; 200];
        let unknown = |name: &[u8], arguments: &[u8]| {
            let parts =
                [b"-ERR unknown command '", name, b"', with args beginning with: ", arguments, b"\r\n"];
            parts.concat()
        };
        let mut client = server.client();
        let mut ask = |words: &[&[u8]]| {
            client.send_command(words).unwrap();
            client.read_raw().unwrap()
        };
        assert_eq!(ask(&[b"\xc7D\xca\0|U", b"\xff\0x", b"a\nb"]), unknown(b"\xc7D\xca", b"'\xff' 'a b' "));
        assert_eq!(ask(&[&long]), unknown(&long[..128], b""));
        let shown = [b"'", &long[..128], b"' "].concat();
        assert_eq!(ask(&[b"nothing", &long, b"not shown"]), unknown(b"nothing", &shown));
        let subcommand = ask(&[b"CLIENT", b"\xfe\0"]);
        assert_eq!(subcommand, b"-ERR unknown subcommand '\xfe'. Try CLIENT HELP.\r\n");
    }
}
