//! The running scripts. After `busy-reply-threshold` a script counts as busy: other clients receive BUSY and may end
//! it.
//!
//! Each worker has a record in which it stores the start time of its running program, at a cost of two stores per run.
//! Waiting threads read the record and compare it with their own clock. So detecting a busy program does not depend on
//! the program, which cannot report anything during a long call.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;
use emberkv_core::error::CommandError;
use parking_lot::Mutex;

/// Flags in the state of a worker. The bits above them contain the microseconds from [`RunningScripts::epoch`] to the
/// start of the program, plus one, so that the state of a worker without a program is 0.
const IS_FUNCTION: u64 = 1;
const HAS_WRITTEN: u64 = 2;
const IS_KILLED: u64 = 4;
const FLAG_BITS: u32 = 3;

const NOTHING_RUNS: &str = "NOTBUSY No scripts in execution right now.";

/// The call of a running program.
pub struct RunningCall {
    /// The name of the function, or the digest of the script.
    pub name: Vec<u8>,
    /// The arguments of the call, including the command name.
    pub words: Vec<Vec<u8>>,
}

/// The record of a worker's running program.
#[derive(Default)]
struct Place {
    state: AtomicU64,
    /// The call of the program. A program stores it when it is asked whether to continue after it has been running for
    /// long.
    call: Mutex<Option<Arc<RunningCall>>>,
}

/// A program that has been running for longer than `busy-reply-threshold`.
pub struct Busy {
    /// Whether the program is a function of a library.
    pub is_function: bool,
    /// The time for which the program has been running.
    pub duration: Duration,
    /// The program's call, if it is recorded already.
    pub call: Option<Arc<RunningCall>>,
}

/// The running programs of all workers.
pub struct RunningScripts {
    epoch: Instant,
    places: Box<[CachePadded<Place>]>,
}

impl RunningScripts {
    /// Creates a state without running programs for this many workers.
    pub fn new(workers: usize) -> RunningScripts {
        let places = (0..workers).map(|_| CachePadded::new(Place::default())).collect();
        RunningScripts { epoch: Instant::now(), places }
    }

    /// Records that `worker` runs a program that began at `started`.
    #[inline]
    pub fn begin(&self, worker: usize, is_function: bool, started: Instant) {
        let since_epoch = started.saturating_duration_since(self.epoch);
        let micros = since_epoch.as_secs() * 1_000_000 + u64::from(since_epoch.subsec_micros());
        self.places[worker]
            .state
            .store((micros + 1) << FLAG_BITS | u64::from(is_function), Ordering::Relaxed);
    }

    /// Records that the program of `worker` has ended; `has_described`: whether it has recorded its call.
    #[inline]
    pub fn end(&self, worker: usize, has_described: bool) {
        self.places[worker].state.store(0, Ordering::Relaxed);
        if has_described {
            *self.places[worker].call.lock() = None;
        }
    }

    /// Records the call of the program of `worker`.
    pub fn describe(&self, worker: usize, call: RunningCall) {
        *self.places[worker].call.lock() = Some(Arc::new(call));
    }

    /// Records that the program of `worker` is about to write; returns false if the program must end instead.
    pub fn begin_writing(&self, worker: usize) -> bool {
        // If a write and a kill are concurrent, this operation decides which one comes first.
        self.places[worker].state.fetch_or(HAS_WRITTEN, Ordering::Relaxed) & IS_KILLED == 0
    }

    /// Whether the program of `worker` must end.
    pub fn is_killed(&self, worker: usize) -> bool {
        self.places[worker].state.load(Ordering::Relaxed) & IS_KILLED != 0
    }

    /// Returns the records of programs that have been running for at least `threshold_ms`, with their states and
    /// durations; none if `threshold_ms` is 0.
    fn busy(&self, threshold_ms: u64) -> impl Iterator<Item = (&Place, u64, Duration)> {
        let now = if threshold_ms == 0 { Duration::ZERO } else { self.epoch.elapsed() };
        let threshold = Duration::from_millis(threshold_ms);
        self.places.iter().filter(move |_| threshold_ms != 0).filter_map(move |place| {
            let state = place.state.load(Ordering::Relaxed);
            let began = Duration::from_micros((state >> FLAG_BITS).checked_sub(1)?);
            let duration = now.saturating_sub(began);
            (duration >= threshold).then_some((&**place, state, duration))
        })
    }

    /// Whether a program has been running for at least `threshold_ms`.
    pub fn is_busy(&self, threshold_ms: u64) -> bool {
        self.busy(threshold_ms).next().is_some()
    }

    /// Returns the program that has been running longest, if any has been running for at least `threshold_ms`.
    pub fn oldest(&self, threshold_ms: u64) -> Option<Busy> {
        let (place, state, duration) = self.busy(threshold_ms).max_by_key(|&(.., duration)| duration)?;
        Some(Busy { is_function: state & IS_FUNCTION != 0, duration, call: place.call.lock().clone() })
    }

    /// Returns the error for clients that a script has blocked, even if the script has just ended.
    pub fn busy_or_ended_error(&self, threshold_ms: u64) -> CommandError {
        self.busy_error(threshold_ms).unwrap_or_else(|| "BUSY Redis is busy running a script.".into())
    }

    /// Returns the error for a command that cannot run during a busy script, if there is one.
    pub fn busy_error(&self, threshold_ms: u64) -> Option<CommandError> {
        let kill = if self.oldest(threshold_ms)?.is_function { "FUNCTION KILL" } else { "SCRIPT KILL" };
        let text =
            format!("BUSY Redis is busy running a script. You can only call {kill} or SHUTDOWN NOSAVE.");
        Some(text.into())
    }

    /// Ends all scripts, or all functions, that have been running for at least `threshold_ms` and have not written.
    ///
    /// # Errors
    /// Returns an error if no such program is running, if all have written, or if only programs of the other kind are
    /// running.
    pub fn kill(&self, functions: bool, threshold_ms: u64) -> Result<(), CommandError> {
        let (mut others, mut unkillable, mut killed) = (0, 0, 0);
        for (place, state, _) in self.busy(threshold_ms) {
            if (state & IS_FUNCTION != 0) != functions {
                others += 1;
                continue;
            }
            // The state contains the start time, so a program that has started since is not marked.
            let marked = place.state.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| {
                let is_same = now >> FLAG_BITS == state >> FLAG_BITS;
                (is_same && now & HAS_WRITTEN == 0).then_some(now | IS_KILLED)
            });
            match marked {
                Ok(_) => killed += 1,
                Err(now) => unkillable += usize::from(now & HAS_WRITTEN != 0),
            }
        }
        if killed > 0 {
            Ok(())
        } else if unkillable > 0 {
            Err("UNKILLABLE Sorry the script already executed write commands against the dataset. You can \
                 either wait the script termination or kill the server in a hard way using the SHUTDOWN \
                 NOSAVE command."
                .into())
        } else if others > 0 {
            Err(self.busy_error(threshold_ms).unwrap_or_else(|| NOTHING_RUNS.into()))
        } else {
            Err(NOTHING_RUNS.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(result: Result<(), CommandError>) -> String {
        String::from_utf8(result.unwrap_err().text().into_owned()).unwrap()
    }

    /// Returns a state in which a script has been running on the second worker for one second.
    fn begun() -> RunningScripts {
        let mut running = RunningScripts::new(2);
        let now = Instant::now();
        running.epoch = now.checked_sub(Duration::from_secs(3)).unwrap();
        running.begin(1, false, now.checked_sub(Duration::from_secs(1)).unwrap());
        running
    }

    #[test]
    fn only_scripts_that_have_not_written_can_be_killed() {
        let running = begun();
        assert!(error(running.kill(true, 500)).contains("You can only call SCRIPT KILL"));
        assert_eq!(running.kill(false, 500), Ok(()));
        assert!(running.is_killed(1) && !running.is_killed(0));
        assert!(!running.begin_writing(1), "a killed script must not start to write");
        let running = begun();
        assert!(running.begin_writing(1));
        assert!(error(running.kill(false, 500)).starts_with("UNKILLABLE "));
        running.end(1, false);
        assert!(error(running.kill(false, 500)).starts_with("NOTBUSY "));
        assert!(running.oldest(500).is_none() && running.busy_error(500).is_none());
    }

    #[test]
    fn a_script_is_busy_after_the_given_limit() {
        let running = begun();
        assert!(running.is_busy(1000));
        assert!(!running.is_busy(60_000), "it has run for a shorter time");
        assert!(!running.is_busy(0), "0 disables the limit");
        assert!(error(running.kill(false, 60_000)).starts_with("NOTBUSY "));
        assert!(running.oldest(500).unwrap().duration >= Duration::from_secs(1));
        running.end(1, false);
        running.begin(0, true, Instant::now());
        assert!(!running.is_busy(1000), "the other script has just started");
    }
}
