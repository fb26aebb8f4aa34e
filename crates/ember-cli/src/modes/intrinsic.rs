//! Measures how long this machine delays a running program that only computes (`--intrinsic-latency`): no server on
//! this machine can respond faster than that.

use std::hint::black_box;
use std::time::{Duration, Instant};

use ember_client::put;

/// Computation steps between two clock readings, which take some tens of nanoseconds.
const STEPS: u64 = 64;

/// Computes for `seconds`, and prints each delay that is longer than all previous ones.
pub(super) fn run(seconds: u64) {
    let (begin, period) = (Instant::now(), Duration::from_secs(seconds));
    let (mut runs, mut longest, mut reported_us) = (0u64, Duration::ZERO, 0);
    let mut last = begin;
    while last - begin < period {
        (0..STEPS).for_each(|step| _ = black_box(step));
        let now = Instant::now();
        longest = longest.max(now - last);
        (last, runs) = (now, runs + 1);
        if longest.as_micros() > reported_us {
            reported_us = longest.as_micros();
            put(format!("Max latency so far: {reported_us} microseconds.\n").as_bytes());
        }
    }
    let average = (last - begin).as_secs_f64() / runs as f64;
    put(format!(
        "\n{runs} total runs (avg latency: {:.4} microseconds / {:.2} nanoseconds per run).\n\
         Worst run took {:.0}x longer than the average latency.\n",
        average * 1e6,
        average * 1e9,
        longest.as_secs_f64() / average
    )
    .as_bytes());
}
