//! MEMORY: the memory of keys, clients and the process.

use std::fs;

use ember_testkit::{RawClient, Server, Value};

use crate::{MODES, assert_error, assert_ok, builder, everywhere, field, wait_until};

const MIB: usize = 1024 * 1024;

const OUT_OF_MEMORY: &str = "OOM command not allowed when used memory > 'maxmemory'.";

/// Opens a connection with a client name, by which CLIENT LIST identifies it.
fn named(server: &Server, name: &str) -> RawClient {
    let mut client = server.client();
    assert_ok(&mut client, &format!("CLIENT SETNAME {name}"));
    client
}

/// Returns a numeric field of the CLIENT LIST line of the client with this name; `None` if there is no such client.
fn number_of(client: &mut RawClient, name: &str, number: &str) -> Option<usize> {
    let list = client.run("CLIENT LIST").text();
    let line = list.lines().find(|line| field(line, "name") == name)?;
    Some(field(line, number).parse().unwrap())
}

fn is_connected(client: &mut RawClient, name: &str) -> bool {
    number_of(client, name, "id").is_some()
}

fn number(client: &mut RawClient, name: &str) -> usize {
    client.info_number(name) as usize
}

fn set_of(key: &str, bytes: usize) -> [Vec<u8>; 3] {
    [b"SET".to_vec(), key.into(), vec![b'x'; bytes]]
}

/// Queues calls that take `bytes` bytes of memory.
#[track_caller]
fn queue(client: &mut RawClient, bytes: usize) {
    assert_ok(client, "MULTI");
    assert_eq!(client.command(&set_of("queued", bytes)).text(), "QUEUED");
}

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
fn memory_stats_and_memory_doctor_answer() {
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

/// Returns the value of a line of `/proc/<pid>/status`, in bytes.
fn status(server: &Server, name: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap();
    value.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// Returns by how many bytes `act` raises the peak resident memory. The kernel derives the peak from inexact counters.
fn peak_of(server: &Server, act: impl FnOnce()) -> u64 {
    let before = status(server, "VmHWM");
    act();
    status(server, "VmHWM").saturating_sub(before)
}

#[test]
fn a_large_string_grows_without_being_copied() {
    const VALUE: usize = 96 << 20;
    const SLACK: u64 = 16 << 20;
    let server = builder(MODES[0]).start();
    let mut client = server.client();
    assert_eq!(client.command(&["SET", "k", &"x".repeat(VALUE)]), Value::ok());
    let peak = peak_of(&server, || {
        assert_eq!(client.run("APPEND k y"), Value::Integer(VALUE as i64 + 1));
    });
    assert!(peak < SLACK, "one more byte took {peak}");
    let usage = client.run("MEMORY USAGE k").integer().unwrap();
    assert!(usage < (VALUE + (2 << 20)) as i64, "{usage} bytes are counted");
    let peak = peak_of(&server, || {
        let reply = client.run(&format!("SETRANGE k {} z", VALUE + (32 << 20)));
        assert_eq!(reply, Value::Integer((VALUE + (32 << 20) + 1) as i64));
    });
    assert!(peak < SLACK, "32 MiB of zeros took {peak}");
    assert_eq!(client.run(&format!("GETRANGE k {} {}", VALUE - 1, VALUE + 1)).text(), "xy\0");
    let (from, end) = (VALUE + 2, VALUE + (32 << 20));
    assert_eq!(client.run(&format!("BITPOS k 1 {from}")), Value::Integer(8 * end as i64 + 1));
    // Zeros occupy no memory until they are written.
    client.run("DEL k");
    let peak = peak_of(&server, || {
        for bit in [(96u64 << 23) - 1, (256 << 23) - 1, (512 << 23) - 1] {
            assert_eq!(client.run(&format!("SETBIT k {bit} 1")), Value::Integer(0));
        }
        assert_eq!(client.run("BITPOS k 1"), Value::Integer((96 << 23) - 1));
    });
    assert!(peak < 3 * SLACK, "three bits took {peak}");
}

#[test]
fn queued_calls_count_as_client_memory_and_are_refused_at_maxmemory() {
    for mode in MODES {
        for value_bytes in [MIB, 20_000] {
            let server = builder(mode).arguments(&["--maxmemory", "10mb"]).start();
            let mut other = server.client();
            let mut client = named(&server, "queueing");
            assert_ok(&mut client, "MULTI");
            let mut queued = 0;
            let refused = loop {
                let answer = client.command(&set_of(&format!("key:{queued}"), value_bytes));
                if answer.text() != "QUEUED" {
                    break answer;
                }
                queued += 1;
                assert!(queued * value_bytes < 12 * MIB, "{queued} values are queued");
            };
            assert_eq!(refused, Value::Error(OUT_OF_MEMORY.into()));
            assert!(queued * value_bytes > 8 * MIB, "{queued} values of {value_bytes} bytes");
            // A call that needs no memory for data needs memory in the queue.
            let rest = 10 * MIB - queued * value_bytes;
            assert_eq!(
                client.command(&[b"GET".to_vec(), vec![b'k'; rest]]),
                Value::Error(OUT_OF_MEMORY.into())
            );
            let held = number_of(&mut other, "queueing", "multi-mem").unwrap();
            assert!((8 * MIB..11 * MIB).contains(&held), "{held}");
            assert!(number_of(&mut other, "queueing", "tot-mem").unwrap() >= held);
            assert!(number(&mut other, "mem_clients_normal") >= held);
            // Other clients cannot allocate memory for data, either.
            assert_eq!(other.command(&set_of("other", 3 * MIB)), Value::Error(OUT_OF_MEMORY.into()));

            let aborted = "EXECABORT Transaction discarded because of previous errors.";
            assert_error(&mut client, "EXEC", aborted);
            assert_eq!(other.run("DBSIZE").integer(), Some(0));
            wait_until("the memory is free", || {
                number_of(&mut other, "queueing", "multi-mem") == Some(0)
                    && number(&mut other, "mem_clients_normal") < MIB
            });
            assert_eq!(other.command(&set_of("other", 3 * MIB)), Value::ok());
        }
    }
}

#[test]
fn exec_is_refused_when_memory_has_run_out_since_its_calls_were_queued() {
    for mode in MODES {
        let server = builder(mode).start();
        let (mut writer, mut reader) = (server.client(), server.client());
        let mut greedy = named(&server, "greedy");
        for client in [&mut writer, &mut reader] {
            assert_ok(client, "MULTI");
        }
        assert_eq!(writer.run("SET key 1").text(), "QUEUED");
        assert_eq!(reader.run("GET key").text(), "QUEUED");
        queue(&mut greedy, 5 * MIB);
        assert_ok(&mut server.client(), "CONFIG SET maxmemory 4mb");
        let refused = format!("EXECABORT Transaction discarded because of: {OUT_OF_MEMORY}");
        assert_error(&mut writer, "EXEC", &refused);
        assert_eq!(reader.run("EXEC"), Value::Array(vec![Value::Null]), "reads need no memory");
        assert_ok(&mut greedy, "DISCARD");
        assert_ok(&mut writer, "SET key 1");
    }
}

#[test]
fn values_stored_by_a_transaction_are_not_counted_twice() {
    for mode in MODES {
        let arguments = ["--maxmemory", "20mb", "--maxmemory-policy", "allkeys-lru"];
        let server = builder(mode).arguments(&arguments).start();
        let (mut client, mut other) = (server.client(), server.client());
        assert_ok(&mut client, "MULTI");
        for number in 0..12 {
            assert_eq!(client.command(&set_of(&format!("key:{number}"), MIB)).text(), "QUEUED");
        }
        assert_eq!(client.run("EXEC").elements().map(<[Value]>::len), Some(12));
        for _ in 0..20 {
            assert_ok(&mut other, "SET small 1");
        }
        // A value that moves to the keyspace is not counted twice, there and in the query buffer.
        assert_eq!(client.command(&set_of("large", 6 * MIB)), Value::ok());
        assert_eq!(other.run("DBSIZE").integer(), Some(14), "{mode:?}");
        assert_eq!(other.info("evicted_keys"), "0");
    }
}

#[test]
fn keys_are_evicted_to_offset_client_memory() {
    for mode in MODES {
        let arguments = ["--maxmemory", "10mb", "--maxmemory-policy", "allkeys-lru"];
        let server = builder(mode).arguments(&arguments).start();
        let (mut client, mut greedy) = (server.client(), server.client());
        for number in 0..4 {
            assert_eq!(client.command(&set_of(&format!("key:{number}"), MIB)), Value::ok());
        }
        queue(&mut greedy, 8 * MIB);
        assert!((0..=2).contains(&client.run("DBSIZE").integer().unwrap()), "two megabytes are left");
        assert_eq!(client.command(&set_of("other", 3 * MIB)), Value::Error(OUT_OF_MEMORY.into()));
        assert_ok(&mut greedy, "DISCARD");
        assert_eq!(client.command(&set_of("other", 3 * MIB)), Value::ok());
    }
}

/// The words of a call.
type Call = Vec<Vec<u8>>;

/// Returns the kinds of state with which a client can occupy a megabyte of the server's memory: a name, the calls that
/// create the state, and the call that ends it.
fn keepers() -> Vec<(&'static str, Vec<Call>, Option<&'static str>)> {
    let name = |number: usize| [number.to_string().into_bytes(), vec![b'n'; 100_000]].concat();
    let each = |words: &'static [&'static str]| -> Vec<Call> {
        let call = |number| words.iter().map(|word| word.as_bytes().to_vec()).chain([name(number)]).collect();
        (0..12).map(call).collect()
    };
    let many = |words: &'static [&'static str], last: Option<&'static str>| -> Vec<Call> {
        let names = (0..6000).map(|number| format!("name:{number}").into_bytes());
        let words = words.iter().map(|word| word.as_bytes().to_vec());
        vec![words.chain(names).chain(last.map(|last| last.into())).collect()]
    };
    let prefixes = (0..12).flat_map(|number| [b"PREFIX".to_vec(), name(number)]);
    let tracking = ["CLIENT", "TRACKING", "ON", "BCAST"].map(|word| word.as_bytes().to_vec());
    let long_name = |words: [&str; 2]| {
        vec![words.map(|word| word.into()).into_iter().chain([vec![b'n'; 1_200_000]]).collect()]
    };
    vec![
        ("watched keys", each(&["WATCH"]), Some("UNWATCH")),
        ("many watched keys", many(&["WATCH"], None), Some("UNWATCH")),
        ("channels", each(&["SUBSCRIBE"]), Some("UNSUBSCRIBE")),
        ("many channels", many(&["SUBSCRIBE"], None), Some("UNSUBSCRIBE")),
        ("patterns", each(&["PSUBSCRIBE"]), Some("PUNSUBSCRIBE")),
        ("shard channels", each(&["SSUBSCRIBE"]), Some("SUNSUBSCRIBE")),
        ("prefixes", vec![tracking.into_iter().chain(prefixes).collect()], Some("CLIENT TRACKING OFF")),
        ("its name", long_name(["CLIENT", "SETNAME"]), Some("CLIENT SETNAME short")),
        ("keys it waits for", many(&["BLPOP"], Some("0")), None),
    ]
}

#[test]
fn client_state_counts_as_client_memory() {
    for mode in MODES {
        let server = builder(mode).start();
        let mut other = server.client();
        for (what, calls, end) in keepers() {
            let before = number(&mut other, "mem_clients_normal");
            let mut client = server.client();
            client.run("HELLO 3");
            for call in &calls {
                client.send_command(call).unwrap();
            }
            wait_until(what, || number(&mut other, "mem_clients_normal") > before + MIB);
            if let Some(end) = end {
                client.send(format!("{end}\r\n").as_bytes()).unwrap();
                wait_until("the state is released", || {
                    number(&mut other, "mem_clients_normal") < before + MIB / 4
                });
            }
            drop(client);
            wait_until("the memory is free", || number(&mut other, "mem_clients_normal") < before + MIB / 4);
        }
    }
}

#[test]
fn the_query_buffer_limit_bounds_client_state() {
    let server = builder(MODES[0]).arguments(&["--client-query-buffer-limit", "1mb"]).start();
    let mut other = server.client();
    let queued =
        [vec![b"MULTI".to_vec()]].into_iter().chain((0..12).map(|_| set_of("key", 100_000).to_vec()));
    let keepers = [("queued calls", queued.collect(), None)].into_iter().chain(keepers());
    for (number_closed, (what, calls, _)) in keepers.enumerate() {
        let mut client = server.client();
        for call in &calls {
            // The connection may be closed already.
            _ = client.send_command(call);
        }
        wait_until(what, || {
            number(&mut other, "client_query_buffer_limit_disconnections") == number_closed + 1
        });
        assert!(client.read_to_close().is_ok() || client.is_closed().is_ok());
    }
}

#[test]
fn clients_that_use_most_memory_are_evicted_first() {
    for mode in MODES {
        let server = builder(mode).start();
        let mut other = named(&server, "other");
        // Names denote the roles of clients; half of the clients are on the other worker.
        let sizes = [("small", MIB), ("spared", 6 * MIB), ("largest", 5 * MIB), ("larger", 3 * MIB)];
        let mut clients: Vec<RawClient> = sizes.iter().map(|(name, _)| named(&server, name)).collect();
        assert_ok(&mut clients[1], "CLIENT NO-EVICT on");
        let mut watcher = named(&server, "watcher");
        assert_ok(&mut watcher, "CLIENT NO-EVICT on");
        for (client, (_, bytes)) in clients.iter_mut().zip(sizes) {
            queue(client, bytes);
        }
        assert_ok(&mut other, "CONFIG SET maxmemory-clients 11mb");
        wait_until("one client is disconnected", || !is_connected(&mut other, "largest"));
        assert!(["small", "spared", "larger"].iter().all(|name| is_connected(&mut other, name)));
        assert_eq!(other.info("evicted_clients"), "1");
        assert!(clients[2].is_closed().unwrap());

        // The limit is a percentage of maxmemory; clients that must not be evicted use more.
        assert_ok(&mut watcher, "CONFIG SET maxmemory 50mb");
        assert_ok(&mut watcher, "CONFIG SET maxmemory-clients 10%");
        let limit = watcher.run("CONFIG GET maxmemory-clients");
        assert_eq!(limit.get("maxmemory-clients").unwrap().text(), "10%");
        // All clients that may be evicted are disconnected at once.
        wait_until("all clients are evicted", || watcher.info("evicted_clients") == "4");
        assert_eq!(clients[1].run("EXEC").elements().map(<[Value]>::len), Some(1));
        assert_eq!(clients[1].run("PING").text(), "PONG");
    }
}

#[test]
fn without_a_limit_no_client_is_evicted() {
    for mode in MODES {
        let server = builder(mode).arguments(&["--maxmemory-clients", "50%"]).start();
        let (mut client, mut other) = (server.client(), server.client());
        queue(&mut client, 5 * MIB);
        for _ in 0..10 {
            assert_eq!(other.run("PING").text(), "PONG");
        }
        assert_eq!(other.info("evicted_clients"), "0");
        assert_ok(&mut client, "DISCARD");
        for (value, error) in [
            ("101%", "percentage argument must be less or equal to 100"),
            ("x", "argument must be a memory or percent value"),
        ] {
            let refused =
                format!("ERR CONFIG SET failed (possibly related to argument 'maxmemory-clients') - {error}");
            assert_error(&mut other, &format!("CONFIG SET maxmemory-clients {value}"), &refused);
        }
    }
}

#[test]
fn client_memory_is_limited_by_maxmemory_unless_disabled() {
    const NAMES: usize = 40;
    const NAME_BYTES: usize = 10 * MIB;
    for mode in MODES {
        let server = builder(mode).arguments(&["--maxmemory", "100mb"]).start();
        let mut other = server.client();
        assert_ok(&mut other, "CLIENT NO-EVICT on");
        assert_eq!(
            other.run("CONFIG GET maxmemory-clients").get("maxmemory-clients").unwrap().text(),
            "auto"
        );
        let name = "n".repeat(NAME_BYTES);
        let mut clients: Vec<RawClient> = (0..NAMES).map(|_| server.client()).collect();
        for client in &mut clients {
            // Some clients are disconnected before they receive a reply.
            _ = client.send_command(&["CLIENT", "SETNAME", name.as_str()]);
            _ = client.read_value();
        }
        wait_until("the sum is below the limit", || number(&mut other, "mem_clients_normal") < 64 * MIB);
        assert!(number(&mut other, "evicted_clients") >= NAMES - 6);
        let peak = server.usage().unwrap().peak_rss_bytes;
        assert!(peak < 300 * MIB as u64, "{mode:?}: {peak} bytes");

        assert_ok(&mut other, "CONFIG SET maxmemory-clients 0");
        let mut named = server.client();
        assert_eq!(named.command(&["CLIENT", "SETNAME", name.as_str()]), Value::ok());
    }
}
