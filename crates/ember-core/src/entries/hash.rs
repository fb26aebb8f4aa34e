//! The hash of a key, and the bits of it that select the shard and the position in a table.

use std::fmt;
use std::hash::Hasher;

use rapidhash::v3::{RapidSecrets, rapidhash_v3_seeded};
use siphasher::sip::SipHasher13;

/// The number of hash bits that select a shard: few for the model checker, which explores every lock.
pub const SHARD_BITS: u32 = if cfg!(shuttle) { 2 } else { 10 };

/// The number of hash bits that determine the position in a table. A slot stores them with an address, which takes 44
/// bits on x86-64 and 45 elsewhere: 47 or 48 bits without the three low ones.
pub const TAG_BITS: u32 = if cfg!(target_arch = "x86_64") { 20 } else { 19 };

/// The function that hashes keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HashFunction {
    /// rapidhash v3 with random secrets: 3 ns for a short key, "minimally" resistant to chosen keys.
    #[default]
    Rapidhash,
    /// SipHash-1-3 with a random key: some 12 ns more per key, for hostile networks.
    Siphash,
}

impl HashFunction {
    /// All hash functions.
    pub const ALL: &[HashFunction] = &[HashFunction::Rapidhash, HashFunction::Siphash];

    /// The names of the functions in the configuration, in the order of [`HashFunction::ALL`].
    pub const NAMES: &[&str] = &["rapidhash", "siphash"];
}

/// Formats the function as its name in the configuration.
impl fmt::Display for HashFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::NAMES[*self as usize])
    }
}

/// A seeded hash function. Two hashers compute different hashes, so clients cannot predict positions in a table.
#[derive(Clone)]
pub struct KeyHasher {
    secrets: RapidSecrets,
    sip_key: Option<(u64, u64)>,
}

impl KeyHasher {
    /// Returns a hasher with secrets from the system's random source.
    ///
    /// # Errors
    /// Returns an error if the system provides no random bytes.
    pub fn random(function: HashFunction) -> Result<KeyHasher, getrandom::Error> {
        Ok(KeyHasher::seeded(function, getrandom::u64()?, getrandom::u64()?))
    }

    /// Returns a hasher that computes the same hashes for the same seeds; for tests.
    pub fn seeded(function: HashFunction, seed: u64, more: u64) -> KeyHasher {
        let sip_key = (function == HashFunction::Siphash).then_some((seed, more));
        KeyHasher { secrets: RapidSecrets::seed(seed), sip_key }
    }

    /// Hashes a key.
    #[inline]
    pub fn hash(&self, key: &[u8]) -> KeyHash {
        KeyHash(match self.sip_key {
            None => rapidhash_v3_seeded(key, &self.secrets),
            Some(sip_key) => sip_hash(sip_key, key),
        })
    }
}

#[cold]
fn sip_hash((k0, k1): (u64, u64), key: &[u8]) -> u64 {
    let mut hasher = SipHasher13::new_with_keys(k0, k1);
    hasher.write(key);
    hasher.finish()
}

/// A key's hash: the top bits select the shard, the next [`TAG_BITS`] the position in its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyHash(u64);

impl KeyHash {
    /// Returns all bits.
    #[inline]
    pub fn bits(self) -> u64 {
        self.0
    }

    /// Returns the index of the shard, below [`crate::keyspace::SHARDS`].
    #[inline]
    pub fn shard(self) -> usize {
        (self.0 >> (64 - SHARD_BITS)) as usize
    }

    /// Returns the hash bits that the table stores in the slot.
    #[inline]
    pub fn tag(self) -> u32 {
        (self.0 << SHARD_BITS >> (64 - TAG_BITS)) as u32
    }
}
