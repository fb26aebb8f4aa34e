//! The hash function of elements: one for the process, with secrets of its own.

use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

use crate::keyspace::hash::{HashFunction, KeyHasher};

static HASHER: OnceLock<KeyHasher> = OnceLock::new();

/// Makes `function` the one that hashes elements, unless elements have been hashed before: a hash never changes while the
/// process lives.
pub fn choose_hash_function(function: HashFunction) {
    HASHER.get_or_init(|| seeded(function));
}

/// The hash of an element's name.
#[inline]
pub(super) fn hash_of(name: &[u8]) -> u64 {
    HASHER.get_or_init(|| seeded(HashFunction::default())).hash(name).bits()
}

/// A hasher whose secrets come from the system's random source, by way of the standard library's own.
fn seeded(function: HashFunction) -> KeyHasher {
    let secret = || RandomState::new().hash_one(function as u8);
    KeyHasher::seeded(function, secret(), secret())
}
