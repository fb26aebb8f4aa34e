//! MEMORY: what keys and the process take.

use ember_testkit::Value;

use crate::{assert_error, assert_ok, everywhere};

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
