//! Snapshots: a snapshot contains the data of the moment at which it was taken, whatever changes while it is saved.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::support::commands::{contents, draw, run};
use ember_protocol::Protocol;
use emberkv_core::defragmentation::Defragmentation;
use emberkv_core::eviction::{ClockReading, EvictionPolicy};
use emberkv_core::keyspace::{Keyspace, SHARDS};
use emberkv_core::linking::{self, Next};
use emberkv_core::local::Local;
use emberkv_core::rdb::{
    EXPIRY_MS, Encoded, KeyForm, Kind, PayloadChecks, Reader, VERSION_MAX, Value, dump, read_value, restore,
    write_value,
};
use emberkv_core::snapshot::{HeldKey, Piece, QueueLimits, Saver, Snapshot, SnapshotOptions, Walker};
use emberkv_core::turn::Random;
use emberkv_core::types::limits::EncodingLimits;

const DATABASES: usize = 16;

/// Keys, each with its database, expiry and value.
type Keys = Vec<(usize, Vec<u8>, Option<i64>, Value)>;

/// The data of a snapshot, and the number of large values that it has shared with the keyspace.
#[derive(Default)]
struct Saved {
    keys: Keys,
    shared: usize,
}

fn options(now_ms: i64) -> SnapshotOptions {
    let clocks =
        ClockReading { policy: EvictionPolicy::NoEviction, lfu_decay_minutes: 1, now_ms, now_tick: 0 };
    SnapshotOptions {
        form: KeyForm::Rdb { version: VERSION_MAX, is_packed: true },
        clocks,
        limits: QueueLimits::default(),
    }
}

fn value_of(write: impl FnOnce(&mut emberkv_core::rdb::Writer<Vec<u8>>) -> Kind) -> Value {
    let mut writer = emberkv_core::rdb::Writer::new(Vec::new());
    let kind = write(&mut writer);
    let bytes = writer.into_inner();
    read_value(&mut Reader::new(&bytes[..]), kind, &EncodingLimits::DEFAULT).unwrap()
}

/// Reads the keys of a block as the loader of an RDB file does.
fn parse(database: usize, block: &Encoded, keys: &mut Keys) {
    let mut left = block.bytes();
    let mut count = 0;
    while !left.is_empty() {
        let mut reader = Reader::new(&mut left);
        let (mut byte, mut expire_at_ms) = (reader.byte().unwrap(), None);
        if byte == EXPIRY_MS {
            expire_at_ms = Some(reader.time_ms().unwrap());
            byte = reader.byte().unwrap();
        }
        let kind = Kind::from_byte(byte).unwrap();
        let name = reader.string().unwrap();
        let value = read_value(&mut reader, kind, &EncodingLimits::DEFAULT).unwrap();
        keys.push((database, name, expire_at_ms, value));
        count += 1;
    }
    assert_eq!(count, block.keys());
}

impl Saved {
    fn take(&mut self, piece: &Piece) {
        match piece {
            Piece::Keys(database, block) => parse(*database, block, &mut self.keys),
            Piece::Value(HeldKey { facts, name, value }) => {
                let value = value_of(|writer| {
                    write_value(writer, value.as_value()).unwrap();
                    emberkv_core::rdb::kind_of(value.as_value())
                });
                self.keys.push((facts.database, name.to_vec(), facts.expire_at_ms, value));
                self.shared += 1;
            }
            Piece::Cold(_) => unreachable!("all values are resident"),
            Piece::Detached(detached) => {
                for entry in detached.entries() {
                    let value =
                        restore(&dump(entry, VERSION_MAX), &EncodingLimits::DEFAULT, PayloadChecks::ALL)
                            .unwrap();
                    self.keys.push((detached.number, entry.key().to_vec(), entry.expire_at_ms(), value));
                }
            }
        }
    }
}

/// Takes all pieces of a snapshot on a separate thread; calls `delay` for each piece.
fn save(
    snapshot: &Arc<Snapshot>,
    keyspace: &Arc<Keyspace>,
    mut delay: impl FnMut() + Send + 'static,
) -> thread::JoinHandle<Saved> {
    let (snapshot, keyspace) = (Arc::clone(snapshot), Arc::clone(keyspace));
    thread::spawn(move || {
        let mut saver = Saver::new(snapshot, &keyspace, || {});
        let mut saved = Saved::default();
        while let Some(piece) = saver.next_piece() {
            delay();
            saved.take(&piece);
        }
        saved
    })
}

/// Returns all keys in their current state, including expired keys.
fn keys_of(keyspace: &Keyspace) -> Keys {
    let mut keys = Vec::new();
    for shard in 0..SHARDS {
        let data = keyspace.lock(shard);
        for database in 0..DATABASES {
            for entry in data.database(database).table().iter() {
                let value =
                    restore(&dump(entry, VERSION_MAX), &EncodingLimits::DEFAULT, PayloadChecks::ALL).unwrap();
                keys.push((database, entry.key().to_vec(), entry.expire_at_ms(), value));
            }
        }
    }
    keys
}

/// Returns a keyspace with these keys, whose names must be different.
fn with_keys(keys: Keys, now_ms: i64) -> Local {
    let mut local = Local::new(Protocol::Resp2);
    local.turn.now_ms = now_ms;
    for (database, name, expire_at_ms, value) in keys {
        let hash = local.keyspace.hash(&name);
        let mut shard = local.keyspace.lock(hash.shard());
        let name_shown = name.escape_ascii();
        assert!(shard.find(database, hash, &name).is_none(), "{name_shown} is saved twice");
        let clock = local.turn.new_clock();
        shard.insert(database, hash, &name, value.into_new(&mut Vec::new()), expire_at_ms, clock);
        local.keyspace.publish_bytes(local.keyspace.release(hash.shard(), shard));
    }
    local
}

/// Returns a random command that creates a large value: a long string, or a value with many elements.
fn draw_large(random: &mut Random) -> String {
    let number = random.below(4);
    match random.below(6) {
        0 => format!("SETRANGE S{number} {} v", 30_000 + random.below(10_000)),
        1 => format!("SETRANGE S{number} {} v", 1_100_000),
        2 => format!("RPUSH L{number}{}", format!(" {}", "x".repeat(5000)).repeat(20)),
        3 => (0..2000).fold(format!("SADD E{number}"), |line, member| format!("{line} member-{member}")),
        4 => (0..2000).fold(format!("HSET H{number}"), |line, field| format!("{line} field-{field} {field}")),
        _ => (0..2000).fold(format!("ZADD Z{number}"), |line, member| format!("{line} {member} m{member}")),
    }
}

#[test]
fn a_snapshot_saves_the_data_of_its_start_despite_later_changes() {
    let rounds = std::env::var("SNAPSHOT_ROUNDS").map_or(10, |rounds| rounds.parse().unwrap());
    for seed in 0..rounds {
        let mut random = Random::seeded(0xD1B5_4A32 * (seed + 1));
        let mut local = Local::new(Protocol::Resp2);
        let keyspace = Arc::clone(&local.keyspace);
        let ids = ["0-1".to_owned(), format!("{}-0", local.turn.now_ms)];
        let change = |local: &mut Local, random: &mut Random| {
            match random.below(30) {
                0..3 => local.turn.now_ms += random.below(900) as i64,
                3 => _ = keyspace.expire_due(0..SHARDS, &mut local.turn, 100),
                4..6 => _ = run(local, &draw_large(random)),
                _ => _ = run(local, &draw(random, &ids)),
            }
            local.database = [0, 1][random.below(2)];
        };
        let mut moving = Defragmentation::new();
        for _ in 0..3 {
            (0..150).for_each(|_| change(&mut local, &mut random));
            let now_ms = local.turn.now_ms;
            let expected = keys_of(&keyspace);
            let snapshot = keyspace.begin_snapshot(options(now_ms));
            let total: u64 = snapshot.sizes().iter().map(|(keys, _)| keys).sum();
            assert_eq!(total, expected.len() as u64);
            let saver = save(&snapshot, &keyspace, thread::yield_now);
            let mut walkers = [Walker::new(&snapshot), Walker::new(&snapshot)];
            let mut walking = [true; 2];
            while walking.contains(&true) {
                (0..random.below(3)).for_each(|_| change(&mut local, &mut random));
                // Moves entries, which does not count as a change.
                for _ in 0..random.below(40) {
                    if !moving.step(&keyspace, 10, &mut |_| true) {
                        moving = Defragmentation::new();
                    }
                }
                for _ in 0..random.below(60) {
                    let which = random.below(2);
                    walking[which] = walking[which] && walkers[which].step(&keyspace);
                }
            }
            let saved = saver.join().unwrap();
            keyspace.check_invariants();
            let again = contents(&mut with_keys(saved.keys, now_ms));
            let expected = contents(&mut with_keys(expected, now_ms));
            assert!(again == expected, "seed {seed}: saved {again:#?}, there were {expected:#?}");
        }
    }
}

#[test]
fn tables_that_grow_and_shrink_are_saved_completely() {
    for begins_with in [10, 20_000, 100_000] {
        let mut local = Local::new(Protocol::Resp2);
        let keyspace = Arc::clone(&local.keyspace);
        let mut random = Random::seeded(begins_with);
        for number in 0..begins_with {
            run(&mut local, &format!("SET key:{number} {number}"));
        }
        let snapshot = keyspace.begin_snapshot(options(local.turn.now_ms));
        let saver = save(&snapshot, &keyspace, || {});
        let mut walker = Walker::new(&snapshot);
        let mut next = begins_with;
        let mut removed = 0;
        while walker.step(&keyspace) {
            for _ in 0..random.below(30) {
                if begins_with > 50_000 || random.below(3) == 0 {
                    run(&mut local, &format!("DEL key:{removed}"));
                    removed += 1;
                } else {
                    run(&mut local, &format!("SET key:{next} {next}"));
                    next += 1;
                }
            }
        }
        let mut saved = saver.join().unwrap().keys;
        keyspace.check_invariants();
        saved.sort_by(|one, other| one.1.cmp(&other.1));
        let mut expected: Vec<Vec<u8>> = (0..begins_with).map(|n| format!("key:{n}").into_bytes()).collect();
        expected.sort();
        assert!(saved.iter().map(|key| &key.1).eq(&expected), "{begins_with}");
        assert!(removed > 0 && (next > begins_with || begins_with > 50_000));
    }
}

#[test]
fn an_abandoned_snapshot_leaves_no_state() {
    let mut local = Local::new(Protocol::Resp2);
    let keyspace = Arc::clone(&local.keyspace);
    let mut random = Random::seeded(7);
    (0..40).for_each(|_| _ = run(&mut local, &draw_large(&mut random)));
    let released = AtomicUsize::new(0);
    for taken in 0..4 {
        let expected = contents(&mut local);
        let snapshot = keyspace.begin_snapshot(options(local.turn.now_ms));
        let mut saver = Saver::new(Arc::clone(&snapshot), &keyspace, || {
            released.fetch_add(1, Ordering::Relaxed);
        });
        run(&mut local, "FLUSHDB");
        run(&mut local, "DEL E0 E1 E2 E3 H0 H1");
        let mut walker = Walker::new(&snapshot);
        (0..taken * 300).for_each(|_| _ = walker.step(&keyspace));
        thread::scope(|scope| {
            if taken == 3 {
                drop(saver.next_piece());
                scope.spawn(|| while walker.step(&keyspace) {});
            } else {
                while walker.step(&keyspace) {}
            }
            drop(saver);
        });
        assert!(released.swap(0, Ordering::Relaxed) > 0, "waiters are notified of the end");
        assert_eq!(keyspace.held_back().bytes(), 0);
        keyspace.check_invariants();
        (0..40).for_each(|_| _ = run(&mut local, &draw_large(&mut random)));
        // The next snapshot is complete.
        let there = contents(&mut local);
        let snapshot = keyspace.begin_snapshot(options(local.turn.now_ms));
        let saver = save(&snapshot, &keyspace, || {});
        snapshot.walk(&keyspace);
        let now_ms = local.turn.now_ms;
        assert_eq!(contents(&mut with_keys(saver.join().unwrap().keys, now_ms)), there);
        assert!(!expected.is_empty() || taken == 0);
    }
}

#[test]
fn calls_wait_for_large_values_and_for_the_memory_limit() {
    let mut local = Local::new(Protocol::Resp2);
    let keyspace = Arc::clone(&local.keyspace);
    run(&mut local, "SETRANGE heavy 2000000 x");
    run(&mut local, "SETRANGE large 50000 x");
    for number in 0..3000 {
        run(&mut local, &format!("SETRANGE light:{number} 30000 x"));
    }
    let must_wait = |key: &str| {
        let hash = keyspace.hash(key.as_bytes());
        keyspace.lock(hash.shard()).must_wait(hash, key.as_bytes())
    };
    assert!(!must_wait("heavy"), "no snapshot is under way");
    let snapshot = keyspace.begin_snapshot(options(local.turn.now_ms));
    assert!(!must_wait("large") && !must_wait("light:0") && !must_wait("new"));
    assert!(must_wait("heavy"));
    // While the snapshot waits, commands may change small values, up to the limit of preimages.
    let mut changed = 0;
    while !must_wait(&format!("light:{changed}")) {
        run(&mut local, &format!("APPEND light:{changed} y"));
        assert!(!must_wait(&format!("light:{changed}")), "saved values may be changed again");
        changed += 1;
    }
    let expected = QueueLimits::default().preimage_bytes / 30_000;
    assert!((expected - 10..=expected + 10).contains(&changed), "{changed} of {expected}");
    let released = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&released);
    let mut saver = Saver::new(Arc::clone(&snapshot), &keyspace, move || {
        count.fetch_add(1, Ordering::Relaxed);
    });
    // The requested value is the first piece, and is held until the next piece is requested.
    let mut saved = Saved::default();
    let first = saver.next_piece().unwrap();
    saved.take(&first);
    assert_eq!(saved.keys[0].1, b"heavy");
    assert!(must_wait("heavy") && released.load(Ordering::Relaxed) == 0);
    thread::scope(|scope| {
        scope.spawn(|| snapshot.walk(&keyspace));
        saved.take(&saver.next_piece().unwrap());
        assert!(!must_wait("heavy") && released.load(Ordering::Relaxed) == 1);
        while let Some(piece) = saver.next_piece() {
            saved.take(&piece);
        }
    });
    assert!(released.load(Ordering::Relaxed) >= 2, "notified of the value, and of the end");
    assert_eq!(saved.keys.len(), 3002);
    let ends_as_before = |value: &Value| matches!(value, Value::String(bytes) if bytes.ends_with(b"\0x"));
    assert!(saved.keys.iter().all(|(_, _, _, value)| ends_as_before(value)));
    assert!(!must_wait("heavy") && !must_wait("light:2999"));
    keyspace.check_invariants();
}

#[test]
fn retained_values_are_counted_and_bounded() {
    const VALUE_BYTES: usize = 3000;
    let mut local = Local::new(Protocol::Resp2);
    let keyspace = Arc::clone(&local.keyspace);
    for number in 0..10_000 {
        run(&mut local, &format!("SETRANGE key:{number} {VALUE_BYTES} x"));
    }
    let form = KeyForm::Rdb { version: VERSION_MAX, is_packed: false };
    let limits = QueueLimits { walked_bytes: 2 << 20, preimage_bytes: 4 << 20 };
    let options = SnapshotOptions { form, limits, ..options(local.turn.now_ms) };
    let snapshot = keyspace.begin_snapshot(options);
    let held_back = keyspace.held_back();
    assert!(held_back.bytes() == 0 && !held_back.is_full());
    let mut changed = 0;
    while !held_back.is_full() {
        run(&mut local, &format!("SET key:{changed} y"));
        changed += 1;
        let expected = changed * VALUE_BYTES;
        assert!((expected..expected + changed * 50).contains(&held_back.bytes()), "{changed}");
    }
    // Commands that cannot wait continue, and their preimages beyond the limit are not counted.
    (changed..2 * changed).for_each(|number| _ = run(&mut local, &format!("DEL key:{number}")));
    assert!(held_back.bytes() <= limits.preimage_bytes + limits.walked_bytes);
    let mut saver = Saver::new(Arc::clone(&snapshot), &keyspace, || {});
    let keys = thread::scope(|scope| {
        scope.spawn(|| snapshot.walk(&keyspace));
        let mut saved = Saved::default();
        while let Some(piece) = saver.next_piece() {
            saved.take(&piece);
            assert!(held_back.bytes() <= limits.preimage_bytes + limits.walked_bytes);
        }
        saved.keys.len()
    });
    assert_eq!((keys, held_back.bytes(), held_back.is_full()), (10_000, 0, false));
}

#[test]
fn a_vector_set_changes_while_it_is_saved_without_waiting() {
    const ELEMENTS: usize = 300;
    let zeros = " 0".repeat(198);
    let vadd = |local: &mut Local, id: usize, turned: usize| {
        let line = format!("VADD v VALUES 200 {id} {turned}{zeros} e{id} NOQUANT M 4 EF 5");
        run(local, &line)
    };
    let link = |local: &Local| {
        linking::bury(&local.keyspace, 0, b"v");
        if let Next::Linking(batch) = linking::begin(&local.keyspace, 0, b"v") {
            linking::commit(&local.keyspace, 0, b"v", &linking::plan(&batch));
        }
    };
    // The set changes before it is saved, or while it is being written.
    for changes_before in [true, false] {
        let mut local = Local::new(Protocol::Resp2);
        local.turn.settings.links_vectors_later = true;
        for id in 0..ELEMENTS {
            assert_eq!(vadd(&mut local, id, 1), ":1\r\n");
            if id % 2 == 0 {
                link(&local);
            }
        }
        let keyspace = Arc::clone(&local.keyspace);
        let must_wait = || {
            let hash = keyspace.hash(b"v");
            keyspace.lock(hash.shard()).must_wait(hash, b"v")
        };
        let asked = ["VRANGE v - +", "VEMB v e7", "VEMB v e299", "VSIM v ELE e7 TRUTH WITHSCORES COUNT 300"];
        let states = |local: &mut Local| asked.map(|line| run(local, line));
        let expected = states(&mut local);
        let change = |local: &mut Local| {
            for id in 0..100 {
                assert!(!must_wait(), "the call is run at once");
                assert_eq!(vadd(local, id, 2), ":0\r\n");
                assert_eq!(run(local, &format!("VREM v e{}", id + 100)), ":1\r\n");
                assert_eq!(vadd(local, ELEMENTS + id, 1), ":1\r\n");
                link(local);
            }
            assert!(keyspace.held_back().bytes() < 64 * 1024, "little is stored twice");
        };
        let snapshot = keyspace.begin_snapshot(options(local.turn.now_ms));
        if changes_before {
            change(&mut local);
        }
        snapshot.walk(&keyspace);
        let mut saver = Saver::new(Arc::clone(&snapshot), &keyspace, || {});
        let piece = saver.next_piece().unwrap();
        assert!(matches!(piece, Piece::Value(_)));
        if !changes_before {
            change(&mut local);
        }
        let mut saved = Saved::default();
        saved.take(&piece);
        drop(piece);
        assert!(saver.next_piece().is_none());
        local.keyspace.check_invariants();
        assert_ne!(states(&mut local), expected);
        let mut copy = with_keys(saved.keys, local.turn.now_ms);
        assert_eq!(states(&mut copy), expected, "the file has the data of its moment");
        copy.keyspace.check_invariants();
    }
}
