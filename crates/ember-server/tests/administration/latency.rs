//! LATENCY: events above the threshold, and histograms of commands.

use ember_testkit::Value;

use crate::{assert_error, assert_ok, everywhere};

#[test]
fn a_slow_command_is_an_event() {
    everywhere(&["--enable-debug-command", "yes"], |_, client| {
        assert_ok(client, "DEBUG SLEEP 0.002");
        assert_eq!(client.run("LATENCY LATEST"), Value::Array(vec![]), "the monitor is off");
        assert!(client.run("LATENCY DOCTOR").text().contains("monitor is off"));
        assert_ok(client, "CONFIG SET latency-monitor-threshold 20");
        assert_ok(client, "DEBUG SLEEP 0.03");
        let latest = client.run("LATENCY LATEST");
        let event =
            latest.elements().unwrap().iter().find(|event| event.elements().unwrap()[0].text() == "command");
        let event = event.unwrap().elements().unwrap();
        assert_eq!(event.len(), 4);
        assert!(event[2].integer().unwrap() >= 30);
        let history = client.run("LATENCY HISTORY command");
        assert_eq!(history.elements().unwrap()[0].elements().unwrap().len(), 2);
        assert!(client.run("LATENCY GRAPH command").text().starts_with("command - high "));
        assert!(client.run("LATENCY DOCTOR").text().contains("command: "));
        assert_eq!(client.run("LATENCY RESET nothing"), Value::Integer(0));
        assert_eq!(client.run("LATENCY RESET COMMAND"), Value::Integer(1));
        // With the monitor on, any command of a busy machine may be an event.
        assert_ok(client, "CONFIG SET latency-monitor-threshold 0");
        client.run("LATENCY RESET");
        assert_eq!(client.run("LATENCY HISTORY command"), Value::Array(vec![]));
        assert_error(client, "LATENCY GRAPH command", "ERR No samples available for event 'command'");
    });
}

#[test]
fn a_histogram_counts_the_calls_of_all_workers() {
    everywhere(&[], |server, client| {
        assert_ok(client, "CONFIG RESETSTAT");
        let mut other = server.client();
        for number in 0..20 {
            client.run(&format!("GET {number}"));
            other.run(&format!("GET {number}"));
        }
        let histogram = client.run("LATENCY HISTOGRAM get nothing set");
        assert_eq!(histogram.pairs().unwrap().len(), 1);
        let get = histogram.get("get").unwrap();
        assert_eq!(get.get("calls"), Some(Value::Integer(40)));
        let counts = get.get("histogram_usec").unwrap().pairs().unwrap();
        assert_eq!(counts.last().unwrap().1, Value::Integer(40));
        assert!(counts.windows(2).all(|pair| pair[0] < pair[1]), "{counts:?}");
        let of_container = client.run("LATENCY HISTOGRAM config");
        assert!(of_container.get("config|resetstat").is_some());
    });
}
