//! MONITOR shows the commands of other clients in order, without secrets.

use ember_testkit::{RawClient, Value};

use crate::{MODES, start};

/// Returns the next line without its time and client address.
fn line(monitor: &mut RawClient) -> String {
    let text = monitor.read_value().unwrap().text();
    let (head, call) = text.split_once("] ").unwrap();
    let (time, client) = head.split_once(" [").unwrap();
    assert!(time.split_once('.').is_some_and(|(_, us)| us.len() == 6), "{text}");
    let (database, address) = client.split_once(' ').unwrap();
    match address {
        "lua" => format!("{database} lua {call}"),
        _ => {
            assert!(address.starts_with("127.0.0.1:"), "{text}");
            format!("{database} {call}")
        }
    }
}

#[test]
fn a_monitor_sees_a_script_and_then_its_calls() {
    for mode in MODES {
        let server = start(mode);
        let (mut monitor, mut client) = (server.client(), server.client());
        let library = "#!lua name=\"l\"\nredis.register_function('f', function(keys) return redis.call('GET', keys[1]) end)";
        assert_eq!(client.command(&["FUNCTION", "LOAD", library]).text(), "l");
        assert_eq!(monitor.run("MONITOR"), Value::ok());
        client.command(&["EVAL", "redis.call('SELECT', 3) return redis.call('SET', KEYS[1], 1)", "1", "a"]);
        client.command(&["EVALSHA_RO", &"0".repeat(40), "0"]);
        assert_eq!(client.run("FCALL f 1 a"), Value::Null);
        assert_eq!(client.run("PING").text(), "PONG");
        for wanted in [
            "0 \"EVAL\" \"redis.call('SELECT', 3) return redis.call('SET', KEYS[1], 1)\" \"1\" \"a\"",
            "3 lua \"SELECT\" \"3\"",
            "3 lua \"SET\" \"a\" \"1\"",
            "0 \"EVALSHA_RO\" \"0000000000000000000000000000000000000000\" \"0\"",
            "0 \"FCALL\" \"f\" \"1\" \"a\"",
            "0 lua \"GET\" \"a\"",
            "0 \"PING\"",
        ] {
            let line = line(&mut monitor);
            // The shown database is the one selected after the call.
            assert_eq!(
                line.trim_start_matches(|digit: char| digit.is_ascii_digit()),
                &wanted[1..],
                "{mode:?}"
            );
        }
    }
}

#[test]
fn a_monitor_sees_commands_of_other_clients_except_secrets_and_admin_commands() {
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
