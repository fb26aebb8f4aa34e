//! SLOWLOG: slow calls are logged, newest first, in a bounded list.

use ember_testkit::Value;

use crate::{assert_error, assert_ok, everywhere, wait_until};

#[test]
fn every_call_is_logged_at_a_threshold_of_zero() {
    everywhere(&["--slowlog-log-slower-than", "0"], |_, client| {
        assert_ok(client, "CLIENT SETNAME slow");
        assert_ok(client, "SLOWLOG RESET");
        let mut words: Vec<String> = vec!["DEL".to_owned()];
        words.extend((0..40).map(|number| number.to_string()));
        client.command(&words);
        client.command(&["ECHO".to_owned(), "x".repeat(200)]);
        let calls = client.run("SLOWLOG GET 2");
        let calls = calls.elements().unwrap();
        assert_eq!(calls.len(), 2);
        let newest = calls[0].elements().unwrap();
        assert_eq!(newest.len(), 6);
        let arguments = newest[3].elements().unwrap();
        assert_eq!(arguments[0], Value::from("ECHO"));
        assert_eq!(arguments[1].text(), format!("{}... (72 more bytes)", "x".repeat(128)));
        assert!(newest[4].text().starts_with("127.0.0.1:"));
        assert_eq!(newest[5], Value::from("slow"));
        let arguments = calls[1].elements().unwrap()[3].elements().unwrap();
        assert_eq!(arguments.len(), 32);
        assert_eq!(arguments[31].text(), "... (10 more arguments)");
        assert!(newest[0].integer() > calls[1].elements().unwrap()[0].integer());
        assert!(client.run("SLOWLOG LEN").integer().unwrap() >= 3);
        assert_eq!(client.run("SLOWLOG GET 0"), Value::Array(vec![]));
        assert!(client.run("SLOWLOG GET -1").elements().unwrap().len() > 4);
    });
}

#[test]
fn the_length_is_limited_and_secrets_are_not_logged() {
    everywhere(&["--slowlog-log-slower-than", "0", "--slowlog-max-len", "3"], |_, client| {
        (0..10).for_each(|_| drop(client.run("PING")));
        assert_eq!(client.run("SLOWLOG LEN"), Value::Integer(3));
        assert_error(client, "SLOWLOG GET x", "ERR count should be greater than or equal to -1");
        assert_error(client, "SLOWLOG GET -2", "ERR count should be greater than or equal to -1");
        assert_error(client, "SLOWLOG x", "ERR unknown subcommand 'x'. Try SLOWLOG HELP.");
    });
}

#[test]
fn a_threshold_applies_to_its_own_command_and_later_ones_in_a_pipeline() {
    everywhere(&["--slowlog-log-slower-than", "-1"], |_, client| {
        assert_ok(client, "SLOWLOG RESET");
        let lines = [
            "ECHO before",
            "CONFIG SET slowlog-log-slower-than 0",
            "ECHO within",
            "CONFIG SET slowlog-log-slower-than -1",
            "ECHO after",
        ];
        let words: Vec<Vec<&str>> = lines.iter().map(|line| line.split(' ').collect()).collect();
        let replies = client.pipeline(&words).unwrap();
        assert!(replies.iter().all(|reply| !reply.is_error()), "{replies:?}");
        let calls = client.run("SLOWLOG GET");
        let shown: Vec<String> = calls
            .elements()
            .unwrap()
            .iter()
            .map(|call| {
                call.elements().unwrap()[3].elements().unwrap().iter().map(Value::text).collect::<Vec<_>>()
            })
            .map(|words| words.join(" "))
            .collect();
        assert_eq!(shown, ["ECHO within", "CONFIG SET slowlog-log-slower-than 0"]);
    });
}

#[test]
fn other_parameters_apply_to_later_commands_in_a_pipeline_too() {
    everywhere(&[], |_, client| {
        client.run("DEL hash");
        let lines = ["CONFIG SET hash-max-listpack-entries 0", "HSET hash f v", "OBJECT ENCODING hash"];
        let words: Vec<Vec<&str>> = lines.iter().map(|line| line.split(' ').collect()).collect();
        let replies = client.pipeline(&words).unwrap();
        assert_eq!(replies[2].text(), "hashtable");
        assert_ok(client, "CONFIG SET hash-max-listpack-entries 128");
    });
}

#[test]
fn a_blocking_call_that_times_out_is_logged_without_its_waiting_time() {
    everywhere(&["--slowlog-log-slower-than", "0"], |server, client| {
        for end in ["time", "unblock", "durable"] {
            let mut waiting = server.client();
            let id = waiting.run("CLIENT ID").integer().unwrap();
            let (call, name) = match end {
                "time" => ("BLPOP none 0.2", "blpop"),
                "unblock" => ("BZPOPMIN none 0", "bzpopmin"),
                _ => ("WAIT 1 200", "wait"),
            };
            assert_ok(client, "CONFIG RESETSTAT");
            assert_ok(client, "SLOWLOG RESET");
            waiting.send(format!("{call}\r\n").as_bytes()).unwrap();
            if end == "unblock" {
                wait_until("the call waits", || client.info_number("blocked_clients") == 1);
                assert_eq!(client.run(&format!("CLIENT UNBLOCK {id}")), Value::Integer(1));
            }
            waiting.read_value().unwrap();
            let calls = client.run("SLOWLOG GET 100");
            let logged: Vec<_> = calls.elements().unwrap().iter().filter_map(Value::elements).collect();
            let logged =
                logged.iter().find(|call| call[3].elements().unwrap()[0].text().eq_ignore_ascii_case(name));
            let logged = logged.unwrap_or_else(|| panic!("{call} is not in {calls:?}"));
            assert!(logged[2].integer().unwrap() < 150_000, "{call}: {logged:?}");
            assert!(logged[4].text().starts_with("127.0.0.1:"));
            let histogram = client.run(&format!("LATENCY HISTOGRAM {name}"));
            assert_eq!(histogram.get(name).unwrap().get("calls"), Some(Value::Integer(1)), "{call}");
        }
    });
}
