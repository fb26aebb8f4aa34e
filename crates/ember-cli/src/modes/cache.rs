//! Tests a server as a cache (`--lru-test`): batches of requests alternately write and read keys, and few of the keys
//! get most of the requests. The hit rate of reads shows how well the server chooses which keys it evicts.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::time::{Duration, Instant};

use ember_client::{Connection, put};
use ember_protocol::client::Value;

use super::failure::Failure;

/// The interval between two lines of output.
const PERIOD: Duration = Duration::from_secs(1);
/// Requests per batch.
const PIPELINE: usize = 250;
/// The skew of requests: the probability of the k-th key is proportional to k^6.2, so that the last fifth of the keys
/// receives four fifths of the requests. Both numbers are those of redis-cli, which makes results comparable.
const EXPONENT: f64 = 6.2;
/// The value of each key.
const VALUE: &[u8] = b"xxxxx";

/// Prints a line each second, until the connection ends.
pub(super) fn run(connection: &mut Connection, keys: u64) -> Result<(), Failure> {
    let mut random = Random(RandomState::new().build_hasher().finish());
    loop {
        let begin = Instant::now();
        let (mut hits, mut misses) = (0u64, 0u64);
        while begin.elapsed() < PERIOD {
            let mut key = || format!("lru:{}", place(random.next(), keys)).into_bytes();
            let sets: Vec<Vec<Vec<u8>>> =
                (0..PIPELINE).map(|_| vec![b"SET".to_vec(), key(), VALUE.to_vec()]).collect();
            let gets: Vec<Vec<Vec<u8>>> = (0..PIPELINE).map(|_| vec![b"GET".to_vec(), key()]).collect();
            let written = connection.ask_all(&sets)?;
            if let Some(text) = written.iter().find_map(error) {
                return Err(Failure::Said(format!("ERROR: {text}")));
            }
            for answer in connection.ask_all(&gets)? {
                match answer {
                    Value::Null => misses += 1,
                    answer => match error(&answer) {
                        Some(text) => return Err(Failure::Said(format!("ERROR: {text}"))),
                        None => hits += 1,
                    },
                }
            }
        }
        let gets = hits + misses;
        let share = |part: u64| 100.0 * part as f64 / gets.max(1) as f64;
        put(format!(
            "{gets} Gets/sec | Hits: {hits} ({:.2}%) | Misses: {misses} ({:.2}%)\n",
            share(hits),
            share(misses)
        )
        .as_bytes());
    }
}

fn error(answer: &Value) -> Option<String> {
    match answer {
        Value::Error(text) => Some(String::from_utf8_lossy(text).into_owned()),
        _ => None,
    }
}

/// Maps a number from 0 to 1 to a key: the inverse of the distribution. The most used key is the first.
fn place(random: f64, keys: u64) -> u64 {
    let end = keys as f64 + 1.0;
    let power = EXPONENT + 1.0;
    let drawn = ((end.powf(power) - 1.0) * random + 1.0).powf(1.0 / power);
    keys.saturating_sub(drawn as u64) + 1
}

/// Pseudorandom numbers from 0 to 1 (SplitMix64, Steele, Lea and Flood 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fifth_of_the_keys_receives_80_percent_of_accesses() {
        let (mut random, keys, count) = (Random(7), 1000, 100_000);
        let places: Vec<u64> = (0..count).map(|_| place(random.next(), keys)).collect();
        assert!(places.iter().all(|place| (1..=keys).contains(place)));
        let often = places.iter().filter(|&&place| place <= keys / 5).count();
        assert!((0.75..0.85).contains(&(often as f64 / f64::from(count))), "{often}");
        assert_eq!((place(0.0, 1), place(1.0 - f64::EPSILON, 1)), (1, 1));
    }
}
