//! A block of a stream: up to about a hundred entries in one listpack, in Redis's format.
//!
//! ```text
//! master entry   live | deleted | n | name 1 … name n | 0
//! entry          flags | ms | sequence | value 1 … value n | elements          flags has SAME_FIELDS
//! entry          flags | ms | sequence | m | name 1 | value 1 … value m | elements
//! ```
//!
//! Every part is an element of the listpack. `live` and `deleted` count entries. The names are those of the first
//! entry's fields, and an entry with the same names in the same order stores only its values. `ms` and `sequence` are
//! added to the block's ID, which is that of its first entry. `elements` is the number of elements of the entry before
//! it, so that entries can be read from the end; the 0 of the master entry ends such a walk. A deleted entry keeps its
//! bytes and has the flag DELETED.
//!
//! The format: Redis, `streamAppendItem` in `t_stream.c` by S. Sanfilippo.

use super::StreamId;
use crate::types::listpack::{Element, Iter, Listpack};

const DELETED: i64 = 1;
const SAME_FIELDS: i64 = 2;

const INTACT: &str = "a block is well-formed: it was checked when it came from elsewhere";

/// Returns the number in an element of a block.
fn number(element: Option<Element<'_>>) -> i64 {
    match element {
        Some(Element::Integer(number)) => number,
        _ => panic!("{INTACT}"),
    }
}

/// Returns the count in an element of a block.
fn count(element: Option<Element<'_>>) -> usize {
    usize::try_from(number(element)).expect(INTACT)
}

/// A block: the ID of its first entry, and its entries, at least one.
#[derive(Clone, Debug)]
pub(super) struct Block {
    first_id: StreamId,
    listpack: Listpack,
}

/// The contents of the master entry.
#[derive(Clone)]
struct Master<'a> {
    first_id: StreamId,
    live: usize,
    deleted: usize,
    names: Iter<'a>,
    name_count: usize,
}

/// An entry of a stream.
#[derive(Clone)]
pub struct Entry<'a> {
    /// The ID of the entry.
    pub id: StreamId,
    /// The number of the entry's fields.
    pub field_count: usize,
    is_deleted: bool,
    /// The names, if they are not in `body`.
    names: Option<Iter<'a>>,
    /// The values; each follows its name, unless the names are in `names`.
    body: Iter<'a>,
}

impl<'a> Entry<'a> {
    /// Names and values of the fields, in order.
    pub fn fields(&self) -> Fields<'a> {
        Fields { left: self.field_count, names: self.names.clone(), body: self.body.clone() }
    }

    /// Returns the number of the entry's elements in the listpack, from the first value to the last element.
    fn tail_elements(&self) -> usize {
        self.field_count * if self.names.is_some() { 1 } else { 2 } + 1
    }
}

/// Names and values of an entry's fields.
#[derive(Clone)]
pub struct Fields<'a> {
    left: usize,
    names: Option<Iter<'a>>,
    body: Iter<'a>,
}

impl<'a> Iterator for Fields<'a> {
    type Item = (Element<'a>, Element<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let name = match &mut self.names {
            Some(names) => names.next(),
            None => self.body.next(),
        };
        Some((name.expect(INTACT), self.body.next().expect(INTACT)))
    }
}

impl Block {
    /// Returns a block of one entry.
    pub(super) fn new<'f>(
        id: StreamId,
        fields: impl ExactSizeIterator<Item = (&'f [u8], &'f [u8])> + Clone,
    ) -> Block {
        let mut listpack = Listpack::new();
        listpack.push_back_integer(0);
        listpack.push_back_integer(0);
        listpack.push_back_integer(fields.len() as i64);
        fields.clone().for_each(|(name, _)| listpack.push_back(name));
        listpack.push_back_integer(0);
        let mut block = Block { first_id: id, listpack };
        block.append(id, fields);
        block
    }

    /// Reads a block from a listpack of any origin; `None` if it is not a block, or contains no entry. All of its
    /// entries may be deleted: trimming leaves such blocks, as in Redis. O(bytes).
    pub(super) fn from_listpack(first_id: StreamId, listpack: Listpack) -> Option<Block> {
        // Elements are rewritten in their shortest forms, because offsets must not change when a number is replaced by
        // a small one.
        let mut elements = Listpack::new();
        let mut digits = itoa::Buffer::new();
        listpack.iter().for_each(|element| elements.push_back(element.bytes(&mut digits)));
        let total = checked_total(first_id, &mut elements.iter())?;
        (total > 0).then_some(Block { first_id, listpack: elements })
    }

    /// Returns the ID that identifies the block.
    pub(super) fn first_id(&self) -> StreamId {
        self.first_id
    }

    /// Returns the bytes of the block in Redis's format.
    pub(super) fn listpack(&self) -> &Listpack {
        &self.listpack
    }

    /// Returns the bytes of memory of the block.
    pub(super) fn memory_bytes(&self) -> usize {
        self.listpack.memory_bytes()
    }

    /// Returns the number of entries that are not deleted.
    pub(super) fn live(&self) -> usize {
        self.master().live
    }

    /// Returns the number of entries, including deleted ones.
    pub(super) fn total(&self) -> usize {
        let master = self.master();
        master.live + master.deleted
    }

    fn master(&self) -> Master<'_> {
        let mut rest = self.listpack.iter();
        let (live, deleted) = (count(rest.next()), count(rest.next()));
        let name_count = count(rest.next());
        Master { first_id: self.first_id, live, deleted, names: rest, name_count }
    }

    /// Returns the offset of the first entry.
    fn first_entry(&self, master: &Master<'_>) -> usize {
        let first = self.listpack.first().expect(INTACT);
        self.skip(first, master.name_count + 4).expect(INTACT)
    }

    /// Returns the offset `elements` elements after the one at `offset`; `None` after the last one.
    fn skip(&self, offset: usize, elements: usize) -> Option<usize> {
        (0..elements).try_fold(offset, |offset, _| self.listpack.next(offset))
    }

    /// Adds an entry whose ID is greater than all other IDs. O(fields).
    pub(super) fn append<'f>(
        &mut self,
        id: StreamId,
        fields: impl ExactSizeIterator<Item = (&'f [u8], &'f [u8])> + Clone,
    ) {
        let master = self.master();
        let same_fields = master.name_count == fields.len()
            && fields.clone().zip(master.names.clone()).all(|((name, _), element)| element.eq_bytes(name));
        let live = master.live + 1;
        let (ms, sequence) = id.minus(self.first_id);
        let field_count = fields.len() as i64;
        let listpack = &mut self.listpack;
        let first = listpack.first().expect(INTACT);
        listpack.replace_integer(first, live as i64);
        listpack.push_back_integer(if same_fields { SAME_FIELDS } else { 0 });
        listpack.push_back_integer(ms);
        listpack.push_back_integer(sequence);
        if !same_fields {
            listpack.push_back_integer(field_count);
        }
        for (name, value) in fields {
            if !same_fields {
                listpack.push_back(name);
            }
            listpack.push_back(value);
        }
        listpack.push_back_integer(if same_fields { field_count + 3 } else { 2 * field_count + 4 });
    }

    /// Returns all entries that are not deleted, in order.
    pub(super) fn entries(&self) -> Forward<'_> {
        let master = self.master();
        let mut rest = master.names.clone();
        (0..=master.name_count).for_each(|_| {
            rest.next();
        });
        Forward { master, rest }
    }

    /// Returns all entries that are not deleted, from the last to the first.
    pub(super) fn entries_back(&self) -> Backward<'_> {
        Backward { all: self.all_back() }
    }

    fn all_back(&self) -> AllBackward<'_> {
        AllBackward { master: self.master(), listpack: &self.listpack, end: self.listpack.last() }
    }

    /// Returns the ID of the last entry, deleted or not.
    pub(super) fn last_id(&self) -> StreamId {
        self.all_back().next().expect(INTACT).id
    }

    /// Deletes the entry with this ID. Returns false if it does not exist. O(bytes of the block).
    pub(super) fn delete(&mut self, id: StreamId) -> bool {
        self.delete_while(|entry| if entry.id < id { Step::Skip } else { Step::of(entry.id == id) }) != 0
    }

    /// Deletes entries from the first one on, while `wanted` returns true and the block contains entries that are not
    /// deleted; returns how many were deleted. O(bytes of the block).
    pub(super) fn delete_first(&mut self, mut wanted: impl FnMut(StreamId) -> bool) -> usize {
        self.delete_while(|entry| match wanted(entry.id) {
            false => Step::Stop,
            true => Step::Delete,
        })
    }

    /// Deletes all entries for which `wanted` returns true; returns how many were deleted. O(bytes of the block).
    pub(super) fn delete_all(&mut self, mut wanted: impl FnMut(StreamId) -> bool) -> usize {
        self.delete_while(|entry| if wanted(entry.id) { Step::Delete } else { Step::Skip })
    }

    /// Walks the entries that are not deleted and applies the step that `judge` returns; returns how many were deleted.
    fn delete_while(&mut self, mut judge: impl FnMut(&Entry<'_>) -> Step) -> usize {
        let master = self.master();
        let (live, deleted) = (master.live, master.deleted);
        let mut next = Some(self.first_entry(&master));
        let mut found = Vec::new();
        while let Some(offset) = next {
            let entry = master.entry(&mut self.listpack.iter_from(offset)).expect(INTACT);
            let step = if entry.is_deleted { Step::Skip } else { judge(&entry) };
            match step {
                Step::Skip => {}
                Step::Stop => break,
                Step::Delete | Step::DeleteLast => {
                    let flags = if entry.names.is_some() { SAME_FIELDS } else { 0 };
                    found.push((offset, flags | DELETED));
                }
            }
            if step == Step::DeleteLast {
                break;
            }
            let head_elements = if entry.names.is_some() { 3 } else { 4 };
            next = self.skip(offset, head_elements + entry.tail_elements());
        }
        // Flags do not change their size, so the offsets remain valid; the counts are written last because their size
        // may change.
        for &(offset, flags) in &found {
            self.listpack.replace_integer(offset, flags);
        }
        if !found.is_empty() {
            let first = self.listpack.first().expect(INTACT);
            self.listpack.replace_integer(first, (live - found.len()) as i64);
            let second = self.listpack.next(first).expect(INTACT);
            self.listpack.replace_integer(second, (deleted + found.len()) as i64);
        }
        found.len()
    }

    /// Panics if the bytes are not what this module writes. For tests.
    pub(super) fn check_invariants(&self) {
        self.listpack.check_invariants();
        let master = self.master();
        let mut ids: Vec<StreamId> = self.all_back().map(|entry| entry.id).collect();
        assert_eq!(ids.len(), master.live + master.deleted);
        ids.reverse();
        assert!(ids.is_sorted_by(|a, b| a < b) && ids[0] == self.first_id);
        let forward: Vec<StreamId> = self.entries().map(|entry| entry.id).collect();
        let mut back: Vec<StreamId> = self.entries_back().map(|entry| entry.id).collect();
        back.reverse();
        assert_eq!(forward, back);
        assert_eq!(forward.len(), master.live);
    }
}

/// Returns the number of entries of a block, including deleted ones, if its elements are a valid block.
fn checked_total(first_id: StreamId, rest: &mut Iter<'_>) -> Option<usize> {
    let integer = |element: Option<Element<'_>>| match element? {
        Element::Integer(number) => Some(number),
        Element::Bytes(_) => None,
    };
    let natural = |element: Option<Element<'_>>| usize::try_from(integer(element)?).ok();
    let (live, deleted) = (natural(rest.next())?, natural(rest.next())?);
    let name_count = natural(rest.next())?;
    (0..name_count).try_for_each(|_| rest.next().map(drop))?;
    if natural(rest.next())? != 0 {
        return None;
    }
    let (mut found_live, mut found_deleted) = (0, 0);
    let mut last_id = None;
    while let Some(flags) = rest.next() {
        let flags = integer(Some(flags))?;
        let id = first_id.plus(integer(rest.next())?, integer(rest.next())?);
        let is_in_order = last_id.map_or(id == first_id, |last_id| id > last_id);
        if !is_in_order || flags & !(DELETED | SAME_FIELDS) != 0 {
            return None;
        }
        last_id = Some(id);
        let (head, body) = if flags & SAME_FIELDS != 0 {
            (3, name_count)
        } else {
            (4, natural(rest.next())?.checked_mul(2)?)
        };
        (0..body).try_for_each(|_| rest.next().map(drop))?;
        if natural(rest.next())? != head + body {
            return None;
        }
        if flags & DELETED == 0 {
            found_live += 1;
        } else {
            found_deleted += 1;
        }
    }
    (live == found_live && deleted == found_deleted).then_some(live + deleted)
}

/// The step to apply to an entry on a walk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Skip,
    Delete,
    DeleteLast,
    Stop,
}

impl Step {
    fn of(is_found: bool) -> Step {
        if is_found { Step::DeleteLast } else { Step::Stop }
    }
}

impl<'a> Master<'a> {
    /// Returns the entry at the beginning of `rest`, and moves `rest` to its body. `None` after the last entry.
    fn entry(&self, rest: &mut Iter<'a>) -> Option<Entry<'a>> {
        let flags = number(Some(rest.next()?));
        let id = self.first_id.plus(number(rest.next()), number(rest.next()));
        let names = (flags & SAME_FIELDS != 0).then(|| self.names.clone());
        let field_count = if names.is_some() { self.name_count } else { count(rest.next()) };
        Some(Entry { id, field_count, is_deleted: flags & DELETED != 0, names, body: rest.clone() })
    }
}

/// The entries of a block, in order.
#[derive(Clone)]
pub(super) struct Forward<'a> {
    master: Master<'a>,
    /// The remaining entries, all whole.
    rest: Iter<'a>,
}

impl<'a> Iterator for Forward<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        loop {
            let entry = self.master.entry(&mut self.rest)?;
            (0..entry.tail_elements()).for_each(|_| {
                self.rest.next();
            });
            if !entry.is_deleted {
                return Some(entry);
            }
        }
    }
}

/// The entries of a block from the last to the first, including deleted ones.
struct AllBackward<'a> {
    master: Master<'a>,
    listpack: &'a Listpack,
    /// The offset of the last element of the next entry, or of the master entry's end.
    end: Option<usize>,
}

impl<'a> Iterator for AllBackward<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        let end = self.end?;
        let elements = count(Some(self.listpack.get(end)));
        if elements == 0 {
            return None;
        }
        let start = (0..elements).try_fold(end, |offset, _| self.listpack.prev(offset)).expect(INTACT);
        self.end = self.listpack.prev(start);
        self.master.entry(&mut self.listpack.iter_from(start))
    }
}

/// The entries of a block from the last to the first.
pub(super) struct Backward<'a> {
    all: AllBackward<'a>,
}

impl<'a> Iterator for Backward<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        self.all.find(|entry| !entry.is_deleted)
    }
}
