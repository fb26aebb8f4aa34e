//! Linking: threads link the vectors that calls have added to vector sets, while workers go on.
//!
//! ```text
//! worker   a call adds a vector: it is found from now on ─ tells the key, now and then
//! thread   takes some vectors of the key (a moment under the shard's lock) ─ chooses their links, in a view
//!          ─ makes them (a moment under the lock) ─ and so on, until none is left
//! ```
//!
//! Searches look at each vector that is not linked yet, so there may not be many: above [`PENDING_HOLD`] the key is held
//! (`server/held_keys.rs`), and calls that would change it wait until [`PENDING_GO_ON`].
//!
//! The threads give way to workers: they run at a lower priority.

use std::collections::{HashSet, VecDeque};
use std::thread;
use std::time::Duration;

use emberkv_core::linking::{self, Next};
use parking_lot::{Condvar, Mutex};

use super::Executor;
use crate::server::Server;
use crate::system::abort_on_panic::AbortOnPanic;

/// Vectors of a key that are not linked yet, from which on calls that would change it wait.
const PENDING_HOLD: usize = 1024;

/// With so many left they go on.
const PENDING_GO_ON: usize = 960;

/// For how long a thread is kept that has nothing to do.
const KEPT_TIME: Duration = Duration::from_secs(10);

/// How long a key rests whose value a snapshot is writing.
const REST_TIME: Duration = Duration::from_millis(2);

/// Batches after which it is the turn of another key.
const TURN_BATCHES: usize = 64;

/// By how much the threads' priority is lower than that of workers.
const NICENESS: i32 = 10;

/// A key, with its database.
type Place = (usize, Box<[u8]>);

/// What a key has left to be linked.
enum Left {
    Nothing,
    More,
    /// A snapshot is writing the value.
    Later,
}

#[derive(Default)]
struct Work {
    waiting: VecDeque<Place>,
    threads: usize,
    /// Those of them that wait for work.
    idle: usize,
}

/// The threads of a server that link.
pub(crate) struct Links {
    threads_max: usize,
    work: Mutex<Work>,
    has_work: Condvar,
    /// Keys that are held because they have too much to link.
    held: Mutex<HashSet<Box<[u8]>>>,
}

impl Executor {
    /// Has vectors linked that calls have added. No lock is held.
    pub(super) fn send_to_link(&mut self) {
        for place in self.turn.notices.to_link.drain(..) {
            Links::of(self.server).link(self.server, place);
        }
    }
}

impl Links {
    /// Those that link on so many threads at most.
    pub(crate) fn new(threads_max: usize) -> Links {
        let (work, has_work, held) = (Mutex::default(), Condvar::new(), Mutex::default());
        Links { threads_max, work, has_work, held }
    }

    /// Those of a server.
    fn of(server: &Server) -> &Links {
        server.services.get()
    }

    /// Has what a key has to link linked.
    fn link(&self, server: &'static Server, place: Place) {
        let mut work = self.work.lock();
        if work.waiting.contains(&place) {
            return;
        }
        work.waiting.push_back(place);
        if work.idle > 0 {
            self.has_work.notify_one();
        } else if work.threads < self.threads_max {
            let spawned = thread::Builder::new().name("link".to_owned()).spawn(move || {
                let _guard = AbortOnPanic;
                // Where that is not allowed, threads take what they are given.
                let _ = rustix::process::setpriority_process(None, NICENESS);
                Links::of(server).run(server);
            });
            match spawned {
                Ok(_) => work.threads += 1,
                Err(error) if work.threads == 0 => {
                    tracing::warn!("vectors are linked later: the system gives no thread: {error}");
                }
                Err(_) => {}
            }
        }
    }

    fn run(&self, server: &'static Server) {
        while let Some(place) = self.next() {
            match self.link_some(server, &place) {
                Left::Nothing => self.let_go(server, &place.1),
                Left::More => self.link(server, place),
                Left::Later => {
                    self.let_go(server, &place.1);
                    let mut work = self.work.lock();
                    self.has_work.wait_for(&mut work, REST_TIME);
                    work.waiting.push_back(place);
                }
            }
        }
    }

    /// The next key; nothing after a while without any, when the thread is to end.
    fn next(&self) -> Option<Place> {
        let mut work = self.work.lock();
        loop {
            if let Some(place) = work.waiting.pop_front() {
                return Some(place);
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

    /// Links vectors of a key for a while.
    fn link_some(&self, server: &'static Server, (database, key): &Place) -> Left {
        for _ in 0..TURN_BATCHES {
            let batch = match linking::begin(&server.keyspace, *database, key) {
                Next::Nothing => return Left::Nothing,
                Next::Later => return Left::Later,
                Next::Linking(batch) => batch,
            };
            let plans = linking::plan(&batch);
            // Nothing is copied for a view that nobody looks at any more.
            drop(batch);
            let left = linking::commit(&server.keyspace, *database, key, &plans);
            if left >= PENDING_HOLD {
                self.hold(server, key);
            } else if left <= PENDING_GO_ON {
                self.let_go(server, key);
            }
        }
        Left::More
    }

    fn hold(&self, server: &Server, key: &[u8]) {
        let mut held = self.held.lock();
        if !held.contains(key) {
            held.insert(key.into());
            server.hold_keys(&[key.into()]);
        }
    }

    fn let_go(&self, server: &Server, key: &[u8]) {
        let mut held = self.held.lock();
        if held.remove(key) {
            server.let_keys_go(&[key.into()]);
        }
    }
}
