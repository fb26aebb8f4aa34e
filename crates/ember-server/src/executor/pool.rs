//! Threads for one kind of work, started when there is some and ended when there has been none for a while.

use std::collections::VecDeque;
use std::io;
use std::thread;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::server::Server;
use crate::system::abort_on_panic::AbortOnPanic;

/// For how long a thread is kept that has nothing to do.
const KEPT_TIME: Duration = Duration::from_secs(10);

/// By how much the priority of threads that compute is lower than that of workers.
const NICENESS: i32 = 10;

/// Lowers the priority of a thread that computes. Where that is not allowed, it takes what it is given.
pub(super) fn lower_priority() {
    let _ = rustix::process::setpriority_process(None, NICENESS);
}

/// Lets workers that have come to have something to do go first. Between two pieces of work, since Linux has a thread go on
/// for some milliseconds, whatever its priority (from 6.6 on).
pub(super) fn give_way() {
    thread::yield_now();
}

struct Work<T> {
    waiting: VecDeque<T>,
    threads: usize,
    /// Those of them that wait for work.
    idle: usize,
}

/// The work, and the threads that do it.
pub(super) struct Pool<T> {
    name: &'static str,
    threads_max: usize,
    /// What each thread does.
    body: Body,
    work: Mutex<Work<T>>,
    has_work: Condvar,
}

/// What a thread does: it takes work, as long as there is some.
type Body = fn(&'static Server);

impl<T: Send + 'static> Pool<T> {
    /// None yet; so many at most.
    pub(super) fn new(name: &'static str, threads_max: usize, body: Body) -> Pool<T> {
        let work = Work { waiting: VecDeque::new(), threads: 0, idle: 0 };
        Pool { name, threads_max, body, work: Mutex::new(work), has_work: Condvar::new() }
    }

    /// Has work done.
    ///
    /// # Errors
    /// If there is no thread, and the system gives none; the work is returned then.
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
                // One that is there does it later.
                Err(_) if work.threads > 0 => {}
                Err(error) => return Err((one, error)),
            }
        }
        work.waiting.push_back(into(one));
        self.has_work.notify_one();
        Ok(())
    }

    /// The same, unless it waits already.
    ///
    /// # Errors
    /// The same.
    pub(super) fn push_once(&self, server: &'static Server, one: T) -> Result<(), (T, io::Error)>
    where
        T: PartialEq,
    {
        if self.work.lock().waiting.contains(&one) { Ok(()) } else { self.push(server, one, |one| one) }
    }

    /// Puts back what one of the threads has taken and is to be done later, and lets that thread rest for a time or until
    /// there is other work.
    pub(super) fn put_back(&self, one: T, rest: Duration) {
        let mut work = self.work.lock();
        self.has_work.wait_for(&mut work, rest);
        work.waiting.push_back(one);
    }

    /// The next work, if there is some.
    pub(super) fn try_next(&self) -> Option<T> {
        self.work.lock().waiting.pop_front()
    }

    /// The next work; nothing after a while without any, when the thread is to end.
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
