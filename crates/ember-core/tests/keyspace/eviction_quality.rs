//! Eviction obeys the policy and the limit, and keeps keys that will be requested again: the hit ratio of sampled LRU
//! and LFU compared with an exact LRU of the same size.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use ember_protocol::Protocol;
use emberkv_core::eviction::{EvictionPolicy, Evictor, NothingToEvict};
use emberkv_core::keyspace::SHARDS;
use emberkv_core::local::Local;
use emberkv_core::turn::Random;

/// The default of `maxmemory-samples`.
const SAMPLES: usize = 5;

fn exists(local: &mut Local, key: &str) -> bool {
    // TTL does not update the eviction clock.
    local.run(&[b"TTL", key.as_bytes()]) != b":-2\r\n"
}

fn set(local: &mut Local, key: &str, value: &[u8], ttl_s: Option<usize>) {
    let seconds = ttl_s.unwrap_or(0).to_string();
    let words: [&[u8]; 5] = [b"SET", key.as_bytes(), value, b"EX", seconds.as_bytes()];
    local.run(if ttl_s.is_some() { &words } else { &words[..3] });
}

/// Returns the memory of all entries in bytes. Slots and the expiry index take a few hundred bytes per shard in
/// addition.
fn entry_bytes(local: &Local) -> usize {
    let tables = (0..SHARDS).flat_map(|shard| (0..4).map(move |database| (shard, database)));
    tables
        .map(|(shard, database)| {
            let data = local.keyspace.lock(shard);
            data.database(database).table().iter().map(|entry| entry.footprint_bytes()).sum::<usize>()
        })
        .sum()
}

fn free_memory(local: &mut Local, evictor: &mut Evictor, limit_bytes: usize) -> Result<(), NothingToEvict> {
    evictor.free_memory(&local.keyspace, &mut local.turn, limit_bytes, SAMPLES)
}

#[test]
fn every_policy_evicts_only_permitted_keys() {
    for policy in EvictionPolicy::ALL.iter().copied() {
        let mut local = Local::new(Protocol::Resp2);
        local.turn.settings.policy = policy;
        for number in 0..4000 {
            set(&mut local, &format!("persistent:{number}"), b"value", None);
            set(&mut local, &format!("volatile:{number}"), b"value", Some(100 + number));
        }
        let limit_bytes = local.keyspace.used_bytes() - entry_bytes(&local) / 4;
        let mut evictor = Evictor::default();
        let volatile_only = policy.to_string().starts_with("volatile-");
        let quarter = free_memory(&mut local, &mut evictor, limit_bytes);
        let (len, volatile) = (local.keyspace.len(0), local.keyspace.volatile(0));
        if policy == EvictionPolicy::NoEviction {
            assert_eq!((quarter, len), (Err(NothingToEvict), 8000));
            continue;
        }
        assert_eq!(quarter, Ok(()), "{}", policy);
        assert!((5000..7500).contains(&len), "{}: {len} keys left", policy);
        assert_eq!(local.turn.counters.evicted as usize, 8000 - len);
        if volatile_only {
            assert_eq!(len - volatile, 4000, "{} keeps persistent keys", policy);
        } else {
            assert!(volatile < 3800 && len - volatile < 3800, "{} evicts both kinds", policy);
        }
        let all = free_memory(&mut local, &mut evictor, 0);
        local.keyspace.check_invariants();
        if volatile_only {
            assert_eq!(all, Err(NothingToEvict), "{}", policy);
            assert_eq!((local.keyspace.len(0), local.keyspace.volatile(0)), (4000, 0));
        } else {
            assert_eq!(local.keyspace.len(0), 0, "{}", policy);
        }
    }
}

#[test]
fn every_database_loses_its_share_of_keys() {
    let mut local = Local::new(Protocol::Resp2);
    local.turn.settings.policy = EvictionPolicy::AllkeysRandom;
    let lens_before = [20_000, 10_000, 5000, 1000];
    for (database, len) in lens_before.into_iter().enumerate() {
        local.database = database;
        (0..len).for_each(|number| set(&mut local, &number.to_string(), b"v", None));
    }
    let limit_bytes = local.keyspace.used_bytes() - entry_bytes(&local) / 2;
    free_memory(&mut local, &mut Evictor::default(), limit_bytes).unwrap();
    let evicted = local.turn.counters.evicted as f64 / 36_000.0;
    assert!(evicted > 0.2);
    for (database, len_before) in lens_before.into_iter().enumerate() {
        let share = 1.0 - local.keyspace.len(database) as f64 / f64::from(len_before);
        assert!((share / evicted - 1.0).abs() < 0.2, "database {database} gives {share:.3} of {evicted:.3}");
    }
}

/// A function that prepares a number of keys before the memory limit is reached.
type Prepare = fn(&mut Local, usize);

/// Returns the fractions of the `kept` and of the other keys that remain after half of the memory was freed.
fn survivors(policy: EvictionPolicy, prepare: Prepare) -> (f64, f64) {
    const KEYS: usize = 10_000;
    let mut local = Local::new(Protocol::Resp2);
    local.turn.settings.policy = policy;
    for number in 0..KEYS {
        set(
            &mut local,
            &number.to_string(),
            b"value",
            Some(if number.is_multiple_of(4) { 9000 } else { 600 }),
        );
        local.turn.now_ms += 1;
    }
    prepare(&mut local, KEYS);
    let limit_bytes = local.keyspace.used_bytes() - entry_bytes(&local) / 2;
    free_memory(&mut local, &mut Evictor::default(), limit_bytes).unwrap();
    let mut left = [0; 2];
    for number in 0..KEYS {
        left[usize::from(!number.is_multiple_of(4))] += usize::from(exists(&mut local, &number.to_string()));
    }
    (left[0] as f64 / (KEYS / 4) as f64, left[1] as f64 / (KEYS * 3 / 4) as f64)
}

#[test]
fn each_policy_keeps_the_keys_it_is_named_for() {
    // Uses every fourth key a minute later, some of these keys many times; they also have the latest expiry.
    fn read(local: &mut Local, keys: usize, times: usize) {
        local.turn.now_ms += 60_000;
        for number in (0..keys).step_by(4) {
            for _ in 0..times {
                local.run(&[b"GET", number.to_string().as_bytes()]);
            }
        }
    }
    let policies: [(EvictionPolicy, Prepare); 5] = [
        (EvictionPolicy::AllkeysLru, |local, keys| read(local, keys, 1)),
        (EvictionPolicy::VolatileLru, |local, keys| read(local, keys, 1)),
        (EvictionPolicy::AllkeysLfu, |local, keys| read(local, keys, 20)),
        (EvictionPolicy::VolatileLfu, |local, keys| read(local, keys, 20)),
        (EvictionPolicy::VolatileTtl, |_, _| ()),
    ];
    for (policy, prepare) in policies {
        let (kept, others) = survivors(policy, prepare);
        println!("{}: {kept:.4} of what should stay, {others:.4} of the others", policy);
        assert!(kept > 0.99, "{}: {kept}", policy);
    }
    let (kept, others) = survivors(EvictionPolicy::AllkeysRandom, |_, _| ());
    assert!((kept - others).abs() < 0.1, "random prefers none: {kept}, {others}");
}

#[test]
fn a_flood_of_writes_stays_within_one_percent_of_the_limit() {
    const LIMIT_BYTES: usize = 16 * 1024 * 1024;
    /// The number of commands between two checks of the memory limit, as in a pipeline.
    const BATCH: usize = 64;
    for policy in EvictionPolicy::ALL.iter().copied().filter(|&policy| policy != EvictionPolicy::NoEviction) {
        let mut local = Local::new(Protocol::Resp2);
        local.turn.settings.policy = policy;
        let (mut evictor, mut random) = (Evictor::default(), Random::seeded(5));
        let mut peak = 0;
        for number in 0..120_000 {
            let value = vec![b'v'; random.below(400)];
            set(&mut local, &format!("key:{number}"), &value, Some(10_000));
            peak = peak.max(local.keyspace.used_bytes());
            if number % BATCH == 0 {
                free_memory(&mut local, &mut evictor, LIMIT_BYTES).unwrap();
                local.turn.now_ms += 1;
            }
        }
        let (peak, limit) = (peak as f64, LIMIT_BYTES as f64);
        assert!(peak <= limit * 1.01, "{}: {:.4} of the limit", policy, peak / limit);
        let used = local.keyspace.used_bytes() as f64;
        assert!(used >= limit * 0.98, "{}: no more keys than necessary are evicted", policy);
        local.keyspace.check_invariants();
    }
}

/// A Zipf distribution: rank r from 0 on has a probability proportional to 1 / (r + 1)^s, drawn by inversion of the
/// cumulative sums.
struct Zipf(Vec<f64>);

impl Zipf {
    fn new(count: usize, s: f64) -> Zipf {
        let mut sum = 0.0;
        let sums = (0..count).map(|rank| {
            sum += ((rank + 1) as f64).powf(-s);
            sum
        });
        Zipf(sums.collect())
    }

    fn draw(&self, random: &mut Random) -> usize {
        let target = random.unit() * self.0[self.0.len() - 1];
        self.0.partition_point(|&sum| sum <= target)
    }

    /// Returns the hit ratio of a cache that contains the `count` most popular keys.
    fn best(&self, count: usize) -> f64 {
        self.0[count - 1] / self.0[self.0.len() - 1]
    }
}

/// A cache of `capacity` keys that evicts the least recently used key.
struct ExactLru {
    capacity: usize,
    by_use: BTreeMap<u64, usize>,
    last_use: BTreeMap<usize, u64>,
    uses: u64,
}

impl ExactLru {
    fn access(&mut self, key: usize) -> bool {
        self.uses += 1;
        let before = self.last_use.insert(key, self.uses);
        before.and_then(|before| self.by_use.remove(&before));
        self.by_use.insert(self.uses, key);
        if self.by_use.len() > self.capacity {
            let (_, oldest) = self.by_use.pop_first().unwrap();
            self.last_use.remove(&oldest);
        }
        before.is_some()
    }
}

const UNIVERSE: usize = 100_000;
/// The value of all keys in the caches that are compared.
const VALUE: &[u8] = &[b'v'; 100];
const ACCESSES: usize = 400_000;
/// The number of accesses at the beginning that are not counted, while the cache fills and settles.
const WARM_UP: usize = ACCESSES / 2;

/// Returns the keys of the accesses of one run. With `shift`, the popularity changes: after every `shift` accesses, the
/// ranks refer to other keys.
fn trace(zipf: &Zipf, shift: Option<usize>) -> Vec<usize> {
    let mut random = Random::seeded(2026);
    (0..ACCESSES)
        .map(|access| {
            let moved = shift.map_or(0, |every| access / every * 97);
            (zipf.draw(&mut random) + moved) % UNIVERSE
        })
        .collect()
}

/// Returns the hit ratio under `policy` of a cache of about a tenth of the keys, and the number of keys in the cache.
fn cached(policy: EvictionPolicy, trace: &[usize], accesses_per_s: usize) -> (f64, usize) {
    let mut local = Local::new(Protocol::Resp2);
    local.turn.settings.policy = policy;
    (0..UNIVERSE / 10).for_each(|key| set(&mut local, &key.to_string(), VALUE, None));
    let limit_bytes = local.keyspace.used_bytes();
    local.run(&[b"FLUSHALL"]);
    let mut evictor = Evictor::default();
    let start_ms = local.turn.now_ms;
    let (mut hits, mut held) = (0, Vec::new());
    for (access, key) in trace.iter().enumerate() {
        local.turn.now_ms = start_ms + (access * 1000 / accesses_per_s) as i64;
        let name = key.to_string();
        let hit = local.run(&[b"GET", name.as_bytes()]) != b"$-1\r\n";
        if !hit {
            set(&mut local, &name, VALUE, None);
            free_memory(&mut local, &mut evictor, limit_bytes).unwrap();
        }
        hits += usize::from(hit && access >= WARM_UP);
        if access >= WARM_UP && access.is_multiple_of(50_000) {
            held.push(local.keyspace.len(0));
        }
    }
    (hits as f64 / (trace.len() - WARM_UP) as f64, held.iter().sum::<usize>() / held.len())
}

fn exact(capacity: usize, trace: &[usize]) -> f64 {
    let mut lru = ExactLru { capacity, by_use: BTreeMap::new(), last_use: BTreeMap::new(), uses: 0 };
    let hits = trace.iter().enumerate().filter(|&(access, &key)| lru.access(key) && access >= WARM_UP);
    hits.count() as f64 / (trace.len() - WARM_UP) as f64
}

/// Returns the hit ratio of the keyspace under `policy`, and that of an exact LRU with the same number of keys. Prints
/// both with the best possible ratio for a constant popularity.
fn compare(policy: EvictionPolicy, s: f64, shift: Option<usize>, accesses_per_s: usize) -> (f64, f64) {
    let zipf = Zipf::new(UNIVERSE, s);
    let trace = trace(&zipf, shift);
    let (ours, held) = cached(policy, &trace, accesses_per_s);
    let (exact, best) = (exact(held, &trace), zipf.best(held));
    println!(
        "{} zipf {s} shift {shift:?}: {ours:.4} with {held} keys; exact LRU {exact:.4}, best {best:.4}",
        policy
    );
    (ours, exact)
}

/// The number of accesses per second at which all cached keys are accessed within a few ticks of the LRU clock.
const FAST: usize = 10_000;

#[test]
fn sampled_lru_is_close_to_exact_lru() {
    for (s, shift) in [(0.8, None), (0.99, None), (1.2, None), (0.99, Some(5000))] {
        let (ours, exact) = compare(EvictionPolicy::AllkeysLru, s, shift, FAST);
        assert!(ours >= 0.95 * exact, "zipf {s}: {ours} against {exact}");
    }
}

#[test]
fn lfu_beats_exact_lru_on_stable_popularity() {
    // If popularity is constant, only frequency matters: LFU should close part of the gap between LRU and the best
    // ratio.
    for s in [0.8, 0.99, 1.2] {
        let (ours, exact) = compare(EvictionPolicy::AllkeysLfu, s, None, FAST);
        assert!(ours >= exact, "zipf {s}: {ours} against {exact}");
    }
}

#[test]
fn lfu_adapts_to_changed_popularity_within_minutes() {
    // The run simulates three hours; every three minutes a hundredth of the cached keys becomes unpopular. LFU counters
    // decay by one per minute, so formerly popular keys occupy memory for some minutes; the assertion limits this
    // effect.
    let (ours, exact) = compare(EvictionPolicy::AllkeysLfu, 0.99, Some(6667), 37);
    assert!(ours >= 0.9 * exact, "{ours} against {exact}");
}

#[test]
fn random_eviction_is_the_floor_that_lru_beats() {
    let (random, exact) = compare(EvictionPolicy::AllkeysRandom, 0.99, None, FAST);
    assert!(random < exact);
}

/// A cache of `capacity` keys that evicts as S3-FIFO does (Yang and others, 2023): new keys enter a small queue with a
/// tenth of the capacity, keys that are used there move to the main queue, and so do keys that are created again while
/// their ghosts exist.
struct S3Fifo {
    capacity: usize,
    small: VecDeque<usize>,
    main: VecDeque<usize>,
    /// The uses of each key in memory, up to 3.
    uses: HashMap<usize, u8>,
    ghosts: VecDeque<usize>,
    is_ghost: HashSet<usize>,
}

impl S3Fifo {
    fn new(capacity: usize) -> S3Fifo {
        S3Fifo {
            capacity,
            small: VecDeque::new(),
            main: VecDeque::new(),
            uses: HashMap::new(),
            ghosts: VecDeque::new(),
            is_ghost: HashSet::new(),
        }
    }

    fn access(&mut self, key: usize) -> bool {
        if let Some(uses) = self.uses.get_mut(&key) {
            *uses = 3.min(*uses + 1);
            return true;
        }
        while self.uses.len() >= self.capacity {
            if self.small.len() >= self.capacity / 10 {
                self.shrink_small();
            } else {
                self.shrink_main();
            }
        }
        self.uses.insert(key, 0);
        let queue = if self.is_ghost.remove(&key) { &mut self.main } else { &mut self.small };
        queue.push_back(key);
        false
    }

    fn shrink_small(&mut self) {
        let key = self.small.pop_front().unwrap();
        if self.uses[&key] > 1 {
            self.uses.insert(key, 0);
            self.main.push_back(key);
            return;
        }
        self.uses.remove(&key);
        self.is_ghost.insert(key);
        self.ghosts.push_back(key);
        if self.ghosts.len() > self.capacity {
            let oldest = self.ghosts.pop_front().unwrap();
            self.is_ghost.remove(&oldest);
        }
    }

    fn shrink_main(&mut self) {
        let Some(key) = self.main.pop_front() else { return self.shrink_small() };
        match self.uses[&key] {
            0 => _ = self.uses.remove(&key),
            uses => {
                self.uses.insert(key, uses - 1);
                self.main.push_back(key);
            }
        }
    }
}

fn s3_fifo(capacity: usize, trace: &[usize]) -> f64 {
    let mut model = S3Fifo::new(capacity);
    let hits = trace.iter().enumerate().filter(|&(access, &key)| model.access(key) && access >= WARM_UP);
    hits.count() as f64 / (trace.len() - WARM_UP) as f64
}

/// Returns accesses like those of a cache cluster at Twitter (Yang, Yue and Rashmi, 2020): popularity follows Zipf's law
/// with an exponent of at least 1, a fifth of the accesses is to keys that are never used again, and popular keys are
/// replaced by new ones all the time.
fn twitter_like() -> Vec<usize> {
    let (zipf, mut random) = (Zipf::new(UNIVERSE, 1.0), Random::seeded(11));
    let mut keys: Vec<usize> = (0..UNIVERSE).collect();
    let mut created = UNIVERSE;
    let access = |access: usize| {
        if access.is_multiple_of(20) {
            created += 1;
            keys[random.below(UNIVERSE)] = created;
        }
        if random.unit() < 0.2 {
            created += 1;
            return created;
        }
        keys[zipf.draw(&mut random)]
    };
    (0..ACCESSES).map(access).collect()
}

/// Returns accesses like those of YCSB (Cooper and others, 2010) with scrambled Zipf's law, exponent 0.99, and short scans
/// as in its workload E; after half of the accesses, other keys are popular.
fn ycsb_like() -> Vec<usize> {
    let (zipf, mut random) = (Zipf::new(UNIVERSE, 0.99), Random::seeded(12));
    let mut trace = Vec::new();
    while trace.len() < ACCESSES {
        let phase = trace.len() * 2 / ACCESSES;
        if random.unit() < 0.005 {
            let start = random.below(UNIVERSE);
            let len = 1 + random.below(100);
            trace.extend((start..start + len).map(|key| key % UNIVERSE));
        } else {
            trace.push((zipf.draw(&mut random) + phase * UNIVERSE / 2) * 7919 % UNIVERSE);
        }
    }
    trace
}

/// Returns accesses by Zipf's law, with two scans of more keys than fit into the cache.
fn with_scans() -> Vec<usize> {
    let (zipf, mut random) = (Zipf::new(UNIVERSE, 0.9), Random::seeded(13));
    let mut trace = Vec::new();
    for scan in 0..2 {
        trace.extend((0..ACCESSES / 2 - 15_000).map(|_| zipf.draw(&mut random)));
        trace.extend((0..15_000).map(|key| UNIVERSE * (2 + scan) + key));
    }
    trace
}

#[test]
fn ghosts_of_evicted_keys_beat_lru_by_points_and_is_close_to_s3_fifo() {
    let zipf = Zipf::new(UNIVERSE, 0.9);
    let traces = [
        ("zipf", trace(&zipf, None)),
        ("twitter", twitter_like()),
        ("ycsb", ycsb_like()),
        ("scans", with_scans()),
    ];
    for (name, trace) in traces {
        let (ours, held) = cached(EvictionPolicy::AllkeysGhosts, &trace, FAST);
        let (lru, lfu) = [EvictionPolicy::AllkeysLru, EvictionPolicy::AllkeysLfu]
            .map(|policy| cached(policy, &trace, FAST).0)
            .into();
        let (exact, s3_fifo) = (exact(held, &trace), s3_fifo(held, &trace));
        println!(
            "{name}: {ours:.4} with {held} keys; LRU {lru:.4}, LFU {lfu:.4}, exact LRU {exact:.4}, S3-FIFO {s3_fifo:.4}"
        );
        assert!(ours >= lru + 0.015 && ours >= exact + 0.015, "{name}: {ours} against LRU {lru}, {exact}");
        assert!(ours >= lfu - 0.01, "{name}: {ours} against LFU {lfu}");
        // A shard has only nine keys here, and those of small shards are sampled more often than others.
        assert!(ours >= s3_fifo - 0.02, "{name}: {ours} against S3-FIFO {s3_fifo}");
    }
}

#[test]
fn ghosts_follow_popularity_that_changes_at_once() {
    let zipf = Zipf::new(UNIVERSE, 0.99);
    let moved: Vec<usize> = trace(&zipf, None)
        .into_iter()
        .enumerate()
        .map(|(access, key)| (key + access * 4 / ACCESSES * 25_000) % UNIVERSE)
        .collect();
    let (ours, held) = cached(EvictionPolicy::AllkeysGhosts, &moved, FAST);
    let (lfu, _) = cached(EvictionPolicy::AllkeysLfu, &moved, FAST);
    let exact = exact(held, &moved);
    let s3_fifo = s3_fifo(held, &moved);
    println!("{ours:.4} with {held} keys; LFU {lfu:.4}, exact LRU {exact:.4}, S3-FIFO {s3_fifo:.4}");
    // Formerly popular keys stay for some turnovers, so LRU is better here.
    assert!(ours >= exact - 0.03 && ours >= s3_fifo - 0.01, "{ours} against LRU {exact}, S3-FIFO {s3_fifo}");
}

#[test]
fn a_key_that_is_created_again_after_its_eviction_has_its_uses() {
    const KEYS: usize = 4000;
    let mut local = Local::new(Protocol::Resp2);
    local.turn.settings.policy = EvictionPolicy::AllkeysGhosts;
    let frequency = |local: &mut Local, key: &str| local.run(&[b"OBJECT", b"FREQ", key.as_bytes()]).to_vec();
    (0..KEYS).for_each(|number| set(&mut local, &number.to_string(), b"value", None));
    for number in 0..KEYS {
        local.run(&[b"GET", number.to_string().as_bytes()]);
    }
    set(&mut local, "new", b"value", None);
    assert_eq!(
        (frequency(&mut local, "7"), frequency(&mut local, "new")),
        (b":1\r\n".into(), b":0\r\n".into())
    );
    let limit_bytes = local.keyspace.used_bytes() - entry_bytes(&local) / 10;
    free_memory(&mut local, &mut Evictor::default(), limit_bytes).unwrap();
    let evicted = (0..KEYS).map(|number| number.to_string()).filter(|key| !exists(&mut local, key));
    let evicted: Vec<String> = evicted.collect();
    assert!(!evicted.is_empty());
    for key in &evicted {
        set(&mut local, key, b"value", None);
    }
    let recalled = evicted.iter().filter(|key| frequency(&mut local, key) == b":2\r\n").count();
    assert_eq!(local.turn.counters.recalled as usize, recalled, "no other key is recalled");
    // In a bucket, a new ghost replaces the oldest one.
    assert!(recalled * 2 > evicted.len(), "{recalled} of {}", evicted.len());
    local.keyspace.check_invariants();
    local.run(&[b"FLUSHALL"]);
    assert_eq!(local.keyspace.used_bytes(), 0, "the ghosts are freed with the keys");
}

#[test]
fn ghosts_are_freed_when_no_policy_needs_it() {
    let mut local = Local::new(Protocol::Resp2);
    local.turn.settings.policy = EvictionPolicy::AllkeysGhosts;
    (0..4000).for_each(|number| set(&mut local, &number.to_string(), b"value", None));
    let limit_bytes = local.keyspace.used_bytes() - entry_bytes(&local) / 10;
    free_memory(&mut local, &mut Evictor::default(), limit_bytes).unwrap();
    let bytes = local.keyspace.used_bytes();
    local.keyspace.forget_ghosts();
    let freed = bytes - local.keyspace.used_bytes();
    assert!((500..20_000).contains(&freed), "{freed} bytes");
    local.keyspace.forget_ghosts();
    assert_eq!(local.keyspace.used_bytes(), bytes - freed);
    local.keyspace.check_invariants();
}
