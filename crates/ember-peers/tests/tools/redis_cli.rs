//! redis-cli works with ember: single commands, standard input, and bulk loading.

use std::io::Write;
use std::process::{Command, Stdio};

use ember_peers::{Mode, require_program, start_ember};
use ember_testkit::Server;

fn redis_cli(server: &Server, arguments: &[&str], input: &[u8]) -> String {
    let mut child = Command::new(require_program("redis-cli"))
        .args(["-p", &server.port().to_string()])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn single_commands_print_their_replies() {
    for mode in [Mode::Concurrent, Mode::Sharded] {
        let server = start_ember(mode);
        for protocol in [&["-2"][..], &["-3"]] {
            let cli = |arguments: &[&str]| redis_cli(&server, &[protocol, arguments].concat(), b"");
            assert_eq!(cli(&["FLUSHALL"]), "OK\n");
            assert_eq!(cli(&["SET", "hello", "world"]), "OK\n");
            assert_eq!(cli(&["--no-raw", "GET", "hello"]), "\"world\"\n");
            assert_eq!(cli(&["--no-raw", "MGET", "hello", "missing"]), "1) \"world\"\n2) (nil)\n");
            assert_eq!(cli(&["-n", "3", "--no-raw", "GET", "hello"]), "(nil)\n");
            assert_eq!(cli(&["--no-raw", "EXPIRE", "hello", "100"]), "(integer) 1\n");
            assert_eq!(cli(&["BITCOUNT", "hello"]), "23\n");
            assert!(cli(&["NOSUCHCOMMAND", "x"]).starts_with("ERR unknown command 'NOSUCHCOMMAND'"));
            assert!(cli(&["INFO", "server"]).contains("tcp_port"));
            let path = server.unix_socket().unwrap().display().to_string();
            assert_eq!(cli(&["-s", &path, "GET", "hello"]), "world\n");
        }
        let large = vec![b'x'; 5 * 1024 * 1024];
        assert_eq!(redis_cli(&server, &["-x", "SET", "large"], &large), "OK\n");
        assert_eq!(redis_cli(&server, &["STRLEN", "large"], b""), format!("{}\n", large.len()));
        assert_eq!(redis_cli(&server, &["GET", "large"], b"").len(), large.len() + 1);
    }
}

#[test]
fn commands_from_standard_input_are_answered_in_order() {
    let server = start_ember(Mode::Sharded);
    let mut input = String::new();
    for number in 0..1000 {
        input += &format!("SET key:{number} {number}\n");
    }
    assert_eq!(redis_cli(&server, &[], input.as_bytes()), "OK\n".repeat(1000));
    let mut keys: Vec<String> =
        redis_cli(&server, &["--scan", "--pattern", "key:*"], b"").lines().map(String::from).collect();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 1000);
}

#[test]
fn a_pipe_of_requests_reports_errors_and_replies() {
    for mode in [Mode::Concurrent, Mode::Sharded] {
        let server = start_ember(mode);
        let mut input = Vec::new();
        for number in 0..100_000 {
            write!(input, "*3\r\n$3\r\nSET\r\n$10\r\nkey:{number:06}\r\n$6\r\n{number:06}\r\n").unwrap();
        }
        let report = redis_cli(&server, &["--pipe"], &input);
        assert!(report.ends_with("errors: 0, replies: 100000\n"), "{report}");
        assert_eq!(redis_cli(&server, &["DBSIZE"], b""), "100000\n");
        assert_eq!(redis_cli(&server, &["GET", "key:012345"], b""), "012345\n");
    }
}
