//! One connection's endless pipeline does not starve the others of its worker.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::{alone, encode, start};

#[test]
fn others_are_answered_promptly_while_a_deep_pipeline_runs() {
    let _machine = alone();
    let server = start(&["--shards", "1"]);
    let stops = AtomicBool::new(false);
    let greedy = TcpStream::connect(server.address()).unwrap();
    let (mut reader, mut writer) = (greedy.try_clone().unwrap(), greedy.try_clone().unwrap());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let pipeline = [encode(&["SET", "k", "value"]), encode(&["GET", "k"])].concat().repeat(100_000);
            while !stops.load(Ordering::Relaxed) && writer.write_all(&pipeline).is_ok() {}
            // Behind the last reply the server closes, which ends the reader.
            writer.shutdown(std::net::Shutdown::Write).unwrap();
        });
        scope.spawn(move || while reader.read(&mut vec![0; 1 << 20]).unwrap() > 0 {});
        let mut other = server.client();
        let began = Instant::now();
        let mut times = Vec::new();
        while times.len() < 300 || began.elapsed() < Duration::from_millis(1500) {
            let asked = Instant::now();
            other.run("PING");
            times.push(asked.elapsed());
        }
        stops.store(true, Ordering::Relaxed);
        times.sort();
        let p99 = times[times.len() * 99 / 100];
        assert!(p99 < Duration::from_millis(20), "p99 {p99:?} of {} PINGs", times.len());
    });
}

#[test]
fn requests_taken_in_while_a_peer_did_not_read_are_run_in_small_parts_too() {
    let _machine = alone();
    let server = start(&["--shards", "1"]);
    let mut other = server.client();
    other.command(&[&b"SET"[..], b"big", &vec![b'v'; 1_000_000]]);
    let mut slow = server.client();
    // The first replies block the connection; the rest of the pipeline waits in the server, 14 MB of it.
    slow.send(&encode(&["GET", "big"]).repeat(20)).unwrap();
    let sets = encode(&["SET", "k", "v"]).repeat(500_000);
    slow.send(&sets).unwrap();
    let worst = std::thread::scope(|scope| {
        let reads = scope.spawn(move || {
            let head = "$1000000\r\n".len() + 2;
            slow.read_bytes(20 * (1_000_000 + head)).unwrap();
            slow.read_bytes(500_000 * "+OK\r\n".len()).unwrap()
        });
        let mut times = Vec::new();
        while !reads.is_finished() {
            let asked = Instant::now();
            other.run("PING");
            times.push(asked.elapsed());
        }
        let replies = reads.join().unwrap();
        assert!(replies.chunks(5).all(|reply| reply == b"+OK\r\n"));
        times.sort();
        times[times.len() * 99 / 100]
    });
    assert!(worst < Duration::from_millis(20), "p99 {worst:?}");
}
