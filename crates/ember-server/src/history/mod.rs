//! The history of keys: each state of the covered keys, readable until it is too old.
//!
//! ```text
//! worker      changes a covered key ─ captures its state, with the number of its record    (ember-core, capture.rs)
//! worker      publishes its changes ─ its records                                          (journal/)
//! stream      passes records on ─ all changes up to their number are published             (subscriber.rs)
//! any thread  changes in the order of their numbers ─ log of values, index of versions     (intake.rs, index.rs)
//! reader      notes the current state and number ─ waits until that number is taken in ─ index ─ log   (reading.rs)
//! ```
//!
//! The history begins when the server starts, and the log is emptied then. An answer is exact or an error: `TOOOLD` for
//! a moment before the oldest one, `GAP` for a state that was not recorded.

pub(crate) mod forgetting;
mod index;
mod intake;
pub(crate) mod reading;
pub(crate) mod report;
mod stored;
pub(crate) mod subscriber;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use ember_config::Config;
use ember_persistence::files::{DirectoryLock, LockError, OsDisk};
use ember_storage::segments::{LogOptions, SegmentLog};
use emberkv_core::capture::{Coverage, Covered};
use parking_lot::{Condvar, Mutex, RwLock};

use crate::files::encryption::FileEncryption;
use crate::journal::Reader;
use crate::server::Server;
use crate::system::abort_on_panic::AbortOnPanic;
use crate::system::clock::unix_ms;
use index::{Index, Moment};
use intake::Inbox;

/// The maximum sleep of the history's thread: retention by age is checked this often.
const SLEEP_MAX: Duration = Duration::from_secs(1);

/// The captured changes, in bytes, above which replies to writes wait until the history has taken changes in.
const BACKLOG_BYTES_MAX: usize = 64 << 20;

/// The history of a server; off without `history-keys`.
pub(crate) struct History(Option<Box<Active>>);

/// Counters of the history since startup.
#[derive(Default)]
struct Counters {
    /// Recorded changes of keys.
    changes: AtomicU64,
    /// States that were not recorded: too large, not in memory, or refused by the disk.
    lost: AtomicU64,
    /// Answered reads.
    reads: AtomicU64,
    /// Reads that had to wait for the disk.
    disk_reads: AtomicU64,
    /// Failed writes.
    write_errors: AtomicU64,
}

/// An enabled history.
pub(crate) struct Active {
    // Fixed after startup.
    covered: Arc<Covered>,
    log: SegmentLog,
    #[expect(dead_code, reason = "it is released when it is dropped")]
    lock: Option<DirectoryLock>,
    counters: Counters,
    // Protected by locks.
    /// Changes that are not in the index yet. Only the thread that holds the lock changes the index.
    inbox: Mutex<Inbox>,
    index: RwLock<Index>,
    // Accessed without locks.
    /// The number up to which the stream has passed records on.
    passed: AtomicU64,
    /// The number up to which changes are taken in.
    taken_in: AtomicU64,
    /// For [`Active::wait_for`].
    has_taken: (Mutex<()>, Condvar),
    thread: OnceLock<Thread>,
    /// Whether the thread sleeps, so that it must be woken when it has work.
    sleeps: AtomicBool,
}

impl History {
    /// Opens the history in `history-path`, which is emptied; off without `history-keys`.
    ///
    /// # Errors
    /// Returns one line that names the problem and its solution.
    pub(crate) fn open(config: &Config, encryption: &FileEncryption) -> Result<History, String> {
        let Some(coverage) = Coverage::parse(&config.history_keys) else { return Ok(History(None)) };
        let directory = Path::new(&config.history_path);
        let problem = |error: String| format!("history-path '{}': {error}", config.history_path);
        std::fs::create_dir_all(directory).map_err(|error| problem(error.to_string()))?;
        let lock = match DirectoryLock::take(directory, &format!("{} {}", std::process::id(), config.port)) {
            Ok(lock) => Some(lock),
            Err(LockError::Unsupported(_)) => None,
            Err(LockError::Held(holder)) => {
                return Err(problem(format!(
                    "the directory is used by another server ({holder}); use a separate directory"
                )));
            }
            Err(LockError::Disk(error)) => return Err(problem(error.to_string())),
        };
        let directory = std::fs::canonicalize(directory).map_err(|error| problem(error.to_string()))?;
        let options =
            LogOptions { directory, limit_bytes: config.history_max_size, encryption: encryption.current() };
        let log = SegmentLog::open(Arc::new(OsDisk), options).map_err(|error| problem(error.to_string()))?;
        let bytes_max = usize::try_from(config.history_max_value).unwrap_or(usize::MAX);
        let oldest = Moment { number: 1, at_ms: unix_ms() };
        Ok(History(Some(Box::new(Active {
            covered: Arc::new(Covered::new(coverage, bytes_max)),
            log,
            lock,
            counters: Counters::default(),
            inbox: Mutex::default(),
            index: RwLock::new(Index::new(config.databases.max(config.cluster_databases), oldest)),
            passed: AtomicU64::new(0),
            taken_in: AtomicU64::new(0),
            has_taken: (Mutex::new(()), Condvar::new()),
            thread: OnceLock::new(),
            sleeps: AtomicBool::new(false),
        }))))
    }

    /// Returns the history of a server; `None` if it is off.
    pub(crate) fn of(server: &Server) -> Option<&Active> {
        server.services.get::<History>().0.as_deref()
    }
}

impl Active {
    /// Connects the history with the journal, before the journal has a reader, and starts its thread.
    ///
    /// # Errors
    /// Returns an error if no thread can be started.
    pub(crate) fn start(&'static self, server: &'static Server) -> Result<(), String> {
        server.journal.cover(Arc::clone(&self.covered));
        let spawned = thread::Builder::new().name("history".to_owned()).spawn(move || {
            let _guard = AbortOnPanic;
            self.run(server);
        });
        let handle = spawned.map_err(|error| format!("cannot start a thread: {error}"))?;
        self.thread.get_or_init(|| handle.thread().clone());
        Ok(())
    }

    /// Begins to record. The gate is closed.
    pub(crate) fn begin(&self, server: &Server) {
        let last = server.journal.switch(Reader::History, true);
        self.passed.store(last, Ordering::SeqCst);
        self.taken_in.store(last, Ordering::SeqCst);
        self.restart(server);
    }

    /// Starts the history again, because other data were loaded. The caller has exclusive access, and later records
    /// have higher numbers than the last one.
    pub(crate) fn restart(&self, server: &Server) {
        let at_ms = self.covered.now_ms();
        // The time of the restart is closed, so that all later changes have later times.
        self.covered.close(at_ms);
        self.covered.forget_known();
        self.restart_after(server.journal.last_number(), at_ms + 1);
        self.wake();
    }

    /// Returns whether the history covers a key.
    fn covers(&self, name: &[u8]) -> bool {
        self.covered.covers(name)
    }

    /// Returns the number up to which changes are taken in.
    fn taken_in(&self) -> u64 {
        self.taken_in.load(Ordering::SeqCst)
    }

    /// Waits until the changes up to `number` are taken in. Not for workers.
    fn wait_for(&self, server: &Server, number: u64) {
        while self.taken_in() < number {
            server.journal.call_thread();
            self.take_in(server, true);
            let mut guard = self.has_taken.0.lock();
            if self.taken_in() < number {
                self.has_taken.1.wait_for(&mut guard, Duration::from_millis(1));
            }
        }
    }

    fn wake(&self) {
        if self.sleeps.swap(false, Ordering::SeqCst)
            && let Some(thread) = self.thread.get()
        {
            thread.unpark();
        }
    }

    fn run(&self, server: &'static Server) {
        let mut checked = Instant::now();
        loop {
            self.sleeps.store(true, Ordering::SeqCst);
            if self.passed.load(Ordering::SeqCst) == self.taken_in() && !server.journal.has_captured() {
                thread::park_timeout(SLEEP_MAX);
            }
            self.sleeps.store(false, Ordering::SeqCst);
            self.take_in(server, true);
            let mut is_retired = false;
            if checked.elapsed() >= SLEEP_MAX {
                checked = Instant::now();
                is_retired = self.apply_retention(server);
            }
            if self.inbox.lock().take_retired() || is_retired {
                // From now on, each key's next change captures the state before it, so the versions of keys that have
                // not changed since can be removed.
                let number = server.gate.while_empty(|| {
                    self.covered.forget_known();
                    server.journal.last_number()
                });
                self.inbox.lock().forget_up_to(number);
            }
        }
    }
}
