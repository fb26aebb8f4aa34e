//! A large sorted set: a hash table of members, each with its score, and a tree that orders them.
//!
//! Members are not stored twice: the tree refers to the table's entries by their addresses. An entry keeps its address
//! until its member is removed, whatever the table does; a new score is written in place. When an entry is moved, the
//! tree is updated at once ([`Indexed::move_inside`]).
//!
//! # Invariants
//!
//! * The addresses in the tree are those of the entries in the table, each once. So an address that a search meets may
//!   be dereferenced: a member is removed from the tree before its entry is removed from the table, or neither is read
//!   in between.
#![allow(unsafe_code, reason = "the tree refers to entries that the table next to it owns")]

use std::cmp::Ordering;
use std::ops::Range;

use ember_protocol::number;

use super::range::{LexRange, ScoreRange};
use super::tree::{self, Tree};
use crate::algorithms::random::Random;
use crate::entries::entry::{EntryAddress, EntryRef, NewValue};
use crate::memory::moving::Mover;
use crate::types::elements::Elements;
use crate::types::value::StringValue;

/// The number of entries that an iteration prefetches ahead.
const FETCHED_AHEAD: usize = 8;

/// Members with scores, in a table and in a tree.
#[derive(Default)]
pub(super) struct Indexed {
    members: Elements,
    order: Tree<EntryAddress>,
}

fn score_value(score: f64) -> NewValue<'static> {
    NewValue::Int(score.to_bits() as i64)
}

fn score_of(entry: EntryRef<'_>) -> f64 {
    match entry.string() {
        StringValue::Int(bits) => f64::from_bits(bits as u64),
        _ => unreachable!("the value of a member is its score"),
    }
}

/// Returns the member whose entry has this address, which must be in the tree that belongs to `members`.
#[inline]
fn member_at(members: &Elements, address: EntryAddress) -> &[u8] {
    let _ = members;
    // SAFETY: by the invariants of this module, the table owns an entry at each address in the tree. The borrow of the
    // table prevents changes to it while the member is read.
    unsafe { address.entry() }.key()
}

/// Returns a function that compares elements with a score and a member.
#[inline]
fn order_to<'a>(
    members: &'a Elements,
    score: f64,
    member: &'a [u8],
) -> impl Fn(f64, EntryAddress) -> Ordering + Copy + 'a {
    move |other, address| {
        if other < score {
            Ordering::Less
        } else if other > score {
            Ordering::Greater
        } else {
            member_at(members, address).cmp(member)
        }
    }
}

impl Indexed {
    /// Prefetches the memory that look-ups of these members will read.
    pub(super) fn fetch_ahead(&self, names: &[&[u8]]) {
        self.members.fetch_ahead(names.iter().copied());
    }

    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.members.memory_bytes() + self.order.memory_bytes()
    }

    /// Returns the score of a member. O(1).
    pub(super) fn score(&self, member: &[u8]) -> Option<f64> {
        self.members.get(member).map(score_of)
    }

    /// Adds a member or changes its score; returns the previous score. O(log n).
    pub(super) fn set(&mut self, member: &[u8], score: f64) -> Option<f64> {
        let place = match self.members.find_or_add(member, score_value(score)) {
            Ok(place) => place,
            Err(address) => {
                self.order.insert(score, address, order_to(&self.members, score, member));
                return None;
            }
        };
        let entry = self.members.entry(place);
        let (previous, address) = (score_of(entry), entry.address());
        if previous != score {
            self.members.edit(place, |slot| slot.set_int(score.to_bits() as i64));
            let old_order = order_to(&self.members, previous, member);
            let new_order = order_to(&self.members, score, member);
            if !self.order.reposition(old_order, score, new_order) {
                self.order.remove(old_order);
                self.order.insert(score, address, new_order);
            }
        }
        Some(previous)
    }

    /// Appends a member that does not exist yet and belongs after all others. O(log n), faster than [`Indexed::set`].
    pub(super) fn push_back(&mut self, member: &[u8], score: f64) {
        if let Err(address) = self.members.find_or_add(member, score_value(score)) {
            self.order.insert(score, address, |_, _| Ordering::Less);
        }
    }

    /// Removes a member and returns its score. O(log n).
    pub(super) fn remove(&mut self, member: &[u8]) -> Option<f64> {
        let place = self.members.find(member)?;
        let score = score_of(self.members.entry(place));
        self.order.remove(order_to(&self.members, score, member));
        self.members.remove_at(place);
        Some(score)
    }

    /// Removes the members with ranks in `range`. O(log n + members removed).
    pub(super) fn remove_range(&mut self, range: Range<usize>) {
        let members = &mut self.members;
        self.order.remove_range(range, |_, address| {
            // SAFETY: the entry is still in the table: each address is in the tree once, and only this closure removes
            // entries here. The removal returns the entry, so its key outlives the look-up.
            let member = unsafe { address.entry() }.key();
            drop(members.remove(member));
        });
    }

    /// Moves entries and nodes to other allocations: of about `most` members, from rank `from` on. Returns the rank to
    /// continue from; 0 at the end. O(log n + members).
    pub(super) fn move_inside(&mut self, from: u64, most: usize, mover: &mut Mover<'_>) -> u64 {
        let members = &mut self.members;
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        let end = from.saturating_add(most).min(self.order.len());
        if from >= end {
            return 0;
        }
        self.order.move_inside(from..end, mover, &mut |address, mover| {
            // SAFETY: the entry is in the table and stays there: the next line is the first that may move it, and its
            // key is not read after that.
            let place = members.find(unsafe { address.entry() }.key());
            members.move_entry(place.expect("each element of the tree is in the table"), mover)
        });
        if end < self.order.len() { end as u64 } else { 0 }
    }

    /// Returns the rank and the score of a member. O(log n).
    pub(super) fn rank(&self, member: &[u8]) -> Option<(usize, f64)> {
        let score = self.score(member)?;
        let order = order_to(&self.members, score, member);
        Some((self.order.rank(|score, address| order(score, address) == Ordering::Less), score))
    }

    /// Returns the members with ranks in `range`, iterable from both ends. O(1) per member.
    pub(super) fn iter(&self, range: Range<usize>) -> IndexedIter<'_> {
        IndexedIter { members: &self.members, elements: self.order.iter(range) }
    }

    /// Calls `visit` for the members with ranks in `range`, in order. O(log n + members).
    #[inline]
    pub(super) fn visit<'a>(&'a self, range: Range<usize>, mut visit: impl FnMut(&'a [u8], f64)) {
        self.order.visit(range, |score, address, coming| {
            if let Some(ahead) = coming.get(FETCHED_AHEAD) {
                ahead.prefetch();
            }
            visit(member_at(&self.members, address), score);
        });
    }

    /// Returns the ranks of the scores in a range. O(log n).
    pub(super) fn score_range(&self, range: &ScoreRange) -> Range<usize> {
        let start = self.order.rank(|score, _| range.is_before(score));
        let end = self.order.rank(|score, _| range.is_not_after(score));
        start..end.max(start)
    }

    /// Returns the ranks of the first `most` scores in a range, or of the last ones if `is_reverse`. O(log n + most),
    /// with one search.
    pub(super) fn score_range_end(&self, range: &ScoreRange, is_reverse: bool, most: usize) -> Range<usize> {
        if is_reverse {
            let end = self.order.rank(|score, _| range.is_not_after(score));
            let elements = self.order.iter(end.saturating_sub(most)..end).rev();
            let count = elements.take_while(|&(score, _)| !range.is_before(score)).count();
            end - count..end
        } else {
            let start = self.order.rank(|score, _| range.is_before(score));
            let elements = self.order.iter(start..start.saturating_add(most));
            start..start + elements.take_while(|&(score, _)| range.is_not_after(score)).count()
        }
    }

    /// Returns the ranks of the members in a range, if all members have one score. O(log n).
    pub(super) fn lex_range(&self, range: &LexRange<'_>) -> Range<usize> {
        let start = self.order.rank(|_, address| range.is_before(member_at(&self.members, address)));
        let end = self.order.rank(|_, address| range.is_not_after(member_at(&self.members, address)));
        start..end.max(start)
    }

    /// Returns a member chosen uniformly at random, and its score. O(log n).
    pub(super) fn random(&self, random: &mut Random) -> Option<(&[u8], f64)> {
        self.members.random(random).map(|entry| (entry.key(), score_of(entry)))
    }

    /// Like [`Elements::scan`], with the text of each score.
    pub(super) fn scan(&self, cursor: u64, count: usize, mut visit: impl FnMut(&[u8], &[u8])) -> u64 {
        let mut text = Vec::with_capacity(24);
        self.members.scan(cursor, count, |entry| {
            text.clear();
            number::write_f64(&mut text, score_of(entry));
            visit(entry.key(), &text);
        })
    }

    pub(super) fn check_invariants(&self) {
        self.members.check_invariants();
        self.order.check_invariants(|a, b| {
            a.0 < b.0 || (a.0 == b.0 && member_at(&self.members, a.1) < member_at(&self.members, b.1))
        });
        assert_eq!(self.members.len(), self.order.len());
        for (score, address) in self.order.iter(0..self.order.len()) {
            let entry = self.members.get(member_at(&self.members, address));
            let entry = entry.expect("each element of the tree is in the table");
            assert_eq!((entry.address(), score_of(entry).to_bits()), (address, score.to_bits()));
        }
    }
}

impl Clone for Indexed {
    fn clone(&self) -> Indexed {
        let mut copy = Indexed::default();
        for (member, score) in self.iter(0..self.len()) {
            copy.push_back(member, score);
        }
        copy
    }
}

/// Members and scores in order; see [`Indexed::iter`].
pub(super) struct IndexedIter<'a> {
    members: &'a Elements,
    elements: tree::Iter<'a, EntryAddress>,
}

impl<'a> Iterator for IndexedIter<'a> {
    type Item = (&'a [u8], f64);

    #[inline]
    fn next(&mut self) -> Option<(&'a [u8], f64)> {
        let (score, address) = self.elements.next()?;
        if let Some(ahead) = self.elements.near_front().get(FETCHED_AHEAD) {
            ahead.prefetch();
        }
        Some((member_at(self.members, address), score))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.elements.size_hint()
    }
}

impl<'a> DoubleEndedIterator for IndexedIter<'a> {
    #[inline]
    fn next_back(&mut self) -> Option<(&'a [u8], f64)> {
        let (score, address) = self.elements.next_back()?;
        if let Some(ahead) = self.elements.near_back().iter().nth_back(FETCHED_AHEAD) {
            ahead.prefetch();
        }
        Some((member_at(self.members, address), score))
    }
}
