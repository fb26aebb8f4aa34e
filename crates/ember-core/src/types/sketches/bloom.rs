//! Bloom filters: sets of items that may contain an item that was never added, with a bounded probability, and never
//! miss one that was.
//!
//! A filter is a chain of links. Items are added to the last link; when it is full, a larger link with half the error
//! rate follows it, unless the filter does not scale.
//!
//! Positions of bits: double hashing (Kirsch, Mitzenmacher, "Less Hashing, Same Performance", 2006) with MurmurHash64A,
//! as RedisBloom computes them.

use super::blocks::Blocks;
use super::{BYTES_MAX, TooLarge};
use crate::algorithms::murmur::{murmur2, murmur64a};
use crate::memory::moving::Mover;
use crate::memory::{buffer_bytes, size_class};
use crate::types::collection::Collection;
use crate::types::value::ValueType;

/// Option: the number of bits is not rounded up to a power of two.
pub const NO_ROUND: u32 = 1;
/// Option: the given number of entries is the binary logarithm of the number of bits.
const ENTRIES_ARE_BITS: u32 = 2;
/// Option: items are hashed to 64 bits, not to 32.
pub const FORCE_64: u32 = 4;
/// Option: the filter does not grow.
pub const NO_SCALING: u32 = 8;
/// All options.
const OPTIONS: u32 = NO_ROUND | ENTRIES_ARE_BITS | FORCE_64 | NO_SCALING;

/// The factor of the error rate from one link to the next.
const TIGHTENING: f64 = 0.5;

/// The natural logarithm of 2 with the fifteen digits of RedisBloom, which determine the number of hashes.
const LN_2: f64 = f64::from_bits(0x3FE6_2E42_FEFA_39EC);
/// The square of the natural logarithm of 2, with the digits of RedisBloom.
const LN_2_SQUARED: f64 = 0.480_453_013_918_201;

/// The maximum number of bits per item: the smallest positive error rate needs 1,075.
const HASHES_MAX: u32 = 2048;

/// The maximum number of links. In a chain whose links do not grow, the error rate halves with each link, and that of
/// the last link is still above the smallest positive double.
pub const LINKS_MAX: usize = 1100;

const SEED_64: u64 = 0xC6A4_A793_5BD1_E995;
const SEED_32: u32 = 0x9747_B28C;

/// The bytes of RedisBloom's structures of a chain and of a link, which `BF.INFO` adds to those of the bits.
const CHAIN_BYTES: u64 = 32;
const LINK_BYTES: u64 = 64;

/// The bytes of the header of `BF.SCANDUMP`, before the links.
const HEADER_BYTES: usize = 20;
/// The bytes of a link in the header.
const HEADER_LINK_BYTES: usize = 53;

/// The parameters and counters of a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkFacts {
    /// The number of items for which the link is large enough.
    pub entries: u64,
    /// The error rate.
    pub error: f64,
    /// The number of bits that are set per item.
    pub hashes: u32,
    /// The number of bits that the link has per item.
    pub bits_per_entry: f64,
    /// The number of bits.
    pub bits: u64,
    /// The binary logarithm of the number of bits, if it was rounded up to a power of two, otherwise 0.
    pub power: u8,
    /// The number of items added.
    pub size: u64,
}

#[derive(Clone, Debug)]
struct Link {
    facts: LinkFacts,
    /// The number by which positions are divided.
    modulus: u64,
    bits: Blocks,
}

#[derive(Clone, Debug)]
struct Chain {
    size: u64,
    options: u32,
    growth: u32,
    links: Vec<Link>,
}

/// The value of a key that holds a Bloom filter. The empty value has no links yet.
#[derive(Clone, Debug, Default)]
pub struct Bloom(Option<Box<Chain>>);

/// The reason why an item was not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAdded {
    /// The filter is full and does not scale.
    Full,
    /// The next link would be too large, or its error rate too low.
    TooLarge,
}

/// The reason why a chunk was not loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotLoaded {
    /// The position is not one after the chunk's bytes.
    BadData,
    /// No link is at the position.
    NoLink,
    /// The chunk exceeds its link.
    TooLong,
}

struct Hash {
    first: u64,
    step: u64,
}

impl LinkFacts {
    /// Returns the facts of an empty link. The error rate must be between 0 and 1.
    fn new(entries: u64, error: f64, options: u32) -> Result<LinkFacts, TooLarge> {
        if entries == 0 || error.is_nan() || error <= 0.0 || error >= 1.0 {
            return Err(TooLarge);
        }
        let bits_per_entry = -(error.ln() / LN_2_SQUARED);
        let wanted = entries as f64 * bits_per_entry;
        let (bits, power, entries) = if options & ENTRIES_ARE_BITS != 0 {
            let power = u8::try_from(entries).ok().filter(|&power| power < 64).ok_or(TooLarge)?;
            let bits = 1u64 << power;
            (bits, power, (bits as f64 / bits_per_entry) as u64)
        } else if wanted >= (BYTES_MAX * 8) as f64 {
            return Err(TooLarge);
        } else if options & NO_ROUND != 0 {
            ((wanted as u64).max(1), 0, entries)
        } else {
            // The number of bits is the next power of two above the wanted number; a number below 1 counts as 1.
            let power = (wanted.log2().floor() + 1.0).max(0.0) as u8;
            let bits = 1u64 << power;
            // The additional bits have space for additional items.
            let added = ((bits as f64 - wanted) as u64) as f64 / bits_per_entry;
            (bits, power, entries.saturating_add(added as u64))
        };
        let bits = bits.next_multiple_of(64);
        if bits > BYTES_MAX as u64 * 8 {
            return Err(TooLarge);
        }
        let hashes = (LN_2 * bits_per_entry).ceil() as u32;
        Ok(LinkFacts { entries, error, hashes, bits_per_entry, bits, power, size: 0 })
    }

    fn modulus(&self) -> Option<u64> {
        match self.power {
            0 => Some(self.bits),
            power => 1u64.checked_shl(power.into()),
        }
    }

    /// Returns whether a link of `bytes` bytes may have these facts.
    fn fit(&self, bytes: usize) -> bool {
        if bytes > BYTES_MAX {
            return false;
        }
        let has_rate = self.error > 0.0 && self.error < 1.0 && self.bits_per_entry.is_finite();
        let bits = bytes as u64 * 8;
        has_rate
            && (1..=HASHES_MAX).contains(&self.hashes)
            && self.bits <= bits
            && self.modulus().is_some_and(|modulus| (1..=bits).contains(&modulus))
    }

    /// Returns whether the facts are those of a link that RedisBloom's `BF.LOADCHUNK` accepts.
    fn are_exact(&self, bytes: u64) -> bool {
        usize::try_from(bytes).is_ok_and(|bytes| self.fit(bytes))
            && self.bits == bytes * 8
            && f64::from(self.hashes) == (LN_2 * self.bits_per_entry).ceil()
    }
}

impl Link {
    fn new(facts: LinkFacts, bits: Blocks) -> Link {
        Link { facts, modulus: facts.modulus().expect("the facts were checked"), bits }
    }

    fn contains(&self, hash: &Hash) -> bool {
        let mut position = hash.first;
        for _ in 0..self.facts.hashes {
            let bit = position % self.modulus;
            if self.bits.get((bit >> 3) as usize) >> (bit & 7) & 1 == 0 {
                return false;
            }
            position = position.wrapping_add(hash.step);
        }
        true
    }

    fn add(&mut self, hash: &Hash) {
        let mut position = hash.first;
        for _ in 0..self.facts.hashes {
            let bit = position % self.modulus;
            let at = (bit >> 3) as usize;
            self.bits.set(at, self.bits.get(at) | 1 << (bit & 7));
            position = position.wrapping_add(hash.step);
        }
        self.facts.size += 1;
    }
}

impl Chain {
    fn hash(&self, item: &[u8]) -> Hash {
        if self.options & FORCE_64 != 0 {
            let first = murmur64a(item, SEED_64);
            return Hash { first, step: murmur64a(item, first) };
        }
        let first = murmur2(item, SEED_32);
        Hash { first: first.into(), step: murmur2(item, first).into() }
    }

    fn contains(&self, hash: &Hash) -> bool {
        self.links.iter().rev().any(|link| link.contains(hash))
    }

    fn bytes(&self) -> usize {
        self.links.iter().map(|link| link.bits.len()).sum()
    }

    /// Adds an empty link.
    fn grow(&mut self, entries: u64, error: f64) -> Result<(), TooLarge> {
        let facts = LinkFacts::new(entries, error, self.options)?;
        let bytes = (facts.bits / 8) as usize;
        if self.links.len() == LINKS_MAX || bytes > BYTES_MAX - self.bytes() {
            return Err(TooLarge);
        }
        self.links.push(Link::new(facts, Blocks::zeros(bytes)));
        Ok(())
    }
}

impl Bloom {
    fn chain(&self) -> &Chain {
        self.0.as_deref().expect("a filter that is kept has links")
    }

    /// Returns a filter for `capacity` items with an error rate between 0 and 1. A full filter grows by the factor
    /// `growth`, unless `options` contain [`NO_SCALING`].
    ///
    /// # Errors
    /// Returns an error if the filter would exceed [`BYTES_MAX`].
    pub fn new(capacity: u64, error: f64, options: u32, growth: u32) -> Result<Bloom, TooLarge> {
        let tightening = if options & NO_SCALING != 0 { 1.0 } else { TIGHTENING };
        let mut chain = Chain { size: 0, options, growth, links: Vec::new() };
        chain.grow(capacity, error * tightening)?;
        Ok(Bloom(Some(Box::new(chain))))
    }

    /// Adds an item; returns whether the filter did not seem to contain it. O(links · hashes).
    ///
    /// # Errors
    /// Returns an error, and changes nothing, if the filter is full and cannot grow.
    pub fn add(&mut self, item: &[u8]) -> Result<bool, NotAdded> {
        let chain = self.0.as_deref_mut().expect("a filter that is kept has links");
        let hash = chain.hash(item);
        if chain.contains(&hash) {
            return Ok(false);
        }
        let last = &chain.links.last().expect("a chain has links").facts;
        if last.size >= last.entries {
            if chain.options & NO_SCALING != 0 {
                return Err(NotAdded::Full);
            }
            let entries = last.entries.saturating_mul(chain.growth.into());
            let error = last.error * TIGHTENING;
            chain.grow(entries, error).map_err(|TooLarge| NotAdded::TooLarge)?;
        }
        chain.links.last_mut().expect("a chain has links").add(&hash);
        chain.size += 1;
        Ok(true)
    }

    /// Returns whether the filter seems to contain an item. O(links · hashes).
    pub fn contains(&self, item: &[u8]) -> bool {
        let chain = self.chain();
        chain.contains(&chain.hash(item))
    }

    /// Returns the number of items added.
    pub fn size(&self) -> u64 {
        self.chain().size
    }

    /// Returns the number of items for which the links are large enough. O(links).
    pub fn capacity(&self) -> u64 {
        self.chain().links.iter().fold(0, |sum: u64, link| sum.wrapping_add(link.facts.entries))
    }

    /// Returns the number of links.
    pub fn links_count(&self) -> usize {
        self.chain().links.len()
    }

    /// Returns the facts of the links.
    pub fn links(&self) -> impl ExactSizeIterator<Item = (LinkFacts, &Blocks)> {
        self.chain().links.iter().map(|link| (link.facts, &link.bits))
    }

    /// Returns the options.
    pub fn options(&self) -> u32 {
        self.chain().options
    }

    /// Returns the factor by which the filter grows; `None` if it does not scale.
    pub fn growth(&self) -> Option<u32> {
        let chain = self.chain();
        (chain.options & NO_SCALING == 0).then_some(chain.growth)
    }

    /// Returns the factor by which the filter would grow if it scaled.
    pub fn growth_if_scaling(&self) -> u32 {
        self.chain().growth
    }

    /// Returns the size in bytes that RedisBloom reports for the filter. O(links).
    pub fn reported_bytes(&self) -> u64 {
        let chain = self.chain();
        CHAIN_BYTES + chain.links.len() as u64 * LINK_BYTES + chain.bytes() as u64
    }

    /// Returns a filter with these links; `None` if the values contradict each other. O(links).
    pub fn from_links(
        size: u64,
        options: u32,
        growth: u32,
        links: impl IntoIterator<Item = (LinkFacts, Blocks)>,
    ) -> Option<Bloom> {
        let links =
            links.into_iter().map(|(facts, bits)| facts.fit(bits.len()).then(|| Link::new(facts, bits)));
        let chain = Chain { size, options, growth, links: links.collect::<Option<_>>()? };
        let is_valid = options & !OPTIONS == 0
            && (1..=LINKS_MAX).contains(&chain.links.len())
            && chain.links.iter().try_fold(0usize, |sum, link| sum.checked_add(link.bits.len()))?
                <= BYTES_MAX;
        is_valid.then(|| Bloom(Some(Box::new(chain))))
    }

    /// Returns the header of `BF.SCANDUMP`: everything except the bits.
    pub fn header(&self) -> Vec<u8> {
        let chain = self.chain();
        let mut header = Vec::with_capacity(HEADER_BYTES + chain.links.len() * HEADER_LINK_BYTES);
        header.extend_from_slice(&chain.size.to_le_bytes());
        header.extend_from_slice(&(chain.links.len() as u32).to_le_bytes());
        header.extend_from_slice(&chain.options.to_le_bytes());
        header.extend_from_slice(&chain.growth.to_le_bytes());
        for link in &chain.links {
            let facts = &link.facts;
            header.extend_from_slice(&(link.bits.len() as u64).to_le_bytes());
            header.extend_from_slice(&facts.bits.to_le_bytes());
            header.extend_from_slice(&facts.size.to_le_bytes());
            header.extend_from_slice(&facts.error.to_le_bytes());
            header.extend_from_slice(&facts.bits_per_entry.to_le_bytes());
            header.extend_from_slice(&facts.hashes.to_le_bytes());
            header.extend_from_slice(&facts.entries.to_le_bytes());
            header.push(facts.power);
        }
        header
    }

    /// Returns the filter with this header, whose bits are zeros; `None` if the header is invalid. O(links).
    pub fn from_header(header: &[u8]) -> Option<Bloom> {
        let (mut begin, links) = header.split_at_checked(HEADER_BYTES)?;
        let size = u64::from_le_bytes(take(&mut begin));
        let count = u32::from_le_bytes(take(&mut begin)) as usize;
        let options = u32::from_le_bytes(take(&mut begin));
        let growth = u32::from_le_bytes(take(&mut begin));
        let (links, rest) = links.as_chunks::<HEADER_LINK_BYTES>();
        if links.len() != count || !rest.is_empty() {
            return None;
        }
        let mut total = 0u64;
        let mut loaded = Vec::with_capacity(links.len());
        for mut link in links.iter().map(|link| &link[..]) {
            let bytes = u64::from_le_bytes(take(&mut link));
            let bits = u64::from_le_bytes(take(&mut link));
            let size = u64::from_le_bytes(take(&mut link));
            let error = f64::from_le_bytes(take(&mut link));
            let bits_per_entry = f64::from_le_bytes(take(&mut link));
            let hashes = u32::from_le_bytes(take(&mut link));
            let entries = u64::from_le_bytes(take(&mut link));
            let [power] = take(&mut link);
            let facts = LinkFacts { entries, error, hashes, bits_per_entry, bits, power, size };
            if !facts.are_exact(bytes) {
                return None;
            }
            total = total.checked_add(size)?;
            loaded.push((facts, Blocks::zeros(bytes as usize)));
        }
        if total != size { None } else { Bloom::from_links(size, options, growth, loaded) }
    }

    /// Returns the link that contains the bits at `position`, and their offset in it. Positions begin at 1.
    fn link_at(&self, position: i64) -> Option<(usize, usize)> {
        let mut offset = usize::try_from(position.checked_sub(1)?).ok()?;
        for (index, link) in self.chain().links.iter().enumerate() {
            if offset < link.bits.len() {
                return Some((index, offset));
            }
            offset -= link.bits.len();
        }
        None
    }

    /// Returns up to `bytes_max` of the bits at `position`, and the position after them; `None` at the end.
    pub fn chunk(&self, position: i64, bytes_max: usize) -> Option<(i64, Vec<u8>)> {
        let (index, offset) = self.link_at(position)?;
        let bits = &self.chain().links[index].bits;
        let end = bits.len().min(offset + bytes_max);
        Some((position + (end - offset) as i64, bits.to_vec(offset..end)))
    }

    /// Stores bits that end before `position`; returns whether they have changed.
    ///
    /// # Errors
    /// Returns an error, and changes nothing, if the bits do not belong to one link.
    pub fn load_chunk(&mut self, position: i64, bytes: &[u8]) -> Result<bool, NotLoaded> {
        if position <= 0 || (position as u64) < bytes.len() as u64 {
            return Err(NotLoaded::BadData);
        }
        let (index, offset) = self.link_at(position - bytes.len() as i64).ok_or(NotLoaded::NoLink)?;
        let chain = self.0.as_deref_mut().expect("a filter that is kept has links");
        let bits = &mut chain.links[index].bits;
        if bytes.len() > bits.len() - offset {
            return Err(NotLoaded::TooLong);
        }
        Ok(bits.write(offset, bytes))
    }
}

/// Removes the first bytes, which must exist.
fn take<const N: usize>(bytes: &mut &[u8]) -> [u8; N] {
    let (first, rest) = bytes.split_first_chunk().expect("the length was checked");
    *bytes = rest;
    *first
}

impl Collection for Bloom {
    const TYPE: ValueType = ValueType::Bloom;

    fn encoding_name(&self) -> &'static str {
        "raw"
    }

    fn memory_bytes(&self) -> usize {
        let Some(chain) = self.0.as_deref() else { return 0 };
        let bits: usize = chain.links.iter().map(|link| link.bits.memory_bytes()).sum();
        size_class(size_of::<Chain>()) + buffer_bytes(&chain.links) + bits
    }

    fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |chain| usize::try_from(chain.size).unwrap_or(usize::MAX))
    }

    fn is_vacant(&self) -> bool {
        self.0.is_none()
    }

    fn free_effort(&self) -> usize {
        self.0.as_ref().map_or(0, |chain| chain.links.iter().map(|link| 1 + link.bits.count()).sum())
    }

    fn move_inside(&mut self, _: u64, _: usize, mover: &mut Mover<'_>) -> u64 {
        if let Some(chain) = &mut self.0 {
            mover.move_vec(&mut chain.links);
        }
        0
    }

    fn is_shared_in_parts(&self) -> bool {
        true
    }

    fn check_invariants(&self) {
        let Some(chain) = &self.0 else { return };
        assert!(!chain.links.is_empty());
        for link in &chain.links {
            assert!(link.facts.fit(link.bits.len()));
            link.bits.check_invariants();
        }
    }
}
