//! A keyspace of a cluster node: the keys of each slot are counted and found, whatever changes them.

use std::sync::Arc;

use ember_cluster::slots::{SLOTS, slot_of};
use ember_protocol::Protocol;
use emberkv_core::keyspace::names::RecordKinds;
use emberkv_core::keyspace::{Keyspace, KeyspaceOptions};
use emberkv_core::local::Local;
use emberkv_core::turn::Turn;

const NOW_MS: i64 = 1_000_000_000_000;

fn local(records: RecordKinds) -> Local {
    let options = KeyspaceOptions { databases: 2, now_ms: NOW_MS, records, ..KeyspaceOptions::default() };
    Local::sharing(Arc::new(Keyspace::new(&options).unwrap()), Turn::new(NOW_MS, 1), Protocol::Resp2)
}

fn run(local: &mut Local, command: &str) {
    let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
    let reply = local.run(&words);
    assert!(!reply.starts_with(b"-"), "{command}: {}", reply.escape_ascii());
}

/// Checks the counts of all slots against the keys of both databases.
fn check(local: &Local) {
    local.keyspace.check_invariants();
    let counts = local.keyspace.slot_counts();
    let mut found = 0;
    for slot in (0..SLOTS as u16).filter(|&slot| counts[usize::from(slot)] > 0) {
        let keys = [0, 1].map(|database| local.keyspace.keys_in_slot(database, slot, usize::MAX));
        for (database, keys) in keys.iter().enumerate() {
            assert_eq!(local.keyspace.count_in_slot(database, slot), keys.len());
            assert!(keys.iter().all(|key| slot_of(key) == slot));
        }
        let count = keys.iter().map(Vec::len).sum::<usize>();
        assert_eq!(counts[usize::from(slot)], count, "slot {slot}");
        found += count;
    }
    let all = [0, 1].map(|database| local.keyspace.len(database)).iter().sum::<usize>();
    assert_eq!((found, counts.iter().sum::<usize>()), (all, all));
}

#[test]
fn the_keys_of_each_slot_are_counted_through_all_changes() {
    for records in [RecordKinds::SLOTS, RecordKinds::SLOTS | RecordKinds::NAMES] {
        let mut local = local(records);
        for number in 0..3000 {
            run(&mut local, &format!("SET key:{number} value"));
            run(&mut local, &format!("RPUSH {{tag}}:{number} 1 2"));
        }
        check(&local);
        assert_eq!(local.keyspace.count_in_slot(0, slot_of(b"tag")), 3000);
        assert_eq!(local.keyspace.keys_in_slot(0, slot_of(b"tag"), 10).len(), 10);
        for number in 0..1000 {
            run(&mut local, &format!("DEL key:{number}"));
            run(&mut local, &format!("RENAME {{tag}}:{number} {{tag}}:new:{number}"));
            run(&mut local, &format!("MOVE key:{} 1", number + 1000));
            run(&mut local, &format!("PEXPIRE key:{} 1", number + 2000));
        }
        check(&local);
        local.turn.now_ms += 1000;
        let shards = 0..emberkv_core::keyspace::SHARDS;
        local.keyspace.expire_due(shards, &mut local.turn, usize::MAX);
        check(&local);
        assert_eq!(local.keyspace.len(0), 3000);
        run(&mut local, "FLUSHDB");
        check(&local);
        assert_eq!((local.keyspace.len(0), local.keyspace.len(1)), (0, 1000));
    }
}

#[test]
fn random_shards_are_chosen_by_their_share_of_the_keys() {
    let mut local = local(RecordKinds::SLOTS);
    for number in 0..100 {
        run(&mut local, &format!("SET {{tag}}:{number} value"));
    }
    for _ in 0..1000 {
        let shard = local.keyspace.random_shard(&mut local.turn.random);
        assert!(local.keyspace.counts(shard).keys > 0, "shard {shard} has no keys");
    }
}
