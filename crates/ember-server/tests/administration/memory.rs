//! MEMORY: what keys and the process take.

use std::fs;

use ember_testkit::{Server, Value};

use crate::{MODES, assert_error, assert_ok, builder, everywhere};

#[test]
fn usage_grows_with_the_value() {
    everywhere(&[], |_, client| {
        assert_eq!(client.run("MEMORY USAGE nothing"), Value::Null);
        assert_ok(client, "SET small 1");
        client.command(&["SET".to_owned(), "large".to_owned(), "x".repeat(100_000)]);
        let small = client.run("MEMORY USAGE small SAMPLES 0").integer().unwrap();
        let large = client.run("MEMORY USAGE large").integer().unwrap();
        assert!((8..100).contains(&small) && (100_000..140_000).contains(&large), "{small} {large}");
        assert_error(client, "MEMORY USAGE small SAMPLES", "ERR syntax error");
        assert_error(client, "MEMORY USAGE small SAMPLES -1", "ERR syntax error");
        assert_error(client, "MEMORY USAGE small SAMPLES x", "ERR value is not an integer or out of range");
        assert_error(client, "MEMORY USAGE small x 1", "ERR syntax error");
    });
}

#[test]
fn statistics_and_the_doctor_answer() {
    everywhere(&[], |_, client| {
        assert_ok(client, "SET some key");
        let stats = client.run("MEMORY STATS");
        let number = |name: &str| stats.get(name).unwrap().integer().unwrap();
        assert!(number("total.allocated") > 0 && number("peak.allocated") >= number("total.allocated"));
        assert!(number("keys.count") >= 1 && number("dataset.bytes") > 0);
        assert!(stats.get("db.0").unwrap().get("overhead.hashtable.main").is_some());
        assert!(!client.run("MEMORY DOCTOR").text().is_empty());
        assert!(!client.run("MEMORY MALLOC-STATS").text().is_empty());
        assert_ok(client, "MEMORY PURGE");
    });
}

/// The value of a line of `/proc/<pid>/status`, in bytes.
fn status(server: &Server, name: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap();
    value.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// By how much the most memory that was ever resident grows.
fn peak_of(server: &Server, act: impl FnOnce()) -> u64 {
    let before = status(server, "VmHWM");
    act();
    status(server, "VmHWM") - before
}

#[test]
fn a_large_string_grows_without_a_copy_of_it() {
    const VALUE: usize = 96 << 20;
    const SLACK: u64 = 16 << 20;
    let server = builder(MODES[0]).start();
    let mut client = server.client();
    assert_eq!(client.command(&["SET", "k", &"x".repeat(VALUE)]), Value::ok());
    let peak = peak_of(&server, || {
        assert_eq!(client.run("APPEND k y"), Value::Integer(VALUE as i64 + 1));
    });
    assert!(peak < SLACK, "one byte more took {peak}");
    let usage = client.run("MEMORY USAGE k").integer().unwrap();
    assert!(usage < (VALUE + (2 << 20)) as i64, "{usage} bytes are counted");
    let peak = peak_of(&server, || {
        let reply = client.run(&format!("SETRANGE k {} z", VALUE + (32 << 20)));
        assert_eq!(reply, Value::Integer((VALUE + (32 << 20) + 1) as i64));
    });
    assert!(peak < (32 << 20) + SLACK, "32 MiB more took {peak}");
    assert_eq!(client.run(&format!("GETRANGE k {} {}", VALUE - 1, VALUE + 1)).text(), "xy\0");
    // What is zeros takes nothing until it is written.
    client.run("DEL k");
    let peak = peak_of(&server, || {
        for bit in [(96u64 << 23) - 1, (256 << 23) - 1, (512 << 23) - 1] {
            assert_eq!(client.run(&format!("SETBIT k {bit} 1")), Value::Integer(0));
        }
        assert_eq!(client.run("BITPOS k 1"), Value::Integer((96 << 23) - 1));
    });
    assert!(peak < 3 * SLACK, "three bits took {peak}");
}
