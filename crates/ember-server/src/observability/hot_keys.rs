//! Hot keys: the most accessed keys of the last seconds, estimated from a sample of the commands.
//!
//! Each worker samples about one in `hotkeys-sampling` of its commands. It counts the accesses that the samples
//! represent in two sketches, one of reads and one of writes. A sketch has a fixed number of counters. A key without a
//! counter takes over the counter with the smallest count, which becomes the possible error of the new count (Metwally,
//! Agrawal, El Abbadi: "Efficient Computation of Frequent and Top-k Elements in Data Streams", ICDT 2005,
//! "Space-Saving"). The reported count of a key excludes that error, so that keys that are not hot do not appear hot.
//!
//! All counts and the time that they cover are halved every second. So rates are those of the last seconds, and correct
//! from the first second on.

use std::collections::HashMap;

use emberkv_core::keyspace::hash::KeyHash;

/// The number of counters of a sketch. A key with at least one in 128 accesses is always found, and scanning all
/// counters is cheap.
const COUNTERS: usize = 128;

/// The maximum number of bytes of a key that are stored and shown.
const KEY_BYTES_MAX: usize = 1024;

/// The minimum number of recent samples of a reported key.
const SAMPLES_MIN: f64 = 4.0;

/// The number of seconds after which a count has decayed to nothing.
const SECONDS_KEPT: i64 = 64;

/// The share of all accesses from which a key is announced as hot.
const ANNOUNCED_SHARE: f64 = 0.01;

/// The share of all accesses below which a key is no longer hot.
const FORGOTTEN_SHARE: f64 = ANNOUNCED_SHARE / 2.0;

/// The kind of an access to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Access {
    /// The key was only read.
    Read,
    /// The key was changed, or could have been changed.
    Write,
}

impl Access {
    /// Returns the kind's name: `read` or `write`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Access::Read => "read",
            Access::Write => "write",
        }
    }
}

/// A sampled access to a key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample<'a> {
    pub(crate) access: Access,
    pub(crate) database: usize,
    pub(crate) key: &'a [u8],
    pub(crate) hash: KeyHash,
    /// The number of accesses that the sample represents.
    pub(crate) weight: u32,
}

/// A hot key and its access statistics.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HotKey {
    /// The key, truncated to [`KEY_BYTES_MAX`].
    pub(crate) key: Vec<u8>,
    pub(crate) database: usize,
    pub(crate) access: Access,
    /// The number of accesses per second.
    pub(crate) rate: f64,
    /// The share of the key's accesses in all accesses to all keys, reads and writes, from 0.0 to 1.0.
    pub(crate) share: f64,
}

#[derive(Debug)]
struct Counter {
    database: usize,
    key: Vec<u8>,
    /// The part of the count that may belong to another key.
    error: f64,
}

/// A Space-Saving sketch. Hashes and counts are in separate arrays, because searches read only these.
#[derive(Debug, Default)]
struct Sketch {
    hashes: Vec<u64>,
    counts: Vec<f64>,
    counters: Vec<Counter>,
}

impl Sketch {
    /// Counts a sample. Takes O([`COUNTERS`]) steps. Allocates only for the first [`COUNTERS`] keys, and for keys
    /// longer than all earlier keys of the counter.
    fn add_sample(&mut self, sample: &Sample<'_>, weight: f64) {
        let hash = sample.hash.bits();
        let same = |at: &usize| self.counters[*at].database == sample.database;
        let found = self.hashes.iter().enumerate().filter(|(_, known)| **known == hash).map(|(at, _)| at);
        if let Some(at) = found.into_iter().find(same) {
            self.counts[at] += weight;
            return;
        }
        let key = &sample.key[..sample.key.len().min(KEY_BYTES_MAX)];
        if self.counters.len() < COUNTERS {
            self.hashes.push(hash);
            self.counts.push(weight);
            self.counters.push(Counter { database: sample.database, key: key.to_vec(), error: 0.0 });
            return;
        }
        let least = least_of(&self.counts);
        let at = self.counts.iter().position(|&count| count <= least).unwrap_or_default();
        self.hashes[at] = hash;
        self.counts[at] += weight;
        let counter = &mut self.counters[at];
        counter.error = least;
        counter.database = sample.database;
        counter.key.clear();
        counter.key.extend_from_slice(key);
    }

    fn scale(&mut self, factor: f64) {
        self.counts.iter_mut().for_each(|count| *count *= factor);
        self.counters.iter_mut().for_each(|counter| counter.error *= factor);
    }
}

/// Returns the lowest of some counts. Finds it in several lanes, because each comparison of one chain would wait for the
/// comparison before it.
fn least_of(counts: &[f64]) -> f64 {
    let mut lanes = [f64::INFINITY; 8];
    let (chunks, rest) = counts.as_chunks::<8>();
    for chunk in chunks {
        for (lane, &count) in lanes.iter_mut().zip(chunk) {
            *lane = if count < *lane { count } else { *lane };
        }
    }
    lanes.iter().chain(rest).copied().fold(f64::INFINITY, f64::min)
}

/// The access counts of one worker, based on its samples.
#[derive(Debug, Default)]
pub(crate) struct HotKeys {
    reads: Sketch,
    writes: Sketch,
    /// The number of accesses to all keys.
    total: f64,
    /// The time in ms, up to the beginning of the current second, in which accesses were counted.
    counted_ms: f64,
    /// The start of the current second as Unix time in ms, or of the part of it in which accesses are counted; 0 before
    /// the first access.
    since_ms: i64,
}

impl HotKeys {
    /// Counts an access. Takes O([`COUNTERS`]) steps.
    pub(crate) fn add_sample(&mut self, now_ms: i64, sample: &Sample<'_>) {
        self.age(now_ms);
        let weight = f64::from(sample.weight);
        self.total += weight;
        let sketch = if sample.access == Access::Read { &mut self.reads } else { &mut self.writes };
        sketch.add_sample(sample, weight);
    }

    /// Removes all counts.
    pub(crate) fn clear(&mut self) {
        *self = HotKeys::default();
    }

    /// Halves all counts once for each second that has passed.
    fn age(&mut self, now_ms: i64) {
        if self.since_ms == 0 || now_ms < self.since_ms {
            self.since_ms = now_ms;
        }
        let seconds = now_ms / 1000 - self.since_ms / 1000;
        if seconds == 0 {
            return;
        }
        if seconds > SECONDS_KEPT {
            self.clear();
            self.since_ms = now_ms;
            return;
        }
        // The covered time consists of the rest of the previous second and the whole seconds after it.
        let mut counted_ms = self.counted_ms + (1000 - self.since_ms % 1000) as f64;
        let mut factor = 0.5;
        for _ in 1..seconds {
            counted_ms = counted_ms / 2.0 + 1000.0;
            factor /= 2.0;
        }
        self.counted_ms = counted_ms / 2.0;
        self.since_ms = now_ms / 1000 * 1000;
        self.total *= factor;
        self.reads.scale(factor);
        self.writes.scale(factor);
    }

    fn sketches(&self) -> [(Access, &Sketch); 2] {
        [(Access::Read, &self.reads), (Access::Write, &self.writes)]
    }
}

/// The merged samples of all workers.
#[derive(Debug, Default)]
pub(crate) struct Merged {
    /// The sums of each key, by kind of access, database and hash.
    by_key: HashMap<(Access, usize, u64), Sum>,
    total: f64,
}

/// The sum of all workers' samples of a key.
#[derive(Debug)]
struct Sum {
    key: Vec<u8>,
    accesses: f64,
    rate: f64,
}

impl Merged {
    /// Adds the samples of one worker.
    pub(crate) fn add(&mut self, now_ms: i64, seen: &mut HotKeys) {
        seen.age(now_ms);
        // The covered time has a minimum, because directly after startup there is no rate yet.
        let seconds = ((seen.counted_ms + (now_ms - seen.since_ms) as f64) / 1000.0).max(0.01);
        self.total += seen.total;
        for (access, sketch) in seen.sketches() {
            for ((hash, count), counter) in sketch.hashes.iter().zip(&sketch.counts).zip(&sketch.counters) {
                let sure = count - counter.error;
                let entry = self.by_key.entry((access, counter.database, *hash));
                let sum = entry.or_insert_with(|| Sum { key: counter.key.clone(), accesses: 0.0, rate: 0.0 });
                sum.accesses += sure;
                sum.rate += sure / seconds;
            }
        }
    }

    /// Returns the hottest keys, the highest rate first. Excludes keys with so few samples, at one in `sampling`
    /// commands, that they may have been sampled by chance. `wanted` selects one kind of access.
    pub(crate) fn hottest(self, sampling: u32, wanted: Option<Access>, count: usize) -> Vec<HotKey> {
        let count_min = SAMPLES_MIN * f64::from(sampling.max(1));
        let total = self.total;
        let mut keys: Vec<HotKey> = self
            .by_key
            .into_iter()
            .filter(|((access, ..), sum)| {
                sum.accesses >= count_min && wanted.is_none_or(|wanted| wanted == *access)
            })
            .map(|((access, database, _), Sum { key, accesses, rate })| HotKey {
                key,
                database,
                access,
                rate,
                share: accesses / total,
            })
            .collect();
        keys.sort_by(|one, other| other.rate.total_cmp(&one.rate).then_with(|| one.key.cmp(&other.key)));
        keys.truncate(count);
        keys
    }
}

/// The keys that were announced as hot and still are.
#[derive(Debug, Default)]
pub(crate) struct Announced(Vec<HotKey>);

impl Announced {
    /// Returns the keys that have become hot; `hottest` are the currently hottest keys. Takes O(keys²) steps for a few
    /// keys.
    pub(crate) fn update(&mut self, mut hottest: Vec<HotKey>) -> Vec<HotKey> {
        let same = |one: &HotKey, other: &HotKey| {
            (one.access, one.database, &one.key) == (other.access, other.database, &other.key)
        };
        let was_hot = |key: &HotKey| self.0.iter().any(|known| same(known, key));
        hottest.retain(|key| key.share >= ANNOUNCED_SHARE || (key.share >= FORGOTTEN_SHARE && was_hot(key)));
        let new = hottest.iter().filter(|key| !was_hot(key)).cloned().collect();
        self.0 = hottest;
        new
    }
}

#[cfg(test)]
mod tests {
    use emberkv_core::keyspace::hash::{HashFunction, KeyHasher};
    use emberkv_core::turn::Random;

    use super::*;

    fn add_sample(seen: &mut HotKeys, now_ms: i64, access: Access, key: &[u8]) {
        let hash = KeyHasher::seeded(HashFunction::Rapidhash, 1, 2).hash(key);
        seen.add_sample(now_ms, &Sample { access, database: 0, key, hash, weight: 1 });
    }

    fn hottest(seen: &mut HotKeys, now_ms: i64) -> Vec<HotKey> {
        let mut merged = Merged::default();
        merged.add(now_ms, seen);
        merged.hottest(1, None, 10)
    }

    #[test]
    fn hot_keys_are_found_among_many_and_cold_ones_are_not_reported() {
        let (mut seen, mut random) = (HotKeys::default(), Random::seeded(7));
        for number in 0..20_000 {
            let now_ms = 1_000_000 + number / 20;
            let key = match random.below(100) {
                0..10 => "hot".to_owned(),
                10..13 => "warm".to_owned(),
                _ => random.below(100_000).to_string(),
            };
            add_sample(
                &mut seen,
                now_ms,
                if number % 2 == 0 { Access::Read } else { Access::Write },
                key.as_bytes(),
            );
        }
        let found = hottest(&mut seen, 1_001_000);
        let names: Vec<_> = found.iter().map(|key| (key.key.as_slice(), key.access)).collect();
        assert_eq!(names.len(), 4, "{found:?}");
        assert!(
            names[..2].iter().all(|(key, _)| *key == b"hot")
                && names[2..].iter().all(|(key, _)| *key == b"warm")
        );
        for key in &found[..2] {
            assert!((0.04..0.06).contains(&key.share) && (800.0..1200.0).contains(&key.rate), "{key:?}");
        }
    }

    #[test]
    fn reads_and_writes_are_counted_separately() {
        let mut seen = HotKeys::default();
        for number in 0..300 {
            let access = if number % 3 == 0 { Access::Write } else { Access::Read };
            add_sample(&mut seen, 5_000, access, b"key");
        }
        let found = hottest(&mut seen, 5_500);
        let shown: Vec<_> = found.iter().map(|key| (key.access, key.rate.round(), key.share)).collect();
        assert_eq!(shown, [(Access::Read, 400.0, 2.0 / 3.0), (Access::Write, 200.0, 1.0 / 3.0)]);
    }

    #[test]
    fn keys_cool_down_within_seconds() {
        let mut seen = HotKeys::default();
        for now_ms in 10_000..14_000 {
            add_sample(&mut seen, now_ms, Access::Read, b"then");
        }
        assert_eq!(hottest(&mut seen, 14_000)[0].rate.round(), 1000.0);
        for now_ms in 14_000..20_000 {
            add_sample(&mut seen, now_ms, Access::Read, b"now");
        }
        let found = hottest(&mut seen, 20_000);
        assert_eq!(found[0].key, b"now");
        assert!(found[0].share > 0.98 && (950.0..=1000.0).contains(&found[0].rate), "{found:?}");
        assert_eq!(hottest(&mut seen, 200_000), []);
    }

    #[test]
    fn a_key_is_announced_once_until_it_has_cooled_down() {
        let hot = |name: &str, share: f64| HotKey {
            key: name.into(),
            database: 0,
            access: Access::Read,
            rate: 1.0,
            share,
        };
        let mut announced = Announced::default();
        let mut update = |keys: Vec<HotKey>| -> Vec<Vec<u8>> {
            announced.update(keys).into_iter().map(|key| key.key).collect()
        };
        assert_eq!(update(vec![hot("a", 0.5), hot("b", 0.009)]), [b"a"]);
        assert_eq!(update(vec![hot("a", 0.006), hot("b", 0.02)]), [b"b"]);
        assert!(update(vec![hot("a", 0.02), hot("b", 0.004)]).is_empty());
        assert_eq!(
            update(vec![HotKey { access: Access::Write, ..hot("a", 0.9) }, hot("b", 0.01)]),
            [b"a", b"b"]
        );
        assert_eq!(update(vec![hot("a", 0.9)]), [b"a"]);
    }

    #[test]
    fn long_keys_are_truncated_and_few_samples_are_not_hot() {
        let mut seen = HotKeys::default();
        (0..4).for_each(|_| add_sample(&mut seen, 1_000, Access::Read, &[b'k'; 5000]));
        (0..3).for_each(|_| add_sample(&mut seen, 1_000, Access::Read, b"three times"));
        let found = hottest(&mut seen, 1_100);
        assert_eq!((found.len(), found[0].key.len()), (1, KEY_BYTES_MAX));
    }
}
