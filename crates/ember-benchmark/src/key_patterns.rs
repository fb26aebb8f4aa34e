//! The keys of requests: numbers below a count, drawn in one of four patterns.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Normal, Zipf};

use super::arguments::KeyPattern;

/// The number of digits of a key's number in a request, as in redis-benchmark.
pub(super) const KEY_DIGITS: usize = 12;

/// The maximum number of keys: the number of values that [`KEY_DIGITS`] digits can represent.
pub(super) const KEYS_MAX: u64 = 1_000_000_000_000;

/// The exponent of YCSB's skewed workloads.
const ZIPF_EXPONENT: f64 = 0.99;

/// The number of standard deviations from the middle key to the first and last key.
const GAUSSIAN_DEVIATIONS: f64 = 3.0;

/// The base of the seeds of repeatable runs.
const FIXED_SEED: u64 = 0x000E_3BE7_5EED;

/// The keys of a run, from which the sequence of each connection is created.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    count: u64,
    pattern: KeyPattern,
    seed: u64,
    /// The next key number of a sequential pattern, shared by all connections.
    next: Arc<AtomicU64>,
}

/// The sequence of keys of one connection.
pub(super) struct KeySequence {
    count: u64,
    draw: Draw,
    random: SmallRng,
}

enum Draw {
    One,
    Uniform,
    Zipf(Zipf<f64>),
    Gaussian(Normal<f64>),
    /// The next key number, shared by all connections.
    Sequential(Arc<AtomicU64>),
}

impl Keys {
    /// Creates keys with numbers below `count`. With `is_distinct`, each instance has its own seeds.
    pub(super) fn new(count: u64, pattern: KeyPattern, is_distinct: bool) -> Keys {
        let seed = if is_distinct { RandomState::new().build_hasher().finish() } else { FIXED_SEED };
        Keys { count: count.max(1), pattern, seed, next: Arc::default() }
    }

    /// Returns the number of keys.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Returns a copy whose sequences start from the beginning.
    pub(super) fn again(&self) -> Keys {
        Keys { next: Arc::default(), ..self.clone() }
    }

    /// Creates the sequence of connection `index`.
    pub(super) fn sequence(&self, index: u64) -> KeySequence {
        let count = self.count;
        let draw = match self.pattern {
            _ if count == 1 => Draw::One,
            KeyPattern::Uniform => Draw::Uniform,
            KeyPattern::Zipf => {
                Draw::Zipf(Zipf::new(count as f64, ZIPF_EXPONENT).expect("a count of at least 1"))
            }
            KeyPattern::Gaussian => {
                let middle = (count - 1) as f64 / 2.0;
                Draw::Gaussian(Normal::new(middle, middle / GAUSSIAN_DEVIATIONS).expect("a finite deviation"))
            }
            KeyPattern::Sequential => Draw::Sequential(Arc::clone(&self.next)),
        };
        KeySequence { count, draw, random: SmallRng::seed_from_u64(self.seed.wrapping_add(index)) }
    }
}

impl KeySequence {
    /// Returns the next key. Constant time.
    pub(super) fn next(&mut self) -> u64 {
        match &mut self.draw {
            Draw::One => 0,
            Draw::Uniform => self.random.random_range(0..self.count),
            // Ranks begin at 1.
            Draw::Zipf(zipf) => (zipf.sample(&mut self.random) as u64).clamp(1, self.count) - 1,
            Draw::Gaussian(normal) => loop {
                let number = normal.sample(&mut self.random).round();
                // One number in 370 is outside the range and is drawn again.
                if number >= 0.0 && number < self.count as f64 {
                    break number as u64;
                }
            },
            // The counter overflows only after 2^64 keys.
            Draw::Sequential(next) => next.fetch_add(1, Ordering::Relaxed) % self.count,
        }
    }
}

/// Writes a number below [`KEYS_MAX`] as [`KEY_DIGITS`] digits.
pub(super) fn write_digits(number: u64, digits: &mut [u8]) {
    // Writes two halves of six digits, because 32-bit divisions are cheaper.
    let (high, low) = digits.split_at_mut(KEY_DIGITS / 2);
    write_half((number / HALF) as u32, high);
    write_half((number % HALF) as u32, low);
}

/// The number of values that half of [`KEY_DIGITS`] digits can have.
const HALF: u64 = 1_000_000;

fn write_half(mut number: u32, digits: &mut [u8]) {
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(count: u64, pattern: KeyPattern, number: usize) -> Vec<u64> {
        let mut sequence = Keys::new(count, pattern, false).sequence(0);
        (0..number).map(|_| sequence.next()).collect()
    }

    /// Returns the share of the numbers that are in a range.
    fn share(numbers: &[u64], range: std::ops::Range<u64>) -> f64 {
        numbers.iter().filter(|number| range.contains(number)).count() as f64 / numbers.len() as f64
    }

    #[test]
    fn every_pattern_stays_below_the_count() {
        for pattern in [KeyPattern::Uniform, KeyPattern::Zipf, KeyPattern::Gaussian, KeyPattern::Sequential] {
            for count in [1, 2, 3, 10, 1000, KEYS_MAX] {
                assert!(drawn(count, pattern, 2000).iter().all(|&key| key < count), "{pattern:?} {count}");
            }
        }
    }

    #[test]
    fn uniform_and_gaussian_keys_follow_their_distributions() {
        let uniform = drawn(1000, KeyPattern::Uniform, 20_000);
        let gaussian = drawn(1000, KeyPattern::Gaussian, 20_000);
        for start in (0..1000).step_by(100) {
            assert!((share(&uniform, start..start + 100) - 0.1).abs() < 0.02);
        }
        // 68 % of a normal distribution are within one standard deviation.
        assert!((share(&gaussian, 333..667) - 0.68).abs() < 0.02, "{}", share(&gaussian, 333..667));
    }

    #[test]
    fn zipf_keys_follow_their_distribution() {
        let numbers = drawn(1000, KeyPattern::Zipf, 50_000);
        let sum: f64 = (1..=1000).map(|rank| f64::from(rank).powf(-ZIPF_EXPONENT)).sum();
        for key in [0_u64, 1, 9] {
            let wanted = ((key + 1) as f64).powf(-ZIPF_EXPONENT) / sum;
            let found = share(&numbers, key..key + 1);
            assert!((found - wanted).abs() < 0.01, "key {key}: {found} instead of {wanted}");
        }
    }

    #[test]
    fn sequences_of_all_connections_cover_the_keys_once() {
        let keys = Keys::new(10, KeyPattern::Sequential, false);
        let mut sequences = [0, 1, 2].map(|index| keys.sequence(index));
        let drawn: Vec<u64> = (0..12).map(|turn| sequences[turn * turn % 3].next()).collect();
        assert_eq!(drawn, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1]);
        assert_eq!(keys.again().sequence(0).next(), 0);
    }

    #[test]
    fn distinct_seeds_change_the_sequence_of_each_run() {
        let drawn = |keys: &Keys, index| {
            let mut sequence = keys.sequence(index);
            [(); 8].map(|()| sequence.next())
        };
        let keys = |is_distinct| Keys::new(1_000_000, KeyPattern::Uniform, is_distinct);
        assert_eq!(drawn(&keys(false), 3), drawn(&keys(false), 3));
        assert_ne!(drawn(&keys(false), 3), drawn(&keys(false), 4));
        assert_ne!(drawn(&keys(true), 3), drawn(&keys(true), 3));
    }

    #[test]
    fn key_numbers_are_padded_with_zeros() {
        let mut digits = [b'x'; KEY_DIGITS];
        for number in [0, 7, 999_999, 1_000_000, 123_456_789_012, KEYS_MAX - 1] {
            write_digits(number, &mut digits);
            assert_eq!(digits.as_slice(), format!("{number:012}").as_bytes());
        }
    }
}
