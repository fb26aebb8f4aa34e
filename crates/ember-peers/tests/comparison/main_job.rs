//! Loading a million keys with redis-benchmark and with redis-cli; all of them exist afterwards.

use std::io::{BufWriter, Write};
use std::process::{Command, Stdio};

use ember_peers::{Mode, require_program, start_ember};
use ember_testkit::{Random, Value};

const KEYS: i64 = 1_000_000;

/// redis-benchmark draws keys at random: a million draws hit about 63 % (1 − 1/e) of a million keys.
#[test]
fn a_million_sets_of_redis_benchmark_arrive() {
    for mode in [Mode::Concurrent, Mode::Sharded] {
        let server = start_ember(mode);
        let port = server.port().to_string();
        let output = Command::new(require_program("redis-benchmark"))
            .args(["-p", &port, "-t", "set", "-n", "1000000", "-r", "1000000", "-d", "64", "-P", "16", "-q"])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut client = server.client();
        let size = client.run("DBSIZE").integer().unwrap();
        assert!((620_000..645_000).contains(&size), "{mode:?}: {size} keys");
        let key = client.run("RANDOMKEY").text();
        assert!(key.starts_with("key:") && key.len() == 16, "{key}");
        assert_eq!(client.run(&format!("STRLEN {key}")), Value::Integer(64));
    }
}

#[test]
fn a_million_keys_through_redis_cli_pipe_are_all_there() {
    for mode in [Mode::Concurrent, Mode::Sharded] {
        let server = start_ember(mode);
        let mut child = Command::new(require_program("redis-cli"))
            .args(["-p", &server.port().to_string(), "--pipe"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = BufWriter::new(child.stdin.take().unwrap());
        for number in 0..KEYS {
            let value = value(number);
            write!(input, "*3\r\n$3\r\nSET\r\n$16\r\nkey:{number:012}\r\n${}\r\n{value}\r\n", value.len())
                .unwrap();
        }
        input.flush().unwrap();
        drop(input);
        let output = child.wait_with_output().unwrap();
        let report = String::from_utf8_lossy(&output.stdout);
        assert!(report.ends_with(&format!("errors: 0, replies: {KEYS}\n")), "{report}");

        let mut client = server.client();
        assert_eq!(client.run("DBSIZE"), Value::Integer(KEYS));
        let mut random = Random::new(5);
        for _ in 0..100 {
            let numbers: Vec<i64> = (0..100).map(|_| random.between(0, KEYS - 1)).collect();
            let gets: Vec<Vec<String>> =
                numbers.iter().map(|number| vec!["GET".to_owned(), format!("key:{number:012}")]).collect();
            let replies = client.pipeline(&gets).unwrap();
            for (number, reply) in numbers.iter().zip(replies) {
                assert_eq!(reply, Value::from(value(*number).as_str()));
            }
        }
        assert_eq!(client.run(&format!("GET key:{KEYS:012}")), Value::Null);
    }
}

/// Returns 64 bytes that are unique to a number.
fn value(number: i64) -> String {
    format!("{number:064}")
}
