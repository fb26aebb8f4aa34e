//! Defragmentation: all data and the accounted bytes stay the same, whatever allocations are moved at any time.

use std::sync::Arc;
use std::thread;

use ember_protocol::Protocol;
use emberkv_core::defragmentation::Defragmentation;
use emberkv_core::keyspace::{Keyspace, SHARDS};
use emberkv_core::local::Local;
use emberkv_core::turn::Random;

use crate::support::commands::{contents, draw, run};

/// The maximum number of elements of a value that is moved in one step.
const ELEMENTS_MAX: usize = 20;

fn bytes_of(keyspace: &Keyspace) -> usize {
    (0..SHARDS).map(|shard| keyspace.lock(shard).bytes()).sum()
}

/// Runs one walk, which moves the allocations for which `is_worth_it` returns true.
fn defragment(keyspace: &Keyspace, is_worth_it: &mut dyn FnMut(*const u8) -> bool) -> Defragmentation {
    let mut walk = Defragmentation::new();
    while walk.step(keyspace, ELEMENTS_MAX, is_worth_it) {}
    walk
}

/// Adds a value of a random type with more elements than one step moves.
fn add_large(local: &mut Local, random: &mut Random) {
    let (key, count) = (random.below(4), 1 + random.below(700));
    for number in 0..count {
        let member = random.below(2000);
        let line = match number % 5 {
            0 => format!("SADD large:set:{key} member:{member}"),
            1 => format!("HSET large:hash:{key} field:{member} {}", "v".repeat(member % 300)),
            2 => format!("ZADD large:zset:{key} {} member:{member}", member % 50),
            3 => format!("RPUSH large:list:{key} {}", "e".repeat(member % 100)),
            _ => format!("XADD large:stream:{key} * field {member}"),
        };
        run(local, &line);
    }
}

#[test]
fn defragmentation_between_random_commands_keeps_data_and_accounts() {
    for seed in 0..6 {
        let mut random = Random::seeded(seed);
        let mut chance = Random::seeded(seed + 100);
        let mut local = Local::new(Protocol::Resp2);
        let keyspace = Arc::clone(&local.keyspace);
        let mut walk = Defragmentation::new();
        let (mut moved, mut moved_at_once, mut keys_moved_at_once) = (0, 0, 0);
        for round in 0..12 {
            let ids = ["0-1".to_owned(), format!("{}-0", local.turn.now_ms)];
            for _ in 0..300 {
                match random.below(60) {
                    0 => local.turn.now_ms += random.below(900) as i64,
                    1 => _ = keyspace.expire_due(0..SHARDS, &mut local.turn, 100),
                    2 if round % 3 == 0 => add_large(&mut local, &mut random),
                    3 => _ = run(&mut local, &format!("SETRANGE large:string {} x", random.below(60_000))),
                    _ => _ = run(&mut local, &draw(&mut random, &ids)),
                }
                local.database = [0, 1][random.below(2)];
                // The walk continues while random commands change the keyspace.
                for _ in 0..random.below(60) {
                    if !walk.step(&keyspace, ELEMENTS_MAX, &mut |_| chance.below(2) == 0) {
                        moved += walk.moved;
                        walk = Defragmentation::new();
                    }
                }
            }
            keyspace.check_invariants();
            local.database = 0;
            // Removes expired keys by reading all keys.
            drop(contents(&mut local));
            let (before, bytes) = (contents(&mut local), bytes_of(&keyspace));
            let all = defragment(&keyspace, &mut |_| true);
            moved_at_once += all.moved;
            keys_moved_at_once += all.keys.moved;
            keyspace.check_invariants();
            assert_eq!(bytes_of(&keyspace), bytes, "seed {seed}");
            for (after, before) in contents(&mut local).iter().zip(&before) {
                assert_eq!(after, before, "seed {seed}");
            }
            let none = defragment(&keyspace, &mut |_| false);
            assert_eq!((none.moved, none.keys.moved), (0, 0));
        }
        assert!(moved > 1000, "seed {seed}: {moved}");
        // The limits are low, because a round may end right after FLUSHDB.
        assert!(moved_at_once > 1200 && keys_moved_at_once > 12, "seed {seed}: {moved_at_once}");
    }
}

#[test]
fn all_elements_of_large_values_are_moved_in_steps() {
    let mut local = Local::new(Protocol::Resp2);
    let keyspace = Arc::clone(&local.keyspace);
    for number in 0..10_000 {
        run(&mut local, &format!("SADD set member:{number}"));
        run(&mut local, &format!("HSET hash field:{number} {}", "v".repeat(600)));
        run(&mut local, &format!("ZADD zset {} member:{number}", number % 10));
        run(&mut local, &format!("RPUSH list {}", "e".repeat(50)));
    }
    let before = contents(&mut local);
    let (mut longest, mut steps) = (0, 0);
    let mut walk = Defragmentation::new();
    let mut places = Vec::new();
    loop {
        let looked = walk.moved + walk.left;
        let continues = walk.step(&keyspace, 1000, &mut |place| {
            places.push(place);
            true
        });
        longest = longest.max(walk.moved + walk.left - looked);
        steps += 1;
        if !continues {
            break;
        }
    }
    assert!(steps > SHARDS && longest < 400, "{steps} steps, {longest} looks");
    // The walk moves each member, and the fields that store name and value separately.
    assert!((30_000..42_000).contains(&walk.moved), "{}", walk.moved);
    assert_eq!(walk.keys.moved, 4);
    places.sort_unstable();
    places.dedup();
    assert!(places.len() > 30_000, "the walk visits every allocation once");
    keyspace.check_invariants();
    assert!(contents(&mut local) == before);
}

#[test]
fn threads_read_and_write_while_entries_are_moved() {
    let mut local = Local::new(Protocol::Resp2);
    let keyspace = Arc::clone(&local.keyspace);
    for number in 0..5000 {
        run(&mut local, &format!("SET key:{number} {}", "x".repeat(number % 700)));
        run(&mut local, &format!("ZADD zset {} member:{number}", number % 70));
    }
    thread::scope(|scope| {
        scope.spawn(|| (0..20).for_each(|_| _ = defragment(&keyspace, &mut |_| true)));
        for number in 0..5000 {
            let value = run(&mut local, &format!("GET key:{number}"));
            assert!(value.ends_with(&format!("{}\r\n", "x".repeat(number % 700))), "{number}: {value}");
            let rank = run(&mut local, &format!("ZSCORE zset member:{number}"));
            assert!(rank.ends_with(&format!("\r\n{}\r\n", number % 70)), "{number}: {rank}");
            run(&mut local, &format!("APPEND key:{number} y"));
        }
    });
    keyspace.check_invariants();
}
