//! The hash function of elements: one for the process, with secrets of its own, and salt for each table.
//!
//! Without the salt two tables would have the same order, and adding the elements of one to the other in that order would
//! fill it from one end: every search would run through the crowd there, every bucket would be divided into all and nothing.

use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::entries::hash::{HashFunction, KeyHasher};

static HASHER: OnceLock<KeyHasher> = OnceLock::new();

/// The salt of the next table. A plain counter: tables need different salts, not secret ones.
static NEXT_SALT: AtomicU64 = AtomicU64::new(0);

/// Two to the 64 divided by the golden ratio: multiples of it lie far apart, and many bits of it are set.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// Makes `function` the one that hashes elements, unless elements have been hashed before: a hash never changes while the
/// process lives.
pub fn choose_hash_function(function: HashFunction) {
    HASHER.get_or_init(|| seeded(function));
}

/// A hasher whose secrets come from the system's random source, by way of the standard library's own.
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
    /// A hasher with another salt than those before.
    pub(super) fn new() -> ElementHasher {
        ElementHasher { salt: NEXT_SALT.fetch_add(GOLDEN, Ordering::Relaxed) }
    }

    /// The hash of an element's name in this table.
    #[inline]
    pub(super) fn hash(self, name: &[u8]) -> u64 {
        let hash = HASHER.get_or_init(|| seeded(HashFunction::default())).hash(name).bits();
        let product = u128::from(hash ^ self.salt) * u128::from(GOLDEN);
        (product >> 64) as u64 ^ product as u64
    }
}
