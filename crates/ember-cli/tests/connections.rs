//! Connections to a server by TLS, unix sockets, URIs and passwords; and endless modes.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use ember_testkit::{Server, find_ember_server, free_port, wait_until};
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair, date_time_ymd};

mod certificates;

use certificates::certificates;

fn server(arguments: &[&str]) -> Server {
    Server::builder(find_ember_server()).arguments(&["--save", ""]).arguments(arguments).unix_socket().start()
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ember-cli"));
    command.args(arguments).env_remove("REDISCLI_AUTH").env_remove("EMBERCLI_AUTH").stdin(Stdio::null());
    command
}

fn run(arguments: &[&str]) -> (bool, String) {
    said(&command(arguments).output().unwrap())
}

/// Returns whether the program succeeded, and all its output.
fn said(output: &Output) -> (bool, String) {
    let text = [output.stdout.as_slice(), &output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

/// Returns the first lines of output of a program that runs until it is killed.
fn first_lines(arguments: &[&str], count: usize, after_first: impl FnOnce()) -> Vec<String> {
    let mut child = command(arguments).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut read = vec![lines.next().unwrap().unwrap()];
    after_first();
    read.extend(lines.by_ref().take(count - 1).map(Result::unwrap));
    child.kill().unwrap();
    child.wait().unwrap();
    read
}

#[test]
fn tls_trusts_only_the_given_authorities() {
    let folder = std::env::temp_dir().join(format!("ember-cli-tls-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    certificates(&folder);
    let file = |name: &str| folder.join(name).display().to_string();
    let port = free_port().to_string();
    let (certificate, key, authority) = (file("server.pem"), file("server.key"), file("ca.pem"));
    let options = ["--tls-cert-file", &certificate, "--tls-key-file", &key, "--tls-ca-cert-file", &authority];
    let server = server(&[&["--tls-port", &port][..], &options].concat());
    let tls = ["-p", &port, "--tls", "--cacert", &authority];
    let (client, client_key) = (file("client.pem"), file("client.key"));
    let identity = ["--cert", &client, "--key", &client_key];
    let ping = |arguments: &[&[&str]]| run(&[&arguments.concat()[..], &["ping"]].concat());
    assert_eq!(ping(&[&tls, &identity]), (true, "PONG\n".to_owned()));
    assert_eq!(ping(&[&["-p", &port, "--tls", "--insecure"], &identity]), (true, "PONG\n".to_owned()));
    assert_eq!(ping(&[&tls, &identity, &["--sni", "localhost"]]), (true, "PONG\n".to_owned()));
    let uri = format!("rediss://127.0.0.1:{port}/1");
    let by_uri =
        [&["-u", &uri, "--cacert", &authority][..], &identity, &["--no-raw", "client", "info"]].concat();
    let (is_fine, text) = run(&by_uri);
    assert!(is_fine && text.contains(" db=1 "), "{text}");
    // Tests large values, and many requests at once.
    let value = "x".repeat(3_000_000);
    let mut set = command(&[&tls[..], &identity, &["-x", "set", "large"]].concat());
    let mut child = set.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), value.as_bytes()).unwrap();
    assert!(said(&child.wait_with_output().unwrap()).0);
    let (_, text) = run(&[&tls[..], &identity, &["get", "large"]].concat());
    assert_eq!(text.len(), value.len() + 1);
    let mut pipe = command(&[&tls[..], &identity, &["--pipe"]].concat());
    let mut child = pipe.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let requests = "SET key value\r\nGET large\r\nECHO \"\"\r\n".repeat(20);
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), requests.as_bytes()).unwrap();
    let (is_fine, text) = said(&child.wait_with_output().unwrap());
    assert!(is_fine && text.ends_with("errors: 0, replies: 60\n"), "{text}");
    for (wrong, why) in [
        (&[&["-p", &port, "--tls"][..], &identity].concat()[..], "--cacert FILE"),
        (&[&tls[..], &identity, &["--sni", "example.com"]].concat(), "is not for example.com: it is for"),
        (&["-p", &port, "--tls", "--cacert", "/no/such/file"], "no certificates in /no/such/file"),
    ] {
        let (is_fine, text) = ping(&[wrong]);
        assert!(!is_fine && text.contains(why), "{wrong:?} {text}");
    }
    // The server requires a client certificate from a CA that it trusts.
    let (is_fine, text) = ping(&[&tls]);
    assert!(!is_fine && text.contains("--cert FILE --key FILE"), "{text}");
    own_certificate(&folder, false, 4000);
    let (own, own_key) = (file("own.pem"), file("own.key"));
    let (is_fine, text) = ping(&[&tls, &["--cert", &own, "--key", &own_key]]);
    assert!(!is_fine && text.contains("does not trust the client's certificate"), "{text}");
    let plain = server.port().to_string();
    let (is_fine, text) = ping(&[&["-p", &plain, "--tls", "--cacert", &authority]]);
    assert!(!is_fine && text.contains("is not TLS"), "{text}");
    for arguments in
        [&[][..], &["-3"], &["-n", "2"], &["-a", "secret"], &["--stat"], &["--scan"], &["--pipe"]]
    {
        let (is_fine, text) = run(&[&["-p", &port][..], arguments, &["ping"]].concat());
        assert!(!is_fine && text.contains("this port requires TLS: add --tls"), "{text}");
    }
    let (_, text) = ping(&[&tls, &identity, &["--verbose"]]);
    assert!(
        text.contains(&format!("Connected to 127.0.0.1:{port} in ")) && text.contains("TLSv1.3"),
        "{text}"
    );
    drop(server);
    fs::remove_dir_all(folder).unwrap();
}

/// Creates a self-signed certificate, `own.pem` with `own.key`, for the name `elsewhere`. `is_authority`: whether it is
/// marked as a CA, as by `openssl req -x509`; `last_year`: the last year in which it is valid.
fn own_certificate(folder: &Path, is_authority: bool, last_year: i32) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["elsewhere".to_owned()]).unwrap();
    if is_authority {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    }
    params.not_after = date_time_ymd(last_year, 1, 1);
    fs::write(folder.join("own.pem"), params.self_signed(&key).unwrap().pem()).unwrap();
    fs::write(folder.join("own.key"), key.serialize_pem()).unwrap();
}

#[test]
fn a_self_signed_certificate_is_trusted_when_named() {
    let folder = std::env::temp_dir().join(format!("ember-cli-own-{}", std::process::id()));
    let named = folder.join("authorities");
    fs::create_dir_all(&named).unwrap();
    let file = |name: &str| folder.join(name).display().to_string();
    let (certificate, key) = (file("own.pem"), file("own.key"));
    for (is_authority, last_year, is_fine) in [(true, 4000, true), (false, 4000, true), (true, 1999, false)] {
        own_certificate(&folder, is_authority, last_year);
        fs::copy(&certificate, named.join("12345678.0")).unwrap();
        let port = free_port().to_string();
        let options = ["--tls-cert-file", &certificate, "--tls-key-file", &key, "--tls-auth-clients", "no"];
        let _server = server(&[&["--tls-port", &port][..], &options].concat());
        let ping = |trusted: &[&str]| run(&[&["-p", &port, "--tls"], trusted, &["ping"]].concat());
        let directory = named.display().to_string();
        for trusted in [["--cacert", &certificate], ["--cacertdir", &directory]] {
            let (was_fine, text) = ping(&trusted);
            assert_eq!(was_fine, is_fine, "{trusted:?} {text}");
            assert!(is_fine || text.contains("the server's certificate has expired"), "{text}");
        }
        assert!(!ping(&[]).0);
        assert!(ping(&["--insecure"]).0);
    }
    fs::remove_dir_all(folder).unwrap();
}

/// Starts a server that replies to every request with one text, until the test ends. Returns its port and a receiver of
/// the requests.
fn answering(text: &'static [u8]) -> (u16, std::sync::mpsc::Receiver<Vec<u8>>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, requests) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map(Result::unwrap) {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = std::io::Read::read(&mut stream, &mut bytes) {
                let _ = sender.send(bytes[..count].to_vec());
                std::io::Write::write_all(&mut stream, text).unwrap();
            }
        }
    });
    (port, requests)
}

#[test]
fn commands_follow_cluster_redirections_on_request() {
    let server = server(&[]);
    server.client().run("SET key there");
    let leaked = |text: String| -> &'static [u8] { Box::leak(text.into_boxed_str()).as_bytes() };
    for (kind, first) in [("MOVED", "get"), ("ASK", "asking")] {
        let (port, _) = answering(leaked(format!("-{kind} 12539 {}\r\n", server.address())));
        let port = port.to_string();
        assert_eq!(run(&["-c", "-p", &port, "get", "key"]), (true, "there\n".to_owned()), "{kind} {first}");
        let (_, text) = run(&["-p", &port, "get", "key"]);
        assert_eq!(text, format!("{kind} 12539 {}\n\n", server.address()));
        let mut lines = command(&["-c", "-p", &port, "--no-raw"]);
        let mut child = lines.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"get key\nget key\n").unwrap();
        let redirection = format!("-> Redirected to slot [12539] located at {}\n", server.address());
        assert_eq!(said(&child.wait_with_output().unwrap()).1, redirection + "\"there\"\n\"there\"\n");
    }
    // ASKING precedes the redirected command.
    let (node, requests) = answering(b"+OK\r\n");
    let (port, _) = answering(leaked(format!("-ASK 1 127.0.0.1:{node}\r\n")));
    assert_eq!(run(&["-c", "-p", &port.to_string(), "get", "key"]), (true, "OK\n".to_owned()));
    let sent: Vec<u8> = requests.try_iter().flatten().collect();
    assert_eq!(sent, b"*1\r\n$6\r\nASKING\r\n*2\r\n$3\r\nget\r\n$3\r\nkey\r\n");
    // A redirection loop is not followed forever: the last redirection is printed as the reply.
    let (port, requests) = answering(b"-MOVED 1 :0\r\n");
    assert!(!run(&["-c", "-p", &port.to_string(), "get", "key"]).0);
    assert_eq!(requests.try_iter().count(), 1);
}

#[test]
fn the_data_of_a_server_are_received_as_an_rdb_file() {
    let server = server(&[]);
    let port = server.port().to_string();
    server.client().run("SET key value");
    let file = std::env::temp_dir().join(format!("ember-cli-copy-{}.rdb", std::process::id()));
    let path = file.display().to_string();
    let (is_fine, text) = run(&["-p", &port, "--rdb", &path]);
    assert!(is_fine && text.starts_with("Transfer finished with success after "), "{text}");
    let (is_fine, text) = run(&["check", &path]);
    assert!(is_fine && text.contains("1 key"), "{text}");
    let output = command(&["-p", &port, "--rdb", "-"]).output().unwrap();
    assert!(output.status.success() && output.stdout.starts_with(b"REDIS"), "{output:?}");
    assert_eq!(server.client().run("PING").text(), "PONG");
    let (is_fine, text) = run(&["-p", &port, "--rdb", "/no/such/folder/copy.rdb"]);
    assert!(!is_fine && text.contains("Cannot write /no/such/folder/copy.rdb.part: No such file"), "{text}");
    let (is_fine, text) = run(&["-p", &port, "--functions-rdb", &path]);
    assert!(is_fine && text.starts_with("Transfer finished with success after "), "{text}");
    let (is_fine, text) = run(&["check", &path]);
    assert!(is_fine && text.contains("0 keys"), "{text}");
    fs::remove_file(&file).unwrap();
}

#[test]
fn server_options_may_precede_a_tool() {
    let server = server(&[]);
    let port = server.port().to_string();
    let (is_fine, text) = run(&["-p", &port, "benchmark", "-t", "set", "-n", "100", "-q"]);
    assert!(is_fine && text.starts_with("SET: "), "{text}");
    let output = command(&["-n", "3", "benchmark"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).1.contains("-n is not allowed before benchmark"));
    let (_, text) = run(&["-p", &port, "--", "check", "x"]);
    assert!(text.starts_with("ERR unknown command 'check'"), "{text}");
}

#[test]
fn intrinsic_latency_and_lru_tests_print_measurements() {
    let (is_fine, text) = run(&["--intrinsic-latency", "1"]);
    assert!(
        is_fine && text.starts_with("Max latency so far: ") && text.contains(" total runs (avg latency: "),
        "{text}"
    );
    let server = server(&[]);
    let port = server.port().to_string();
    let lines = first_lines(&["-p", &port, "--lru-test", "100"], 1, || ());
    assert!(lines[0].contains(" Gets/sec | Hits: ") && lines[0].contains("%) | Misses: "), "{lines:?}");
    let (is_fine, text) = run(&["-p", &port, "--show-pushes", "maybe", "ping"]);
    assert!(!is_fine && text.contains("must be yes or no"), "{text}");
}

#[test]
fn unix_sockets_work() {
    let server = server(&[]);
    let socket = server.unix_socket().unwrap().display().to_string();
    assert_eq!(run(&["-s", &socket, "ping"]), (true, "PONG\n".to_owned()));
    assert_eq!(run(&["-s", &socket, "-r", "2", "-i", "0.01", "echo", "x"]), (true, "x\nx\n".to_owned()));
}

#[test]
fn passwords_come_from_the_environment_or_a_uri() {
    let server = server(&["--requirepass", "p w"]);
    let port = server.port().to_string();
    let ping = ["-p", &port, "ping"];
    let with = |name: &str, value: &str| said(&command(&ping).env(name, value).output().unwrap());
    for name in ["EMBERCLI_AUTH", "REDISCLI_AUTH"] {
        assert_eq!(with(name, "p w"), (true, "PONG\n".to_owned()), "{name}");
        assert!(with(name, "other").1.contains("AUTH failed: WRONGPASS"));
    }
    let (_, text) = run(&["-p", &port, "--user", "default", "ping"]);
    assert!(text.contains("the user name is ignored without a password"), "{text}");
    assert_eq!(with("REDISCLI_AUTH", "").1, "NOAUTH Authentication required.\n\n");
    let (_, text) = run(&ping);
    assert_eq!(text, "NOAUTH Authentication required.\n\n");
    for who in [":p%20w@", "p%20w@", "default:p%20w@"] {
        let uri = format!("redis://{who}127.0.0.1:{port}");
        let (is_fine, text) = run(&["-u", &uri, "ping"]);
        assert!(is_fine && text.starts_with("PONG\nWarning: Using a password"), "{uri} {text}");
        assert_eq!(run(&["-u", &uri, "--no-auth-warning", "ping"]).1, "PONG\n");
    }
}

#[test]
fn messages_and_monitored_commands_are_printed_as_they_arrive() {
    let server = server(&[]);
    let port = server.port().to_string();
    let mut client = server.client();
    let lines = first_lines(&["-p", &port, "subscribe", "news"], 6, || {
        // The first line is the confirmation.
        client.run("PUBLISH news hello");
    });
    assert_eq!(lines, ["subscribe", "news", "1", "message", "news", "hello"]);
    let lines = first_lines(&["-p", &port, "--no-raw", "-3", "psubscribe", "n*"], 4, || ());
    assert_eq!(lines[1..], ["1) \"psubscribe\"", "2) \"n*\"", "3) (integer) 1"]);
    assert_eq!(lines[0], "Reading messages... (press Ctrl-C to quit)");
    let lines = first_lines(&["-p", &port, "monitor"], 2, || {
        client.run("ECHO watched");
    });
    assert!(lines[0] == "OK" && lines[1].ends_with("\"ECHO\" \"watched\""), "{lines:?}");
}

#[test]
fn endless_repetition_continues() {
    let server = server(&[]);
    let port = server.port().to_string();
    let lines = first_lines(&["-p", &port, "-r", "-1", "incr", "n"], 100, || ());
    assert_eq!(lines[99], "100");
    let lines = first_lines(&["-p", &port, "--stat", "-i", "0.01"], 23, || ());
    assert!(lines[1].starts_with("keys       mem      clients "), "{lines:?}");
    assert!(lines[2].starts_with("1          ") && lines[2].contains(" (+0) "), "{lines:?}");
    assert!(lines[3].contains(" (+1) ") && lines[22] == lines[0], "{lines:?}");
    let lines = first_lines(&["-p", &port, "--latency-dist", "-i", "0.02"], 9, || ());
    assert!(lines[8].starts_with("\x1b[38;5;0m\x1b[48;5;") && lines[8].ends_with("?\x1b[0m"), "{lines:?}");
    let lines = first_lines(&["-p", &port, "--latency-history", "--no-raw", "-i", "0.05"], 2, || ());
    for line in &lines {
        assert!(line.contains("min: "), "{lines:?}");
        assert!(line.contains(" samples) -- 0.") && line.ends_with(" seconds range"), "{lines:?}");
    }
}

#[test]
fn a_measured_latency_is_one_line() {
    let server = server(&[]);
    let port = server.port().to_string();
    let measured = |form: &str| run(&["-p", &port, "--latency", form, "-i", "0.05"]).1;
    assert_eq!(measured("--raw").split(' ').count(), 4);
    assert_eq!(measured("--csv").split(',').count(), 4);
    let json = measured("--json");
    assert!(json.starts_with("{\"min\": ") && json.ends_with("}\n"), "{json}");
}

#[test]
fn wrong_options_exit_with_one_and_help_with_zero() {
    assert!(!run(&["--no-such-option"]).0);
    assert!(!run(&["-p"]).0);
    assert!(!run(&["-p", "66000", "ping"]).0);
    assert!(!run(&["-u", "http://host", "ping"]).0);
    let (is_fine, text) = run(&["--help"]);
    assert!(is_fine && text.contains("--pipe-timeout") && text.contains("ember-cli repair"), "{text}");
    for alone in [&["-h"][..], &["-p", "6380", "-h"]] {
        let (is_fine, text) = run(alone);
        assert!(is_fine && text.contains("--pipe-timeout"), "{alone:?}: {text}");
    }
    let (is_fine, text) = run(&["benchmark", "-h"]);
    assert!(is_fine && text.contains("--key-pattern"), "{text}");
    let (is_fine, text) = run(&["--version"]);
    let rest = text.strip_prefix(concat!("ember-cli ", env!("CARGO_PKG_VERSION"))).unwrap().trim_end();
    let commit = rest.strip_prefix(" (commit ").and_then(|rest| rest.strip_suffix(')'));
    let is_commit = |text: &str| text.len() >= 7 && text.chars().all(|letter| letter.is_ascii_hexdigit());
    assert!(is_fine && (rest.is_empty() || commit.is_some_and(is_commit)), "{text:?}");
    // All words after the command are its arguments.
    let server = server(&[]);
    let port = server.port().to_string();
    let (is_fine, text) = run(&["-p", &port, "help", "set"]);
    assert!(is_fine && text.starts_with("\n  SET key value [") && text.contains("summary:"), "{text}");
    let (is_fine, text) = run(&["-p", "1", "HELP"]);
    assert!(is_fine && text.contains("help @<group>"), "{text}");
    assert_eq!(run(&["-p", &port, "echo", "--help"]), (true, "--help\n".to_owned()));
    assert_eq!(run(&["-p", &port, "echo", "-h"]), (true, "-h\n".to_owned()));
    assert_eq!(run(&["-p", &port, "echo", "check"]), (true, "check\n".to_owned()));
    assert_eq!(
        run(&["-p", &port, "-a", "-x-", "--no-auth-warning", "echo", "-1"]).1.lines().next(),
        Some("-1")
    );
}

#[test]
fn live_query_states_are_shown_until_they_end() {
    let server = server(&[]);
    let port = server.port().to_string();
    let set = |value: &str| {
        let (is_fine, _) = run(&["-p", &port, "SET", "price", value]);
        assert!(is_fine);
    };
    set("10");
    let lines = first_lines(&["-p", &port, "--json", "--watch", "GET", "price"], 2, || set("11"));
    assert!(lines[0].contains("\"result\":\"10\""), "{lines:?}");
    assert!(lines[1].contains("\"result\":\"11\""), "{lines:?}");
    let version = lines[1].split("\"version\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    // A known state is not shown again; the first line shows the next change.
    let arguments = ["-p", &port, "--watch", "--since", &version, "GET", "price"];
    let mut child = command(&arguments).stdout(Stdio::piped()).spawn().unwrap();
    wait_until("the client watches", || run(&["-p", &port, "CLIENT", "LIST"]).1.contains(" queries=1"));
    set("12");
    let mut shown = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(shown.next().unwrap().contains("Z "));
    assert_eq!(shown.next().unwrap(), "12");
    child.kill().unwrap();
    child.wait().unwrap();
    // While the server has not reached the version, the client asks again; each attempt advances the version here.
    let lines = first_lines(&["-p", &port, "--json", "--watch", "GET", "price"], 1, || ());
    let newest = lines[0].split("\"version\":\"").nth(1).unwrap().split('-').collect::<Vec<_>>();
    let ahead = format!("{}-{}-{}", newest[0], newest[1].parse::<u64>().unwrap() + 3, "0".repeat(32));
    let arguments = ["-p", &port, "-i", "0.05", "--json", "--watch", "--since", &ahead, "GET", "price"];
    assert!(first_lines(&arguments, 1, || ())[0].contains("\"result\":\"12\""));
    let lines = first_lines(&["-p", &port, "GET.WATCH", "price"], 6, || set("13"));
    assert_eq!((lines[0].as_str(), lines[2].as_str(), lines[5].as_str()), ("GET", "12", "13"));
    let (is_fine, text) = run(&["-p", &port, "--watch", "TTL", "price"]);
    assert!(!is_fine && text.contains("cannot be watched"), "{text}");
    let (is_fine, text) = run(&["-p", &port, "--watch"]);
    assert!(!is_fine && text.contains("needs a command"), "{text}");
}

#[test]
fn comments_in_batches_are_not_sent() {
    let server = server(&[]);
    let port = server.port().to_string();
    let mut child = command(&["-p", &port]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let lines = b"# the first line\nSET a 1\n  # \"indented, with a quote\n\nINCR a\nECHO #word\n#";
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), lines).unwrap();
    assert_eq!(said(&child.wait_with_output().unwrap()), (true, "OK\n2\n#word\n".to_owned()));
}

#[test]
fn key_statistics_count_every_key_and_list_the_largest() {
    let server = server(&[]);
    let mut client = server.client();
    client.command(&["SET", "large", &"x".repeat(50_000)]);
    client.run("RPUSH queue a b c");
    client.run("SADD numbers 1 2");
    client.run("XADD log * field value");
    for number in 0..500 {
        client.command(&["SET", &format!("small:{number}"), "1"]);
    }
    let port = server.port().to_string();
    let (is_fine, text) = run(&["-p", &port, "--keystats", "--top", "1"]);
    assert!(is_fine, "{text}");
    let line = |part: &str| {
        text.lines().find(|line| line.contains(part)).unwrap_or_else(|| panic!("{part}:\n{text}"))
    };
    let largest = line("\"large\"");
    assert!(largest.trim_start().starts_with("1  string") && largest.contains(" 50000 bytes"), "{largest}");
    assert!(text.contains("-------- 1 keys with most memory --------"), "{text}");
    assert!(line("string  ").contains("\"large\"") && line(" 501 keys (").starts_with("string"), "{text}");
    assert!(line("list ").contains(" 3 items (avg 3.00, max 3)"), "{text}");
    assert!(line("Sampled").starts_with("Sampled 504 keys"), "{text}");
    let (is_fine, text) = run(&["-p", &port, "--keystats-samples", "0", "--pattern", "queue"]);
    assert!(is_fine && text.contains("Sampled 1 keys"), "{text}");
}
