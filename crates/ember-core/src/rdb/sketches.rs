//! Sketches in the format of RedisBloom 2.8: values of modules ([`super::parts`]), one for each type.
//!
//! ```text
//! Bloom filter      items | links | options | growth | link …
//! link              entries | error, double | hashes | bits per entry, double | bits | binary logarithm of the bits
//!                   | bits, string | items
//! cuckoo filter     tables | buckets | items | deletes | bucket size | iterations | expansion | table …
//! table             buckets | fingerprints, string
//! count-min sketch  width | depth | sum | counters, string
//! top-k sketch      k | width | depth | decay, double | counters, string | heap, string | item, string …
//! t-digest          compression, min, max: doubles | capacity | merged nodes | other nodes | compressions
//!                   | weight of merged nodes, weight of other nodes | mean … | weight …: doubles
//! ```
//!
//! The heap of a top-k sketch is an array of structures of 24 bytes: fingerprint, length of the item (4 bytes each), 8
//! bytes that RedisBloom does not read, count (4), 4 more such bytes. The 8 bytes of the first structure are the state
//! of the generator here. The strings of items end with a zero.
//!
//! A t-digest with a single number has no merged node in RedisBloom 2.8, which loses the number: it is the minimum.

use std::io::{self, BufRead, Write};

use super::format::{LoadError, Reader, Writer};
use super::parts::{self, Parts};
use crate::types::sketches::bloom::{self, Bloom, LinkFacts};
use crate::types::sketches::cuckoo::{self, Cuckoo};
use crate::types::sketches::t_digest::{self, Node, TDigest};
use crate::types::sketches::top_k::{self, Place, TopK};
use crate::types::sketches::{Blocks, CountMin};

/// The number of the module of Bloom filters.
pub(super) const BLOOM_MODULE_ID: u64 = module_id(b"MBbloom--", 4);
/// The number of the module of cuckoo filters.
pub(super) const CUCKOO_MODULE_ID: u64 = module_id(b"MBbloomCF", 4);
/// The number of the module of count-min sketches.
pub(super) const COUNT_MIN_MODULE_ID: u64 = module_id(b"CMSk-TYPE", 0);
/// The number of the module of top-k sketches.
pub(super) const TOP_K_MODULE_ID: u64 = module_id(b"TopK-TYPE", 0);
/// The number of the module of t-digests.
pub(super) const T_DIGEST_MODULE_ID: u64 = module_id(b"TDIS-TYPE", 0);

/// The bytes of a structure of a top-k sketch's heap.
const PLACE_BYTES: usize = 24;

/// Returns the number of a module: nine letters of six bits each, and a version of ten bits.
const fn module_id(name: &[u8; 9], version: u64) -> u64 {
    let mut id = 0;
    let mut at = 0;
    while at < name.len() {
        let letter = match name[at] {
            letter @ b'A'..=b'Z' => letter - b'A',
            letter @ b'a'..=b'z' => letter - b'a' + 26,
            digit @ b'0'..=b'9' => digit - b'0' + 52,
            b'-' => 62,
            _ => 63,
        };
        id = id << 6 | letter as u64;
        at += 1;
    }
    id << 10 | version
}

fn corrupt(what: &'static str) -> LoadError {
    LoadError::Corrupt(what)
}

fn small<R: BufRead, T: TryFrom<u64>>(reader: &mut Reader<R>) -> Result<T, LoadError> {
    T::try_from(parts::number(reader)?).map_err(|_| corrupt("a number of a sketch is too large"))
}

fn blocks<R: BufRead>(reader: &mut Reader<R>) -> Result<Blocks, LoadError> {
    Ok(Blocks::of(&parts::string(reader)?))
}

/// Writes a Bloom filter. O(its bytes).
pub(super) fn write_bloom<W: Write>(writer: &mut Writer<W>, filter: &Bloom) -> io::Result<()> {
    let mut parts = Parts::begin(writer, BLOOM_MODULE_ID)?;
    parts.number(filter.size())?;
    parts.number(filter.links_count() as u64)?;
    parts.number(filter.options().into())?;
    parts.number(filter.growth_if_scaling().into())?;
    for (facts, bits) in filter.links() {
        parts.number(facts.entries)?;
        parts.double(facts.error)?;
        parts.number(facts.hashes.into())?;
        parts.double(facts.bits_per_entry)?;
        parts.number(facts.bits)?;
        parts.number(facts.power.into())?;
        parts.blocks(bits)?;
        parts.number(facts.size)?;
    }
    parts.end()
}

/// Reads a Bloom filter, after the number of its module.
pub(super) fn read_bloom<R: BufRead>(reader: &mut Reader<R>) -> Result<Bloom, LoadError> {
    let size = parts::number(reader)?;
    let count: usize = small(reader)?;
    let options = small(reader)?;
    let growth = small(reader)?;
    if count > bloom::LINKS_MAX {
        return Err(corrupt("a Bloom filter has too many links"));
    }
    let mut links = Vec::new();
    for _ in 0..count {
        let entries = parts::number(reader)?;
        let error = parts::double(reader)?;
        let hashes = small(reader)?;
        let bits_per_entry = parts::double(reader)?;
        let bits = parts::number(reader)?;
        let power = small(reader)?;
        let bytes = blocks(reader)?;
        let size = parts::number(reader)?;
        links.push((LinkFacts { entries, error, hashes, bits_per_entry, bits, power, size }, bytes));
    }
    parts::end(reader)?;
    let filter = Bloom::from_links(size, options, growth, links);
    filter.ok_or(corrupt("the values of a Bloom filter contradict each other"))
}

/// Writes a cuckoo filter. O(its bytes).
pub(super) fn write_cuckoo<W: Write>(writer: &mut Writer<W>, filter: &Cuckoo) -> io::Result<()> {
    let facts = filter.facts();
    let mut parts = Parts::begin(writer, CUCKOO_MODULE_ID)?;
    parts.number(filter.tables().len() as u64)?;
    parts.number(facts.buckets)?;
    parts.number(facts.items)?;
    parts.number(facts.deletes)?;
    parts.number(facts.bucket_size.into())?;
    parts.number(facts.iterations.into())?;
    parts.number(facts.expansion.into())?;
    for (buckets, places) in filter.tables() {
        parts.number(buckets)?;
        parts.blocks(places)?;
    }
    parts.end()
}

/// Reads a cuckoo filter, after the number of its module.
pub(super) fn read_cuckoo<R: BufRead>(reader: &mut Reader<R>) -> Result<Cuckoo, LoadError> {
    let count: u16 = small(reader)?;
    let buckets = parts::number(reader)?;
    let items = parts::number(reader)?;
    let deletes = parts::number(reader)?;
    let bucket_size = small(reader)?;
    let iterations = small(reader)?;
    let expansion = small(reader)?;
    let facts = cuckoo::Facts { buckets, items, deletes, bucket_size, iterations, expansion };
    let mut tables = Vec::new();
    for _ in 0..count {
        tables.push((parts::number(reader)?, blocks(reader)?));
    }
    parts::end(reader)?;
    let filter = Cuckoo::from_tables(facts, tables);
    filter.ok_or(corrupt("the values of a cuckoo filter contradict each other"))
}

/// Writes a count-min sketch. O(its bytes).
pub(super) fn write_count_min<W: Write>(writer: &mut Writer<W>, sketch: &CountMin) -> io::Result<()> {
    let mut parts = Parts::begin(writer, COUNT_MIN_MODULE_ID)?;
    parts.number(sketch.width())?;
    parts.number(sketch.depth())?;
    parts.number(sketch.total())?;
    parts.blocks(sketch.counters())?;
    parts.end()
}

/// Reads a count-min sketch, after the number of its module.
pub(super) fn read_count_min<R: BufRead>(reader: &mut Reader<R>) -> Result<CountMin, LoadError> {
    let (width, depth) = (parts::number(reader)?, parts::number(reader)?);
    let total = parts::number(reader)?;
    let counters = blocks(reader)?;
    parts::end(reader)?;
    let sketch = CountMin::from_counters(width, depth, total, counters);
    sketch.ok_or(corrupt("the values of a count-min sketch contradict each other"))
}

/// Writes a top-k sketch. O(its bytes).
pub(super) fn write_top_k<W: Write>(writer: &mut Writer<W>, sketch: &TopK) -> io::Result<()> {
    let mut parts = Parts::begin(writer, TOP_K_MODULE_ID)?;
    parts.number(sketch.items_max() as u64)?;
    parts.number(sketch.width().into())?;
    parts.number(sketch.depth().into())?;
    parts.double(sketch.decay())?;
    parts.blocks(sketch.counters())?;
    let mut heap = vec![[0; PLACE_BYTES]; sketch.items_max()];
    for (bytes, place) in heap.iter_mut().zip(sketch.heap()) {
        let len = place.item.as_ref().map_or(0, |item| item.len() as u32);
        bytes[..4].copy_from_slice(&place.fingerprint.to_le_bytes());
        bytes[4..8].copy_from_slice(&len.to_le_bytes());
        bytes[16..20].copy_from_slice(&place.count.to_le_bytes());
    }
    heap[0][8..16].copy_from_slice(&sketch.chance().to_le_bytes());
    parts.string(heap.as_flattened())?;
    drop(heap);
    let mut item = Vec::new();
    for place in sketch.heap() {
        item.clear();
        item.extend_from_slice(place.item.as_deref().unwrap_or_default());
        item.push(0);
        parts.string(&item)?;
    }
    parts.end()
}

/// Reads a top-k sketch, after the number of its module.
pub(super) fn read_top_k<R: BufRead>(reader: &mut Reader<R>) -> Result<TopK, LoadError> {
    const WRONG: &str = "the values of a top-k sketch contradict each other";
    let count: usize = small(reader)?;
    let (width, depth) = (small(reader)?, small(reader)?);
    let decay = parts::double(reader)?;
    let counters = blocks(reader)?;
    let heap = parts::string(reader)?;
    let (places, rest) = heap.as_chunks::<PLACE_BYTES>();
    let first = places.first().filter(|_| places.len() == count && rest.is_empty()).ok_or(corrupt(WRONG))?;
    let number = |bytes: &[u8; PLACE_BYTES], at: usize| {
        u32::from_le_bytes(std::array::from_fn(|index| bytes[at + index]))
    };
    let chance = u64::from(number(first, 8)) | u64::from(number(first, 12)) << 32;
    let mut loaded = Vec::with_capacity(count);
    for bytes in places {
        let mut item = parts::string(reader)?;
        if item.pop() != Some(0) {
            return Err(corrupt(WRONG));
        }
        let (fingerprint, count) = (number(bytes, 0), number(bytes, 16));
        // An item without bytes is an empty place, unless it was counted.
        let item = (!item.is_empty() || count > 0).then(|| item.into_boxed_slice());
        loaded.push(Place { fingerprint, count, item });
    }
    parts::end(reader)?;
    let saved = top_k::Saved { width, depth, decay, chance, counters, heap: loaded };
    TopK::from_saved(saved).ok_or(corrupt(WRONG))
}

/// Writes a t-digest, with all nodes merged. O(n log n) for n nodes.
pub(super) fn write_t_digest<W: Write>(writer: &mut Writer<W>, digest: &TDigest) -> io::Result<()> {
    let view = digest.view();
    let (facts, nodes) = view.facts();
    let mut parts = Parts::begin(writer, T_DIGEST_MODULE_ID)?;
    parts.double(facts.compression)?;
    parts.double(facts.min)?;
    parts.double(facts.max)?;
    parts.number(facts.capacity as u64)?;
    parts.number(nodes.len() as u64)?;
    parts.number(0)?;
    parts.number(facts.compressions.cast_unsigned())?;
    parts.double(facts.merged_weight as f64)?;
    parts.double(0.0)?;
    nodes.iter().try_for_each(|node| parts.double(node.mean))?;
    nodes.iter().try_for_each(|node| parts.double(node.weight as f64))?;
    parts.end()
}

/// Reads a t-digest, after the number of its module.
pub(super) fn read_t_digest<R: BufRead>(reader: &mut Reader<R>) -> Result<TDigest, LoadError> {
    const WRONG: LoadError = LoadError::Corrupt("the values of a t-digest contradict each other");
    // A double that is a count; the largest counts are rounded.
    let count = |number: f64| {
        let is_valid = number >= 0.0 && number <= i64::MAX as f64;
        is_valid.then_some(number as i64).ok_or(WRONG)
    };
    let compression = parts::double(reader)?;
    let (min, max) = (parts::double(reader)?, parts::double(reader)?);
    let capacity: usize = small(reader)?;
    let merged: usize = small(reader)?;
    let unmerged = parts::number(reader)?;
    let compressions = parts::number(reader)?.cast_signed();
    let merged_weight = count(parts::double(reader)?)?;
    let unmerged_weight = count(parts::double(reader)?)?;
    let has_lost = match (unmerged, unmerged_weight) {
        (0, 0) => false,
        (1, 1) => true,
        _ => return Err(WRONG),
    };
    if merged > capacity {
        return Err(WRONG);
    }
    let mut nodes = Vec::new();
    for _ in 0..merged {
        nodes.push(Node { mean: parts::double(reader)?, weight: 0 });
    }
    for node in &mut nodes {
        node.weight = count(parts::double(reader)?)?;
    }
    parts::end(reader)?;
    let facts = t_digest::Facts { compression, min, max, capacity, compressions, merged_weight };
    TDigest::from_nodes(&facts, nodes, has_lost).ok_or(WRONG)
}
