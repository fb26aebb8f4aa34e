//! The metrics at `metrics-port`: in the format that Prometheus reads, with the values of INFO.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::{Command, Stdio};

use ember_testkit::{RawClient, Server, Value, free_port, http_exchange, http_get};

use crate::{MODES, assert_error, assert_ok, builder, wait_until};

/// The values of samples by name with labels, as in the text.
type Samples = BTreeMap<String, f64>;

fn scrape(server: &Server) -> String {
    let answer = http_get(server.metrics_address(), "/metrics").unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    answer.body
}

/// Parses the samples of a text, none of which may be repeated.
fn samples(text: &str) -> Samples {
    let mut samples = Samples::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').unwrap();
        let value = value.parse().unwrap_or_else(|_| panic!("no number: {line}"));
        assert!(samples.insert(name.to_owned(), value).is_none(), "{name} is repeated");
    }
    samples
}

#[track_caller]
fn value(samples: &Samples, name: &str) -> f64 {
    *samples.get(name).unwrap_or_else(|| panic!("there is no {name} among {:?}", samples.keys()))
}

/// Runs a test on a server with metrics, in each mode.
fn everywhere(arguments: &[&str], test: impl Fn(&Server, &mut RawClient)) {
    for mode in MODES {
        let server = builder(mode).arguments(arguments).metrics().start();
        test(&server, &mut server.client());
    }
}

/// Causes every kind of event that the metrics count.
fn cause_all_events(client: &mut RawClient) {
    for line in ["SET a 1", "SELECT 1", "SET b 2 EX 1000", "SELECT 0"] {
        assert_ok(client, line);
    }
    assert_eq!(client.run("GET a").text(), "1");
    assert_eq!(client.run("GET nothing"), Value::Null);
    assert_error(client, "LPUSH a x", "WRONGTYPE Operation against a key holding the wrong kind of value");
    assert_error(client, "GET", "ERR wrong number of arguments for 'get' command");
    client.command(&["EVAL", "return redis.call('GET', KEYS[1])", "1", "a"]);
}

#[test]
fn every_metric_has_help_a_type_and_matching_samples() {
    everywhere(&[], |server, client| {
        cause_all_events(client);
        let text = scrape(server);
        assert!(text.ends_with('\n') && !text.contains("\n\n"));
        let mut seen = BTreeSet::new();
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            let name = line.strip_prefix("# HELP ").unwrap_or_else(|| panic!("no HELP: {line}"));
            let (name, help) = name.split_once(' ').unwrap();
            assert!(!help.is_empty() && seen.insert(name), "{line}");
            let line = lines.next().unwrap();
            let kind =
                line.strip_prefix(&format!("# TYPE {name} ")).unwrap_or_else(|| panic!("no TYPE: {line}"));
            while let Some(line) = lines.next_if(|line| !line.starts_with('#')) {
                let sample = &line[..line.find(['{', ' ']).unwrap()];
                let suffix = sample.strip_prefix(name).unwrap_or_else(|| panic!("{line} belongs elsewhere"));
                let fits = match kind {
                    "histogram" => ["_bucket", "_sum", "_count"].contains(&suffix),
                    "counter" | "gauge" => suffix.is_empty(),
                    other => panic!("{other} is no type"),
                };
                assert!(fits && (kind == "counter") == name.ends_with("_total"), "{line}");
                assert_labels_are_well_formed(line);
            }
        }
        let samples = samples(&text);
        assert!(samples.values().all(|value| value.is_finite() && *value >= 0.0), "{samples:?}");
        assert!(seen.len() > 60, "{}", seen.len());
        assert_histograms_add_up(&samples);
    });
}

#[track_caller]
fn assert_labels_are_well_formed(line: &str) {
    let Some((_, rest)) = line.split_once('{') else { return };
    let (labels, _) = rest.rsplit_once('}').unwrap();
    let mut names = BTreeSet::new();
    for label in labels.split("\",") {
        let (name, value) = label.split_once("=\"").unwrap();
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{line}");
        assert!(names.insert(name) && !value.trim_end_matches('"').is_empty(), "{line}");
    }
}

/// Asserts that cumulative buckets never decrease, the last one counts all observations, and the sum of the
/// observations is positive.
fn assert_histograms_add_up(samples: &Samples) {
    let mut histograms = 0;
    for (name, &count) in samples {
        let Some(labels) = name.strip_prefix("ember_command_duration_seconds_count{") else { continue };
        let labels = labels.trim_end_matches('}');
        let prefix = format!("ember_command_duration_seconds_bucket{{{labels},le=\"");
        let mut buckets: Vec<(f64, f64)> = samples
            .iter()
            .filter_map(|(name, &value)| Some((name.strip_prefix(&prefix)?.strip_suffix("\"}")?, value)))
            .map(|(bound, value)| (bound.parse().unwrap_or(f64::INFINITY), value))
            .collect();
        buckets.sort_by(|left, right| left.0.total_cmp(&right.0));
        assert_eq!(buckets.len(), 26, "{labels}");
        assert!(buckets.is_sorted_by_key(|&(_, value)| value), "{labels}: {buckets:?}");
        assert_eq!(buckets.last(), Some(&(f64::INFINITY, count)), "{labels}");
        assert!(
            count > 0.0 && value(samples, &format!("ember_command_duration_seconds_sum{{{labels}}}")) > 0.0
        );
        histograms += 1;
    }
    assert!(histograms >= 4, "{histograms}");
}

#[test]
fn metrics_and_info_agree() {
    everywhere(&["--maxmemory", "100mb", "--maxclients", "77"], |server, client| {
        cause_all_events(client);
        let (mut waiting, mut listening) = (server.client(), server.client());
        waiting.send_command(&["BLPOP", "list", "100"]).unwrap();
        listening.run("SUBSCRIBE news");
        wait_until("the client waits", || client.info("blocked_clients") == "1");
        assert_eq!(client.info("clients_in_timeout_table"), "1");
        let samples = samples(&scrape(server));
        for (name, field) in [
            ("ember_connected_clients", "connected_clients"),
            ("ember_max_clients", "maxclients"),
            ("ember_blocked_clients", "blocked_clients"),
            ("ember_subscribed_clients", "pubsub_clients"),
            ("ember_pubsub_subscriptions{kind=\"channel\"}", "pubsub_channels"),
            ("ember_connections_received_total", "total_connections_received"),
            ("ember_connections_rejected_total", "rejected_connections"),
            ("ember_keyspace_hits_total", "keyspace_hits"),
            ("ember_keyspace_misses_total", "keyspace_misses"),
            ("ember_expired_keys_total", "expired_keys"),
            ("ember_reclaimed_values_total", "lazyfreed_objects"),
            ("ember_reclaim_pending_values", "lazyfree_pending_objects"),
            ("ember_evicted_keys_total", "evicted_keys"),
            ("ember_keyspace_changes_total", "ember_keyspace_changes"),
            ("ember_awaited_keys", "total_blocking_keys"),
            ("ember_memory_limit_bytes", "maxmemory"),
            ("ember_memory_dataset_bytes", "used_memory_dataset"),
            ("ember_memory_startup_bytes", "used_memory_startup"),
            ("ember_cached_scripts", "number_of_cached_scripts"),
            ("ember_rdb_changes_since_last_save", "rdb_changes_since_last_save"),
            ("ember_rdb_last_save_timestamp_seconds", "rdb_last_save_time"),
            ("ember_rdb_bgsave_in_progress", "rdb_bgsave_in_progress"),
            ("ember_snapshot_keys", "current_save_keys_total"),
            ("ember_workers", "ember_workers"),
            ("ember_forwarded_commands_total", "ember_forwarded_commands"),
            ("ember_loading", "loading"),
        ] {
            assert_eq!(
                value(&samples, name),
                client.info(field).parse::<f64>().unwrap(),
                "{name} and {field}"
            );
        }
        for (name, field) in [
            ("ember_memory_used_bytes", "used_memory"),
            ("ember_memory_resident_bytes", "used_memory_rss"),
            ("process_resident_memory_bytes", "used_memory_rss"),
        ] {
            let ratio = value(&samples, name) / client.info(field).parse::<f64>().unwrap();
            assert!((0.5..2.0).contains(&ratio), "{name} and {field}: {ratio}");
        }
        for (name, count) in [
            ("ember_commands_total{command=\"get\",outcome=\"ok\"}", 3.0),
            ("ember_commands_total{command=\"get\",outcome=\"rejected\"}", 1.0),
            ("ember_commands_total{command=\"lpush\",outcome=\"error\"}", 1.0),
            ("ember_commands_total{command=\"lpush\",outcome=\"ok\"}", 0.0),
            ("ember_errors_total{code=\"WRONGTYPE\"}", 1.0),
            ("ember_db_keys{db=\"0\"}", 1.0),
            ("ember_db_expiring_keys{db=\"0\"}", 0.0),
            ("ember_db_keys{db=\"1\"}", 1.0),
            ("ember_db_expiring_keys{db=\"1\"}", 1.0),
            ("ember_scripts_total{isolation=\"concurrent\"}", 1.0),
        ] {
            assert_eq!(value(&samples, name), count, "{name}");
        }
        assert!((900.0..=1000.0).contains(&value(&samples, "ember_db_mean_ttl_seconds{db=\"1\"}")));
        assert!(!samples.contains_key("ember_db_keys{db=\"2\"}"));
        client.run("RPUSH list x");
        wait_until("the client is served", || client.info("clients_in_timeout_table") == "0");
    });
}

#[test]
fn metrics_of_the_aof_agree_with_info() {
    let arguments = ["--appendonly", "yes", "--appendfsync", "always", "--aof-keep-seconds", "3600"];
    everywhere(&arguments, |server, client| {
        cause_all_events(client);
        client.run("BGREWRITEAOF");
        wait_until("the rewrite is over", || client.info("aof_rewrite_in_progress") == "0");
        assert_eq!(client.info("aof_rewrites"), "1");
        let samples = samples(&scrape(server));
        for (name, field) in [
            ("ember_aof_enabled", "aof_enabled"),
            ("ember_aof_size_bytes", "aof_current_size"),
            ("ember_aof_base_size_bytes", "aof_base_size"),
            ("ember_aof_kept_bytes", "aof_kept_bytes"),
            ("ember_aof_buffer_bytes", "aof_buffer_length"),
            ("ember_aof_rewriting", "aof_rewrite_in_progress"),
            ("ember_aof_rewrites_total", "aof_rewrites"),
            ("ember_aof_failed_rewrites", "aof_rewrites_consecutive_failures"),
            ("ember_aof_delayed_syncs_total", "aof_delayed_fsync"),
            ("ember_aof_last_rewrite_seconds", "aof_last_rewrite_time_sec"),
        ] {
            assert_eq!(
                value(&samples, name),
                client.info(field).parse::<f64>().unwrap(),
                "{name} and {field}"
            );
        }
        assert!(value(&samples, "ember_aof_size_bytes") > 0.0);
        assert!(value(&samples, "ember_aof_kept_bytes") > 0.0);
        assert_eq!(value(&samples, "ember_writes_refused"), 0.0);
        assert_eq!(value(&samples, "ember_aof_failing_seconds"), 0.0);
    });
}

#[test]
fn metric_histograms_agree_with_latency_histogram() {
    everywhere(&[], |server, client| {
        for number in 0..100 {
            assert_ok(client, &format!("SET key:{number} x"));
        }
        let calls = |client: &mut RawClient| {
            let histogram = client.run("LATENCY HISTOGRAM set").pairs().unwrap();
            histogram[0].1.get("calls").unwrap()
        };
        let count = "ember_command_duration_seconds_count{command=\"set\"}";
        assert_eq!(calls(client), Value::Integer(100));
        let before = samples(&scrape(server));
        assert_eq!(value(&before, count), 100.0);
        assert_ok(client, "CONFIG SET latency-tracking no");
        let calls_now =
            |samples: &Samples| value(samples, "ember_commands_total{command=\"set\",outcome=\"ok\"}");
        wait_until("the worker has stopped tracking", || {
            let before = value(&samples(&scrape(server)), count);
            assert_ok(client, "SET a b");
            value(&samples(&scrape(server)), count) == before
        });
        let silent = samples(&scrape(server));
        (0..100).for_each(|_| assert_ok(client, "SET a b"));
        let later = samples(&scrape(server));
        assert_eq!(calls_now(&later), calls_now(&silent) + 100.0);
        let sum = "ember_command_duration_seconds_sum{command=\"set\"}";
        assert_eq!(value(&later, count), value(&silent, count));
        assert_eq!(value(&later, sum), value(&silent, sum), "an uncounted call is not in the sum");
    });
}

#[test]
fn workers_are_either_busy_or_idle() {
    everywhere(&[], |server, client| {
        let parts = |samples: &Samples| {
            let uptime = value(samples, "ember_uptime_seconds");
            [0, 1].map(|worker| {
                let of = |name: &str| {
                    value(samples, &format!("ember_worker_{name}_seconds_total{{worker=\"{worker}\"}}"))
                };
                (of("busy"), of("idle"), uptime)
            })
        };
        let begun = parts(&samples(&scrape(server)));
        for number in 0..1000 {
            assert_ok(client, &format!("SET key:{number} x"));
        }
        wait_until("both have worked, and waited for their ticks", || {
            let now = parts(&samples(&scrape(server)));
            // A turn is counted when it ends, so the counted time never exceeds the uptime.
            assert!(now.iter().all(|(busy, idle, uptime)| busy + idle <= *uptime));
            now.iter()
                .zip(&begun)
                .all(|(now, begun)| now.0 > begun.0 && now.1 > begun.1 && now.0 + now.1 > 0.5 * now.2)
        });
        let samples = samples(&scrape(server));
        let commands =
            |worker| value(&samples, &format!("ember_worker_commands_total{{worker=\"{worker}\"}}"));
        assert!(commands(0) + commands(1) >= 1000.0);
        let connections =
            |worker| value(&samples, &format!("ember_worker_connections{{worker=\"{worker}\"}}"));
        assert_eq!(connections(0) + connections(1), value(&samples, "ember_connected_clients"));
    });
}

#[test]
fn unknown_paths_and_methods_are_refused() {
    let server = builder(&[]).metrics().start();
    let address = server.metrics_address();
    for (path, status, body) in [
        ("/health", 200, "ok\n"),
        ("/ready", 200, "ready\n"),
        ("/ready?verbose=1", 200, "ready\n"),
        ("/", 404, "not found\n"),
        ("/metrics/", 404, "not found\n"),
        ("/../metrics", 404, "not found\n"),
        ("/%6detrics", 404, "not found\n"),
    ] {
        let answer = http_get(address, path).unwrap();
        assert_eq!((answer.status, answer.body.as_str()), (status, body), "{path}");
        assert_eq!(answer.header("cache-control"), Some("no-store"));
    }
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "get"] {
        let request = format!("{method} /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
        let answer = http_exchange(address, request.as_bytes()).unwrap();
        assert_eq!((answer.status, answer.header("allow")), (405, Some("GET, HEAD")), "{method}");
    }
    let answer = http_exchange(address, b"HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    assert_eq!((answer.status, answer.body.as_str()), (200, ""));
}

#[test]
fn readiness_ends_when_the_server_stops() {
    let mut server = builder(&[]).metrics().start();
    let mut client = server.client();
    let large = "x".repeat(64 << 20);
    assert_eq!(client.command(&["SET", "large", &large]), Value::ok());
    // A reply that its client does not read delays the shutdown.
    client.send_command(&["GET", "large"]).unwrap();
    server.signal("TERM");
    let ready = || http_get(server.metrics_address(), "/ready").unwrap();
    wait_until("the server stops", || ready().status == 503);
    assert_eq!(ready().body, "stopping: connections are drained\n");
    assert_eq!(http_get(server.metrics_address(), "/health").unwrap().status, 200);
    assert_eq!(value(&samples(&scrape(&server)), "ember_stopping"), 1.0);
    assert_eq!(client.read_value().unwrap().text().len(), large.len());
    assert!(server.wait().success(), "{}", server.log());
}

#[test]
fn a_loading_server_is_alive_but_not_ready() {
    let directory = std::env::temp_dir().join(format!("ember-loading-{}", std::process::id()));
    std::fs::create_dir(&directory).unwrap();
    // The RDB file is a FIFO that no process writes to yet: the server waits for the first byte.
    let file = directory.join("dump.rdb");
    assert!(Command::new("mkfifo").arg(&file).status().unwrap().success());
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
    let mut child = Command::new(crate::program())
        .args(["--port", "0", "--unixsocket", "server.sock", "--save", "", "--dir"])
        .arg(&directory)
        .args(["--metrics-port", &address.port().to_string()])
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the server is alive", || {
        http_get(address, "/health").is_ok_and(|answer| answer.status == 200)
    });
    let ready = http_get(address, "/ready").unwrap();
    assert_eq!((ready.status, ready.body.as_str()), (503, "loading the data set\n"));
    assert_eq!(value(&samples(&http_get(address, "/metrics").unwrap().body), "ember_loading"), 1.0);
    // The server must exit, because this is not an RDB file and it must not serve without its data. It may have exited
    // before the whole text is written.
    let _ = std::fs::write(&file, "this is none");
    assert!(!child.wait().unwrap().success());
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn metrics_are_off_by_default_and_a_port_in_use_is_an_error() {
    let server = builder(&[]).start();
    assert_eq!(server.client().run("CONFIG GET metrics-port").pairs().unwrap()[0].1.text(), "0");
    assert!(!server.log().contains("metrics"), "{}", server.log());
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let output = Command::new(crate::program())
        .args(["--port", "0", "--unixsocket", "s", "--dir"])
        .arg(server.directory())
        .args(["--metrics-port", &port])
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success());
    assert!(error.contains(&format!("cannot listen on 127.0.0.1 metrics-port {port}: ")), "{error}");
}
