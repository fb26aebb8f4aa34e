//! Eviction obeys the policy and the limit, and keeps keys that will be requested again: the hit ratio of sampled LRU
//! and LFU compared with an exact LRU of the same size.

use std::collections::BTreeMap;

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
const ACCESSES: usize = 400_000;
/// The number of accesses at the beginning that are not counted, while the cache fills and settles.
const WARM_UP: usize = ACCESSES / 2;

/// Returns the keys of the accesses of one run. With `shift`, the popularity changes: after every `shift` accesses, the
/// ranks mean other keys.
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
    (0..UNIVERSE / 10).for_each(|key| set(&mut local, &key.to_string(), b"value", None));
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
            set(&mut local, &name, b"value", None);
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
    // With a constant popularity, frequency is what counts: LFU should close part of the gap between LRU and the best
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
