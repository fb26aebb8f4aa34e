//! The load generator: threads that each drive their connections from an event loop.
//!
//! A connection has one batch in flight. In a *closed* loop a connection sends the next batch as soon as all replies to
//! the last one have arrived. In an *open* loop (`--rate`) requests are due at fixed times, independent of the server;
//! a batch consists of the requests that are due when a connection becomes free. In a closed loop latency is measured
//! from sending, in an open loop from the due time: if a request has to wait for a connection because the server is
//! slow on all of them, its latency includes that wait (correction for coordinated omission).
//!
//! Batches of different connections differ only in digits, so a thread has one batch buffer for all of them; a
//! connection copies only the bytes that its socket does not accept. Reads, waits and clock readings are shared by
//! several replies; nothing is allocated per request.

use std::collections::VecDeque;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;

use super::failure::Failure;
use super::link::{Link, LinkError, connect};
use super::recorder::{Latencies, Moment, Recorder, Series, no_latencies};
use super::replies::Tally;
use super::requests::{Batch, part_at};
use super::thread_time::ThreadTime;
use super::workload::Workload;
use ember_client::Address;

/// The maximum number of bytes per read; [`ember_client::Connection::read_into`] reads directly into a buffer of this
/// size.
const READ_BYTES: usize = 64 * 1024;

/// The maximum number of connections that are served per wait for events.
const EVENTS_MAX: usize = 256;

/// The end condition of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Goal {
    /// After this many requests.
    Requests(u64),
    /// After this time, and once all requests sent until then have been replied to.
    Time(Duration),
}

/// The way in which requests are sent.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) goal: Goal,
    /// The maximum number of requests in a batch.
    pub(super) pipeline: u32,
    /// Requests per second of an open loop; `None` for a closed loop.
    pub(super) rate: Option<f64>,
    /// Whether each batch uses a new connection, which is opened when the batch is due.
    pub(super) reconnects: bool,
    /// Whether such a connection uses RESP3.
    pub(super) is_resp3: bool,
    /// The maximum time without a reply.
    pub(super) timeout: Duration,
}

/// The results of a run.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    pub(super) tally: Tally,
    /// The number of requests that read data that may be missing.
    pub(super) reads: u64,
    /// The number of requests that were due but never sent, because no connection became free before the end. Their
    /// waiting times until the end are included in the latencies.
    pub(super) never_sent: u64,
    /// The text of the first error.
    pub(super) first_error: Option<String>,
    pub(super) latencies: Latencies,
    /// The duration of the run, until the last reply.
    pub(super) elapsed: Duration,
    /// The resource usage of each thread.
    pub(super) threads: Vec<ThreadTime>,
    pub(super) moments: Vec<Moment>,
}

/// Sends requests over connections until the goal is reached. `links` contains the connections of each thread.
///
/// # Errors
/// Returns a message if a connection breaks, received data is not a reply, or no reply arrives within the timeout.
pub(super) fn run(
    address: &Address,
    links: &mut [Vec<Link>],
    workload: &Workload,
    plan: &Plan,
    series: &Series,
) -> Result<Measured, Failure> {
    let shared = Shared {
        left: AtomicU64::new(match plan.goal {
            Goal::Requests(count) => count,
            Goal::Time(_) => u64::MAX,
        }),
        has_failed: AtomicBool::new(false),
        barrier: Barrier::new(links.len()),
        threads: links.len() as u64,
    };
    let results = std::thread::scope(|scope| {
        let threads: Vec<_> = links
            .iter_mut()
            .enumerate()
            .map(|(index, links)| {
                let shared = &shared;
                scope.spawn(move || {
                    let result = Runner::new(address, links, workload, plan, shared, series, index as u64)
                        .and_then(Runner::run);
                    if result.is_err() {
                        shared.has_failed.store(true, Ordering::Relaxed);
                    }
                    result
                })
            })
            .collect();
        let joined = threads.into_iter().map(|thread| thread.join().expect("a thread that does not panic"));
        joined.collect::<Vec<_>>()
    });
    combine(results, series)
}

fn combine(results: Vec<Result<ThreadResult, Failure>>, series: &Series) -> Result<Measured, Failure> {
    let mut measured = Measured {
        tally: Tally::default(),
        reads: 0,
        never_sent: 0,
        first_error: None,
        latencies: no_latencies(),
        elapsed: Duration::ZERO,
        threads: Vec::new(),
        moments: Vec::new(),
    };
    let mut elapsed_ns = 0;
    // Threads that ended because another thread failed have no message.
    let is_reason = |failure: &&Failure| !failure.0.is_empty();
    if let Some(failure) = results.iter().filter_map(|result| result.as_ref().err()).find(is_reason) {
        return Err(failure.clone());
    }
    for result in results {
        let result = result?;
        measured.tally.replies += result.tally.replies;
        measured.tally.errors += result.tally.errors;
        measured.tally.misses += result.tally.misses;
        measured.reads += result.reads;
        measured.never_sent += result.never_sent;
        measured.first_error = measured.first_error.or(result.first_error);
        measured.latencies.add(&result.latencies).expect("histograms with equal bounds");
        measured.threads.push(result.time);
        elapsed_ns = elapsed_ns.max(result.last_reply_ns);
    }
    measured.elapsed = Duration::from_nanos(elapsed_ns);
    measured.moments = series.finish(elapsed_ns);
    Ok(measured)
}

/// State shared by the threads of a run.
struct Shared {
    /// The number of requests that no thread has taken yet.
    left: AtomicU64,
    has_failed: AtomicBool,
    /// The barrier at which all threads start at the same time.
    barrier: Barrier,
    threads: u64,
}

struct ThreadResult {
    tally: Tally,
    reads: u64,
    never_sent: u64,
    first_error: Option<String>,
    latencies: Latencies,
    time: ThreadTime,
    last_reply_ns: u64,
}

/// The due times of one thread's requests in an open loop: the first is due at `first_ns`, and one more after each
/// interval.
#[derive(Clone, Copy, Debug)]
struct Schedule {
    first_ns: f64,
    interval_ns: f64,
    /// The number of requests sent.
    next: u64,
}

impl Schedule {
    fn of(rate: f64, index: u64, threads: u64) -> Schedule {
        let between_ns = 1e9 / rate;
        // The due times of the threads alternate.
        Schedule { first_ns: index as f64 * between_ns, interval_ns: threads as f64 * between_ns, next: 0 }
    }

    /// Returns the due time of the next request.
    fn next_ns(&self) -> f64 {
        self.first_ns + self.next as f64 * self.interval_ns
    }

    /// Returns the number of unsent requests due by `now_ns`.
    fn due(&self, now_ns: u64) -> u64 {
        let since = now_ns as f64 - self.next_ns();
        if since < 0.0 { 0 } else { (since / self.interval_ns) as u64 + 1 }
    }
}

/// A thread of the load generator.
struct Runner<'a> {
    address: &'a Address,
    queue: OwnedFd,
    links: &'a mut [Link],
    plan: &'a Plan,
    shared: &'a Shared,
    parts_read: &'a [bool],
    workload: &'a Workload,
    batch: Batch,
    recorder: Recorder,
    buffer: Vec<u8>,
    start: Instant,
    /// In an open loop, the connections without a batch.
    idle: VecDeque<usize>,
    schedule: Option<Schedule>,
    /// Whether all requests have been sent.
    is_over: bool,
    in_flight: u64,
    tally: Tally,
    reads: u64,
    first_error: Option<String>,
    last_reply_ns: u64,
    /// The time since which requests are in flight without a reply.
    quiet_since_ns: u64,
}

impl<'a> Runner<'a> {
    fn new(
        address: &'a Address,
        links: &'a mut [Link],
        workload: &'a Workload,
        plan: &'a Plan,
        shared: &'a Shared,
        series: &Series,
        index: u64,
    ) -> Result<Runner<'a>, Failure> {
        let ready = watch(links);
        // Also called after a failure, because the other threads wait at the barrier.
        shared.barrier.wait();
        let queue = ready.map_err(|error| Failure(format!("Cannot poll the sockets: {error}")))?;
        Ok(Runner {
            address,
            queue,
            idle: if plan.rate.is_some() { (0..links.len()).collect() } else { VecDeque::new() },
            links,
            plan,
            shared,
            parts_read: &workload.reads,
            workload,
            batch: Batch::new(&workload.parts, plan.pipeline),
            recorder: Recorder::new(series),
            buffer: vec![0; READ_BYTES],
            start: Instant::now(),
            schedule: plan.rate.map(|rate| Schedule::of(rate, index, shared.threads)),
            is_over: false,
            in_flight: 0,
            tally: Tally::default(),
            reads: 0,
            first_error: None,
            last_reply_ns: 0,
            quiet_since_ns: 0,
        })
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Returns the time after which no request is sent, in nanoseconds since the start.
    fn deadline_ns(&self) -> u64 {
        match self.plan.goal {
            Goal::Time(time) => u64::try_from(time.as_nanos()).unwrap_or(u64::MAX),
            Goal::Requests(_) => u64::MAX,
        }
    }

    fn run(mut self) -> Result<ThreadResult, Failure> {
        let address = self.address;
        let before = ThreadTime::now();
        if self.schedule.is_none() {
            for index in 0..self.links.len() {
                self.send_next(index).map_err(|error| explain(error, address))?;
            }
        }
        let mut events = Vec::with_capacity(EVENTS_MAX);
        loop {
            let now_ns = self.now_ns();
            self.send_due(now_ns).map_err(|error| explain(error, address))?;
            self.is_over |= now_ns >= self.deadline_ns();
            if self.is_over && self.in_flight == 0 {
                break;
            }
            self.check(now_ns, address)?;
            events.clear();
            let wait = duration(self.wake_ns().saturating_sub(now_ns));
            match epoll::wait(&self.queue, spare_capacity(&mut events), Some(&wait)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(Failure(format!("Cannot poll the sockets: {error}"))),
            }
            for event in &events {
                let index = usize::try_from({ event.data }.u64()).unwrap_or(usize::MAX);
                self.serve(index).map_err(|error| explain(error, address))?;
            }
        }
        let time = ThreadTime::now().since(before);
        let never_sent = self.count_never_sent();
        Ok(ThreadResult {
            tally: self.tally,
            reads: self.reads,
            never_sent,
            first_error: self.first_error,
            latencies: self.recorder.finish(),
            time,
            last_reply_ns: self.last_reply_ns,
        })
    }

    /// Ends completed ticks, and returns an error if another thread has failed or the server has not replied within the
    /// timeout.
    fn check(&mut self, now_ns: u64, address: &Address) -> Result<(), Failure> {
        if now_ns < self.recorder.tick_end_ns() {
            return Ok(());
        }
        self.recorder.advance(now_ns);
        if self.shared.has_failed.load(Ordering::Relaxed) {
            // The other thread has the message.
            return Err(Failure(String::new()));
        }
        let silence = Duration::from_nanos(now_ns.saturating_sub(self.quiet_since_ns));
        if self.in_flight > 0 && silence > self.plan.timeout {
            return Err(Failure(format!(
                "The server at {} has not replied for {} seconds",
                address.shown_in_errors(),
                self.plan.timeout.as_secs_f64()
            )));
        }
        Ok(())
    }

    /// Returns the time of the next action if no reply arrives, in nanoseconds since the start.
    fn wake_ns(&self) -> u64 {
        let tick = self.recorder.tick_end_ns();
        match &self.schedule {
            Some(schedule) if !self.is_over && !self.idle.is_empty() => {
                tick.min(schedule.next_ns().ceil() as u64).min(self.deadline_ns())
            }
            _ => tick,
        }
    }

    /// In an open loop, sends due requests while connections are free.
    fn send_due(&mut self, now_ns: u64) -> Result<(), LinkError> {
        let Some(mut schedule) = self.schedule else { return Ok(()) };
        let now_ns = now_ns.min(self.deadline_ns());
        while !self.is_over
            && let Some(&index) = self.idle.front()
        {
            let due = schedule.due(now_ns).min(u64::from(self.plan.pipeline)) as u32;
            if due == 0 {
                break;
            }
            let count = self.take(due);
            if count == 0 {
                self.is_over = true;
                break;
            }
            self.idle.pop_front();
            let first_ns = schedule.next_ns();
            schedule.next += u64::from(count);
            self.send(index, count, Some((first_ns, schedule.interval_ns)))?;
        }
        self.schedule = Some(schedule);
        Ok(())
    }

    /// In a closed loop, sends the next batch.
    fn send_next(&mut self, index: usize) -> Result<(), LinkError> {
        let count = if self.is_over { 0 } else { self.take(self.plan.pipeline) };
        if count == 0 {
            self.is_over = true;
            return Ok(());
        }
        self.send(index, count, None)
    }

    /// Takes up to `wanted` of the remaining requests.
    fn take(&self, wanted: u32) -> u32 {
        if matches!(self.plan.goal, Goal::Time(_)) {
            // An open loop sends all requests that are due before the end, if connections are free.
            return if self.schedule.is_some() || self.now_ns() < self.deadline_ns() { wanted } else { 0 };
        }
        let wanted = u64::from(wanted);
        let taken = self.shared.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            (left > 0).then(|| left - wanted.min(left))
        });
        // The result is at most `wanted`, so the cast is lossless.
        taken.map_or(0, |left| left.min(wanted) as u32)
    }

    /// Sends a batch of `count` requests. `due` contains the due time of the first request and the interval between
    /// requests; `None`: all are due now.
    fn send(&mut self, index: usize, count: u32, due: Option<(f64, f64)>) -> Result<(), LinkError> {
        let link = &mut self.links[index];
        let bytes = self.batch.fill(count, link.turn, &mut link.keys);
        if due.is_none() || self.in_flight == 0 {
            let now_ns = u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX);
            if self.in_flight == 0 {
                self.quiet_since_ns = now_ns;
            }
            (link.due_ns, link.step_ns) = due.unwrap_or((now_ns as f64, 0.0));
        } else if let Some(due) = due {
            (link.due_ns, link.step_ns) = due;
        }
        self.reads += match self.parts_read {
            [reads] => u64::from(count) * u64::from(*reads),
            parts => (link.turn..link.turn + u64::from(count))
                .filter(|&turn| parts[part_at(&self.workload.parts, turn)])
                .count() as u64,
        };
        if self.plan.reconnects && link.turn > 0 {
            let connection = connect(self.address, self.plan.is_resp3).map_err(LinkError::NotConnected)?;
            // Closing the old socket removes it from the event queue.
            link.replace(connection).map_err(LinkError::Io)?;
            epoll::add(&self.queue, &*link, EventData::new_u64(index as u64), EventFlags::IN)
                .map_err(|error| LinkError::Io(error.into()))?;
        }
        link.turn += u64::from(count);
        link.in_flight = count;
        self.in_flight += u64::from(count);
        link.send(bytes).map_err(LinkError::Io)?;
        self.watch_for_writable(index).map_err(LinkError::Io)
    }

    /// Requests write readiness from the event queue while the socket is full, and cancels the request afterwards.
    fn watch_for_writable(&mut self, index: usize) -> io::Result<()> {
        let link = &mut self.links[index];
        if link.is_full() != link.is_watched_for_writable {
            link.is_watched_for_writable = link.is_full();
            let wanted =
                if link.is_watched_for_writable { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN };
            epoll::modify(&self.queue, &*link, EventData::new_u64(index as u64), wanted)?;
        }
        Ok(())
    }

    /// Handles the events of a connection.
    fn serve(&mut self, index: usize) -> Result<(), LinkError> {
        let Some(link) = self.links.get_mut(index) else { return Ok(()) };
        if link.is_full() {
            link.send_rest().map_err(LinkError::Io)?;
            self.watch_for_writable(index).map_err(LinkError::Io)?;
        }
        loop {
            let link = &mut self.links[index];
            let before = self.tally;
            let has_more = link.receive(&mut self.buffer, &mut self.tally)?;
            let count = self.tally.replies - before.replies;
            if self.tally.errors > before.errors && self.first_error.is_none() {
                self.first_error = link.take_first_error();
            }
            if count > u64::from(link.in_flight) || (link.in_flight == 0 && !link.is_between_replies()) {
                let said = self.first_error.take();
                let said =
                    said.map_or_else(|| "data without a request".to_owned(), |text| format!("\"{text}\""));
                return Err(LinkError::NoReply(said));
            }
            if count > 0 {
                self.record(index, count as u32);
                if self.links[index].in_flight == 0 {
                    self.become_free(index)?;
                }
            }
            if !has_more {
                return Ok(());
            }
        }
    }

    fn become_free(&mut self, index: usize) -> Result<(), LinkError> {
        if self.schedule.is_none() {
            return self.send_next(index);
        }
        self.idle.push_back(index);
        Ok(())
    }

    /// Counts replies, up to the number of requests in flight.
    fn record(&mut self, index: usize, count: u32) {
        let now_ns = self.now_ns();
        let link = &mut self.links[index];
        self.last_reply_ns = now_ns;
        self.quiet_since_ns = now_ns;
        link.in_flight -= count;
        self.in_flight -= u64::from(count);
        if link.step_ns == 0.0 {
            let latency_ns = (now_ns as f64 - link.due_ns).max(0.0) as u64;
            self.recorder.record(latency_ns, u64::from(count));
            return;
        }
        for _ in 0..count {
            let latency_ns = (now_ns as f64 - link.due_ns).max(0.0) as u64;
            link.due_ns += link.step_ns;
            self.recorder.record(latency_ns, 1);
        }
    }

    /// Counts requests of an open loop that were due before the end and found no connection: their waiting times until
    /// the end are recorded as latencies.
    fn count_never_sent(&mut self) -> u64 {
        let (Some(mut schedule), Goal::Time(_)) = (self.schedule, self.plan.goal) else { return 0 };
        let end_ns = self.deadline_ns();
        let count = schedule.due(end_ns);
        for _ in 0..count {
            self.recorder.record((end_ns as f64 - schedule.next_ns()).max(0.0) as u64, 1);
            schedule.next += 1;
        }
        count
    }
}

fn explain(error: LinkError, address: &Address) -> Failure {
    match error {
        LinkError::Io(error) => Failure::lost(address, &error),
        LinkError::NotConnected(failure) => failure,
        LinkError::NoReply(said) => {
            Failure(format!("The server at {} sent {said}, which is not a reply", address.shown_in_errors()))
        }
    }
}

/// Creates an event queue for incoming replies.
fn watch(links: &[Link]) -> io::Result<OwnedFd> {
    // Wakes up at due times without timer slack; if this fails, the timer slack remains.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    let queue = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for (index, link) in links.iter().enumerate() {
        epoll::add(&queue, link, EventData::new_u64(index as u64), EventFlags::IN)?;
    }
    Ok(queue)
}

fn duration(ns: u64) -> Timespec {
    const NS: u64 = 1_000_000_000;
    Timespec { tv_sec: (ns / NS).cast_signed(), tv_nsec: (ns % NS).cast_signed() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_share_the_times_of_an_open_loop() {
        let schedules = [0, 1].map(|index| Schedule::of(1000.0, index, 2));
        assert_eq!(schedules.map(|schedule| schedule.due(0)), [1, 0]);
        assert_eq!(schedules.map(|schedule| schedule.due(10_500_000)), [6, 5]);
        let later = Schedule { next: 6, ..schedules[0] };
        assert_eq!((later.due(10_500_000), later.due(12_000_000)), (0, 1));
    }
}
