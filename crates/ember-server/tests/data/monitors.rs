//! MONITOR shows what others run, in order, and no secrets.

use ember_testkit::{RawClient, Value};

use crate::{MODES, start};

/// The next line without its time and its client's address.
fn line(monitor: &mut RawClient) -> String {
    let text = monitor.read_value().unwrap().text();
    let (head, call) = text.split_once("] ").unwrap();
    let (time, client) = head.split_once(" [").unwrap();
    assert!(time.split_once('.').is_some_and(|(_, us)| us.len() == 6), "{text}");
    let (database, address) = client.split_once(' ').unwrap();
    assert!(address.starts_with("127.0.0.1:"), "{text}");
    format!("{database} {call}")
}

#[test]
fn a_monitor_sees_the_commands_of_others_but_no_secrets_and_no_operators_commands() {
    for mode in MODES {
        let server = start(mode);
        let mut monitor = server.client();
        assert_eq!(monitor.run("MONITOR"), Value::ok());
        let mut client = server.client();
        for call in [
            "SET a 1",
            "SELECT 2",
            "CONFIG GET port",
            "AUTH secret",
            "HELLO 2 AUTH default secret",
            "MULTI",
            "INCR a",
            "EXEC",
        ] {
            client.run(call);
        }
        assert_eq!(client.command(&[&b"GET"[..], b"\x00\"\r\n\xff"]), Value::Null);
        let expected = [
            "0 \"SET\" \"a\" \"1\"",
            "2 \"SELECT\" \"2\"",
            "2 \"AUTH\" \"(redacted)\"",
            "2 \"HELLO\" \"2\" \"AUTH\" \"(redacted)\" \"(redacted)\"",
            "2 \"MULTI\"",
            "2 \"INCR\" \"a\"",
            "2 \"EXEC\"",
            "2 \"GET\" \"\\x00\\\"\\r\\n\\xff\"",
        ];
        for wanted in expected {
            assert_eq!(line(&mut monitor), wanted, "{mode:?}");
        }
        assert_eq!(monitor.run("RESET").text(), "RESET");
        client.run("GET a");
        assert_eq!(monitor.run("PING").text(), "PONG");
    }
}
