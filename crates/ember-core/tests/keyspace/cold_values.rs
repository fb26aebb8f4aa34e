//! Demotion and fetching of values, tested below the level of commands: the contents of snapshots, and the reads that
//! count as uses.

use ember_protocol::Protocol;
use emberkv_core::eviction::demotion::Demoter;
use emberkv_core::eviction::{ClockReading, EvictionPolicy};
use emberkv_core::keyspace::SHARDS;
use emberkv_core::keyspace::shard::cold_values::DemotionRules;
use emberkv_core::local::Local;
use emberkv_core::rdb::KeyForm;
use emberkv_core::snapshot::{Piece, QueueLimits, Saver, SnapshotOptions};
use emberkv_core::turn::Random;

fn options() -> SnapshotOptions {
    SnapshotOptions {
        form: KeyForm::Rdb { version: 12, is_packed: false },
        clocks: ClockReading {
            policy: EvictionPolicy::NoEviction,
            lfu_decay_minutes: 1,
            now_ms: 0,
            now_tick: 0,
        },
        limits: QueueLimits::default(),
    }
}

/// Adds a heavy list, which the walk of a snapshot leaves to the saver, and a small list.
fn fill(local: &mut Local) {
    for number in 0..4000 {
        let element = format!("{number}:{}", "x".repeat(60));
        local.run(&[b"RPUSH", b"heavy", element.as_bytes()]);
    }
    local.run(&[b"RPUSH", b"light", b"a"]);
}

/// Returns the names of the keys with cold values in the pieces of a snapshot, and the number of its other keys.
fn names(saver: &mut Saver<'_>) -> (Vec<String>, u64) {
    let (mut cold, mut others) = (Vec::new(), 0);
    while let Some(piece) = saver.next_piece() {
        match &piece {
            Piece::Cold(keys) => {
                cold.extend(keys.iter().map(|key| String::from_utf8_lossy(&key.name).into_owned()));
            }
            Piece::Keys(_, block) => others += block.keys(),
            Piece::Value(_) => others += 1,
            Piece::Detached(detached) => others += detached.entries().count() as u64,
        }
    }
    cold.sort_unstable();
    (cold, others)
}

#[test]
fn a_snapshot_has_every_value_while_values_are_demoted_and_fetched() {
    // Whether the values are demoted before the walk, demoted after the walk, and fetched before the end of the
    // snapshot.
    for (gone_before, gone_behind, back) in [
        (true, false, false),
        (false, true, false),
        (true, false, true),
        (false, true, true),
        (false, false, false),
    ] {
        let mut local = Local::new(Protocol::Resp2);
        fill(&mut local);
        let keyspace = std::sync::Arc::clone(&local.keyspace);
        if gone_before {
            assert!(local.demote(b"heavy") && local.demote(b"light"));
        }
        let snapshot = keyspace.begin_snapshot(options());
        let mut saver = Saver::new(std::sync::Arc::clone(&snapshot), &keyspace, || {});
        snapshot.walk(&keyspace);
        if gone_behind {
            assert!(local.demote(b"heavy") && local.demote(b"light"));
        }
        if back {
            local.run(&[b"LLEN", b"heavy"]);
            local.run(&[b"LPOP", b"light"]);
        }
        let (cold, others) = names(&mut saver);
        assert_eq!(cold.len() as u64 + others, 2, "{gone_before} {gone_behind} {back}: {cold:?}");
        if gone_before {
            assert_eq!(cold, ["heavy", "light"]);
        }
        drop(saver);
        keyspace.check_invariants();
    }
}

#[test]
fn values_demoted_and_fetched_at_random_equal_a_model() {
    let mut random = Random::seeded(7);
    let mut local = Local::new(Protocol::Resp2);
    let mut model = Local::new(Protocol::Resp2);
    let calls = [
        "RPUSH l {}",
        "LPOP l",
        "SET s {}",
        "APPEND s {}",
        "DEL s",
        "SADD t {}",
        "SREM t {}",
        "HSET h {} {}",
        "EXPIRE s 100",
        "PERSIST s",
        "GETSET s {}",
        "RENAME s r",
        "COPY r s",
        "ZADD z {} {}",
        "FLUSHALL",
        "SWAPDB 0 1",
        "MOVE r 1",
        "TTL s",
        "STRLEN s",
        "LRANGE l 0 -1",
        "ZRANGE z 0 -1",
        "HGETALL h",
        "OBJECT ENCODING s",
    ];
    for step in 0..20_000 {
        let call = calls[random.below(if step % 400 == 0 { calls.len() } else { calls.len() - 9 })];
        let call = if random.below(3) == 0 { calls[calls.len() - 1 - random.below(7)] } else { call };
        let line = call.replace("{}", &random.below(50).to_string());
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        assert_eq!(local.run(&words), model.run(&words), "step {step}: {line}");
        if random.below(2) == 0 {
            local.demote(["l", "s", "t", "h", "z", "r"][random.below(6)].as_bytes());
        }
        if random.below(4) == 0 {
            let key = ["l", "s", "t", "h", "z", "r"][random.below(6)].as_bytes();
            if let Some(order) = local.begin_fetch(0, key) {
                if random.below(2) == 0 { local.expect_arrival(order) } else { local.finish_fetch(&order) }
            }
        }
        if step % 100 == 0 {
            local.keyspace.check_invariants();
        }
    }
    let cold = (0..SHARDS).map(|shard| local.keyspace.lock(shard).cold_count()).sum::<usize>();
    local.run(&[b"FLUSHALL"]);
    assert!(cold <= 12);
    assert!((0..SHARDS).all(|shard| local.keyspace.lock(shard).cold_count() == 0));
}

#[test]
fn the_first_fetched_value_is_demoted_first_unless_used_since() {
    const KEYS: usize = 3000;
    let mut local = Local::new(Protocol::Resp2);
    local.turn.settings.policy = EvictionPolicy::AllkeysLru;
    // All keys are in a few shards, because each shard has its own queue of fetched values.
    let names = (0..).map(|number| format!("key:{number}").into_bytes());
    let names: Vec<Vec<u8>> = names.filter(|name| local.keyspace.hash(name).shard() < 4).take(KEYS).collect();
    let name = |number: usize| names[number].clone();
    for number in 0..KEYS {
        local.run(&[b"SET", &name(number), &[b'v'; 300]]);
        assert!(local.demote(&name(number)));
    }
    let read = |local: &mut Local, keys: std::ops::Range<usize>| {
        keys.for_each(|number| assert!(local.run(&[b"GET", &name(number)]).starts_with(b"$300")));
        local.turn.now_ms += 10_000;
    };
    // These keys are deleted, so that other entries may take their positions.
    read(&mut local, KEYS - 100..KEYS);
    (KEYS - 100..KEYS).for_each(|number| _ = local.run(&[b"DEL", &name(number)]));
    read(&mut local, 0..400);
    read(&mut local, 0..50);
    // Values that were never demoted are found by sampling.
    (0..100).for_each(|number| _ = local.run(&[b"SET", format!("new:{number}").as_bytes(), &[b'n'; 300]]));
    let keyspace = std::sync::Arc::clone(&local.keyspace);
    let here = |name: &[u8]| {
        let hash = keyspace.hash(name);
        let data = keyspace.lock(hash.shard());
        let at = data.find(0, hash, name).expect("keys stay");
        !data.entry(0, at).is_cold()
    };
    let count = |keys: std::ops::Range<usize>| keys.filter(|&number| here(&name(number))).count();
    assert_eq!(count(0..KEYS - 100), 400);
    let mut demoter = Demoter::default();
    // New values could only be demoted by writing them, and the log has no space.
    let step =
        |demoter: &mut Demoter, turn: &mut _| demoter.step(&keyspace, turn, &DemotionRules::ANY, |_| None);
    while count(0..KEYS - 100) > 150 {
        step(&mut demoter, &mut local.turn);
    }
    assert!(count(0..50) >= 45, "values used since are resident: {}", count(0..50));
    while count(0..KEYS - 100) > 0 {
        step(&mut demoter, &mut local.turn);
    }
    assert_eq!(demoter.dropped, 400);
    assert!((0..100).all(|number| here(format!("new:{number}").as_bytes())));
    assert!((0..KEYS - 100).all(|number| local.run(&[b"GET", &name(number)]).starts_with(b"$300")));
    keyspace.check_invariants();
}
