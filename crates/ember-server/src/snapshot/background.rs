//! BGSAVE: a separate thread writes the RDB file.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ember_config::Config;
use parking_lot::{Condvar, Mutex};

use super::point_in_time::{Claim, PointInTime, Purpose, begin};
use super::saving::{publish, write_file, write_place};
use crate::executor::Executor;
use crate::replication::primary::Primary;
use crate::replication::primary::place::Place;
use crate::server::Server;
use crate::server::conditions::Condition;
use crate::snapshot::state::SnapshotState;
use crate::system::abort_on_panic::AbortOnPanic;
use crate::system::affinity;
use crate::system::clock::unix_ms;

/// Pause in ms after a failed save before the next automatic attempt.
const RETRY_AFTER_MS: i64 = 5000;

/// The maximum time that a shutdown waits until the thread has noticed that its save is aborted: writing one piece
/// takes less time, unless the disk hangs.
pub(crate) const GIVE_UP_WAIT: Duration = Duration::from_secs(2);

/// The state of BGSAVE.
#[derive(Default)]
pub(crate) struct Background {
    /// When the running save began, Unix time in ms; 0 if no save is running.
    since_ms: AtomicI64,
    /// The duration of the last save in s, plus 1; 0 if there was none.
    last_s: AtomicI64,
    /// Whether the last save failed.
    has_failed: AtomicBool,
    /// When the last save began, Unix time in ms.
    tried_ms: AtomicI64,
    /// Whether a save begins as soon as another snapshot has ended.
    is_scheduled: AtomicBool,
    /// Whether the thread is running; `ended` notifies threads that wait until it is not.
    is_running: Mutex<bool>,
    ended: Condvar,
}

/// The reason why a background save could not begin.
pub(crate) enum Unbegun {
    /// Another snapshot is running.
    Taken(Purpose),
    /// The system provides no thread.
    NoThread,
}

impl Background {
    /// Returns how many seconds the running save has taken so far.
    pub(crate) fn current_s(&self) -> Option<i64> {
        let since_ms = self.since_ms.load(Ordering::Relaxed);
        (since_ms != 0).then(|| (unix_ms() - since_ms).max(0) / 1000)
    }

    /// Returns the duration of the last save in seconds, if there was one.
    pub(crate) fn last_s(&self) -> Option<i64> {
        Some(self.last_s.load(Ordering::Relaxed) - 1).filter(|&seconds| seconds >= 0)
    }

    /// Whether the last save failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    /// Schedules a save for when the running snapshot has ended.
    pub(crate) fn schedule(&self) {
        self.is_scheduled.store(true, Ordering::Relaxed);
    }

    /// Records that the file has been written: writes are no longer refused.
    pub(super) fn record_success(&self, server: &Server) {
        self.has_failed.store(false, Ordering::Relaxed);
        self.refuse_writes(server, &server.config.snapshot());
    }

    fn record_failure(&self, server: &Server) {
        self.has_failed.store(true, Ordering::Relaxed);
        self.refuse_writes(server, &server.config.snapshot());
    }

    /// Notifies waiting threads that the thread of the save has ended.
    fn notify_end(&self) {
        *self.is_running.lock() = false;
        self.ended.notify_all();
    }

    /// Refuses writes if the last save failed and `stop-writes-on-bgsave-error` and save rules are set; accepts them
    /// otherwise.
    pub(crate) fn refuse_writes(&self, server: &Server, config: &Config) {
        let refuses = config.stop_writes_on_bgsave_error && !config.save.is_empty() && self.has_failed();
        server.conditions.set(Condition::SNAPSHOT_FAILED, refuses);
    }

    /// Whether a save is due by the save rules, or is scheduled.
    pub(crate) fn is_due(&self, server: &Server, config: &Config) -> bool {
        if SnapshotState::of(server).claims.purpose().is_some() {
            return false;
        }
        let now_ms = unix_ms();
        if self.has_failed() && now_ms - self.tried_ms.load(Ordering::Relaxed) <= RETRY_AFTER_MS {
            return false;
        }
        if self.is_scheduled.load(Ordering::Relaxed) {
            return true;
        }
        if config.save.is_empty() {
            return false;
        }
        let changes = SnapshotState::of(server).changes(server);
        let seconds = now_ms / 1000 - SnapshotState::of(server).saved_s(server);
        let due = config.save.iter().find(|rule| changes >= rule.changes && seconds > rule.seconds);
        if let Some(rule) = due {
            tracing::info!("{} changes in {} seconds: saving", rule.changes, rule.seconds);
        }
        due.is_some()
    }

    /// Aborts the running save because the server is shutting down, and waits at most `longest` until its thread has
    /// ended. When this returns, the file of that save either has its final name already, or never gets it.
    pub(crate) fn give_up(&self, server: &Server, longest: Option<Duration>) {
        SnapshotState::of(server).is_given_up.store(true, Ordering::Relaxed);
        let until = longest.map(|longest| Instant::now() + longest);
        let mut is_running = self.is_running.lock();
        while *is_running {
            match until {
                None => self.ended.wait(&mut is_running),
                Some(until) if self.ended.wait_until(&mut is_running, until).timed_out() => return,
                Some(_) => {}
            }
        }
    }
}

/// Begins a background save. The worker is inside the gate and holds no lock.
///
/// # Errors
/// Returns an error if another snapshot is running, or the system provides no thread.
pub(crate) fn begin_bgsave(executor: &mut Executor) -> Result<(), Unbegun> {
    let server = executor.server;
    let claim = Claim::take(server, Purpose::Save).map_err(Unbegun::Taken)?;
    let background = &SnapshotState::of(server).background;
    background.is_scheduled.store(false, Ordering::Relaxed);
    background.tried_ms.store(unix_ms(), Ordering::Relaxed);
    let (point, place) = executor.with_exclusive_access(|executor, _| {
        executor.publish();
        (begin(&claim, executor), Primary::of(server).place(server))
    });
    background.since_ms.store(unix_ms(), Ordering::Relaxed);
    let config = Arc::clone(&executor.config);
    *background.is_running.lock() = true;
    let spawned = thread::Builder::new().name("bgsave".to_owned()).spawn(move || {
        let _guard = AbortOnPanic;
        affinity::keep_to(&config.bgsave_cpulist, "bgsave_cpulist");
        run(server, point, place, claim, &config);
        background.notify_end();
    });
    if let Err(error) = spawned {
        tracing::error!("cannot start a thread to save: {error}");
        background.since_ms.store(0, Ordering::Relaxed);
        background.record_failure(server);
        background.notify_end();
        return Err(Unbegun::NoThread);
    }
    tracing::info!("background saving started");
    Ok(())
}

fn run(server: &Server, point: PointInTime, place: Option<Place>, claim: Claim, config: &Config) {
    let begun = Instant::now();
    let changes = point.changes;
    let claims = &SnapshotState::of(server).claims;
    let written = write_file(server, config, |writer| {
        write_place(place, writer)?;
        point.fill(writer, false)
    });
    let written = written.and_then(|(file, written)| {
        let published =
            claims.unless_abandoned(|| publish(file)).unwrap_or(Err("its keys were removed".to_owned()));
        published.map(|()| written)
    });
    let is_abandoned = claims.is_abandoned();
    // The claim is released before the outcome is visible, because a client that sees the outcome may begin the next
    // save.
    drop(claim);
    let (state, seconds) = (SnapshotState::of(server), begun.elapsed().as_secs_f64());
    let background = &state.background;
    background.last_s.store(seconds as i64 + 1, Ordering::Relaxed);
    match written {
        Ok(written) => {
            state.record_saved(changes);
            background.record_success(server);
            let preimages = state.claims.preimage_bytes();
            tracing::info!(
                "saved {} keys to {} in {seconds:.3} seconds; {preimages} bytes were kept because they changed \
                 meanwhile",
                written.keys,
                config.dbfilename
            );
        }
        Err(error) if state.is_given_up.load(Ordering::Relaxed) => {
            tracing::info!("saving is abandoned: {error}")
        }
        Err(_) if is_abandoned => tracing::info!("background saving is abandoned: its keys were removed"),
        Err(error) => {
            background.record_failure(server);
            tracing::error!("background saving failed: {error}");
        }
    }
    background.since_ms.store(0, Ordering::Relaxed);
}
