//! An endless pipeline on one connection does not starve other connections of the same worker.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ember_testkit::RawClient;

use crate::{alone, encode, start};

/// Latencies of PINGs.
#[derive(Default)]
struct Times(Vec<Duration>);

impl Times {
    fn ping(&mut self, client: &mut RawClient) {
        let asked = Instant::now();
        client.run("PING");
        self.0.push(asked.elapsed());
    }

    fn p99(mut self) -> Duration {
        self.0.sort();
        self.0[self.0.len() * 99 / 100]
    }
}

/// Asserts low latencies of PINGs to the busy server. Each is followed by a PING to an idle server, which measures the
/// latency of the machine.
fn assert_answered_promptly(busy: Times, idle: Times) {
    let count = busy.0.len();
    let (busy, idle) = (busy.p99(), idle.p99());
    assert!(
        busy < Duration::from_millis(20) + idle,
        "p99 {busy:?} of {count} PINGs, without a pipeline {idle:?}"
    );
}

#[test]
fn other_clients_are_answered_promptly_while_a_deep_pipeline_runs() {
    let _machine = alone();
    let server = start(&["--shards", "1"]);
    let stops = AtomicBool::new(false);
    let greedy = TcpStream::connect(server.address()).unwrap();
    let (mut reader, mut writer) = (greedy.try_clone().unwrap(), greedy.try_clone().unwrap());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let pipeline = [encode(&["SET", "k", "value"]), encode(&["GET", "k"])].concat().repeat(100_000);
            while !stops.load(Ordering::Relaxed) {
                writer.write_all(&pipeline).unwrap();
            }
            // After the last reply the server closes the connection, which ends the reader.
            writer.shutdown(std::net::Shutdown::Write).unwrap();
        });
        scope.spawn(move || while reader.read(&mut vec![0; 1 << 20]).unwrap() > 0 {});
        let idle_server = start(&["--shards", "1"]);
        let (mut other, mut nobody_else) = (server.client(), idle_server.client());
        let began = Instant::now();
        let (mut busy, mut idle) = (Times::default(), Times::default());
        while busy.0.len() < 300 || began.elapsed() < Duration::from_millis(1500) {
            busy.ping(&mut other);
            idle.ping(&mut nobody_else);
        }
        stops.store(true, Ordering::Relaxed);
        assert_answered_promptly(busy, idle);
    });
}

#[test]
fn requests_received_while_a_peer_did_not_read_run_in_small_batches_too() {
    let _machine = alone();
    let server = start(&["--shards", "1"]);
    let mut other = server.client();
    other.command(&[&b"SET"[..], b"big", &vec![b'v'; 1_000_000]]);
    let mut slow = server.client();
    // The first replies block the connection; the rest of the pipeline waits in the server, 14 MB of it.
    slow.send(&encode(&["GET", "big"]).repeat(20)).unwrap();
    let sets = encode(&["SET", "k", "v"]).repeat(500_000);
    slow.send(&sets).unwrap();
    let idle_server = start(&["--shards", "1"]);
    let mut nobody_else = idle_server.client();
    std::thread::scope(|scope| {
        let reads = scope.spawn(move || {
            let head = "$1000000\r\n".len() + 2;
            slow.read_bytes(20 * (1_000_000 + head)).unwrap();
            slow.read_bytes(500_000 * "+OK\r\n".len()).unwrap()
        });
        let (mut busy, mut idle) = (Times::default(), Times::default());
        while !reads.is_finished() {
            busy.ping(&mut other);
            idle.ping(&mut nobody_else);
        }
        let replies = reads.join().unwrap();
        assert!(replies.chunks(5).all(|reply| reply == b"+OK\r\n"));
        assert_answered_promptly(busy, idle);
    });
}
