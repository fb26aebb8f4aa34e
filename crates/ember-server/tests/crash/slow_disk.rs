//! A slow disk: writes are not refused, and the server reports the slow disk as long as it is slow.

use std::time::{Duration, Instant};

use ember_testkit::{RawClient, Value, http_get};

use crate::faults::{Faulty, PATIENCE};

/// The maximum size of records that wait to be written, in bytes: a 16th of the `maxmemory` of these tests.
const BUFFER_BYTES_MAX: u64 = 1 << 20;

fn wait_until(what: &str, faulty: &Faulty, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what}: {}", faulty.log());
    }
}

#[test]
fn a_slow_fsync_neither_refuses_nor_delays_writes() {
    for mode in ["yes", "no"] {
        let arguments = ["--appendfsync", "everysec", "--concurrent", mode];
        let faulty = Faulty::start(&format!("slow-writes-{mode}"), &arguments);
        let mut client = faulty.client();
        assert_eq!(client.run("SET key 1"), Value::ok());
        faulty.set_fault("slow 5000");
        let (begun, mut slowest) = (Instant::now(), Duration::ZERO);
        // During an fsync of five seconds, the next one is due four times, so at least two fsyncs were delayed.
        while client.info("aof_delayed_fsync").parse::<u64>().unwrap() < 6 {
            let asked = Instant::now();
            assert_eq!(client.run("SET key 1"), Value::ok(), "{}", faulty.log());
            slowest = slowest.max(asked.elapsed());
            assert!(begun.elapsed() < PATIENCE, "{}", faulty.log());
        }
        assert!(slowest < Duration::from_secs(3), "a write has waited {slowest:?} for an fsync");
        assert_eq!(client.info("aof_last_write_status"), "ok");
        faulty.set_fault("");
    }
}

#[test]
fn a_slow_fsync_is_named_while_it_lasts() {
    let arguments = ["--appendfsync", "everysec", "--latency-monitor-threshold", "100"];
    let faulty = Faulty::start("slow-named", &arguments);
    let mut client = faulty.client();
    faulty.set_fault("slow 20000");
    assert_eq!(client.run("SET key 1"), Value::ok());
    wait_until("INFO", &faulty, || client.info("aof_disk_is_slow") == "1");
    wait_until("the log", &faulty, || {
        faulty.log().contains("the disk is slow: an fsync of the append-only file has been running for ")
    });
    wait_until("LATENCY", &faulty, || latest_events(&mut client).contains("aof-fsync-everysec"));
    let (status, text) = faulty.ready();
    assert!(status == 200 && text.starts_with("ready, but the disk is slow: an fsync"), "{status} {text}");
    let address = faulty.server.as_ref().expect("the server runs").metrics_address();
    let metrics = http_get(address, "/metrics").unwrap().body;
    assert!(metrics.contains("\nember_aof_disk_slow 1\n"), "{metrics}");
    assert_eq!(client.info("aof_pending_bio_fsync"), "1", "all this is reported before the fsync has ended");
    // A slow disk is logged only at intervals.
    assert_eq!(faulty.log().matches("the disk is slow").count(), 1, "{}", faulty.log());
}

fn latest_events(client: &mut RawClient) -> String {
    let Value::Array(events) = client.run("LATENCY LATEST") else { panic!("an array") };
    let name = |event: &Value| match event {
        Value::Array(parts) => parts[0].text(),
        other => panic!("{other:?}"),
    };
    events.iter().map(name).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_blocked_disk_write_delays_writers_and_bounds_pending_records() {
    let arguments =
        ["--appendfsync", "everysec", "--maxmemory", "16mb", "--latency-monitor-threshold", "100"];
    let faulty = Faulty::start("stalled", &arguments);
    let (mut reader, mut writer) = (faulty.client(), faulty.client());
    assert_eq!(reader.run("SET key 1"), Value::ok());
    // The fsync of this write has ended before the fault begins, so an fsync that runs then is slow.
    assert_eq!(reader.run("WAITAOF 1 0 0").elements().unwrap()[0], Value::Integer(1));
    // While an fsync is in progress, only the journal's thread, which may block, writes to the file.
    faulty.set_fault("slow 20000");
    assert_eq!(reader.run("SET key 1"), Value::ok());
    wait_until("an fsync is under way", &faulty, || reader.info("aof_pending_bio_fsync") == "1");
    faulty.set_fault("stall 20000");
    writer.send_command(&["SET", "first", "1"]).unwrap();
    wait_until("a write is blocked", &faulty, || faulty.ready().0 == 503);
    assert!(
        faulty.ready().1.starts_with("the disk is slow: a write of the append-only file"),
        "{:?}",
        faulty.ready()
    );
    assert_eq!(reader.run("GET key"), Value::from("1"), "reads are served");
    // Writes records beyond the limit of pending bytes, and then one more.
    let value = "x".repeat(BUFFER_BYTES_MAX as usize / 4);
    let mut writers: Vec<RawClient> = (0..6).map(|_| faulty.client()).collect();
    for (number, client) in writers.iter_mut().enumerate() {
        client.send_command(&["SET", &format!("large:{number}"), &value]).unwrap();
    }
    wait_until("writes wait", &faulty, || reader.info("aof_writes_delayed") == "1");
    let mut last = faulty.client();
    last.send_command(&["SET", "last", "1"]).unwrap();
    let waiting = reader.info("mem_aof_buffer").parse::<u64>().unwrap();
    assert!(waiting > BUFFER_BYTES_MAX, "{waiting}");
    assert_eq!(reader.run("GET last"), Value::Null, "the write has not run");
    assert_eq!(reader.info("aof_last_write_status"), "ok");
    faulty.set_fault("");
    for client in writers.iter_mut().chain([&mut writer, &mut last]) {
        assert_eq!(client.read_value().unwrap(), Value::ok());
    }
    wait_until("the server is ready again", &faulty, || faulty.ready() == (200, "ready\n".to_owned()));
    let events = latest_events(&mut reader);
    assert!(events.contains("aof-write"), "{events}");
}
