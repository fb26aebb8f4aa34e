//! `--watch`: connections that watch keys, to measure the server memory per watch, and the latency until the last
//! watcher of a key is notified of its change.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use ember_client::{Address, Connection, put};
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;

use super::arguments::BenchmarkArguments;
use super::failure::Failure;
use super::link::connect;
use super::target::allow_sockets;

/// The maximum number of connections that are served per wait for events.
const EVENTS_MAX: usize = 1024;

/// Bytes read at a time.
const READ_BYTES: usize = 64 * 1024;

/// The prefix of changed values; a number of 16 digits follows.
const MARKER: &str = "change:";

/// A watching connection, and the beginning of a state that has not arrived completely.
struct Watcher {
    connection: Connection,
    begun: Vec<u8>,
}

/// All watching connections, and the event queue for received data.
struct Watchers<'a> {
    address: &'a Address,
    all: Vec<Watcher>,
    queue: OwnedFd,
    buffer: Vec<u8>,
}

/// Watches keys until the time is over or the server closes a connection, and changes keys at `--rate`.
///
/// # Errors
/// Returns a message if a connection cannot be opened or is lost, or a reply is an error.
pub(super) fn run(arguments: &BenchmarkArguments, address: Address) -> Result<u64, Failure> {
    let load = &arguments.load;
    let keys = load.watch.unwrap_or(1);
    let batch = u64::from(load.pipeline);
    allow_sockets(load.clients);
    let mut control = connect(&address, true)?;
    let value = |number: u64| {
        let text = format!("{MARKER}{number:016}");
        format!("{text:-<width$}", width = arguments.work.data_bytes as usize)
    };
    for first in (0..keys).step_by(batch as usize) {
        let sets: Vec<Vec<String>> =
            (first..keys.min(first + batch)).map(|key| vec!["SET".to_owned(), name(key), value(0)]).collect();
        ask_all(&address, &mut control, &sets)?;
    }
    let before = resident(&address, &mut control)?;
    let mut watchers = Watchers::begin(&address, load.clients, keys, batch as usize)?;
    let watches = keys.max(u64::from(load.clients));
    let each = before.zip(resident(&address, &mut control)?).map_or_else(
        || "the server does not report its memory".to_owned(),
        |(before, after)| format!("{} bytes each", after.saturating_sub(before) / watches),
    );
    put(format!("{watches} watches, {each}\n").as_bytes());
    watchers.set_nonblocking()?;
    let end = load.duration.map(|duration| Instant::now() + duration);
    let period = load.rate.map(|rate| Duration::from_secs_f64(1.0 / rate));
    let mut delays = Vec::new();
    let mut due = Instant::now();
    while end.is_none_or(|end| Instant::now() < end) {
        let Some(period) = period else {
            watchers.read(end.map(|end| end.saturating_duration_since(Instant::now())))?;
            continue;
        };
        let number = delays.len() as u64 + 1;
        let key = number % keys;
        ask_all(&address, &mut control, &[vec!["SET".to_owned(), name(key), value(number)]])?;
        let answered = Instant::now();
        // Other clients may write the key, too; the number identifies this change.
        let marker = format!("{MARKER}{number:016}");
        let mut left = watchers_of(key, keys, u64::from(load.clients));
        while left > 0 {
            if answered.elapsed() > load.timeout {
                return Err(Failure(format!("{left} watchers were not notified of a change")));
            }
            left -= watchers.count(marker.as_bytes(), load.timeout)?.min(left);
        }
        delays.push(answered.elapsed());
        due += period;
        while let Some(wait) = due.checked_duration_since(Instant::now()).filter(|wait| !wait.is_zero()) {
            watchers.read(Some(wait))?;
        }
    }
    if !delays.is_empty() {
        put(shown(&mut delays).as_bytes());
    }
    Ok(0)
}

fn name(key: u64) -> String {
    format!("watch:{key:010}")
}

/// Returns the number of connections that watch a key.
fn watchers_of(key: u64, keys: u64, clients: u64) -> u64 {
    if keys >= clients { 1 } else { clients / keys + u64::from(key < clients % keys) }
}

fn shown(delays: &mut [Duration]) -> String {
    delays.sort_unstable();
    let at = |share: f64| {
        let index = ((delays.len() as f64 * share).ceil() as usize).clamp(1, delays.len());
        delays[index - 1].as_secs_f64() * 1e3
    };
    format!(
        "{} changes, last watcher notified after {:.3} ms (p50), {:.3} ms (p99), {:.3} ms (max)\n",
        delays.len(),
        at(0.5),
        at(0.99),
        at(1.0)
    )
}

fn ask_all(address: &Address, connection: &mut Connection, commands: &[Vec<String>]) -> Result<(), Failure> {
    let answers = connection.ask_all(commands).map_err(|error| Failure::lost(address, &error))?;
    match answers.iter().find(|answer| answer.is_error()) {
        Some(error) => Err(Failure(error.text())),
        None => Ok(()),
    }
}

/// Returns the resident memory of the server's process, if the server reports it.
fn resident(address: &Address, connection: &mut Connection) -> Result<Option<u64>, Failure> {
    let info = connection.ask(&["INFO", "memory"]).map_err(|error| Failure::lost(address, &error))?;
    let text = info.text();
    let line = text.lines().find_map(|line| line.strip_prefix("used_memory_rss:"));
    Ok(line.and_then(|number| number.trim().parse().ok()))
}

impl<'a> Watchers<'a> {
    /// Opens the connections, each of which watches its share of the keys; if there are more connections than keys,
    /// several watch the same key.
    fn begin(address: &'a Address, clients: u32, keys: u64, batch: usize) -> Result<Watchers<'a>, Failure> {
        let queue = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(no_queue)?;
        let mut all = Vec::with_capacity(clients as usize);
        for client in 0..u64::from(clients) {
            let mut connection = connect(address, true)?;
            let mine: Vec<u64> = (client % keys..keys)
                .step_by(if keys > u64::from(clients) { clients as usize } else { usize::MAX })
                .collect();
            for some in mine.chunks(batch) {
                let watches: Vec<Vec<String>> =
                    some.iter().map(|&key| vec!["GET.WATCH".to_owned(), name(key)]).collect();
                ask_all(address, &mut connection, &watches)?;
            }
            all.push(Watcher { connection, begun: Vec::new() });
        }
        Ok(Watchers { address, all, queue, buffer: vec![0; READ_BYTES] })
    }

    fn set_nonblocking(&mut self) -> Result<(), Failure> {
        for (index, watcher) in self.all.iter_mut().enumerate() {
            let lost = |error: io::Error| Failure::lost(self.address, &error);
            watcher.connection.set_nonblocking().map_err(lost)?;
            let socket = watcher.connection.socket();
            epoll::add(&self.queue, socket, EventData::new_u64(index as u64), EventFlags::IN)
                .map_err(no_queue)?;
        }
        Ok(())
    }

    /// Reads data that is available or arrives within `wait`.
    fn read(&mut self, wait: Option<Duration>) -> Result<(), Failure> {
        self.take(wait, |_| 0).map(drop)
    }

    /// Like [`Watchers::read`]; returns the number of occurrences of `text` in the data.
    fn count(&mut self, text: &[u8], wait: Duration) -> Result<u64, Failure> {
        self.take(Some(wait), |state| state.windows(text.len()).filter(|part| *part == text).count() as u64)
    }

    fn take(&mut self, wait: Option<Duration>, count_in: impl Fn(&[u8]) -> u64) -> Result<u64, Failure> {
        let mut events = Vec::with_capacity(EVENTS_MAX);
        let wait = wait.map(|wait| Timespec {
            tv_sec: wait.as_secs().cast_signed(),
            tv_nsec: i64::from(wait.subsec_nanos()),
        });
        match epoll::wait(&self.queue, spare_capacity(&mut events), wait.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(no_queue(error)),
        }
        let mut found = 0;
        for event in events {
            let Watcher { connection, begun } = &mut self.all[event.data.u64() as usize];
            let read = match connection.read_into(&mut self.buffer) {
                Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
                read => read,
            };
            let read = read.map_err(|error| Failure::lost(self.address, &error))?;
            begun.extend_from_slice(&self.buffer[..read]);
            // The value is the last part of a state and contains no line end, so complete states end with the last line
            // end.
            let whole = begun.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
            found += count_in(&begun[..whole]);
            begun.drain(..whole);
        }
        Ok(found)
    }
}

fn no_queue(error: Errno) -> Failure {
    Failure(format!("Cannot poll the sockets: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watchers_are_spread_over_the_keys() {
        for (keys, clients) in [(1, 100), (3, 10), (10, 10), (100, 7)] {
            let sum: u64 = (0..keys).map(|key| watchers_of(key, keys, clients)).sum();
            assert_eq!(sum, keys.max(clients), "{keys} {clients}");
        }
    }

    #[test]
    fn delays_are_reported_by_percentile() {
        let mut delays: Vec<Duration> = (1..=100).rev().map(Duration::from_millis).collect();
        let expected =
            "100 changes, last watcher notified after 50.000 ms (p50), 99.000 ms (p99), 100.000 ms (max)\n";
        assert_eq!(shown(&mut delays), expected);
    }
}
