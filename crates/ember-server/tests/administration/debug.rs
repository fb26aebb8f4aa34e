//! DEBUG: closed by default, and what it does when open.

use std::time::Instant;

use ember_testkit::{RawClient, Value};

use crate::{assert_error, assert_ok, builder, everywhere, wait_until};

const REFUSED: &str = "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can \
                       run it from a local connection, otherwise you need to set this option in the configuration \
                       file, and then restart the server.";

#[test]
fn debug_is_closed_unless_the_configuration_opens_it() {
    everywhere(&[], |_, client| {
        assert_error(client, "DEBUG SLEEP 0", REFUSED);
        assert_error(client, "DEBUG HELP", REFUSED);
        assert!(client.run("CONFIG SET enable-debug-command yes").is_error());
    });
    let server = builder(&["--enable-debug-command", "local"]).unix_socket().start();
    assert_ok(&mut server.client(), "DEBUG SLEEP 0");
    assert_ok(&mut server.unix_client(), "DEBUG SLEEP 0");
}

#[test]
fn sleep_stops_the_whole_data_set() {
    everywhere(&["--enable-debug-command", "yes"], |server, client| {
        let mut others: Vec<_> = (0..4).map(|_| server.client()).collect();
        others.iter_mut().for_each(|other| drop(other.run("PING")));
        let begun = Instant::now();
        client.send_command(&["DEBUG", "SLEEP", "0.05"]).unwrap();
        assert_eq!(client.read_value().unwrap(), Value::ok());
        assert!(begun.elapsed().as_millis() >= 50);
        others.iter_mut().for_each(|other| drop(other.run("GET a")));
        for seconds in ["x", "-1", "nan", "-inf", "0"] {
            assert_ok(client, &format!("DEBUG SLEEP {seconds}"));
        }
    });
}

#[test]
fn expired_keys_wait_to_be_asked_for_without_active_expiry() {
    everywhere(&["--enable-debug-command", "yes", "--hz", "100"], |_, client| {
        assert_ok(client, "FLUSHALL");
        assert_ok(client, "DEBUG SET-ACTIVE-EXPIRE 0");
        client.run("PSETEX gone 1 value");
        // Several ticks, in which the key would have been removed.
        let begun = microseconds(client);
        wait_until("the time has come", || microseconds(client) > begun + 100_000);
        assert_eq!(client.run("DBSIZE"), Value::Integer(1));
        assert_ok(client, "DEBUG SET-ACTIVE-EXPIRE 1");
        wait_until("the key is removed", || client.run("DBSIZE") == Value::Integer(0));
    });
}

fn microseconds(client: &mut RawClient) -> i64 {
    let time = client.run("TIME");
    let parts: Vec<i64> = time.elements().unwrap().iter().map(|part| part.text().parse().unwrap()).collect();
    parts[0] * 1_000_000 + parts[1]
}

#[test]
fn digests_depend_on_the_data_alone() {
    everywhere(&["--enable-debug-command", "yes"], |_, client| {
        assert_ok(client, "FLUSHALL");
        assert_eq!(client.run("DEBUG DIGEST").text(), "0".repeat(40));
        assert_ok(client, "DEBUG POPULATE 100");
        assert_eq!(client.run("GET key:99"), Value::from("value:99"));
        assert_eq!(client.run("DBSIZE"), Value::Integer(100));
        let digest = client.run("DEBUG DIGEST").text();
        assert_eq!(digest.len(), 40);
        assert_ok(client, "SET key:7 other");
        assert_ne!(client.run("DEBUG DIGEST").text(), digest);
        assert_ok(client, "DEBUG POPULATE 100");
        assert_ne!(client.run("DEBUG DIGEST").text(), digest, "keys that exist stay as they are");
        assert_ok(client, "SET key:7 value:7");
        assert_eq!(client.run("DEBUG DIGEST").text(), digest);
        let values = client.run("DEBUG DIGEST-VALUE key:1 key:1 key:2 nothing");
        let values = values.elements().unwrap();
        assert!(values[0] == values[1] && values[1] != values[2]);
        assert_eq!(values[3].text(), "0".repeat(40));
        assert_ok(client, "DEBUG POPULATE 1 padded 10");
        assert_eq!(client.run("GET padded:0"), Value::Bulk(b"value:0\0\0\0".to_vec()));
        assert!(client.run("DEBUG POPULATE x").is_error());
        assert!(client.run("DEBUG POPULATE -1").is_error());
        assert!(client.run("DEBUG POPULATE 1 p 999999999999").is_error());
    });
}

#[test]
fn keys_and_tables_are_described() {
    everywhere(&["--enable-debug-command", "yes"], |_, client| {
        assert_ok(client, "SET described 12345");
        let line = client.run("DEBUG OBJECT described").text();
        assert!(
            line.starts_with("Value at:0x") && line.contains(" encoding:int serializedlength:3 lru:"),
            "{line}"
        );
        assert_error(client, "DEBUG OBJECT nothing", "ERR no such key");
        assert!(client.run("DEBUG HTSTATS 0").text().contains(" number of elements: "));
        assert_error(client, "DEBUG HTSTATS 99", "ERR Out of range database");
        assert_error(client, "DEBUG HTSTATS-KEY nothing", "ERR no such key");
        assert!(client.run("DEBUG HTSTATS-KEY described").is_error());
        assert_eq!(client.run("DEBUG STRINGMATCH-LEN a*c abc"), Value::Integer(1));
        assert_error(client, "DEBUG ERROR ERR-CODE", "ERR-CODE");
        let unknown = "ERR unknown subcommand or wrong number of arguments for 'x'. Try DEBUG HELP.";
        assert_error(client, "DEBUG x", unknown);
        assert_error(client, "DEBUG SLEEP", &unknown.replace("'x'", "'SLEEP'"));
    });
}

#[test]
fn every_type_of_the_protocol_is_answered() {
    everywhere(&["--enable-debug-command", "yes"], |_, client| {
        let is_resp3 = client.run("HELLO").get("proto") == Some(Value::Integer(3));
        for (name, resp2, resp3) in [
            ("string", "$11\r\nHello World\r\n", "$11\r\nHello World\r\n"),
            ("integer", ":12345\r\n", ":12345\r\n"),
            ("double", "$5\r\n3.141\r\n", ",3.141\r\n"),
            ("null", "$-1\r\n", "_\r\n"),
            ("array", "*3\r\n:0\r\n:1\r\n:2\r\n", "*3\r\n:0\r\n:1\r\n:2\r\n"),
            ("set", "*3\r\n:0\r\n:1\r\n:2\r\n", "~3\r\n:0\r\n:1\r\n:2\r\n"),
            (
                "map",
                "*6\r\n:0\r\n:0\r\n:1\r\n:1\r\n:2\r\n:0\r\n",
                "%3\r\n:0\r\n#f\r\n:1\r\n#t\r\n:2\r\n#f\r\n",
            ),
            ("true", ":1\r\n", "#t\r\n"),
            ("false", ":0\r\n", "#f\r\n"),
            (
                "verbatim",
                "$25\r\nThis is a verbatim\nstring\r\n",
                "=29\r\ntxt:This is a verbatim\nstring\r\n",
            ),
            (
                "bignum",
                "$37\r\n1234567999999999999999999999999999999\r\n",
                "(1234567999999999999999999999999999999\r\n",
            ),
        ] {
            client.send_command(&["DEBUG", "PROTOCOL", name]).unwrap();
            let raw = client.read_raw().unwrap();
            assert_eq!(String::from_utf8_lossy(&raw), if is_resp3 { resp3 } else { resp2 }, "{name}");
        }
        assert_eq!(matches!(client.run("DEBUG PROTOCOL attrib"), Value::Attribute(..)), is_resp3);
        if is_resp3 {
            assert!(matches!(client.run("DEBUG PROTOCOL push"), Value::Push(_)));
            assert!(client.read_value().unwrap().text().starts_with("Some real reply"));
        } else {
            assert_error(client, "DEBUG PROTOCOL push", "ERR RESP2 is not supported by this command");
        }
        assert!(client.run("DEBUG PROTOCOL x").is_error());
    });
}
