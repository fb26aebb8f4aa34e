//! The memory limit is observed with more data than it allows, and so are the limits of the files.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ember_testkit::{OnDrop, RawClient, Value, wait_until};

use crate::{MODES, builder, figure, hold_disk, shown};

const LIMIT_MB: u64 = 16;

fn value(number: usize) -> String {
    format!("{number}:{}", "v".repeat(1000))
}

fn fill(client: &mut RawClient, from: usize, to: usize) {
    for numbers in (from..to).collect::<Vec<_>>().chunks(256) {
        let calls: Vec<[String; 3]> = numbers
            .iter()
            .map(|&number| ["SET".to_owned(), format!("key:{number}"), value(number)])
            .collect();
        let replies = client.pipeline(&calls).unwrap();
        let refused = replies.iter().find(|reply| **reply != Value::ok());
        assert!(refused.is_none(), "{refused:?}");
    }
}

#[test]
fn data_of_four_times_the_memory_limit_are_complete() {
    for mode in MODES {
        let server = builder(mode)
            .arguments(&["--maxmemory", &format!("{LIMIT_MB}mb"), "--tiered-max-size", "512mb"])
            .start();
        let mut client = server.client();
        let count = 64 * 1024;
        fill(&mut client, 0, count);
        assert_eq!(shown(&mut client, "DBSIZE"), format!("(integer) {count}"));
        assert_eq!(client.info_number("evicted_keys"), 0);
        let used = client.info_number("used_memory_dataset").min(client.info_number("used_memory"));
        assert!(used <= (2 * LIMIT_MB) << 20, "{used}");
        assert!(figure(&mut client, "cold_keys") > count as u64 / 2);
        for number in (0..count).step_by(97) {
            assert_eq!(client.command(&["GET", &format!("key:{number}")]).text(), value(number), "{mode:?}");
        }
        // Removing values frees space in the files.
        let before = figure(&mut client, "stored_bytes");
        for numbers in (0..count).collect::<Vec<_>>().chunks(256) {
            let kept = numbers.iter().filter(|&&number| number % 8 != 0);
            let calls: Vec<[String; 2]> =
                kept.map(|&number| ["DEL".to_owned(), format!("key:{number}")]).collect();
            client.pipeline(&calls).unwrap();
        }
        wait_until("segments are reclaimed", || figure(&mut client, "stored_bytes") < before / 2);
        for number in (0..count).step_by(8 * 13) {
            assert_eq!(client.command(&["GET", &format!("key:{number}")]).text(), value(number), "{mode:?}");
        }
        client.run("FLUSHALL");
        wait_until("no live bytes are left", || figure(&mut client, "live_bytes") == 0);
        assert_eq!(figure(&mut client, "read_errors"), 0);
    }
}

/// The maximum latency of replies while values are demoted and segments are reclaimed, with other tests running.
/// Without other tests it is about 40 ms.
const ANSWER_TIME_MAX: Duration = Duration::from_millis(300);

/// The calls that are repeated continuously.
const CALLS: [&[&str]; 2] = [&["GET", "hot"], &["SET", "set", "a short value"]];

/// Sends the calls in turn until `is_over`; returns the longest latency of their replies.
fn slowest(client: &mut RawClient, calls: &[&[&str]], is_over: &AtomicBool) -> (Duration, u64) {
    let (mut slowest, mut count) = (Duration::ZERO, 0);
    while !is_over.load(Ordering::Relaxed) {
        for call in calls {
            let asked = Instant::now();
            assert!(!client.command(call).is_error(), "{call:?}");
            slowest = slowest.max(asked.elapsed());
            count += 1;
        }
    }
    (slowest, count)
}

#[test]
fn demotion_and_reclaiming_cause_no_stalls() {
    let _disk = hold_disk();
    for mode in MODES {
        let server = builder(mode)
            .arguments(&["--maxmemory", &format!("{LIMIT_MB}mb"), "--tiered-max-size", "512mb"])
            .start();
        // An idle server shows the present latency of this machine.
        let idle = builder(mode).start();
        let (mut client, mut hot, mut idle_client) = (server.client(), server.client(), idle.client());
        client.command(&["SET", "hot", &value(0)]);
        let is_over = AtomicBool::new(false);
        let (found, of_idle) = std::thread::scope(|scope| {
            let found = scope.spawn(|| slowest(&mut hot, &CALLS, &is_over));
            let of_idle = scope.spawn(|| slowest(&mut idle_client, &[&["PING"]], &is_over));
            let _end = OnDrop(|| is_over.store(true, Ordering::Relaxed));
            let count = 64 * 1024;
            fill(&mut client, 0, count);
            // Three of four values are replaced, so the live rest of their segments is moved.
            let kept = (0..count).filter(|number| number % 4 != 0).collect::<Vec<_>>();
            for numbers in kept.chunks(256) {
                let set = |number: &usize| ["SET".to_owned(), format!("key:{number}"), value(number + 1)];
                let calls: Vec<_> = numbers.iter().map(set).collect();
                client.pipeline(&calls).unwrap();
            }
            wait_until("records are moved", || figure(&mut client, "records_moved") > 0);
            is_over.store(true, Ordering::Relaxed);
            (found.join().unwrap(), of_idle.join().unwrap())
        });
        println!(
            "{mode:?}: at most {:?} of {} answers; idle: {:?} of {}",
            found.0, found.1, of_idle.0, of_idle.1
        );
        assert!(figure(&mut client, "cold_keys") > 32 * 1024);
        assert!(
            found.0 < ANSWER_TIME_MAX + 2 * of_idle.0,
            "{mode:?}: {found:?}, compared with {of_idle:?} of an idle server"
        );
    }
}

#[test]
fn values_are_demoted_while_a_segment_is_reclaimed() {
    let _disk = hold_disk();
    for mode in MODES {
        let server = builder(mode).start();
        let mut client = server.client();
        // Several attempts are made, because no check may have occurred while the records were moved.
        let seen = (0..5).any(|_| {
            client.run("FLUSHALL");
            let count = 32 * 1024;
            for numbers in (0..count).collect::<Vec<_>>().chunks(256) {
                let set = |number: &usize| {
                    ["SET", &format!("key:{number}"), &value(*number), "TIER", "COLD"].map(str::to_owned)
                };
                client.pipeline(&numbers.iter().map(set).collect::<Vec<_>>()).unwrap();
            }
            wait_until("all values are cold", || figure(&mut client, "hot_keys") == 0);
            let before = figure(&mut client, "records_moved");
            let removed: Vec<_> =
                (0..count).filter(|number| number % 8 > 2).map(|number| format!("key:{number}")).collect();
            removed.chunks(1024).for_each(|keys| {
                let call: Vec<&str> = ["DEL"].into_iter().chain(keys.iter().map(String::as_str)).collect();
                client.command(&call);
            });
            wait_until("records are moved", || figure(&mut client, "records_moved") > before);
            // A value is demoted while there are more records to move.
            client.command(&["SET", "value", &value(0), "TIER", "COLD"]);
            wait_until("the value is cold", || shown(&mut client, "TIERING TIER value") != "\"hot\"");
            let then = figure(&mut client, "records_moved");
            let left = (count * 3 / 8) as u64;
            wait_until("all records are moved", || figure(&mut client, "records_moved") >= before + left);
            then < before + left
        });
        assert!(seen, "{mode:?}: no value is demoted while records are moved");
        for number in (0..32 * 1024).filter(|number| number % 8 <= 2).step_by(97) {
            assert_eq!(client.command(&["GET", &format!("key:{number}")]).text(), value(number), "{mode:?}");
        }
    }
}

#[test]
fn values_are_fetched_no_faster_than_others_are_demoted() {
    for mode in MODES {
        let limit = LIMIT_MB << 20;
        let server = builder(mode)
            .arguments(&["--maxmemory", &limit.to_string(), "--tiered-max-size", "512mb"])
            .start();
        let mut client = server.client();
        let count = 64 * 1024;
        fill(&mut client, 0, count);
        // Many clients read the oldest values concurrently, without any writes.
        let readers: Vec<_> = (0..8)
            .map(|reader| {
                let mut client = server.client();
                std::thread::spawn(move || {
                    for numbers in (reader * 8192..(reader + 1) * 8192).collect::<Vec<_>>().chunks(512) {
                        let calls: Vec<[String; 2]> = numbers
                            .iter()
                            .map(|number| ["GET".to_owned(), format!("key:{number}")])
                            .collect();
                        for (number, reply) in numbers.iter().zip(client.pipeline(&calls).unwrap()) {
                            assert_eq!(reply.text(), value(*number));
                        }
                    }
                })
            })
            .collect();
        let mut most = 0;
        while !readers.iter().all(std::thread::JoinHandle::is_finished) {
            most = most.max(client.info_number("used_memory_dataset"));
        }
        for reader in readers {
            reader.join().unwrap();
        }
        assert!(figure(&mut client, "fetches") > count as u64 / 2);
        // Values that are being read may exceed the limit.
        assert!(most <= limit + limit / 16, "{mode:?}: {most} of {limit}");
    }
}

#[test]
fn at_the_limit_of_the_files_the_eviction_policy_applies() {
    let more = ["--maxmemory", "8mb", "--tiered-max-size", "8mb"];
    let server = builder(MODES[0]).arguments(&more).start();
    let mut client = server.client();
    let mut refused = None;
    for number in 0..64 * 1024 {
        let reply = client.command(&["SET", &format!("key:{number}"), &value(number)]);
        if reply.is_error() {
            refused = Some(reply.text());
            break;
        }
    }
    assert!(refused.is_some_and(|error| error.starts_with("OOM")), "the files are full and so is memory");
    assert_eq!(client.command(&["GET", "key:0"]).text(), value(0));
    client.run("CONFIG SET maxmemory-policy allkeys-lru");
    wait_until("a write goes through again", || !client.command(&["SET", "more", &value(1)]).is_error());
    assert!(client.info_number("evicted_keys") > 0);
}

#[test]
fn tiers_need_a_limit_and_a_separate_directory() {
    let directory = ember_testkit::Directory::new("tiers-start");
    let path = directory.0.join("tiers");
    let program = env!("CARGO_BIN_EXE_ember-server");
    let refused = |arguments: &[&str]| {
        let port = ember_testkit::free_port().to_string();
        let arguments = [&["--port", &port, "--tiered-path", path.to_str().unwrap()], arguments].concat();
        ember_testkit::refusal(std::process::Command::new(program).current_dir(&directory.0).args(arguments))
    };
    assert!(refused(&[]).contains("set maxmemory"));
    let server = builder(MODES[0]).arguments(&["--tiered-path", path.to_str().unwrap()]).start();
    let error = refused(&["--maxmemory", "100mb"]);
    assert!(error.contains("is used by another server"), "{error}");
    drop(server);
}

#[test]
fn a_damaged_record_is_an_error_of_its_key_alone() {
    for mode in MODES {
        let server = builder(mode).arguments(&["--tiered-max-size", "64mb"]).start();
        let mut client = server.client();
        fill(&mut client, 0, 5000);
        for number in 0..5000 {
            assert_eq!(
                client.command(&["TIERING", "MIGRATE", &format!("key:{number}"), "COLD"]),
                Value::ok()
            );
        }
        wait_until("full buffers are written", || figure(&mut client, "bytes_written") >= 2 << 20);
        let mut damaged = 0;
        for file in std::fs::read_dir(server.directory().join("tiers")).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|end| end == "tier") {
                let mut bytes = std::fs::read(&path).unwrap();
                let from = bytes.len() / 2;
                bytes[from..].fill(b'x');
                std::fs::write(&path, bytes).unwrap();
                damaged += 1;
            }
        }
        assert!(damaged > 0);
        let mut unreadable = Vec::new();
        for number in 0..5000 {
            let key = format!("key:{number}");
            let reply = client.command(&["GET", &key]);
            if reply.is_error() {
                let error = reply.text();
                assert!(error.starts_with(&format!("IOERR the value of '{key}' cannot be read")), "{error}");
                unreadable.push(key);
            } else {
                assert_eq!(reply.text(), value(number));
            }
        }
        assert!((100..4900).contains(&unreadable.len()), "{}", unreadable.len());
        let key = &unreadable[0];
        client.run("MULTI");
        client.run("SET witness 1");
        client.command(&["APPEND", key, "x"]);
        let reply = client.run("EXEC").text();
        assert!(reply.starts_with("EXECABORT"), "{reply}");
        assert_eq!(shown(&mut client, "EXISTS witness"), "(integer) 0");
        let (first, others) = (client.command(&["STRLEN", key]), client.command(&["MGET", "witness", key]));
        assert!(first.is_error() && others.is_error());
        // Commands after one that fails still run.
        let replies =
            client.pipeline(&[vec!["GET", key], vec!["PING"], vec!["GET", key], vec!["PING"]]).unwrap();
        assert_eq!(replies.iter().map(Value::is_error).collect::<Vec<_>>(), [true, false, true, false]);
        assert_eq!(client.command(&["SET", key, "mended"]), Value::ok());
        assert_eq!(client.command(&["GET", key]).text(), "mended");
        assert_eq!(client.command(&["DEL", &unreadable[1]]), Value::Integer(1));
        assert!(figure(&mut client, "read_errors") > 0);
    }
}

#[test]
fn a_call_that_needs_more_than_half_of_memory_is_refused() {
    let server = builder(MODES[0]).arguments(&["--maxmemory", "16mb"]).start();
    let mut client = server.client();
    fill(&mut client, 0, 20_000);
    let keys: Vec<String> = (0..20_000).map(|number| format!("key:{number}")).collect();
    let mut call = vec!["MGET"];
    call.extend(keys.iter().map(String::as_str));
    let reply = client.command(&call).text();
    assert!(reply.starts_with("OOM"), "{reply}");
    assert_eq!(client.command(&["GET", "key:1"]).text(), value(1));
    // A call that needs less memory succeeds, although other values must be demoted for it.
    let reply = client.command(&call[..2000]);
    assert_eq!(reply.elements().unwrap().len(), 1999);
}
