//! The options of `ember-cli benchmark` take effect, and its reports agree with what the server has counted.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::io::{BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use ember_protocol::client::read_value;
use ember_testkit::{RawClient, Server, Value, find_ember_server, free_port};
use serde_json::Value as Json;

mod certificates;

fn server(arguments: &[&str]) -> Server {
    Server::builder(find_ember_server()).arguments(arguments).unix_socket().start()
}

/// The exit status and output of a run of ember-cli.
#[derive(Debug)]
struct Run {
    code: i32,
    out: String,
    err: String,
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ember-cli"));
    command.arg("benchmark").args(arguments);
    command.env_remove("REDISCLI_AUTH").env_remove("EMBERCLI_AUTH").stdin(Stdio::null());
    command
}

fn run(arguments: &[&str]) -> Run {
    let output = command(arguments).output().unwrap();
    Run {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Runs `ember-cli benchmark` against the server on a port.
fn run_at(port: u16, arguments: &[&str]) -> Run {
    run(&[&["-p", &port.to_string()], arguments].concat())
}

/// Runs a benchmark that must succeed; returns its JSON report.
fn measured(server: &Server, arguments: &[&str]) -> Json {
    let run = run_at(server.port(), &[&["--json"], arguments].concat());
    assert_eq!((run.code, run.err.as_str()), (0, ""), "{arguments:?}");
    serde_json::from_str(&run.out).unwrap()
}

/// Returns the only test in a report.
fn only(json: &Json) -> &Json {
    let tests = json["tests"].as_array().unwrap();
    assert_eq!(tests.len(), 1);
    &tests[0]
}

/// Returns the number of calls of a command that the server has counted.
fn calls(client: &mut RawClient, name: &str) -> u64 {
    info(client, "commandstats", &format!("cmdstat_{name}:calls="))
}

fn info(client: &mut RawClient, section: &str, prefix: &str) -> u64 {
    let text = client.run(&format!("INFO {section}")).text();
    let rest = text.lines().find_map(|line| line.strip_prefix(prefix)).unwrap_or("0");
    rest.split(|letter: char| !letter.is_ascii_digit()).next().unwrap().parse().unwrap()
}

fn temporary(name: &str) -> PathBuf {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("ember-benchmark-{}-{number}-{name}", std::process::id()))
}

#[test]
fn every_test_of_redis_benchmark_runs_and_is_reported() {
    let server = server(&[]);
    let run = run_at(server.port(), &["-n", "1000", "-c", "7", "-P", "3", "-r", "100", "--csv"]);
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    let lines: Vec<Vec<&str>> =
        run.out.lines().map(|line| line.trim_matches('"').split("\",\"").collect()).collect();
    let columns = "test rps avg_latency_ms min_latency_ms p50_latency_ms p95_latency_ms p99_latency_ms max_latency_ms \
                   p99_9_latency_ms requests errors never_sent hit_rate client_cpu_us client_busy server_cpu_us bound";
    assert_eq!(lines[0], columns.split(' ').collect::<Vec<_>>());
    assert_eq!(lines.len(), 20, "{}", run.out);
    for cells in &lines[1..] {
        assert_eq!(cells.len(), lines[0].len(), "{cells:?}");
        assert_eq!(cells[9..12], ["1000", "0", "0"], "{cells:?}");
        let number = |index: usize| cells[index].parse::<f64>().unwrap();
        assert!(number(1) > 0.0 && number(13) > 0.0 && number(15) >= 0.0, "{cells:?}");
        // The latencies in the order minimum, median, p95, p99, p99.9 and maximum.
        let times: Vec<f64> = [3, 4, 5, 6, 8, 7].into_iter().map(number).collect();
        assert!(times.is_sorted(), "{cells:?}");
    }
    let mut client = server.client();
    for name in ["incr", "rpush", "lpop", "rpop", "hset", "spop", "zpopmin", "mset"] {
        assert_eq!(calls(&mut client, name), 1000, "{name}");
    }
    assert_eq!(calls(&mut client, "lrange"), 4000);
    assert_eq!(calls(&mut client, "get"), 1000);
    // The calls that fill keys are counted here, too.
    for name in ["set", "sadd", "zadd", "lpush"] {
        assert!(calls(&mut client, name) >= 1000, "{name}");
    }
}

#[test]
fn reads_find_every_filled_key() {
    let server = server(&[]);
    let tests = "get,lpop,rpop,spop,zpopmin,lrange_600";
    let json = measured(&server, &["-t", tests, "-n", "2000", "-r", "500", "-P", "16"]);
    for test in json["tests"].as_array().unwrap() {
        assert_eq!(test["hit_rate"], 1.0, "{test}");
    }
    assert_eq!((json["keys"].as_u64(), json["tests"].as_array().unwrap().len()), (Some(500), 6));
    // Reads of keys that do not exist are misses, and the report shows them.
    let missed = measured(&server, &["-n", "100", "GET", "nothing"]);
    assert_eq!(only(&missed)["hit_rate"], 0.0);
    let text = run_at(server.port(), &["-t", "get", "-n", "100"]).out;
    assert!(text.contains("  hit rate     100.00 %\n"), "{text}");
    // Commands that do not read have no hit rate.
    assert_eq!(only(&measured(&server, &["-t", "set", "-n", "100"]))["hit_rate"], Json::Null);
}

#[test]
fn requests_keys_values_and_databases_are_as_requested() {
    let server = server(&[]);
    let mut client = server.client();
    let sequential = ["-n", "1000", "-r", "1000", "--key-pattern", "sequential", "-c", "8", "-P", "4"];
    measured(&server, &[&sequential[..], &["-t", "set", "-d", "77", "--db", "3", "--ttl", "1000"]].concat());
    client.run("SELECT 3");
    assert_eq!(client.run("DBSIZE"), Value::Integer(1000));
    assert_eq!(calls(&mut client, "set"), 1000);
    for key in ["key:000000000000", "key:000000000999"] {
        assert_eq!(client.run(&format!("STRLEN {key}")), Value::Integer(77));
        assert!((900..=1000).contains(&client.run(&format!("TTL {key}")).integer().unwrap()));
    }
    for pattern in ["uniform", "zipf", "gaussian"] {
        client.run("FLUSHALL");
        measured(
            &server,
            &["-t", "set", "-n", "20000", "-P", "50", "-r", "1000", "--db", "3", "--key-pattern", pattern],
        );
        let count = client.run("DBSIZE").integer().unwrap();
        assert!((200..=1000).contains(&count), "{pattern} {count}");
        assert_eq!(client.run("EXISTS key:000000001000"), Value::Integer(0));
    }
    // Without -r there is one key, and values have three bytes.
    client.run("FLUSHALL");
    measured(&server, &["-t", "set", "-n", "100", "--db", "3"]);
    assert_eq!(client.run("DBSIZE"), Value::Integer(1));
    assert_eq!(client.run("GET key:000000000000"), Value::from("xxx"));
}

#[test]
fn runs_repeat_unless_seeds_are_distinct() {
    let keys = |options: &[&str]| {
        let server = server(&[]);
        measured(&server, &[&["-t", "set", "-n", "20", "-c", "1", "-r", "1000000000"], options].concat());
        let mut keys: Vec<_> = server.client().run("KEYS *").elements().unwrap().to_vec();
        keys.sort();
        keys
    };
    assert_eq!(keys(&[]), keys(&[]));
    assert_ne!(keys(&["--distinct-seeds"]), keys(&["--distinct-seeds"]));
}

#[test]
fn the_number_of_connections_and_threads_is_as_requested() {
    let server = server(&[]);
    let mut client = server.client();
    let before = info(&mut client, "stats", "total_connections_received:");
    let json = measured(&server, &["-t", "ping_mbulk", "-n", "1001", "-c", "30", "--threads", "3"]);
    // One more connection queries the server's facts.
    assert_eq!(info(&mut client, "stats", "total_connections_received:") - before, 31);
    let test = only(&json);
    assert_eq!([&test["clients"], &test["threads"], &test["requests"]], [30, 3, 1001]);
    assert_eq!(calls(&mut client, "ping") - 1, 1001);
}

#[test]
fn sets_and_gets_are_mixed_in_the_given_ratio() {
    let server = server(&[]);
    let mut client = server.client();
    client.run("CONFIG RESETSTAT");
    let json = measured(&server, &["--ratio", "1:3", "-n", "4000", "-c", "1", "-P", "7", "-r", "10"]);
    assert_eq!(calls(&mut client, "get"), 3000);
    // Ten of these SETs fill the keys.
    assert_eq!(calls(&mut client, "set"), 1010);
    assert_eq!(
        (&only(&json)["test"], &only(&json)["hit_rate"]),
        (&Json::from("SET:GET 1:3"), &Json::from(1.0))
    );
}

#[test]
fn custom_commands_receive_keys_and_values() {
    let server = server(&[]);
    let mut client = server.client();
    let own = ["--command", "HSET __key__ 'a field' <__data__>", "-d", "4", "-n", "50", "-r", "5"];
    measured(&server, &[&own[..], &["--key-pattern", "sequential"]].concat());
    assert_eq!(client.command(&["HGET", "key:000000000004", "a field"]), Value::from("<xxxx>"));
    measured(&server, &["-n", "30", "-3", "RPUSH", "list", "a:__rand_int__"]);
    assert_eq!(client.run("LLEN list"), Value::Integer(30));
    assert_eq!(client.run("LINDEX list 0"), Value::from("a:000000000000"));
    // Replies of every shape.
    for line in ["COMMAND DOCS get", "HGETALL key:000000000001", "INFO", "LRANGE list 0 -1", "DEBUG JMAP"] {
        let run = run_at(server.port(), &["-3", "-n", "20", "-P", "5", "--command", line, "-q"]);
        assert_eq!(run.code, i32::from(line.starts_with("DEBUG")), "{run:?}");
    }
    measured(&server, &["-n", "64", "-P", "8", "-d", "300000", "--command", "ECHO __data__"]);
}

#[test]
fn durations_and_warmup_are_obeyed() {
    let server = server(&[]);
    let mut client = server.client();
    let json = measured(&server, &["-t", "set", "--duration", "0.5"]);
    let elapsed = only(&json)["elapsed_s"].as_f64().unwrap();
    assert!((0.4..3.0).contains(&elapsed), "{elapsed}");
    assert_eq!(only(&json)["requests"].as_u64().unwrap(), calls(&mut client, "set"));
    assert!(only(&json)["series"].as_array().unwrap().len() >= 4);
    client.run("CONFIG RESETSTAT");
    let json = measured(&server, &["-t", "set", "-n", "100", "--warm-up", "0.2"]);
    assert_eq!(only(&json)["requests"], 100);
    assert!(calls(&mut client, "set") > 100);
}

#[test]
fn a_rate_limit_is_obeyed() {
    let server = server(&[]);
    let json = measured(&server, &["-t", "ping_mbulk", "--rate", "1000", "-n", "500", "--threads", "2"]);
    let test = only(&json);
    let elapsed = test["elapsed_s"].as_f64().unwrap();
    // The last request is due after 0.499 s.
    assert!((0.499..2.0).contains(&elapsed), "{elapsed}");
    assert_eq!((&test["requests"], &test["asked_rate"]), (&Json::from(500), &Json::from(1000.0)));
    let json = measured(&server, &["-t", "ping_mbulk", "--rate", "2000", "--duration", "0.5", "-P", "4"]);
    let test = only(&json);
    let due = test["requests"].as_u64().unwrap() + test["never_sent"].as_u64().unwrap();
    assert!((999..=1001).contains(&due), "{test}");
}

/// Starts a server that replies to every PING with `+PONG`. Before each reply, `before` is called with the number of
/// the PING, counted from 0.
fn strange_server(before: impl Fn(usize, &mut TcpStream) -> bool + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (before, count) = (Arc::new(before), Arc::new(AtomicUsize::new(0)));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (before, count) = (Arc::clone(&before), Arc::clone(&count));
            let mut stream = stream.unwrap();
            std::thread::spawn(move || {
                let mut requests = BufReader::new(stream.try_clone().unwrap());
                while let Ok(request) = read_value(&mut requests) {
                    let is_ping = request.elements().is_some_and(|words| words[0].text() == "PING");
                    if is_ping && !before(count.fetch_add(1, Ordering::Relaxed), &mut stream) {
                        return;
                    }
                    let answer: &[u8] = if is_ping { b"+PONG\r\n" } else { b"-ERR unknown\r\n" };
                    if stream.write_all(answer).is_err() {
                        return;
                    }
                }
            });
        }
    });
    port
}

/// Waits, to simulate a slow server.
fn be_slow(time: Duration) {
    let (_sender, nothing) = mpsc::channel::<()>();
    assert!(nothing.recv_timeout(time).is_err());
}

#[test]
fn a_pause_of_the_server_counts_for_all_requests_that_were_due() {
    const PAUSE: Duration = Duration::from_millis(500);
    let pausing = || {
        strange_server(|number, _| {
            if number == 200 {
                be_slow(PAUSE);
            }
            true
        })
    };
    let percentiles = |options: &[&str]| {
        let arguments = [&["--json", "-t", "ping_mbulk", "-c", "1", "-n", "1000"], options].concat();
        let run = run_at(pausing(), &arguments);
        let json: Json = serde_json::from_str(&run.out).unwrap();
        let latency = &only(&json)["latency_ms"];
        [&latency["p50"], &latency["p95"], &latency["max"]].map(|value| value.as_f64().unwrap())
    };
    // A closed loop measures one slow request of a thousand.
    let [_, p95, max] = percentiles(&[]);
    assert!(p95 < 250.0 && max >= 499.0, "{p95} {max}");
    // At 1000 requests per second, 500 are due during the pause, the last of them at its end: a tenth of all requests
    // wait for 400 ms or more.
    let [_, p95, max] = percentiles(&["--rate", "1000"]);
    assert!(p95 >= 400.0 && max >= 499.0, "{p95} {max}");
}

#[test]
fn requests_never_sent_to_a_slow_server_are_reported() {
    let port = strange_server(|_, _| {
        be_slow(Duration::from_millis(50));
        true
    });
    let arguments = ["-t", "ping_mbulk", "-c", "2", "--rate", "1000", "--duration", "0.5"];
    let json: Json =
        serde_json::from_str(&run_at(port, &[&["--json"], &arguments[..]].concat()).out).unwrap();
    let test = only(&json);
    let never_sent = test["never_sent"].as_u64().unwrap();
    // Two connections send at most forty requests per second.
    assert!((450..=500).contains(&never_sent), "{test}");
    assert!(test["latency_ms"]["p50"].as_f64().unwrap() > 100.0, "{test}");
    let text = run_at(port, &arguments).out;
    assert!(text.contains("requests were due and never sent"), "{text}");
}

#[test]
fn json_contains_the_fields_that_programs_read() {
    let server = server(&[]);
    let json =
        measured(&server, &["-t", "set,get", "-n", "20000", "-c", "3", "-P", "2", "-r", "9", "-d", "5"]);
    assert_eq!(json["server"], format!("ember {}", env!("CARGO_PKG_VERSION")));
    assert_eq!(json["address"], server.address().to_string());
    assert_eq!((json["keys"].as_u64(), json["data_bytes"].as_u64()), (Some(9), Some(5)));
    assert!(json["server_threads"].as_u64().unwrap() >= 1);
    for (test, name) in json["tests"].as_array().unwrap().iter().zip(["SET", "GET"]) {
        assert_eq!(test["test"], name);
        assert_eq!([&test["clients"], &test["pipeline"], &test["asked_requests"]], [3, 2, 20_000]);
        let number = |name: &str| test[name].as_f64().unwrap();
        assert!((number("rps") - 20_000.0 / number("elapsed_s")).abs() < 1.0, "{test}");
        assert!(number("client_cpu_us") > 0.0 && number("server_cpu_us") > 0.0, "{test}");
        assert!((0.0..=1.0).contains(&number("client_busy")), "{test}");
        let replies: f64 = test["series"]
            .as_array()
            .unwrap()
            .iter()
            .scan(0.0, |start, moment| {
                let end = moment["end_s"].as_f64().unwrap();
                let length = end - std::mem::replace(start, end);
                Some(length * moment["rps"].as_f64().unwrap())
            })
            .sum();
        assert!((replies - 20_000.0).abs() < 1.0, "{replies}");
    }
}

#[test]
fn each_test_prints_the_line_of_redis_benchmark() {
    let server = server(&[]);
    let run = run_at(server.port(), &["-t", "set,lrange_100", "-n", "100", "-q"]);
    let lines: Vec<&str> = run.out.lines().collect();
    assert_eq!((run.code, lines.len()), (0, 2));
    for (line, name) in lines.iter().zip(["SET: ", "LRANGE_100 (first 100 elements): "]) {
        let (rate, latency) =
            line.strip_prefix(name).unwrap().split_once(" requests per second, p50=").unwrap();
        assert!(rate.parse::<f64>().unwrap() > 0.0);
        assert!(latency.strip_suffix(" msec").unwrap().parse::<f64>().unwrap() > 0.0);
    }
}

#[test]
fn the_html_page_loads_nothing_from_other_hosts() {
    let server = server(&[]);
    let file = temporary("report.html");
    let path = file.to_str().unwrap();
    let run = run_at(server.port(), &["-t", "set,get", "-n", "2000", "--report", path, "-q"]);
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    let page = fs::read_to_string(&file).unwrap();
    for part in ["http:", "https:", "src=", "url(", "@import", "<script", "<link", "NaN", "inf,"] {
        assert!(!page.contains(part), "{part} is in the page");
    }
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
    assert!(page.contains("prefers-color-scheme: dark"));
    for part in ["<svg ", "</svg>"] {
        assert_eq!(page.matches(part).count(), 10, "{part}");
    }
    for title in [
        "Requests per second over time",
        "Latency in milliseconds over time",
        "Latency in milliseconds by percentile",
        "Requests per second by connections",
        "Requests per second by pipeline",
    ] {
        assert_eq!(page.matches(&format!(">{title}</text>")).count(), 2, "{title}");
    }
    fs::remove_file(file).unwrap();
    let run = run_at(server.port(), &["-t", "set", "--report", "/no/such/folder/report.html"]);
    assert_eq!((run.code, run.out.as_str()), (1, ""));
    assert!(run.err.starts_with("Cannot write /no/such/folder/report.html: No such file"), "{}", run.err);
}

#[test]
fn servers_are_compared_in_pairs() {
    let server = server(&[]);
    let slow = strange_server(|_, _| {
        be_slow(Duration::from_millis(2));
        true
    });
    let other = format!("127.0.0.1:{slow}");
    let common = ["-t", "ping_mbulk", "-n", "200", "-c", "1", "--compare", &other, "--rounds", "2"];
    let json = measured(&server, &common);
    let comparison = &json["comparisons"][0];
    assert_eq!(comparison["other"]["address"], other.as_str());
    let rounds = comparison["rounds"].as_array().unwrap();
    assert_eq!(rounds.len(), 2);
    for round in rounds {
        let rate = |name: &str| round[name]["rps"].as_f64().unwrap();
        assert!((round["ratio"].as_f64().unwrap() - rate("other") / rate("first")).abs() < 1e-9);
        // At two milliseconds per request, there are at most five hundred per second.
        assert!(rate("other") <= 500.0, "{round}");
    }
    let ratios: Vec<f64> = rounds.iter().map(|round| round["ratio"].as_f64().unwrap()).collect();
    assert!((comparison["ratio"].as_f64().unwrap() - f64::midpoint(ratios[0], ratios[1])).abs() < 1e-9);
    let run = run_at(server.port(), &common);
    let lines: Vec<&str> = run.out.lines().collect();
    assert_eq!((run.code, lines.len()), (0, 7), "{}", run.out);
    assert!(lines[0].contains(" UTC on ") && lines[1].contains("--rounds 2"), "{}", run.out);
    assert!(lines[3].starts_with("| test") && lines[5].contains("ember ") && lines[6].contains(&other));
    let run = run_at(server.port(), &[&common[..], &["--csv"]].concat());
    assert!(
        run.out.starts_with("\"test\",\"server\",\"rps\",\"ratio\",\"ratio_min\",\"ratio_max\""),
        "{}",
        run.out
    );
    let file = temporary("compared.html");
    let run = run_at(server.port(), &[&common[..], &["--report", file.to_str().unwrap()]].concat());
    let page = fs::read_to_string(&file).unwrap();
    assert_eq!((run.code, page.matches("<svg ").count()), (0, 2), "{page}");
    for part in ["<th>ratio_min</th>", &other, ">Requests per second by round</text>", "</html>"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    fs::remove_file(file).unwrap();
    let run = run_at(server.port(), &["--compare", "nonsense"]);
    assert_eq!((run.code, run.err.as_str()), (1, "--compare: nonsense is not HOST:PORT\n"));
}

#[test]
fn the_matrix_equals_that_of_kvbench() {
    let server = server(&["--appendonly", "yes", "--appendfsync", "always"]);
    let run = run_at(server.port(), &["--matrix", "-n", "500"]);
    let rows: Vec<Vec<&str>> =
        run.out.lines().map(|line| line.trim_matches('|').split('|').map(str::trim).collect()).collect();
    assert_eq!(rows[0], ["Store", "Pipeline", "Clients", "Persist", "Fsync", "SET/sec", "GET/sec"]);
    assert_eq!(rows.len(), 5, "{}", run.out);
    for (row, (pipeline, clients)) in rows[2..].iter().zip([("1", "1"), ("1", "256"), ("256", "256")]) {
        assert_eq!(row[..5], ["map", pipeline, clients, "yes", "yes"]);
        assert!(row[5].parse::<u64>().unwrap() > 0 && row[6].parse::<u64>().unwrap() > 0);
    }
    let json = run_at(server.port(), &["--matrix", "-n", "500", "--json"]).out;
    let json: Json = serde_json::from_str(&json).unwrap();
    assert_eq!((&json[2]["pipeline"], &json[2]["fsync"]), (&Json::from(256), &Json::from("yes")));
    assert!(json[0]["set_per_sec"].as_u64().unwrap() > 0);
}

#[test]
fn the_store_matrix_has_all_rows_of_kvbench() {
    let folder = temporary("matrix");
    fs::create_dir_all(&folder).unwrap();
    let program = find_ember_server();
    let common = ["--matrix", "stores", "-n", "300", "--folder", folder.to_str().unwrap()];
    let common = [&common[..], &["--server-program", program.to_str().unwrap()]].concat();
    let table = run(&common);
    assert_eq!(table.code, 0, "{}", table.err);
    let rows: Vec<Vec<&str>> =
        table.out.lines().map(|line| line.trim_matches('|').split('|').map(str::trim).collect()).collect();
    assert_eq!(rows[0][..3], ["KVBench", "Store", "Pipeline"]);
    let of_kvbench = rows[2..].iter().filter(|row| row.len() == 13 && row[11] != "–");
    assert_eq!(of_kvbench.count(), 39, "{}", table.out);
    for (store, count) in [("map", 9), ("btree", 9), ("redb", 6), ("lmdb", 6), ("fjall", 6)] {
        let own: Vec<_> = rows.iter().filter(|row| row.len() == 13 && row[1] == store).collect();
        assert_eq!(own.len(), count, "{store}: {}", table.out);
        for row in own {
            assert!(row[6].parse::<u64>().unwrap() > 0 && row[7].parse::<u64>().unwrap() > 0, "{row:?}");
            assert_eq!(row[8], "100 %");
            // Stores in memory write no files.
            assert_eq!(row[9] == "0", row[4] == "no", "{row:?}");
        }
    }
    assert!(table.out.contains("(35855)") && table.out.contains("In brackets"), "{}", table.out);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "servers and their folders are removed");
    let csv = run(&[&common[..], &["--csv"]].concat());
    assert!(
        csv.out.lines().count() == rows.len() - 3 && csv.err.contains("In brackets"),
        "{}{}",
        csv.out,
        csv.err
    );
    let missing = folder.join("none");
    let nowhere = ["--matrix", "stores", "-n", "5", "--server-program", missing.to_str().unwrap()];
    let table = run(&nowhere);
    assert!(table.err.contains("map is skipped: "), "{}", table.err);
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn errors_are_counted_and_shown() {
    let server = server(&[]);
    server.client().run("SET text hello");
    let run = run_at(server.port(), &["-n", "123", "--command", "INCR text"]);
    assert_eq!((run.code, run.err.as_str()), (1, "123 replies were errors\n"));
    let wanted = "123 of 123 replies were errors, the first one: ERR value is not an integer or out of range";
    assert!(run.out.contains(wanted), "{}", run.out);
    let run = run_at(server.port(), &["-n", "10", "--command", "INCR text", "--json"]);
    let json: Json = serde_json::from_str(&run.out).unwrap();
    assert_eq!(only(&json)["errors"], 10);
    server.client().run("SET mylist text");
    let run = run_at(server.port(), &["-t", "lpop", "-n", "10"]);
    assert_eq!(run.code, 1);
    assert!(run.err.starts_with("Cannot write the keys: WRONGTYPE"), "{}", run.err);
}

#[test]
fn servers_that_cannot_be_measured_are_reported() {
    let failing = |port: u16, options: &[&str]| {
        let run = run_at(port, &[options, &["-t", "ping_mbulk", "-n", "100", "-c", "3"]].concat());
        assert_eq!(run.code, 1, "{run:?}");
        run.err
    };
    let unused = free_port();
    let wanted = format!("Could not connect to the server at 127.0.0.1:{unused}: Connection refused\n");
    assert_eq!(failing(unused, &[]), wanted);
    let closing = strange_server(|number, _| number < 50);
    assert_eq!(failing(closing, &[]), format!("The server at 127.0.0.1:{closing} closed a connection\n"));
    let silent = strange_server(|number, _| {
        if number == 50 {
            be_slow(Duration::from_secs(5));
        }
        true
    });
    let said = failing(silent, &["--timeout", "0.3", "--threads", "3"]);
    assert_eq!(said, format!("The server at 127.0.0.1:{silent} has not replied for 0.3 seconds\n"));
    let other_protocol =
        strange_server(|_, stream| stream.write_all(b"HTTP/1.1 400 Bad Request\r\n").is_ok());
    let said = failing(other_protocol, &[]);
    assert!(said.contains("sent \"HTTP/1.1 400 Bad Request\\r\", which is not a reply"), "{said}");
    let too_much = strange_server(|_, stream| stream.write_all(b"+A\r\n+B\r\n").is_ok());
    assert!(failing(too_much, &[]).contains("sent data without a request, which is not a reply"));
    let full = server(&["--maxclients", "2"]);
    assert!(!failing(full.port(), &[]).is_empty());
}

#[test]
fn authentication_failures_are_reported() {
    let server = server(&["--requirepass", "secret"]);
    let port = server.port();
    let ping = ["-t", "ping_mbulk", "-n", "10", "-q"];
    let run = |options: &[&str]| run_at(port, &[&ping, options].concat());
    assert!(run(&["-a", "wrong"]).err.contains("AUTH failed: WRONGPASS"));
    assert_eq!(run(&["-a", "wrong"]).code, 1);
    assert_eq!(run(&["-a", "secret", "--no-auth-warning"]).code, 0);
    assert_eq!(run(&["--user", "default", "-a", "secret", "--no-auth-warning"]).code, 0);
    let without = run(&[]);
    assert_eq!((without.code, without.err.as_str()), (1, "10 replies were errors\n"));
    let output =
        command(&["-p", &port.to_string(), "-t", "set", "-n", "10"]).env("EMBERCLI_AUTH", "secret").output();
    assert!(output.unwrap().status.success());
    let wrong = run_at(port, &["-a", "secret", "--no-auth-warning", "--db", "99"]);
    assert_eq!((wrong.code, wrong.err.as_str()), (1, "SELECT failed: ERR DB index is out of range\n"));
}

#[test]
fn wrong_command_lines_exit_with_two() {
    for (arguments, why) in [
        (&["-t", "nothing"][..], "unknown test nothing"),
        (&["-n", "0"], "0 is not in"),
        (&["-c", "0"], "0 is not in"),
        (&["-P", "100001"], "100001 is not in"),
        (&["-r", "1000000000001"], "is not in"),
        (&["--rate", "0"], "above 0"),
        (&["--rate", "inf"], "above 0"),
        (&["--duration", "0"], "above 0"),
        (&["--duration", "1", "-n", "5"], "cannot be used with"),
        (&["--ratio", "0:0"], "SETS:GETS"),
        (&["--ratio", "1:1", "-t", "get"], "cannot be used with"),
        (&["--command", "\"open"], "has an unclosed quote"),
        (&["--command", ""], "it is empty"),
        (&["--csv", "--json"], "cannot be used with"),
        (&["--matrix", "-c", "5"], "cannot be used with"),
        (&["--matrix", "nothing"], "possible values"),
        (&["--folder", "x"], "--matrix"),
        (&["--ttl", "5", "-t", "incr"], "--ttl requires a test that runs SET"),
        (&["-d", "500000000", "-P", "16", "-t", "set"], "exceed 1 GiB"),
        (&["--key-pattern", "random"], "possible values"),
    ] {
        let run = run(arguments);
        assert_eq!(run.code, 2, "{arguments:?} {run:?}");
        assert!(run.err.contains(why), "{arguments:?} {}", run.err);
    }
    let help = run(&["--help"]);
    assert_eq!(help.code, 0);
    for option in ["--key-pattern", "--distinct-seeds", "--report", "zpopmin"] {
        assert!(help.out.contains(option), "{option}");
    }
}

#[test]
fn unix_sockets_and_tls_work() {
    let folder = temporary("tls");
    fs::create_dir_all(&folder).unwrap();
    certificates::certificates(&folder);
    let file = |name: &str| folder.join(name).display().to_string();
    let (certificate, key, authority) = (file("server.pem"), file("server.key"), file("ca.pem"));
    let tls_port = free_port().to_string();
    let options = ["--tls-cert-file", &certificate, "--tls-key-file", &key, "--tls-auth-clients", "no"];
    let server = server(&[&["--tls-port", &tls_port], &options[..]].concat());
    let mut client = server.client();
    let work = ["-t", "set,get", "-n", "3000", "-c", "5", "-r", "100", "--csv"];
    for extra in [&["-P", "1", "-d", "3"], &["-P", "16", "-d", "20000"]] {
        let ways: [&[&str]; 2] = [
            &["-s", server.unix_socket().unwrap().to_str().unwrap()],
            &["-p", &tls_port, "--tls", "--cacert", &authority],
        ];
        for way in ways {
            client.run("CONFIG RESETSTAT");
            let run = run(&[way, &work, &extra[..]].concat());
            assert_eq!((run.code, run.err.as_str()), (0, ""), "{way:?}");
            assert_eq!((calls(&mut client, "get"), calls(&mut client, "set")), (3000, 3100));
        }
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_terminal_shows_progress() {
    let server = server(&[]);
    let (pty, side) = pty_process::blocking::open().unwrap();
    pty.resize(pty_process::Size::new(24, 100)).unwrap();
    let mut child = pty_process::blocking::Command::new(env!("CARGO_BIN_EXE_ember-cli"))
        .args(["benchmark", "-p", &server.port().to_string(), "-t", "get", "--duration", "1.5", "-q"])
        .env("TERM", "xterm-256color")
        .spawn(side)
        .unwrap();
    let mut shown = Vec::new();
    let mut reader: fs::File = std::os::fd::AsFd::as_fd(&pty).try_clone_to_owned().unwrap().into();
    let mut bytes = [0; 4096];
    while let Ok(count @ 1..) = reader.read(&mut bytes) {
        shown.extend_from_slice(&bytes[..count]);
    }
    assert!(child.wait().unwrap().success());
    let shown = String::from_utf8_lossy(&shown);
    assert!(shown.contains("GET [") && shown.contains("/s p50=") && shown.contains(" p99="), "{shown}");
    assert!(shown.contains("requests per second, p50="), "{shown}");
}

#[test]
fn keys_of_custom_commands_are_filled_or_reported_as_missing() {
    let server = server(&[]);
    for command in ["GET session:__rand_int__", "MGET a:__rand_int__ __key__", "STRLEN s:__rand_int__"] {
        let json = measured(&server, &["--command", command, "-n", "500", "-r", "50"]);
        assert_eq!(only(&json)["hit_rate"], 1.0, "{command}");
    }
    let run = run_at(server.port(), &["--command", "HGETALL h:__rand_int__", "-n", "500", "-r", "50", "-q"]);
    assert!(
        run.out.trim_end().ends_with("(all 500 replies were nil or empty: the requested data do not exist)"),
        "{run:?}"
    );
    let run =
        run_at(server.port(), &["--command", "GET session:__rand_int__", "-n", "500", "-r", "50", "-q"]);
    assert!(run.out.trim_end().ends_with(" msec"), "{run:?}");
}

#[test]
fn connections_reconnect_or_run_without_replies_on_request() {
    let server = server(&["--requirepass", "x"]);
    let connections = |server: &Server| {
        let mut client = server.client();
        client.run("AUTH x");
        info(&mut client, "stats", "total_connections_received:")
    };
    let before = connections(&server);
    let run = run_at(
        server.port(),
        &["-a", "x", "--no-auth-warning", "-t", "set", "-n", "300", "-c", "5", "-P", "3", "-k", "0"],
    );
    assert_eq!((run.code, run.err.as_str()), (0, ""), "{run:?}");
    assert!(run.out.contains("pipeline 3, a new connection for each"), "{run:?}");
    // One connection for each of a hundred batches, the connections that fill keys or query facts, and the test's own
    // connection.
    assert!((100..=104).contains(&(connections(&server) - before)), "{before}");
    let mut child =
        command(&["-p", &server.port().to_string(), "--pass=x", "--no-auth-warning", "-I", "-c", "7"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
    let mut lines = std::io::BufRead::lines(BufReader::new(child.stdout.take().unwrap())).map(Result::unwrap);
    assert_eq!(lines.next().unwrap(), "7 idle connections, 0 closed by the server");
    let mut client = server.client();
    client.run("AUTH x");
    client.run("CLIENT KILL TYPE normal SKIPME yes");
    assert_eq!(lines.last().unwrap(), "0 idle connections, 7 closed by the server");
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

#[test]
fn connections_watch_keys_and_receive_changes() {
    let server = server(&[]);
    let arguments = ["--watch", "40", "-c", "4", "-P", "3", "--rate", "50", "--duration", "0.5"];
    let run = run_at(server.port(), &arguments);
    assert_eq!((run.code, run.err.as_str()), (0, ""), "{run:?}");
    let lines: Vec<&str> = run.out.lines().collect();
    assert!(lines[0].starts_with("40 watches, ") && lines[0].ends_with(" bytes each"), "{run:?}");
    assert!(
        lines[1].contains(" changes, last watcher notified after ") && lines[1].ends_with(" (max)"),
        "{run:?}"
    );
    let run = run_at(server.port(), &["--watch", "1", "-c", "30", "--rate", "20", "--duration", "0.3"]);
    assert!(run.code == 0 && run.out.starts_with("30 watches, "), "{run:?}");
}

#[test]
fn an_endless_run_repeats() {
    let server = server(&[]);
    let mut child = command(&["-p", &server.port().to_string(), "-t", "set,get", "-n", "100", "-q", "-l"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = std::io::BufRead::lines(BufReader::new(child.stdout.take().unwrap())).map(Result::unwrap);
    let names: Vec<String> = lines.take(5).map(|line| line.split(':').next().unwrap().to_owned()).collect();
    assert_eq!(names, ["SET", "GET", "SET", "GET", "SET"]);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_ne!(run_at(server.port(), &["-l", "--json"]).code, 0);
}

#[test]
fn reports_name_the_origin_of_their_figures() {
    let server = server(&["--requirepass", "hunter2"]);
    let password = ["--no-auth-warning", "-a", "hunter2", "-t", "set", "-n", "100"];
    let json = measured(&server, &password);
    let text = |field: &str| json[field].as_str().unwrap().to_owned();
    assert!(text("date").ends_with(" UTC") && text("host").contains("processors"), "{json}");
    assert_eq!(text("client"), concat!("ember-cli ", env!("CARGO_PKG_VERSION")));
    assert!(
        text("command_line").contains(" -t set -n 100") && !text("command_line").contains("hunter2"),
        "{json}"
    );
    let run = run_at(server.port(), &password);
    assert!(run.out.contains("ember-cli benchmark -p ") && !run.out.contains("hunter2"), "{run:?}");
}
