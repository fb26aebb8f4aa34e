//! Which live queries may be run by threads at a time, so that neither writers nor other commands wait for many of them.
//!
//! A query that takes long holds its keys while it runs: a call that would change one waits for that. So one query of a key
//! runs at a time, and then the key rests: all queries of a key together hold it a fifth of the time at most, and a write
//! waits for one of them at most. Half of the threads that run long commands are left to those.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// How many times as long as a run its keys rest, and the next run of its query is delayed.
pub(crate) const DELAY_FACTOR: u32 = 4;

/// How soon it is tried again to run a query that waits for others to end.
pub(crate) const RETRY_TIME: Duration = Duration::from_millis(10);

/// The runs there are.
#[derive(Default)]
pub(crate) struct LongRuns(Mutex<Runs>);

#[derive(Default)]
struct Runs {
    count: usize,
    /// When keys may be held again that are held, or were a moment ago; `None` while they are.
    keys: HashMap<Box<[u8]>, Option<Instant>>,
}

impl Runs {
    /// When a query of these keys may be tried again, if it may not run now with at most `others` others.
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
    /// When a query of these keys may be tried again, if it may not run now. `threads` is how many there are for long
    /// commands.
    pub(crate) fn busy_until<'k>(
        &self,
        keys: impl IntoIterator<Item = &'k [u8]>,
        threads: usize,
        now: Instant,
    ) -> Option<Instant> {
        self.0.lock().busy_until(keys, others_max(threads), now)
    }

    /// Begins to run a query of these keys.
    ///
    /// # Errors
    /// When it may be tried again, if it may not run now.
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

    /// Ends a run that has held its keys for this time. O(keys that are held or rest).
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

/// How many other queries may run beside one.
fn others_max(threads: usize) -> usize {
    (threads / 2).max(1) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOK: Duration = Duration::from_secs(60);

    #[test]
    fn queries_of_a_key_run_one_after_the_other_with_rests() {
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
