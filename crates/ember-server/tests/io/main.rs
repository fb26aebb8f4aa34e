//! Guarantees about sockets, tested by the bytes that a server process receives and sends.

#![allow(clippy::unwrap_used, reason = "the whole program is a test")]

mod addresses;
mod fairness;
mod half_close;
mod hostile_peers;
mod idle_connections;
mod metrics_port;
mod model;
mod pipelines;
mod protocol_errors;
mod signals;
mod slow_readers;
mod system_calls;
mod waiting;

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use ember_testkit::{Server, ServerBuilder, encode, wait_until};

/// Both execution modes, each with two workers.
const MODES: [&[&str]; 2] =
    [&["--concurrent", "yes", "--shards", "2"], &["--concurrent", "no", "--shards", "2"]];

/// The maximum time that a test waits for any condition.
const PATIENCE: Duration = Duration::from_secs(60);

/// Tests that measure time or memory run alone.
static MACHINE: RwLock<()> = RwLock::new(());

/// Locks the machine for a test that measures.
fn alone() -> RwLockWriteGuard<'static, ()> {
    MACHINE.write().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Shares the machine with other tests that do not measure.
fn together() -> RwLockReadGuard<'static, ()> {
    MACHINE.read().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn program() -> PathBuf {
    std::env::var_os("EMBER_SERVER").map_or_else(|| env!("CARGO_BIN_EXE_ember-server").into(), PathBuf::from)
}

fn start(arguments: &[&str]) -> Server {
    builder(arguments).start()
}

fn builder(arguments: &[&str]) -> ServerBuilder {
    Server::builder(program()).arguments(arguments)
}

fn rss(server: &Server) -> u64 {
    server.usage().unwrap().rss_bytes
}

/// Encodes a bulk string.
fn bulk(value: &[u8]) -> Vec<u8> {
    [format!("${}\r\n", value.len()).as_bytes(), value, b"\r\n"].concat()
}

/// Sends the request in pieces of `chunk` bytes while another thread reads, then half-closes; returns all bytes
/// received until the server closed the connection.
fn exchange(address: SocketAddr, request: &[u8], chunk: usize) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    let mut reader = stream.try_clone().unwrap();
    std::thread::scope(|scope| {
        let replies = scope.spawn(move || {
            let mut replies = Vec::new();
            reader.read_to_end(&mut replies).unwrap();
            replies
        });
        for piece in request.chunks(chunk) {
            stream.write_all(piece).unwrap();
        }
        stream.shutdown(Shutdown::Write).unwrap();
        replies.join().unwrap()
    })
}

/// Asserts that two replies are equal; the message contains only the place where they differ.
#[track_caller]
fn assert_same(got: &[u8], expected: &[u8], what: &str) {
    if got == expected {
        return;
    }
    let at = got.iter().zip(expected).position(|(a, b)| a != b).unwrap_or(got.len().min(expected.len()));
    let show = |bytes: &[u8]| {
        String::from_utf8_lossy(&bytes[at.saturating_sub(40)..bytes.len().min(at + 40)])
            .escape_debug()
            .to_string()
    };
    panic!(
        "{what}: differs at byte {at} (of {} and {}): got …{}…, expected …{}…",
        got.len(),
        expected.len(),
        show(got),
        show(expected)
    );
}

/// Returns the sum of a number in `/proc/PID/task/*/io` over the workers of the server. Other threads read files of the
/// system from time to time.
fn system_calls(server: &Server, name: &str) -> u64 {
    let threads = fs::read_dir(format!("/proc/{}/task", server.pid())).unwrap();
    let of_worker = |thread: fs::DirEntry| {
        let thread = thread.path();
        if !fs::read_to_string(thread.join("comm")).ok()?.starts_with("worker-") {
            return None;
        }
        let text = fs::read_to_string(thread.join("io")).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        Some(line.unwrap().parse::<u64>().unwrap())
    };
    threads.filter_map(|thread| of_worker(thread.unwrap())).sum()
}
