//! Threads that read from disks for those who must not wait: one queue, and a budget of memory for what is read.
//!
//! A job begins when its bytes fit into the budget, in the order in which the jobs came; so one that needs much is not
//! overtaken for ever. One that needs more than the whole budget runs when nothing else is reserved. A thread takes several
//! jobs at once and runs them by their place, since the disk answers those that are close to each other sooner.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use parking_lot::{Condvar, Mutex};

/// Jobs that a thread takes at once: enough to sort, too few to make the others wait for a thread that has all.
const TAKEN_MAX: usize = 16;

/// What a thread's read buffer keeps between jobs.
const BUFFER_BYTES_MAX: usize = 1 << 20;

type Work = Box<dyn FnOnce(&mut Vec<u8>, Reservation) + Send>;

struct Job {
    bytes: u64,
    place: u64,
    work: Work,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Job>,
    reserved_bytes: u64,
    budget_bytes: u64,
    is_closed: bool,
}

impl State {
    fn fits(&self, bytes: u64) -> bool {
        self.reserved_bytes == 0 || self.reserved_bytes.saturating_add(bytes) <= self.budget_bytes
    }
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// A part of the budget, until it is dropped.
pub struct Reservation {
    bytes: u64,
    shared: Arc<Shared>,
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Reservation {
    /// How much it is.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.shared.state.lock().reserved_bytes -= self.bytes;
        self.shared.changed.notify_all();
    }
}

/// The threads and their queue.
pub struct IoPool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl fmt::Debug for IoPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IoPool").field("threads", &self.threads.len()).finish_non_exhaustive()
    }
}

impl IoPool {
    /// Starts `threads` threads whose names begin with `name`.
    ///
    /// # Errors
    /// If the system gives none.
    pub fn start(name: &str, threads: usize, budget_bytes: u64) -> io::Result<IoPool> {
        let shared = Arc::new(Shared::default());
        shared.state.lock().budget_bytes = budget_bytes;
        let mut pool = IoPool { shared, threads: Vec::new() };
        for index in 0..threads.max(1) {
            let shared = Arc::clone(&pool.shared);
            let thread = thread::Builder::new().name(format!("{name}-{index}"));
            pool.threads.push(thread.spawn(move || run(&shared))?);
        }
        Ok(pool)
    }

    /// Has `work` done by a thread when `bytes` of the budget are free; it gets the thread's buffer, and keeps the
    /// reservation as long as it likes.
    pub fn submit(
        &self,
        bytes: u64,
        place: u64,
        work: impl FnOnce(&mut Vec<u8>, Reservation) + Send + 'static,
    ) {
        let job = Job { bytes, place, work: Box::new(work) };
        self.shared.state.lock().queue.push_back(job);
        self.shared.changed.notify_one();
    }

    /// Jobs that no thread has taken yet.
    pub fn queued(&self) -> usize {
        self.shared.state.lock().queue.len()
    }

    /// What of the budget is taken.
    pub fn reserved_bytes(&self) -> u64 {
        self.shared.state.lock().reserved_bytes
    }

    /// From now on there is this much. What is taken stays so.
    pub fn set_budget(&self, bytes: u64) {
        self.shared.state.lock().budget_bytes = bytes;
        self.shared.changed.notify_all();
    }
}

impl Drop for IoPool {
    /// Jobs that nobody has begun are not run any more.
    fn drop(&mut self) {
        let queue = {
            let mut state = self.shared.state.lock();
            state.is_closed = true;
            std::mem::take(&mut state.queue)
        };
        drop(queue);
        self.shared.changed.notify_all();
        for thread in self.threads.drain(..) {
            // A thread may own the pool's last reference through a job.
            if thread.thread().id() != thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}

/// Takes what may begin; nothing when the pool is closed.
fn take(shared: &Shared, taken: &mut Vec<Job>) {
    let mut state = shared.state.lock();
    while !state.is_closed {
        // A share of the queue, so that the other threads have work, too.
        while taken.len() < TAKEN_MAX
            && let Some(bytes) = state.queue.front().map(|job| job.bytes)
            && state.fits(bytes)
            && (taken.is_empty() || state.queue.len() > taken.len())
        {
            state.reserved_bytes += bytes;
            taken.extend(state.queue.pop_front());
        }
        if !taken.is_empty() {
            if !state.queue.is_empty() {
                shared.changed.notify_one();
            }
            return;
        }
        shared.changed.wait(&mut state);
    }
}

fn run(shared: &Arc<Shared>) {
    let mut buffer = Vec::new();
    let mut taken = Vec::new();
    loop {
        take(shared, &mut taken);
        if taken.is_empty() {
            return;
        }
        taken.sort_by_key(|job| job.place);
        for job in taken.drain(..) {
            let reservation = Reservation { bytes: job.bytes, shared: Arc::clone(shared) };
            (job.work)(&mut buffer, reservation);
            buffer.clear();
            buffer.shrink_to(BUFFER_BYTES_MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn jobs_run_when_their_bytes_fit() {
        let pool = IoPool::start("io", 2, 100).unwrap();
        let (begun, beginnings) = channel();
        let submit = |bytes, name| {
            let begun = begun.clone();
            pool.submit(bytes, 0, move |_, reservation| begun.send((name, reservation)).unwrap());
        };
        submit(60, "first");
        let (_, first) = beginnings.recv().unwrap();
        submit(50, "second");
        submit(10, "third");
        assert_eq!((first.bytes(), pool.reserved_bytes()), (60, 60));
        assert!(beginnings.try_recv().is_err(), "the second one does not fit, and nobody overtakes it");
        drop(first);
        let names: Vec<_> = [beginnings.recv().unwrap(), beginnings.recv().unwrap()].into();
        assert_eq!(pool.reserved_bytes(), 60);
        submit(1000, "larger than the budget");
        drop(names);
        let (name, large) = beginnings.recv().unwrap();
        assert_eq!((name, pool.reserved_bytes()), ("larger than the budget", 1000));
        submit(1000, "after more budget");
        pool.set_budget(2000);
        let (name, _) = beginnings.recv().unwrap();
        assert_eq!(name, "after more budget");
        drop(large);
    }

    #[test]
    fn all_jobs_are_done_and_all_bytes_come_back() {
        let pool = IoPool::start("io", 4, 1000).unwrap();
        let (done, results) = channel();
        for number in 0..10_000_u64 {
            let done = done.clone();
            pool.submit(number % 300, number % 7, move |buffer, _reservation| {
                buffer.extend_from_slice(&number.to_le_bytes());
                done.send(number).unwrap();
            });
        }
        let mut numbers: Vec<u64> = results.iter().take(10_000).collect();
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(0..10_000));
        let shared = Arc::clone(&pool.shared);
        drop(pool);
        assert_eq!(shared.state.lock().reserved_bytes, 0);
    }
}
