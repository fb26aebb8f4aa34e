//! The hash of a key, and the bits of it that select the shard and the position in a table.

use std::fmt;
use std::hash::Hasher;

use ember_cluster::slots::{self, SLOT_BITS, SLOTS};
use rapidhash::v3::{RapidSecrets, rapidhash_v3_seeded};
use siphasher::sip::SipHasher13;

/// The number of hash bits that select a shard: few for the model checker, which explores every lock.
pub const SHARD_BITS: u32 = if cfg!(shuttle) { 2 } else { 10 };

/// The number of hash bits that determine the position in a table. A slot stores them with an address, which takes 44
/// bits on x86-64 and 45 elsewhere: 47 or 48 bits without the three low ones.
pub const TAG_BITS: u32 = if cfg!(target_arch = "x86_64") { 20 } else { 19 };

/// The number of bits of a slot's number that select a shard in cluster mode. The remaining bits that select a shard are
/// hash bits, so the keys of a slot are spread over 16 shards.
const SLOT_SHARD_BITS: u32 = if SHARD_BITS < 6 { SHARD_BITS } else { 6 };

/// The number of slots whose keys are in the same shards.
pub const SLOTS_PER_SHARD: usize = SLOTS >> SLOT_SHARD_BITS;

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
    kind: Kind,
}

/// The hash function of keys.
#[derive(Clone, Copy)]
enum Kind {
    Rapidhash,
    Siphash(u64, u64),
    /// The hash contains the slot of the key; the other bits are those of SipHash with the key, if there is one.
    WithSlot(Option<(u64, u64)>),
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
        let kind = match function {
            HashFunction::Rapidhash => Kind::Rapidhash,
            HashFunction::Siphash => Kind::Siphash(seed, more),
        };
        KeyHasher { secrets: RapidSecrets::seed(seed), kind }
    }

    /// Makes the hashes contain the slots of the keys ([`KeyHash::slot`]), for a node of a cluster.
    #[must_use]
    pub fn with_slots(self) -> KeyHasher {
        let sip_key = if let Kind::Siphash(k0, k1) = self.kind { Some((k0, k1)) } else { None };
        KeyHasher { kind: Kind::WithSlot(sip_key), ..self }
    }

    /// Hashes a key.
    #[inline]
    pub fn hash(&self, key: &[u8]) -> KeyHash {
        KeyHash(match self.kind {
            Kind::Rapidhash => rapidhash_v3_seeded(key, &self.secrets),
            Kind::Siphash(k0, k1) => sip_hash((k0, k1), key),
            Kind::WithSlot(sip_key) => {
                let bits = match sip_key {
                    None => rapidhash_v3_seeded(key, &self.secrets),
                    Some(sip_key) => sip_hash(sip_key, key),
                };
                with_slot(bits, slots::slot_of(key))
            }
        })
    }
}

/// Replaces the bits of a hash that a slot determines: the low bits of the number that selects the shard, and the lowest
/// bits, which contain the whole number.
///
/// The highest bits stay hash bits, so that the shards of a slot are spread over all workers in sharded mode: each worker
/// owns consecutive shards.
#[inline]
fn with_slot(bits: u64, slot: u16) -> u64 {
    const SHARD_SHIFT: u32 = 64 - SHARD_BITS;
    const REPLACED: u64 = ((1 << SLOT_SHARD_BITS) - 1) << SHARD_SHIFT | ((1 << SLOT_BITS) - 1);
    let slot = u64::from(slot);
    bits & !REPLACED | (slot & ((1 << SLOT_SHARD_BITS) - 1)) << SHARD_SHIFT | slot
}

/// Returns the shards that contain the keys of a slot, in ascending order.
pub fn shards_of_slot(slot: u16) -> impl Iterator<Item = usize> {
    let low = usize::from(slot) & ((1 << SLOT_SHARD_BITS) - 1);
    (0..1_usize << (SHARD_BITS - SLOT_SHARD_BITS)).map(move |high| high << SLOT_SHARD_BITS | low)
}

/// Returns the slot at an index among the slots of a shard.
pub fn slot_at(shard: usize, index: usize) -> usize {
    index << SLOT_SHARD_BITS | (shard & ((1 << SLOT_SHARD_BITS) - 1))
}

/// Returns the index of a slot among the slots of its shards.
#[inline]
pub fn index_in_shard(slot: u16) -> usize {
    usize::from(slot) >> SLOT_SHARD_BITS
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

    /// Returns the cluster slot of the key. Only a hash of a hasher with slots contains it.
    #[inline]
    pub fn slot(self) -> u16 {
        (self.0 & (SLOTS as u64 - 1)) as u16
    }

    /// Returns the hash bits that the table stores in the slot.
    #[inline]
    pub fn tag(self) -> u32 {
        (self.0 << SHARD_BITS >> (64 - TAG_BITS)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_with_slots_names_the_slot_and_one_of_the_shards_of_the_slot() {
        for function in HashFunction::ALL {
            let hasher = KeyHasher::seeded(*function, 1, 2).with_slots();
            let plain = KeyHasher::seeded(*function, 1, 2);
            for number in 0..2000_u32 {
                let key = format!("user:{number}");
                let hash = hasher.hash(key.as_bytes());
                assert_eq!(hash.slot(), slots::slot_of(key.as_bytes()));
                assert!(shards_of_slot(hash.slot()).any(|shard| shard == hash.shard()), "{key}");
                assert!(index_in_shard(hash.slot()) < SLOTS_PER_SHARD);
                assert_eq!(hash.tag(), plain.hash(key.as_bytes()).tag(), "the tag has hash bits only");
            }
        }
    }

    #[test]
    fn the_keys_of_a_slot_use_all_of_its_shards_and_of_the_tags() {
        let hasher = KeyHasher::seeded(HashFunction::Rapidhash, 1, 2).with_slots();
        let mut hashes: Vec<KeyHash> =
            (0..10_000_u32).map(|number| hasher.hash(format!("{{tag}}:{number}").as_bytes())).collect();
        let mut shards: Vec<usize> = hashes.iter().map(|hash| hash.shard()).collect();
        shards.sort_unstable();
        shards.dedup();
        assert_eq!(shards, shards_of_slot(slots::slot_of(b"tag")).collect::<Vec<_>>());
        hashes.sort_unstable_by_key(|hash| hash.tag());
        hashes.dedup_by_key(|hash| hash.tag());
        assert!(hashes.len() > 9_900, "{} tags of 10,000 keys", hashes.len());
    }
}
