//! ember-cli benchmark and redis-benchmark measure the same throughput: on one server, one right after the other.
//!
//! Other load on the test machine can only make a run slower. So the best rates of several rounds are compared, and
//! further rounds are run, up to a limit, while these rates differ by more than a quarter. Figures of quiet machines
//! and release builds are in docs/benchmarks.md.

#![allow(clippy::unwrap_used, reason = "the whole file is a test")]

use std::path::Path;
use std::process::{Command, Stdio};

use ember_peers::{Mode, require_program, start_ember, start_redis};
use ember_testkit::{Server, find_ember_cli};

/// The lowest and highest number of rounds.
const ROUNDS_MIN: u32 = 3;
const ROUNDS_MAX: u32 = 25;

/// The minimum accepted ratio of the two rates.
const RATIO_MIN: f64 = 0.75;
const RATIO_MAX: f64 = 1.25;

/// Runs a program and returns its requests per second: the second column of the last line that it prints.
fn rate(program: &Path, first: &[&str], arguments: &[&str]) -> f64 {
    let output = Command::new(program)
        .args(first)
        .args(arguments)
        .arg("--csv")
        .args(slow_command(arguments))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text} {}", String::from_utf8_lossy(&output.stderr));
    let rate = text.lines().last().unwrap().split("\",\"").nth(1).unwrap();
    rate.parse().unwrap_or_else(|_| panic!("{rate} is not a rate: {text}"))
}

/// Returns a command that takes the server a long time and both programs almost no time, unless the arguments select
/// tests.
fn slow_command(arguments: &[&str]) -> &'static [&'static str] {
    const LONG: &[&str] = &["EVAL", "local sum = 0 for i = 1, 4000 do sum = sum + i end return sum", "0"];
    if arguments.contains(&"-t") { &[] } else { LONG }
}

/// Returns the best rate of ember-cli divided by the best rate of redis-benchmark, once `is_fine` accepts the ratio, or
/// after all rounds.
fn ratio(server: &Server, arguments: &[&str], is_fine: impl Fn(f64) -> bool) -> f64 {
    let port = server.port().to_string();
    let arguments = [&["-p", &port], arguments].concat();
    let (theirs, ours) = (require_program("redis-benchmark"), find_ember_cli());
    let mut best = [0.0_f64; 2];
    let mut found = 0.0;
    for round in 1..=ROUNDS_MAX {
        best[0] = best[0].max(rate(&theirs, &[], &arguments));
        best[1] = best[1].max(rate(&ours, &["benchmark"], &arguments));
        found = best[1] / best[0];
        if round >= ROUNDS_MIN && is_fine(found) {
            break;
        }
    }
    println!("{arguments:?}: redis-benchmark {:.0}, ember-cli {:.0}: {found:.2}", best[0], best[1]);
    found
}

#[test]
fn throughput_equals_that_of_redis_benchmark_when_the_server_is_the_bottleneck() {
    let fits = |ratio: f64| (RATIO_MIN..=RATIO_MAX).contains(&ratio);
    for server in [start_redis(), start_ember(Mode::Sharded)] {
        for load in [["-n", "4000", "-c", "10", "-P", "1"], ["-n", "4000", "-c", "10", "-P", "8"]] {
            let found = ratio(&server, &load, fits);
            assert!(fits(found), "{load:?}: {found:.2} of redis-benchmark's figure");
        }
    }
}

#[test]
fn the_load_generator_is_no_slower_than_that_of_redis() {
    let server = start_redis();
    for test in ["set", "get"] {
        for (requests, pipeline) in [("20000", "1"), ("200000", "16")] {
            let load = ["-t", test, "-n", requests, "-P", pipeline, "-r", "1000"];
            let found = ratio(&server, &load, |ratio| ratio >= RATIO_MIN);
            assert!(found >= RATIO_MIN, "{load:?}: {found:.2} of redis-benchmark's figure");
        }
    }
}
