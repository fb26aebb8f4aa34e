//! Artificial delays while files are written and read (`rdb-key-save-delay`, `key-load-delay`), for testing clients.

use std::thread;
use std::time::{Duration, Instant};

/// The longest sleep between two checks whether the delay is still configured.
const STEP: Duration = Duration::from_millis(10);

/// The maximum delay per key in µs: unlike a child process of Redis, a snapshot cannot be killed.
const KEY_MAX_US: u64 = 10_000_000;

/// Returns the delay for `keys` keys. `delay` is in µs per key; if it is negative, its absolute value is the number of
/// keys per µs.
fn time_of(keys: u64, delay: i32) -> Duration {
    let number = u64::from(delay.unsigned_abs());
    let microseconds = match delay {
        0 => 0,
        1.. => keys.saturating_mul(number.min(KEY_MAX_US)),
        ..0 => keys / number,
    };
    Duration::from_micros(microseconds)
}

/// Sleeps for the delay of `keys` keys. `delay` is called repeatedly and returns the configured delay; `None` ends the
/// sleep.
pub(crate) fn wait(keys: u64, delay: impl Fn() -> Option<i32>) {
    let begun = Instant::now();
    while let Some(left) = delay().and_then(|delay| time_of(keys, delay).checked_sub(begun.elapsed()))
        && !left.is_zero()
    {
        thread::sleep(left.min(STEP));
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn delays_are_microseconds_per_key_or_negated_keys_per_microsecond() {
        for (keys, delay, microseconds) in
            [(3, 0, 0), (3, 7, 21), (3, -1, 3), (5, -2, 2), (2, i32::MAX, 20_000_000), (7, i32::MIN, 0)]
        {
            assert_eq!(time_of(keys, delay), Duration::from_micros(microseconds));
        }
    }

    #[test]
    fn a_wait_ends_when_the_delay_does() {
        let checks = Cell::new(0);
        wait(100, || {
            checks.set(checks.get() + 1);
            (checks.get() < 3).then_some(i32::MAX)
        });
        assert_eq!(checks.get(), 3);
    }
}
