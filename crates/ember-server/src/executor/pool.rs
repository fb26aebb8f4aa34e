//! Thread pools for one kind of work: threads start when there is work, and exit after some time without work.

use std::collections::VecDeque;
use std::io;
use std::thread;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::server::Server;
use crate::system::abort_on_panic::AbortOnPanic;

/// The time after which an idle thread exits.
const KEPT_TIME: Duration = Duration::from_secs(10);

/// The nice value of computing threads, which gives them a lower priority than workers.
const NICENESS: i32 = 10;

/// Lowers the priority of a computing thread. Where that is not permitted, the priority remains unchanged.
pub(super) fn lower_priority() {
    let _ = rustix::process::setpriority_process(None, NICENESS);
}

/// Yields the processor to workers that have work. Called between two pieces of work, because Linux (6.6 and later)
/// lets a thread continue for some milliseconds, whatever its priority.
pub(super) fn give_way() {
    thread::yield_now();
}

struct Work<T> {
    waiting: VecDeque<T>,
    threads: usize,
    /// The number of threads that wait for work.
    idle: usize,
}

/// A queue of work, and the threads that do it.
pub(super) struct Pool<T> {
    name: &'static str,
    threads_max: usize,
    /// The function that each thread runs.
    body: Body,
    work: Mutex<Work<T>>,
    has_work: Condvar,
}

/// The body of a thread: it takes work until [`Pool::next`] returns none.
type Body = fn(&'static Server);

impl<T: Send + 'static> Pool<T> {
    /// Creates a pool without threads; it starts at most `threads_max` threads.
    pub(super) fn new(name: &'static str, threads_max: usize, body: Body) -> Pool<T> {
        let work = Work { waiting: VecDeque::new(), threads: 0, idle: 0 };
        Pool { name, threads_max, body, work: Mutex::new(work), has_work: Condvar::new() }
    }

    /// Queues work.
    ///
    /// # Errors
    /// Returns the work with the error if the pool has no thread and the system cannot start one.
    pub(super) fn push<U>(
        &self,
        server: &'static Server,
        one: U,
        into: impl FnOnce(U) -> T,
    ) -> Result<(), (U, io::Error)> {
        let mut work = self.work.lock();
        if work.waiting.len() >= work.idle && work.threads < self.threads_max {
            let body = self.body;
            let spawned = thread::Builder::new().name(self.name.to_owned()).spawn(move || {
                let _guard = AbortOnPanic;
                body(server);
            });
            match spawned {
                Ok(_) => work.threads += 1,
                // An existing thread does the work later.
                Err(_) if work.threads > 0 => {}
                Err(error) => return Err((one, error)),
            }
        }
        work.waiting.push_back(into(one));
        self.has_work.notify_one();
        Ok(())
    }

    /// Queues work, unless the same work is already queued.
    ///
    /// # Errors
    /// Returns the errors of [`Pool::push`].
    pub(super) fn push_once(&self, server: &'static Server, one: T) -> Result<(), (T, io::Error)>
    where
        T: PartialEq,
    {
        if self.work.lock().waiting.contains(&one) { Ok(()) } else { self.push(server, one, |one| one) }
    }

    /// Returns work that the calling thread has taken to the queue. The thread then rests for `rest`, or until there is
    /// other work.
    pub(super) fn put_back(&self, one: T, rest: Duration) {
        let mut work = self.work.lock();
        self.has_work.wait_for(&mut work, rest);
        work.waiting.push_back(one);
    }

    /// Takes the next work, if there is any.
    pub(super) fn try_next(&self) -> Option<T> {
        self.work.lock().waiting.pop_front()
    }

    /// Takes the next work; returns `None` after some time without work, when the thread must exit.
    pub(super) fn next(&self) -> Option<T> {
        let mut work = self.work.lock();
        loop {
            if let Some(one) = work.waiting.pop_front() {
                return Some(one);
            }
            work.idle += 1;
            let has_waited = self.has_work.wait_for(&mut work, KEPT_TIME).timed_out();
            work.idle -= 1;
            if has_waited && work.waiting.is_empty() {
                work.threads -= 1;
                return None;
            }
        }
    }
}
