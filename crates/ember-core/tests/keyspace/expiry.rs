//! Expired keys are never visible, are removed within 200 ms without any access, and cost bounded work and memory.

use ember_protocol::Protocol;
use emberkv_core::keyspace::SHARDS;
use emberkv_core::local::Local;
use emberkv_core::turn::Random;

fn set(local: &mut Local, key: &str, ttl_ms: Option<i64>) {
    let px = ttl_ms.unwrap_or(0).to_string();
    let words: [&[u8]; 5] = [b"SET", key.as_bytes(), b"v", b"PX", px.as_bytes()];
    local.run(if ttl_ms.is_some() { &words } else { &words[..3] });
}

fn is_there(local: &mut Local, key: &str) -> bool {
    match &local.run(&[b"GET", key.as_bytes()])[..] {
        b"$1\r\nv\r\n" => true,
        b"$-1\r\n" => false,
        other => panic!("{}", String::from_utf8_lossy(other)),
    }
}

/// Returns the memory of the expiry index in bytes: that of the shards except entries and slots.
fn index_bytes(local: &Local) -> usize {
    let other = |shard: usize| {
        let data = local.keyspace.lock(shard);
        let table = data.database(0).table();
        let entries: usize = table.iter().map(|entry| entry.footprint_bytes()).sum();
        data.bytes() - entries - table.slots_bytes()
    };
    (0..SHARDS).map(other).sum()
}

#[test]
fn a_million_keys_expire_on_time_with_bounded_work() {
    const KEYS: usize = 1_000_000;
    const SPREAD_MS: i64 = 60_000;
    const TICK_MS: i64 = 100;
    /// The maximum delay of a removal in ms: more than two ticks of the expiry index.
    const LATE_MAX_MS: i64 = 200;
    const BUDGET: usize = 1000;

    let mut local = Local::new(Protocol::Resp2);
    let start_ms = local.turn.now_ms;
    let mut random = Random::seeded(42);
    let ttls_ms: Vec<i64> = (0..KEYS).map(|_| 1 + random.below(SPREAD_MS as usize) as i64).collect();
    for (number, &ttl_ms) in ttls_ms.iter().enumerate() {
        set(&mut local, &number.to_string(), Some(ttl_ms));
    }
    let full_bytes = local.keyspace.used_bytes();
    // For each millisecond, the number of keys that expire after it.
    let mut left = vec![0usize; SPREAD_MS as usize + 2];
    ttls_ms.iter().for_each(|&ttl_ms| left[ttl_ms as usize - 1] += 1);
    for ms in (0..=SPREAD_MS as usize).rev() {
        left[ms] += left[ms + 1];
    }
    let left_at = |ms: i64| left[ms.clamp(0, SPREAD_MS) as usize];
    let (mut looks, mut expired) = (0, 0);
    for elapsed_ms in (TICK_MS..=SPREAD_MS + LATE_MAX_MS).step_by(TICK_MS as usize) {
        local.turn.now_ms = start_ms + elapsed_ms;
        for _ in 0..20 {
            let number = random.below(KEYS);
            assert_eq!(is_there(&mut local, &number.to_string()), ttls_ms[number] > elapsed_ms);
        }
        loop {
            let (removed, looked) = local.keyspace.expire_due(0..SHARDS, &mut local.turn, BUDGET);
            assert!(looked <= BUDGET);
            expired += removed;
            looks += looked;
            if looked < BUDGET {
                break;
            }
        }
        let len = local.keyspace.len(0);
        assert!(len >= left_at(elapsed_ms), "no key is removed early");
        assert!(len <= left_at(elapsed_ms - LATE_MAX_MS), "{len} keys after {elapsed_ms} ms");
        let share = left_at(elapsed_ms - LATE_MAX_MS) as f64 / KEYS as f64;
        let bytes_max = full_bytes as f64 * share * 1.5 + 1_000_000.0;
        assert!((local.keyspace.used_bytes() as f64) < bytes_max, "memory is freed with the keys");
    }
    println!("{expired} keys expired by {looks} looks, the rest by reads");
    assert_eq!(local.keyspace.len(0), 0);
    assert_eq!(expired as u64 + local.turn.counters.expired, KEYS as u64);
    assert!(looks < 8 * KEYS, "{looks} looks");
    local.keyspace.check_invariants();
}

#[test]
fn keys_that_are_not_due_are_not_visited_repeatedly() {
    let mut local = Local::new(Protocol::Resp2);
    for number in 0..10_000 {
        set(&mut local, &number.to_string(), Some(3_600_000 + number));
    }
    let mut looks = 0;
    for _ in 0..1000 {
        local.turn.now_ms += 100;
        looks += local.keyspace.expire_due(0..SHARDS, &mut local.turn, usize::MAX).1;
    }
    // 100 of 3600 seconds have passed, in which each reference has moved by a few buckets at most.
    assert!(looks <= 12 * 10_000, "{looks} looks");
    assert_eq!(local.keyspace.len(0), 10_000);
}

#[test]
fn a_backlog_is_worked_off_within_the_budget_of_each_call() {
    let mut local = Local::new(Protocol::Resp2);
    for number in 0..100_000 {
        set(&mut local, &number.to_string(), Some(1 + number % 1000));
    }
    local.turn.now_ms += 10_000;
    let mut calls = 0;
    while local.keyspace.len(0) > 0 {
        let (removed, looked) = local.keyspace.expire_due(0..SHARDS, &mut local.turn, 500);
        assert!(looked <= 500 && removed > 0, "every call makes progress");
        calls += 1;
    }
    assert!(calls < 5000, "{calls} calls");
}

/// The bytes of stale references that may remain in all shards, because a few of them do not justify a rebuild.
const SLACK_BYTES: usize = SHARDS * 4096;

#[test]
fn overwriting_and_deleting_volatile_keys_leaves_bounded_references() {
    type Loop = fn(&mut Local, i64);
    let loops: [(&str, Loop); 6] = [
        ("an expiry that moves earlier", |local, n| set(local, "k", Some(10_000_000 - n))),
        ("an expiry that moves later", |local, n| set(local, "k", Some(1000 + n))),
        ("an expiry that is set and removed", |local, n| set(local, "k", (n % 2 == 0).then_some(5000))),
        ("set and delete", |local, n| {
            set(local, &format!("k{}", n % 5000), Some(60_000));
            local.run(&[b"DEL", format!("k{}", n % 5000).as_bytes()]);
        }),
        ("overwrite among many", |local, n| {
            set(local, &format!("k{}", n * 7919 % 1000), Some(60_000 - n % 50_000))
        }),
        ("time passes meanwhile", |local, n| {
            set(local, &format!("k{}", n % 100), Some(50_000));
            local.turn.now_ms += 1;
        }),
    ];
    for (what, step) in loops {
        let mut local = Local::new(Protocol::Resp2);
        let mut peak = 0;
        for n in 0..200_000 {
            step(&mut local, n);
            if n % 20_000 == 19_999 {
                local.keyspace.expire_due(0..SHARDS, &mut local.turn, usize::MAX);
                peak = peak.max(index_bytes(&local));
            }
        }
        assert!(peak <= 16 * local.keyspace.volatile(0) + SLACK_BYTES, "{what}: {peak} bytes");
        local.keyspace.check_invariants();
    }
}

#[test]
fn a_key_with_an_extended_expiry_lives_until_the_new_expiry() {
    let mut local = Local::new(Protocol::Resp2);
    set(&mut local, "longer", Some(1000));
    set(&mut local, "forever", Some(1000));
    local.run(&[b"PEXPIRE", b"longer", b"5000"]);
    local.run(&[b"PERSIST", b"forever"]);
    for _ in 0..49 {
        local.turn.now_ms += 100;
        local.keyspace.expire_due(0..SHARDS, &mut local.turn, usize::MAX);
        assert_eq!(local.keyspace.len(0), 2);
    }
    local.turn.now_ms += 300;
    local.keyspace.expire_due(0..SHARDS, &mut local.turn, usize::MAX);
    assert_eq!(local.keyspace.len(0), 1);
    assert!(is_there(&mut local, "forever"));
}
