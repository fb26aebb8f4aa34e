//! The elements of a vector set: names in order, and attributes.
//!
//! ```text
//! names        names by slot, 256 per chunk; short ones are stored inline
//! attributes   attributes by slot, likewise; a chunk is empty while none of its elements has any
//! order        slots in the order of their names, up to 512 per leaf
//! ```
//!
//! A removed element can keep its slot until the index has repaired its graph; it has no place in the order.
//!
//! Chunks and leaves are reference-counted (`Arc`): a copy of all elements copies one pointer per chunk and leaf, and a
//! shared chunk or leaf is copied before it is changed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::memory::moving::Mover;
use crate::memory::{buffer_bytes, size_class};

pub(super) const CHUNK_ELEMENTS: usize = 256;
const LEAF_SLOTS_MAX: usize = 512;

/// The size in bytes of the reference counters before the data of a shared pointer.
const COUNTERS_BYTES: usize = 16;

/// The number of chunk versions used so far.
static VERSIONS: AtomicU64 = AtomicU64::new(0);

/// Returns a version that no chunk has had: never 0.
fn new_version() -> u64 {
    // A relaxed order suffices, because only uniqueness matters.
    VERSIONS.fetch_add(1, Ordering::Relaxed) + 1
}

/// The maximum length in bytes of a name stored inline: it takes the space of a pointer to bytes and of the
/// discriminant.
const SHORT_MAX: usize = 22;

/// The name of an element.
#[derive(Clone, Debug)]
enum Name {
    Short { len: u8, bytes: [u8; SHORT_MAX] },
    Long(Arc<[u8]>),
}

const _: () = assert!(size_of::<Name>() == 24);

impl Name {
    fn new(name: &[u8]) -> Name {
        let mut bytes = [0; SHORT_MAX];
        match bytes.get_mut(..name.len()) {
            Some(place) => {
                place.copy_from_slice(name);
                Name::Short { len: name.len() as u8, bytes }
            }
            None => Name::Long(name.into()),
        }
    }

    #[inline]
    fn as_bytes(&self) -> &[u8] {
        match self {
            Name::Short { len, bytes } => &bytes[..usize::from(*len)],
            Name::Long(bytes) => bytes,
        }
    }

    /// Returns the size in bytes of the name's own allocation.
    fn text_bytes(&self) -> usize {
        match self {
            Name::Short { .. } => 0,
            Name::Long(bytes) => text_bytes(bytes),
        }
    }
}

fn text_bytes(text: &Arc<[u8]>) -> usize {
    size_class(COUNTERS_BYTES + text.len().next_multiple_of(8))
}

/// An element.
#[derive(Clone, Copy, Debug)]
pub struct Element<'e> {
    name: &'e Name,
    attributes: Option<&'e Arc<[u8]>>,
}

impl<'e> Element<'e> {
    /// Returns the name of the element.
    #[inline]
    pub fn name(self) -> &'e [u8] {
        self.name.as_bytes()
    }

    /// Returns the attributes of the element, if it has any: any text, never an empty one.
    pub fn attributes(self) -> Option<&'e [u8]> {
        self.attributes.map(|text| &**text)
    }

    /// Returns the attributes of the element, to be shared with another element.
    pub(super) fn attributes_shared(self) -> Option<Arc<[u8]>> {
        self.attributes.cloned()
    }

    fn text_bytes(self) -> usize {
        self.name.text_bytes() + self.attributes.map_or(0, text_bytes)
    }
}

/// Reference-counted vectors, with a count of their bytes.
#[derive(Debug)]
struct Shared<T> {
    parts: Vec<Arc<Vec<T>>>,
    bytes: usize,
}

impl<T> Default for Shared<T> {
    fn default() -> Shared<T> {
        Shared { parts: Vec::new(), bytes: 0 }
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Shared<T> {
        let mut copy = Shared { parts: self.parts.clone(), bytes: self.bytes };
        copy.bytes += copy.directory_bytes();
        copy.bytes -= self.directory_bytes();
        copy
    }
}

impl<T: Clone> Shared<T> {
    fn edit<R>(&mut self, at: usize, edit: impl FnOnce(&mut Vec<T>) -> R) -> R {
        self.bytes -= part_bytes(&self.parts[at]);
        let result = edit(Arc::make_mut(&mut self.parts[at]));
        self.bytes += part_bytes(&self.parts[at]);
        result
    }

    fn insert(&mut self, at: usize, part: Vec<T>) {
        self.bytes -= self.directory_bytes();
        self.parts.insert(at, Arc::new(part));
        self.bytes += self.directory_bytes() + part_bytes(&self.parts[at]);
    }

    fn remove(&mut self, at: usize) {
        self.bytes -= self.directory_bytes() + part_bytes(&self.parts[at]);
        self.parts.remove(at);
        if self.parts.len() * 4 <= self.parts.capacity() {
            self.parts.shrink_to(self.parts.len() * 2);
        }
        self.bytes += self.directory_bytes();
    }
}

impl<T> Shared<T> {
    fn directory_bytes(&self) -> usize {
        buffer_bytes(&self.parts)
    }

    /// Returns the bytes of the parts, counted again; for tests.
    fn recounted_bytes(&self) -> usize {
        self.directory_bytes() + self.parts.iter().map(|part| part_bytes(part)).sum::<usize>()
    }
}

fn part_bytes<T>(part: &Vec<T>) -> usize {
    size_class(COUNTERS_BYTES + size_of::<Vec<T>>()) + buffer_bytes(part)
}

/// Releases capacity of which little is used.
fn shrink<T>(part: &mut Vec<T>) {
    if part.len() * 4 <= part.capacity() {
        part.shrink_to(part.len() * 2);
    }
}

/// The elements by slot and by name.
#[derive(Clone, Debug, Default)]
pub(super) struct Elements {
    names: Shared<Name>,
    attributes: Shared<Option<Arc<[u8]>>>,
    /// A version for each chunk, different from that of any chunk with other attributes.
    versions: Vec<u64>,
    order: Shared<u32>,
    /// The number of slots, including those of removed elements.
    slots: usize,
    /// The number of elements.
    len: usize,
    /// Bytes of memory of names and attributes.
    text_bytes: usize,
}

impl Elements {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns the number of slots, including those of removed elements.
    pub(super) fn slots(&self) -> usize {
        self.slots
    }

    /// Returns the bytes of memory, including the allocator's rounding. O(1).
    pub(super) fn memory_bytes(&self) -> usize {
        self.names.bytes
            + self.attributes.bytes
            + buffer_bytes(&self.versions)
            + self.order.bytes
            + self.text_bytes
    }

    /// Returns the bytes of names and attributes.
    pub(super) fn text_bytes(&self) -> usize {
        self.text_bytes
    }

    /// Returns the number of chunks.
    pub(super) fn chunks(&self) -> usize {
        self.versions.len()
    }

    /// Returns the version of a chunk, which changes whenever the attributes of its elements change. No other chunk of
    /// any set has the same version, except that of a copy while neither of the two is changed.
    pub(super) fn version(&self, chunk: usize) -> u64 {
        self.versions[chunk]
    }

    fn renew_version(&mut self, slot: usize) {
        self.versions[slot / CHUNK_ELEMENTS] = new_version();
    }

    pub(super) fn at(&self, slot: u32) -> Element<'_> {
        let (chunk, at) = (slot as usize / CHUNK_ELEMENTS, slot as usize % CHUNK_ELEMENTS);
        let attributes = self.attributes.parts[chunk].get(at).and_then(Option::as_ref);
        Element { name: &self.names.parts[chunk][at], attributes }
    }

    #[inline]
    fn name_at(&self, slot: u32) -> &[u8] {
        let slot = slot as usize;
        self.names.parts[slot / CHUNK_ELEMENTS][slot % CHUNK_ELEMENTS].as_bytes()
    }

    /// Returns the slot of a name. O(log n).
    pub(super) fn find(&self, name: &[u8]) -> Option<u32> {
        let (leaf, at) = self.place(name).ok()?;
        Some(self.order.parts[leaf][at])
    }

    /// Returns the leaf of a name and its index there, or as `Err` where it would be.
    fn place(&self, name: &[u8]) -> Result<(usize, usize), (usize, usize)> {
        // The last leaf whose first name is not after this one.
        let leaves = self.order.parts.partition_point(|leaf| self.name_at(leaf[0]) <= name);
        let Some(leaf) = leaves.checked_sub(1) else { return Err((0, 0)) };
        let slots = &self.order.parts[leaf];
        match slots.binary_search_by(|&slot| self.name_at(slot).cmp(name)) {
            Ok(at) => Ok((leaf, at)),
            Err(at) => Err((leaf, at)),
        }
    }

    /// Appends an element whose name does not exist yet; its slot is the one after all others. O(log n).
    pub(super) fn push(&mut self, name: &[u8], attributes: Option<&[u8]>) {
        self.push_with(name, attributes.map(Into::into));
    }

    /// Appends an element like [`Elements::push`], with shared attributes.
    pub(super) fn push_with(&mut self, name: &[u8], attributes: Option<Arc<[u8]>>) {
        let (leaf, at) = self.place(name).expect_err("the owner has checked");
        let slot = self.slots as u32;
        self.append(name, attributes);
        self.len += 1;
        if self.order.parts.is_empty() {
            self.order.insert(0, Vec::new());
        }
        let is_full = self.order.edit(leaf, |slots| {
            slots.insert(at, slot);
            slots.len() > LEAF_SLOTS_MAX
        });
        if is_full {
            // With insertions in ascending order, leaves are left full.
            let is_last = leaf + 1 == self.order.parts.len() && at == LEAF_SLOTS_MAX;
            let kept = if is_last { LEAF_SLOTS_MAX } else { LEAF_SLOTS_MAX / 2 };
            let upper = self.order.edit(leaf, |slots| {
                let upper = slots.split_off(kept);
                slots.shrink_to_fit();
                upper
            });
            self.order.insert(leaf + 1, upper);
        }
    }

    /// Appends an element that has no place in the order until [`Elements::put_in_order`].
    pub(super) fn append(&mut self, name: &[u8], attributes: Option<Arc<[u8]>>) {
        let name = Name::new(name);
        self.text_bytes += name.text_bytes();
        if self.slots.is_multiple_of(CHUNK_ELEMENTS) {
            self.names.insert(self.names.parts.len(), Vec::new());
            self.attributes.insert(self.attributes.parts.len(), Vec::new());
            self.versions.push(new_version());
        }
        let slot = self.slots;
        self.names.edit(slot / CHUNK_ELEMENTS, |names| names.push(name));
        self.slots += 1;
        if attributes.is_some() {
            self.exchange_attributes(slot, attributes);
            self.renew_version(slot);
        }
    }

    /// Puts all appended elements in the order, which must be empty before; `None`, with nothing changed, if two of
    /// them have the same name. O(n log n).
    pub(super) fn put_in_order(&mut self) -> Option<()> {
        debug_assert!(self.order.parts.is_empty());
        let names = || self.names.parts.iter().flat_map(|names| names.iter().map(Name::as_bytes));
        let same = |a: &[u8], b: &[u8]| a.iter().zip(b).take_while(|(a, b)| a == b).count();
        let first = names().next().unwrap_or_default();
        let common = names().fold(first.len(), |common, name| same(&first[..common], name));
        // Nearly all names differ in a few bytes after their common prefix.
        let key = |name: &[u8]| {
            let mut key = [0; 8];
            let suffix = &name[common..];
            let most = suffix.len().min(key.len());
            key[..most].copy_from_slice(&suffix[..most]);
            u64::from_be_bytes(key)
        };
        let mut order: Vec<(u64, u32)> = names().map(key).zip(0..).collect();
        order.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| self.name_at(a.1).cmp(self.name_at(b.1))));
        if order
            .windows(2)
            .any(|pair| pair[0].0 == pair[1].0 && self.name_at(pair[0].1) == self.name_at(pair[1].1))
        {
            return None;
        }
        self.len = order.len();
        for leaf in order.chunks(LEAF_SLOTS_MAX) {
            let mut slots = Vec::new();
            slots.extend(leaf.iter().map(|&(_, slot)| slot));
            self.order.insert(self.order.parts.len(), slots);
        }
        Some(())
    }

    /// Sets the attributes of a slot and returns the previous ones.
    fn exchange_attributes(&mut self, slot: usize, attributes: Option<Arc<[u8]>>) -> Option<Arc<[u8]>> {
        let (chunk, at) = (slot / CHUNK_ELEMENTS, slot % CHUNK_ELEMENTS);
        if attributes.is_none() && self.attributes.parts[chunk].len() <= at {
            return None;
        }
        self.text_bytes += attributes.as_ref().map_or(0, text_bytes);
        let before = self.attributes.edit(chunk, |of_chunk| {
            if of_chunk.len() <= at {
                of_chunk.resize(at + 1, None);
            }
            let before = std::mem::replace(&mut of_chunk[at], attributes);
            while of_chunk.last().is_some_and(Option::is_none) {
                of_chunk.pop();
            }
            shrink(of_chunk);
            before
        });
        self.text_bytes -= before.as_ref().map_or(0, text_bytes);
        before
    }

    /// Removes an element, but not its slot, which [`Elements::free`] frees later. O(log n).
    pub(super) fn take_out(&mut self, slot: u32) {
        let (leaf, at) = self.place(self.name_at(slot)).expect("each element is in the order");
        let is_empty = self.order.edit(leaf, |slots| {
            slots.remove(at);
            shrink(slots);
            slots.is_empty()
        });
        if is_empty {
            self.order.remove(leaf);
        }
        self.len -= 1;
    }

    /// Frees the slot of a removed element; the last slot moves to its place. O(log n).
    pub(super) fn free(&mut self, slot: u32) {
        let last = (self.slots - 1) as u32;
        // The last slot may be that of a removed element, whose name may exist again in another slot.
        if slot != last
            && let Ok((leaf, at)) = self.place(self.name_at(last))
            && self.order.parts[leaf][at] == last
        {
            self.order.edit(leaf, |slots| slots[at] = slot);
        }
        let chunk = last as usize / CHUNK_ELEMENTS;
        self.renew_version(last as usize);
        self.renew_version(slot as usize);
        let attributes = self.exchange_attributes(last as usize, None);
        let name = self.names.edit(chunk, |names| {
            let name = names.pop().expect("a last chunk has elements");
            shrink(names);
            name
        });
        if self.names.parts[chunk].is_empty() {
            self.names.remove(chunk);
            self.attributes.remove(chunk);
            self.versions.pop();
            shrink(&mut self.versions);
        }
        self.slots -= 1;
        let removed = if slot == last {
            name
        } else {
            let slot = slot as usize;
            self.exchange_attributes(slot, attributes);
            let place = |names: &mut Vec<Name>| std::mem::replace(&mut names[slot % CHUNK_ELEMENTS], name);
            self.names.edit(slot / CHUNK_ELEMENTS, place)
        };
        self.text_bytes -= removed.text_bytes();
    }

    /// Sets the attributes of an element. Returns whether it had some before.
    pub(super) fn set_attributes(&mut self, slot: u32, attributes: Option<&[u8]>) -> bool {
        let slot = slot as usize;
        let has_some = attributes.is_some();
        let before = self.exchange_attributes(slot, attributes.map(Into::into));
        if has_some || before.is_some() {
            self.renew_version(slot);
        }
        before.is_some()
    }

    /// Returns the slots of the names after `name`, and of `name` itself if `is_included`, in order. O(log n), and O(1)
    /// per slot.
    pub(super) fn from(&self, name: &[u8], is_included: bool) -> impl Iterator<Item = u32> + '_ {
        let (leaf, at) = match self.place(name) {
            Ok((leaf, at)) => (leaf, if is_included { at } else { at + 1 }),
            Err(place) => place,
        };
        let first =
            self.order.parts.get(leaf).into_iter().flat_map(move |slots| &slots[at.min(slots.len())..]);
        first.chain(self.order.parts.iter().skip(leaf + 1).flat_map(|slots| slots.iter())).copied()
    }

    /// Moves names and attributes of about `most` elements, in chunks from number `from` on. Returns the chunk to
    /// continue from; 0 at the end.
    pub(super) fn move_inside(&mut self, from: u64, most: usize, mover: &mut Mover<'_>) -> u64 {
        let chunks = self.names.parts.len();
        let from = usize::try_from(from).unwrap_or(chunks);
        let end = from.saturating_add(most.div_ceil(CHUNK_ELEMENTS)).min(chunks);
        let move_text = |text: &mut Arc<[u8]>, mover: &mut Mover<'_>| {
            let address = Arc::as_ptr(text).cast::<u8>().wrapping_sub(COUNTERS_BYTES);
            if Arc::strong_count(text) == 1 && mover.wants(address, COUNTERS_BYTES + text.len()) {
                *text = Arc::from(&**text);
            }
        };
        for chunk in from..end {
            // Shared chunks stay in place.
            if let Some(names) = Arc::get_mut(&mut self.names.parts[chunk]) {
                for name in &mut *names {
                    if let Name::Long(text) = name {
                        move_text(text, mover);
                    }
                }
                mover.move_vec(names);
            }
            if let Some(attributes) = Arc::get_mut(&mut self.attributes.parts[chunk]) {
                attributes.iter_mut().flatten().for_each(|text| move_text(text, mover));
                mover.move_vec(attributes);
            }
        }
        for leaf in &mut self.order.parts {
            if end == chunks
                && let Some(slots) = Arc::get_mut(leaf)
            {
                mover.move_vec(slots);
            }
        }
        if end == chunks { 0 } else { end as u64 }
    }

    /// Checks the invariants; for tests.
    ///
    /// # Panics
    /// Panics if an invariant does not hold.
    pub(super) fn check_invariants(&self) {
        let texts = (0..self.slots as u32).map(|slot| self.at(slot).text_bytes()).sum::<usize>();
        assert_eq!(self.text_bytes, texts);
        assert_eq!(self.order.bytes, self.order.recounted_bytes());
        assert_eq!(self.names.bytes, self.names.recounted_bytes());
        assert_eq!(self.attributes.bytes, self.attributes.recounted_bytes());
        for chunks in [self.names.parts.len(), self.attributes.parts.len()] {
            assert_eq!(self.versions.len(), chunks);
        }
        assert!(self.attributes.parts.iter().all(|of_chunk| !matches!(of_chunk[..], [.., None])));
        let slots: Vec<u32> = self.order.parts.iter().flat_map(|slots| slots.iter().copied()).collect();
        assert_eq!(slots.len(), self.len);
        assert!(slots.is_sorted_by(|&a, &b| self.name_at(a) < self.name_at(b)), "names ascend");
        assert!(self.order.parts.iter().all(|slots| !slots.is_empty() && slots.len() <= LEAF_SLOTS_MAX));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::algorithms::random::Random;

    /// Returns one of `most` names, of which some are long.
    fn name_of(random: &mut Random, most: usize) -> Vec<u8> {
        let number = random.below(most);
        let mut name = format!("{number:x}").into_bytes();
        name.resize(if number.is_multiple_of(5) { 40 } else { name.len() }, b'-');
        name
    }

    #[test]
    fn appended_elements_are_sorted_later() {
        for prefix in ["", "a name of many letters: ", "nearly"] {
            for count in [0, 1, 2, 255, 256, 5000] {
                let mut random = Random::seeded(count as u64);
                let (mut appended, mut pushed) = (Elements::default(), Elements::default());
                while pushed.len() < count {
                    let mut name = [prefix.as_bytes(), &name_of(&mut random, 20 * count)].concat();
                    // Zeros at the end distinguish names, too.
                    name.extend(vec![0; random.below(3)]);
                    if pushed.find(&name).is_none() {
                        let attributes = (random.below(3) == 0).then_some(Arc::from(&name[..]));
                        pushed.push_with(&name, attributes.clone());
                        appended.append(&name, attributes);
                    }
                }
                appended.put_in_order().unwrap();
                appended.check_invariants();
                assert!(appended.from(b"", true).eq(pushed.from(b"", true)));
                assert_eq!(appended.len(), count);
                assert!((0..count as u32).all(|slot| {
                    let (a, b) = (appended.at(slot), pushed.at(slot));
                    (a.name(), a.attributes()) == (b.name(), b.attributes())
                }));
            }
        }
        let mut twice = Elements::default();
        [&b"ab"[..], b"a", b"ab"].iter().for_each(|name| twice.append(name, None));
        assert!(twice.put_in_order().is_none());
    }

    #[test]
    fn elements_are_found_by_name_and_slot_after_any_changes() {
        let mut random = Random::seeded(5);
        let mut elements = Elements::default();
        let mut names: Vec<Vec<u8>> = Vec::new();
        let mut frozen = (elements.clone(), names.clone());
        for step in 0..12_000 {
            let name = name_of(&mut random, 6000);
            match elements.find(&name) {
                None => {
                    elements.push(&name, (step % 3 == 0).then_some(&b"{\"a\":1}"[..]));
                    names.push(name);
                }
                Some(slot) if step % 2 == 0 => {
                    elements.take_out(slot);
                    elements.free(slot);
                    names.swap_remove(slot as usize);
                }
                Some(slot) => _ = elements.set_attributes(slot, (step % 4 == 1).then_some(&name)),
            }
            if step == 4000 {
                frozen = (elements.clone(), names.clone());
            }
        }
        for (elements, names) in [&frozen, &(elements, names)] {
            elements.check_invariants();
            let by_name: BTreeMap<&[u8], u32> = names.iter().map(|name| &**name).zip(0..).collect();
            assert!(by_name.iter().all(|(name, &slot)| elements.find(name) == Some(slot)));
            assert_eq!(elements.find(b"zz"), None);
            assert!(elements.from(b"", true).eq(by_name.values().copied()));
            assert!(elements.from(b"8", true).eq(by_name.range(&b"8"[..]..).map(|(_, &slot)| slot)));
        }
    }

    #[test]
    fn slots_of_removed_elements_are_reused_later() {
        let mut random = Random::seeded(6);
        let mut elements = Elements::default();
        // Names by slot, and whether their elements exist.
        let mut model: Vec<(Vec<u8>, bool)> = Vec::new();
        for _ in 0..20_000 {
            let name = name_of(&mut random, 900);
            match elements.find(&name) {
                None => {
                    elements.push(&name, None);
                    model.push((name, true));
                }
                Some(slot) => {
                    assert_eq!(model[slot as usize], (name, true));
                    elements.take_out(slot);
                    model[slot as usize].1 = false;
                }
            }
            let slot = random.below(model.len());
            if !model[slot].1 {
                elements.free(slot as u32);
                model.swap_remove(slot);
            }
            assert_eq!(
                (elements.slots(), elements.len()),
                (model.len(), model.iter().filter(|m| m.1).count())
            );
        }
        elements.check_invariants();
        assert!(elements.len() < elements.slots());
        for (slot, (name, is_there)) in model.iter().enumerate() {
            assert_eq!(elements.find(name) == Some(slot as u32), *is_there);
        }
    }

    #[test]
    fn emptied_elements_take_little_memory() {
        let mut elements = Elements::default();
        (0..3000).for_each(|number: u32| elements.push(&number.to_be_bytes(), None));
        for _ in 0..3000 {
            elements.take_out(0);
            elements.free(0);
        }
        elements.check_invariants();
        assert!(elements.memory_bytes() < 500, "{}", elements.memory_bytes());
    }
}
