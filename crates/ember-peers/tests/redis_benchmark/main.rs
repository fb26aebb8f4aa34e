//! ember-cli benchmark and redis-benchmark measure the same: on one server, one directly behind the other.
//!
//! Tests run on machines that do much else, which makes any run slower and none faster. So the best of some rounds is
//! compared, and rounds go on, up to a limit, while those differ by more than a quarter. Figures of quiet machines and
//! release builds are in docs/benchmarks.md.

#![allow(clippy::unwrap_used, reason = "the whole file is a test")]

use std::path::Path;
use std::process::{Command, Stdio};

use ember_peers::{Mode, require_program, start_ember, start_redis};
use ember_testkit::{Server, find_ember_cli};

/// Rounds there are at least and at most.
const ROUNDS_MIN: u32 = 3;
const ROUNDS_MAX: u32 = 25;

/// By how much the figures may differ, as a ratio.
const RATIO_MIN: f64 = 0.75;
const RATIO_MAX: f64 = 1.25;

/// Requests a second, as a program prints them: the second column of its last line.
fn rate(program: &Path, first: &[&str], arguments: &[&str]) -> f64 {
    let output = Command::new(program)
        .args(first)
        .args(arguments)
        .arg("--csv")
        .args(command_behind(arguments))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text} {}", String::from_utf8_lossy(&output.stderr));
    let rate = text.lines().last().unwrap().split("\",\"").nth(1).unwrap();
    rate.parse().unwrap_or_else(|_| panic!("{rate} is no rate: {text}"))
}

/// A command that takes the server long and both programs no time, when no test is asked for.
fn command_behind(arguments: &[&str]) -> &'static [&'static str] {
    const LONG: &[&str] = &["EVAL", "local sum = 0 for i = 1, 4000 do sum = sum + i end return sum", "0"];
    if arguments.contains(&"-t") { &[] } else { LONG }
}

/// The best of ember-cli beside the best of redis-benchmark, when `is_fine` or after all rounds.
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
fn a_server_that_is_the_slowest_gets_the_same_figure() {
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
