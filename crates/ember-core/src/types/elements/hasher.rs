//! The hash function of elements: one per process, with its own secrets, and a salt for each table.
//!
//! Without the salt two tables would have the same order. Adding the elements of one to the other in that order would
//! fill the other from one end: every search would pass through that crowded end, and every division of a bucket would
//! move all elements to one side.

use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::entries::hash::{HashFunction, KeyHasher};

static HASHER: OnceLock<KeyHasher> = OnceLock::new();

/// The salt of the next table. A plain counter: salts must differ but need not be secret.
static NEXT_SALT: AtomicU64 = AtomicU64::new(0);

/// 2^64 divided by the golden ratio: its multiples lie far apart and have many bits set.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// Selects `function` as the hash of elements, unless elements have been hashed already: the hash never changes while
/// the process runs.
pub fn choose_hash_function(function: HashFunction) {
    HASHER.get_or_init(|| seeded(function));
}

/// Returns a hasher with secrets from the system's random source, obtained through the standard library's
/// `RandomState`.
fn seeded(function: HashFunction) -> KeyHasher {
    let secret = || RandomState::new().hash_one(function as u8);
    KeyHasher::seeded(function, secret(), secret())
}

/// Hashes the elements of one table.
#[derive(Clone, Copy)]
pub(super) struct ElementHasher {
    salt: u64,
}

impl ElementHasher {
    /// Returns a hasher whose salt differs from all earlier ones.
    pub(super) fn new() -> ElementHasher {
        ElementHasher { salt: NEXT_SALT.fetch_add(GOLDEN, Ordering::Relaxed) }
    }

    /// Returns the hash of an element's name in this table.
    #[inline]
    pub(super) fn hash(self, name: &[u8]) -> u64 {
        let hash = HASHER.get_or_init(|| seeded(HashFunction::default())).hash(name).bits();
        let product = u128::from(hash ^ self.salt) * u128::from(GOLDEN);
        (product >> 64) as u64 ^ product as u64
    }
}
