//! Limits the evaluations of live queries on job threads, so that neither writes nor other commands wait for many of
//! them.
//!
//! An evaluation holds its keys: a call that would change one of them waits. So one evaluation per key runs at a time,
//! after which the key rests: all queries on a key together hold it for at most a fifth of the time, and a write waits
//! for at most one evaluation. Half of the threads for long commands are not used for live queries.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The time for which the keys of an evaluation rest, and the delay of the query's next evaluation, as a multiple of
/// the evaluation's run time.
pub(crate) const DELAY_FACTOR: u32 = 4;

/// The delay after which a query that waits for other evaluations is retried.
pub(crate) const RETRY_TIME: Duration = Duration::from_millis(10);

/// The evaluations that run at present, and the keys that they hold or have held.
#[derive(Default)]
pub(crate) struct LongRuns(Mutex<Runs>);

#[derive(Default)]
struct Runs {
    count: usize,
    /// The time from which on a recently held key may be held again; `None` while the key is held.
    keys: HashMap<Box<[u8]>, Option<Instant>>,
}

impl Runs {
    /// Returns the time at which a query on these keys may be retried; `None` if it may run now. At most `others` other
    /// evaluations may run concurrently.
    fn busy_until<'k>(
        &self,
        keys: impl IntoIterator<Item = &'k [u8]>,
        others: usize,
        now: Instant,
    ) -> Option<Instant> {
        let retry_at = now + RETRY_TIME;
        let rest = |key: &'k [u8]| self.keys.get(key).map(|until| until.unwrap_or(retry_at));
        let until = keys.into_iter().filter_map(rest).max().filter(|&until| until > now);
        until.or((self.count > others).then_some(retry_at))
    }
}

impl LongRuns {
    /// Returns the time at which a query on these keys may be retried; `None` if it may run now. `threads` is the
    /// number of threads for long commands.
    pub(crate) fn busy_until<'k>(
        &self,
        keys: impl IntoIterator<Item = &'k [u8]>,
        threads: usize,
        now: Instant,
    ) -> Option<Instant> {
        self.0.lock().busy_until(keys, others_max(threads), now)
    }

    /// Begins an evaluation that holds these keys.
    ///
    /// # Errors
    /// Returns the time at which it may be retried if it may not run now.
    pub(super) fn begin(&self, keys: &[Box<[u8]>], threads: usize, now: Instant) -> Result<(), Instant> {
        let mut runs = self.0.lock();
        let until = runs.busy_until(keys.iter().map(|key| &**key), others_max(threads), now);
        if let Some(until) = until {
            return Err(until);
        }
        runs.count += 1;
        runs.keys.extend(keys.iter().map(|key| (key.clone(), None)));
        Ok(())
    }

    /// Ends an evaluation that has held its keys for `took`. O(held and resting keys).
    pub(super) fn end(&self, keys: &[Box<[u8]>], took: Duration) {
        let now = Instant::now();
        let until = now.checked_add(took * DELAY_FACTOR);
        let mut runs = self.0.lock();
        runs.count -= 1;
        for key in keys {
            if let Some(rest) = runs.keys.get_mut(key) {
                *rest = until;
            }
        }
        runs.keys.retain(|_, rest| rest.is_none_or(|until| until > now));
    }
}

/// Returns the number of other evaluations that may run concurrently.
fn others_max(threads: usize) -> usize {
    (threads / 2).max(1) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOK: Duration = Duration::from_secs(60);

    #[test]
    fn queries_of_a_key_run_one_at_a_time_with_pauses() {
        let (runs, now) = (LongRuns::default(), Instant::now());
        let keys =
            |names: &[&str]| names.iter().map(|name| name.as_bytes().into()).collect::<Vec<Box<[u8]>>>();
        runs.begin(&keys(&["a", "b"]), 8, now).unwrap();
        assert_eq!(runs.begin(&keys(&["b", "c"]), 8, now), Err(now + RETRY_TIME));
        runs.begin(&keys(&["c"]), 8, now).unwrap();
        runs.end(&keys(&["a", "b"]), TOOK);
        let rested = runs.begin(&keys(&["b"]), 8, now).unwrap_err();
        assert!(rested >= now + TOOK * DELAY_FACTOR);
        runs.begin(&keys(&["b"]), 8, rested).unwrap();
    }

    #[test]
    fn queries_of_other_keys_take_half_of_the_threads() {
        let now = Instant::now();
        for (threads, most) in [(1, 1), (2, 1), (3, 1), (4, 2), (9, 4)] {
            let runs = LongRuns::default();
            let key = |number: usize| vec![Box::<[u8]>::from(number.to_string().as_bytes())];
            let begun = (0..20).filter(|&number| runs.begin(&key(number), threads, now).is_ok()).count();
            assert_eq!(begun, most, "of {threads} threads");
            runs.end(&key(0), Duration::ZERO);
            runs.begin(&key(0), threads, Instant::now()).unwrap();
        }
    }
}
