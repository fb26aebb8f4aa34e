//! Sets: members in one of three encodings, by their number and kind.
//!
//! * **intset**: integers only, up to `set-max-intset-entries`, in ascending order.
//! * **listpack**: up to `set-max-listpack-entries` members of up to `set-max-listpack-value` bytes each, in the order
//!   in which they were added.
//! * **hashtable**: everything else, in no order.
//!
//! A set changes to another encoding when a member that does not fit is added, as in Redis 7.2, and never back.
//! [`algebra`] computes unions, intersections and differences, [`sample`] selects random members.

pub mod algebra;
mod sample;

use std::fmt;
use std::ops::ControlFlow;

use ember_protocol::number::parse_i64;

use crate::entries::entry::NewValue;
use crate::memory::moving::Mover;
use crate::memory::size_class;
use crate::types::collection::Collection;
use crate::types::elements::{Elements, FETCHED_MAX};
use crate::types::intset::Intset;
use crate::types::limits::EncodingLimits;
use crate::types::listpack::Listpack;
use crate::types::value::ValueType;

pub use crate::types::listpack::Element;

/// The maximum number of members of an intset, whatever the configuration, because their number has 32 bits.
const INTSET_LEN_MAX: usize = 1 << 30;

/// The maximum number of bytes that an integer takes in a listpack, including the length after it.
const LISTPACK_INTEGER_BYTES_MAX: usize = 11;

/// A set, in one of its encodings.
#[derive(Clone)]
pub enum Set {
    /// Integers in ascending order.
    Intset(Intset),
    /// Few short members in the order in which they were added.
    Listpack(Listpack),
    /// Any members; the entries have empty values.
    Table(Box<Elements>),
}

impl Default for Set {
    fn default() -> Set {
        Set::Intset(Intset::new())
    }
}

impl fmt::Debug for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} members ({})", self.len(), self.encoding_name())
    }
}

impl Collection for Set {
    const TYPE: ValueType = ValueType::Set;

    fn encoding_name(&self) -> &'static str {
        match self {
            Set::Intset(_) => "intset",
            Set::Listpack(_) => "listpack",
            Set::Table(_) => "hashtable",
        }
    }

    fn memory_bytes(&self) -> usize {
        match self {
            Set::Intset(intset) => intset.memory_bytes(),
            Set::Listpack(listpack) => listpack.memory_bytes(),
            Set::Table(elements) => size_class(size_of::<Elements>()) + elements.memory_bytes(),
        }
    }

    fn len(&self) -> usize {
        match self {
            Set::Intset(intset) => intset.len(),
            Set::Listpack(listpack) => listpack.len(),
            Set::Table(elements) => elements.len(),
        }
    }

    fn fetch_elements(&self, names: &[&[u8]]) {
        if let Set::Table(elements) = self {
            elements.fetch_ahead(names.iter().copied());
        }
    }

    fn free_effort(&self) -> usize {
        match self {
            Set::Intset(_) | Set::Listpack(_) => 1,
            Set::Table(elements) => elements.len(),
        }
    }

    fn move_inside(&mut self, from: u64, most: usize, mover: &mut Mover<'_>) -> u64 {
        match self {
            Set::Intset(intset) => intset.move_to(mover),
            Set::Listpack(listpack) => listpack.move_to(mover),
            Set::Table(elements) => {
                if from == 0 {
                    mover.move_box(elements);
                }
                return elements.move_inside(from, most, mover);
            }
        }
        0
    }

    fn check_invariants(&self) {
        match self {
            Set::Intset(intset) => intset.check_invariants(),
            Set::Listpack(listpack) => {
                listpack.check_invariants();
                let members: std::collections::HashSet<Vec<u8>> =
                    listpack.iter().map(Element::to_vec).collect();
                assert_eq!(members.len(), listpack.len(), "every member occurs once");
            }
            Set::Table(elements) => elements.check_invariants(),
        }
    }
}

impl Set {
    /// Returns an empty set in the encoding for about `count` members that include `first`.
    pub fn for_members(first: &[u8], count: usize, limits: &EncodingLimits) -> Set {
        if count <= limits.set_max_intset_entries && parse_i64(first).is_some() {
            Set::default()
        } else if count <= limits.set_max_listpack_entries {
            Set::Listpack(Listpack::new())
        } else {
            Set::Table(Box::default())
        }
    }

    /// Converts to a hashtable at once if `count` members are too many for a compact encoding: the caller is about to
    /// add these, though some of them may exist already. O(members) for a conversion.
    pub fn expect(&mut self, count: usize, limits: &EncodingLimits) {
        let count_max = match self {
            Set::Intset(_) => limits.set_max_intset_entries,
            Set::Listpack(_) => limits.set_max_listpack_entries,
            Set::Table(_) => usize::MAX,
        };
        if count > count_max {
            self.convert_to_table();
        }
    }

    /// Adds a member. Returns whether it is new. O(1) in a hashtable, O(N) in the compact encodings.
    pub fn insert(&mut self, member: &[u8], limits: &EncodingLimits) -> bool {
        match self {
            Set::Table(elements) => return elements.insert(member, NewValue::Bytes(b""), None),
            Set::Listpack(listpack) => {
                if find(listpack, member).is_some() {
                    return false;
                }
                if listpack.len() < limits.set_max_listpack_entries
                    && member.len() <= limits.set_max_listpack_value
                    && listpack.can_hold(member.len())
                {
                    listpack.push_back(member);
                    return true;
                }
            }
            Set::Intset(intset) => match parse_i64(member) {
                Some(number) => return self.insert_integer(number, limits),
                None if fits_listpack(intset, member.len(), limits) => {
                    let mut listpack = listpack_of(intset);
                    listpack.push_back(member);
                    *self = Set::Listpack(listpack);
                    return true;
                }
                None => {}
            },
        }
        self.convert_to_table();
        self.insert(member, limits)
    }

    /// Adds a member of another set; see [`Set::insert`].
    pub fn insert_element(&mut self, member: Element<'_>, limits: &EncodingLimits) -> bool {
        match (&*self, member) {
            (Set::Intset(_), Element::Integer(number)) => self.insert_integer(number, limits),
            _ => self.insert(member.bytes(&mut itoa::Buffer::new()), limits),
        }
    }

    /// Adds an integer to an intset.
    fn insert_integer(&mut self, number: i64, limits: &EncodingLimits) -> bool {
        let Set::Intset(intset) = self else { return false };
        let is_new = intset.insert(number);
        if is_new && intset.len() > limits.set_max_intset_entries.min(INTSET_LEN_MAX) {
            self.convert_to_table();
        }
        is_new
    }

    /// Removes a member. Returns whether it existed. O(1) in a hashtable, O(N) in the compact encodings.
    pub fn remove(&mut self, member: &[u8]) -> bool {
        match self {
            Set::Intset(intset) => parse_i64(member).is_some_and(|number| intset.remove(number)),
            Set::Listpack(listpack) => {
                let found = find(listpack, member);
                if let Some(at) = found {
                    listpack.remove(at);
                }
                found.is_some()
            }
            Set::Table(elements) => elements.remove(member).is_some(),
        }
    }

    /// Removes a member of another set; see [`Set::remove`].
    pub fn remove_element(&mut self, member: Element<'_>) -> bool {
        match (self, member) {
            (Set::Intset(intset), Element::Integer(number)) => intset.remove(number),
            (set, _) => set.remove(member.bytes(&mut itoa::Buffer::new())),
        }
    }

    /// Returns whether `member` is in the set. O(1) in a hashtable, O(log N) in an intset, O(N) in a listpack.
    pub fn contains(&self, member: &[u8]) -> bool {
        match self {
            Set::Intset(intset) => parse_i64(member).is_some_and(|number| intset.contains(number)),
            Set::Listpack(listpack) => find(listpack, member).is_some(),
            Set::Table(elements) => elements.contains(member),
        }
    }

    /// Returns whether a member of another set is in this one, too; see [`Set::contains`].
    pub fn contains_element(&self, member: Element<'_>) -> bool {
        match (self, member) {
            (Set::Intset(intset), Element::Integer(number)) => intset.contains(number),
            _ => self.contains(member.bytes(&mut itoa::Buffer::new())),
        }
    }

    /// Calls `visit` for the members, in the order of the encoding, until it breaks.
    pub fn try_for_each<'a>(
        &'a self,
        mut visit: impl FnMut(Element<'a>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match self {
            Set::Intset(intset) => intset.iter().try_for_each(|number| visit(Element::Integer(number))),
            Set::Listpack(listpack) => listpack.iter().try_for_each(visit),
            Set::Table(elements) => elements.iter().try_for_each(|entry| visit(Element::Bytes(entry.key()))),
        }
    }

    /// Calls `visit` for all members, in the order of the encoding.
    pub fn for_each<'a>(&'a self, mut visit: impl FnMut(Element<'a>)) {
        let _ = self.try_for_each(|member| {
            visit(member);
            ControlFlow::Continue(())
        });
    }

    /// Like [`Set::try_for_each`], with up to [`FETCHED_MAX`] members at once.
    fn try_for_each_batch(&self, visit: impl FnMut(&[Element<'_>]) -> ControlFlow<()>) -> ControlFlow<()> {
        match self {
            Set::Intset(intset) => try_for_each_batch_of(intset.iter().map(Element::Integer), visit),
            Set::Listpack(listpack) => try_for_each_batch_of(listpack.iter(), visit),
            Set::Table(elements) => {
                try_for_each_batch_of(elements.iter().map(|entry| Element::Bytes(entry.key())), visit)
            }
        }
    }

    /// Prefetches the memory that look-ups of these members will read.
    fn fetch_ahead(&self, members: &[Element<'_>]) {
        if let Set::Table(elements) = self {
            elements.fetch_ahead(members.iter().filter_map(|&member| match member {
                Element::Integer(_) => None,
                Element::Bytes(bytes) => Some(bytes),
            }));
        }
    }

    /// Calls `visit` for about `count` members from `cursor` on, 0 at the beginning, and returns the cursor to continue
    /// from, 0 at the end; see [`Elements::scan`]. The compact encodings return all their members at once.
    pub fn scan(&self, cursor: u64, count: usize, mut visit: impl FnMut(Element<'_>)) -> u64 {
        match self {
            Set::Table(elements) => elements.scan(cursor, count, |entry| visit(Element::Bytes(entry.key()))),
            Set::Intset(_) | Set::Listpack(_) => {
                self.for_each(visit);
                0
            }
        }
    }

    fn convert_to_table(&mut self) {
        let mut elements = Box::<Elements>::default();
        self.for_each(|member| {
            elements.insert(member.bytes(&mut itoa::Buffer::new()), NewValue::Bytes(b""), None);
        });
        *self = Set::Table(elements);
    }
}

fn try_for_each_batch_of<'a>(
    mut members: impl Iterator<Item = Element<'a>>,
    mut visit: impl FnMut(&[Element<'_>]) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut batch = [Element::Integer(0); FETCHED_MAX];
    loop {
        let mut count = 0;
        for (place, member) in batch.iter_mut().zip(&mut members) {
            *place = member;
            count += 1;
        }
        if count == 0 {
            return ControlFlow::Continue(());
        }
        visit(&batch[..count])?;
    }
}

/// Returns the offset of a member in a listpack.
fn find(listpack: &Listpack, member: &[u8]) -> Option<usize> {
    listpack.find(listpack.first()?, member, 0)
}

/// Returns whether the members of an intset and another one of `len_bytes` bytes fit into a listpack.
fn fits_listpack(intset: &Intset, len_bytes: usize, limits: &EncodingLimits) -> bool {
    let digits_max = [intset.first(), intset.last()]
        .into_iter()
        .flatten()
        .map(|number| itoa::Buffer::new().format(number).len())
        .max()
        .unwrap_or(0);
    intset.len() < limits.set_max_listpack_entries
        && len_bytes.max(digits_max) <= limits.set_max_listpack_value
        && Listpack::new().can_hold(intset.len() * LISTPACK_INTEGER_BYTES_MAX + len_bytes)
}

fn listpack_of(intset: &Intset) -> Listpack {
    let mut listpack = Listpack::new();
    intset.iter().for_each(|number| listpack.push_back_integer(number));
    listpack
}
