//! SCAN returns every key that exists during the whole iteration exactly once, whatever keys are added and removed
//! between the calls.

use std::collections::BTreeMap;

use ember_protocol::Protocol;
use emberkv_core::local::Local;
use proptest::prelude::*;

/// Runs one call; returns the next cursor and the keys.
fn scan(local: &mut Local, cursor: &str, options: &[&str]) -> (String, Vec<String>) {
    let mut words: Vec<&[u8]> = vec![b"SCAN", cursor.as_bytes()];
    words.extend(options.iter().map(|word| word.as_bytes()));
    let reply = String::from_utf8(local.run(&words)).unwrap();
    let lines: Vec<&str> = reply.split("\r\n").collect();
    (lines[2].into(), lines[4..].chunks_exact(2).map(|pair| pair[1].into()).collect())
}

fn fill(local: &mut Local, prefix: &str, range: std::ops::Range<usize>) {
    range.for_each(|number| {
        local.run(&[b"SET", format!("{prefix}{number}").as_bytes(), b"v"]);
    });
}

fn clear(local: &mut Local, prefix: &str, range: std::ops::Range<usize>) {
    range.for_each(|number| {
        local.run(&[b"DEL", format!("{prefix}{number}").as_bytes()]);
    });
}

/// Iterates to the end, and calls `between` after each call to change the keyspace. Returns how many times each key was
/// returned.
fn iterate(
    local: &mut Local,
    options: &[&str],
    mut between: impl FnMut(&mut Local),
) -> BTreeMap<String, usize> {
    let mut seen = BTreeMap::new();
    let mut cursor = String::from("0");
    for _ in 0..1_000_000 {
        let (next, keys) = scan(local, &cursor, options);
        keys.into_iter().for_each(|key| *seen.entry(key).or_default() += 1);
        if next == "0" {
            return seen;
        }
        cursor = next;
        between(local);
    }
    panic!("the iteration does not end");
}

#[test]
fn a_scan_of_a_keyspace_at_rest_returns_each_key_once() {
    let mut local = Local::new(Protocol::Resp2);
    fill(&mut local, "key:", 0..20_000);
    for count in ["1", "7", "1000", "100000"] {
        let seen = iterate(&mut local, &["COUNT", count], |_| ());
        assert_eq!(seen.len(), 20_000, "COUNT {count}");
        assert!(seen.values().all(|&times| times == 1));
    }
    let matching = iterate(&mut local, &["MATCH", "key:1999?", "COUNT", "100"], |_| ());
    assert_eq!(matching.len(), 10);
}

#[test]
fn a_call_returns_about_count_keys() {
    let mut local = Local::new(Protocol::Resp2);
    fill(&mut local, "key:", 0..20_000);
    for count in [1, 10, 100, 1000] {
        let (_, keys) = scan(&mut local, "0", &["COUNT", &count.to_string()]);
        assert!((count..count + 30).contains(&keys.len()), "{} for COUNT {count}", keys.len());
    }
    // A call whose pattern matches nothing returns after visiting ten times COUNT keys.
    let (cursor, keys) = scan(&mut local, "0", &["MATCH", "none", "COUNT", "10"]);
    assert!(cursor != "0" && keys.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.div_ceil(11)))]
    #[test]
    fn keys_that_stay_are_returned_exactly_once_while_tables_grow_and_shrink(
        stay in 1usize..6000,
        count in 20usize..2000,
        bulks in prop::collection::vec((0usize..8000, any::<bool>()), 1..6),
        start in 0usize..8000,
    ) {
        let mut local = Local::new(Protocol::Resp2);
        fill(&mut local, "stay:", 0..stay);
        fill(&mut local, "pass:", 0..start);
        let mut changes = bulks.iter().cycle();
        let mut calls = 0;
        let seen = iterate(&mut local, &["COUNT", &count.to_string()], |local| {
            calls += 1;
            // Thousands of keys change after each of the first calls; the keyspace does not change during the rest of
            // the iteration.
            if calls <= 12 && let Some(&(bound, add)) = changes.next() {
                if add { fill(local, "pass:", 0..bound) } else { clear(local, "pass:", 0..bound) }
            }
        });
        for number in 0..stay {
            prop_assert_eq!(seen.get(&format!("stay:{number}")), Some(&1), "stay:{}", number);
        }
        local.keyspace.check_invariants();
    }
}

#[test]
fn keys_that_stay_are_returned_while_other_threads_change_the_keyspace() {
    use emberkv_core::turn::Turn;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    let mut local = Local::new(Protocol::Resp2);
    fill(&mut local, "stay:", 0..5000);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let turn = Turn::new(local.turn.now_ms, thread + 7);
            let mut other = Local::sharing(Arc::clone(&local.keyspace), turn, Protocol::Resp2);
            let done = &done;
            scope.spawn(move || {
                let prefix = format!("pass{thread}:");
                while !done.load(Ordering::Relaxed) {
                    fill(&mut other, &prefix, 0..4000);
                    clear(&mut other, &prefix, 0..4000);
                }
            });
        }
        for _ in 0..5 {
            let mut seen = iterate(&mut local, &["COUNT", "50"], |_| ());
            seen.retain(|key, _| key.starts_with("stay:"));
            assert_eq!(seen.len(), 5000);
            assert!(seen.values().all(|&times| times == 1));
        }
        done.store(true, Ordering::Relaxed);
    });
    local.keyspace.check_invariants();
}
