//! Sorted sets: members in the order of their scores, and of their bytes where scores are equal.
//!
//! A small set is a listpack ([`packed`]), a large one a hash table and a tree ([`indexed`], [`tree`]). A large set
//! never converts back.

mod indexed;
mod node;
mod packed;
pub mod range;
mod tree;

use std::collections::HashSet;
use std::ops::Range;

use crate::algorithms::random::Random;
use crate::memory::moving::Mover;
use crate::memory::size_class;
use crate::types::collection::Collection;
use crate::types::limits::EncodingLimits;
use crate::types::listpack::{Element, Listpack};
use crate::types::value::ValueType;
use indexed::{Indexed, IndexedIter};
use packed::{Packed, PackedIter};
use range::{LexRange, ScoreRange};

/// The value of a key that holds a sorted set.
#[derive(Clone)]
pub struct SortedSet(Form);

#[derive(Clone)]
enum Form {
    Packed(Packed),
    Indexed(Box<Indexed>),
}

impl Default for SortedSet {
    fn default() -> SortedSet {
        SortedSet(Form::Packed(Packed::default()))
    }
}

/// Evaluates an expression on a set in either form.
macro_rules! either {
    ($set:expr, $form:ident => $result:expr) => {
        match $set {
            Form::Packed($form) => $result,
            Form::Indexed($form) => $result,
        }
    };
}

impl SortedSet {
    /// Returns an empty set in the form for `len` members of up to `member_bytes` bytes each.
    pub fn for_members(len: usize, member_bytes: usize, limits: &EncodingLimits) -> SortedSet {
        let mut set = SortedSet::default();
        if len > limits.zset_max_listpack_entries || member_bytes > limits.zset_max_listpack_value {
            set.index();
        }
        set
    }

    /// Appends a member that does not exist yet and belongs after all others. O(log n).
    pub fn push_back(&mut self, member: &[u8], score: f64, limits: &EncodingLimits) {
        self.convert_if_full(member.len(), limits);
        either!(&mut self.0, form => form.push_back(member, score));
    }

    /// Converts a listpack before `more` members are added, if these alone exceed its limit.
    pub fn expect_members(&mut self, more: usize, limits: &EncodingLimits) {
        if more > limits.zset_max_listpack_entries {
            self.index();
        }
    }

    fn index(&mut self) {
        if let Form::Packed(packed) = &self.0 {
            let mut indexed = Box::<Indexed>::default();
            let mut digits = itoa::Buffer::new();
            for (member, score) in packed.iter(0..packed.len()) {
                indexed.push_back(member.bytes(&mut digits), score);
            }
            self.0 = Form::Indexed(indexed);
        }
    }

    /// Converts a listpack to which another member of `bytes` bytes cannot be added.
    fn convert_if_full(&mut self, bytes: usize, limits: &EncodingLimits) {
        if let Form::Packed(packed) = &self.0
            && (packed.len() >= limits.zset_max_listpack_entries
                || bytes > limits.zset_max_listpack_value
                || !packed.can_hold(bytes))
        {
            self.index();
        }
    }

    /// Returns the listpack, if that is the form. Files contain the same bytes.
    pub fn listpack(&self) -> Option<&Listpack> {
        match &self.0 {
            Form::Packed(packed) => Some(packed.listpack()),
            Form::Indexed(_) => None,
        }
    }

    /// Returns the score of a member. O(1); O(n) in a listpack.
    pub fn score(&self, member: &[u8]) -> Option<f64> {
        either!(&self.0, form => form.score(member))
    }

    /// Adds a member or changes its score; returns the previous score. O(log n).
    pub fn set(&mut self, member: &[u8], score: f64, limits: &EncodingLimits) -> Option<f64> {
        if let Form::Packed(packed) = &mut self.0 {
            if let Some(previous) = packed.change(member, score) {
                return Some(previous);
            }
            self.convert_if_full(member.len(), limits);
        }
        match &mut self.0 {
            Form::Packed(packed) => {
                packed.insert(member, score);
                None
            }
            Form::Indexed(indexed) => indexed.set(member, score),
        }
    }

    /// Removes a member and returns its score. O(log n).
    pub fn remove(&mut self, member: &[u8]) -> Option<f64> {
        either!(&mut self.0, form => form.remove(member))
    }

    /// Removes the members with ranks in `range`, which must be within the set. O(log n + members removed).
    pub fn remove_range(&mut self, range: Range<usize>) {
        either!(&mut self.0, form => form.remove_range(range));
    }

    /// Returns the rank, from 0, and the score of a member. O(log n).
    pub fn rank(&self, member: &[u8]) -> Option<(usize, f64)> {
        either!(&self.0, form => form.rank(member))
    }

    /// Returns the members with ranks in `range`, and their scores, iterable from both ends. O(log n) to begin, O(1)
    /// per member.
    pub fn iter(&self, range: Range<usize>) -> Iter<'_> {
        let range = range.start..range.end.min(self.len()).max(range.start);
        Iter(match &self.0 {
            Form::Packed(packed) => FormIter::Packed(packed.iter(range)),
            Form::Indexed(indexed) => FormIter::Indexed(indexed.iter(range)),
        })
    }

    /// Calls `visit` for the members with ranks in `range`, in order. O(log n + members), faster than
    /// [`SortedSet::iter`].
    pub fn visit<'a>(&'a self, range: Range<usize>, mut visit: impl FnMut(Element<'a>, f64)) {
        match &self.0 {
            Form::Packed(packed) => packed.iter(range).for_each(|(member, score)| visit(member, score)),
            Form::Indexed(indexed) => {
                indexed.visit(range, |member, score| visit(Element::Bytes(member), score));
            }
        }
    }

    /// Returns all members and their scores, in order.
    pub fn iter_all(&self) -> Iter<'_> {
        self.iter(0..self.len())
    }

    /// Returns the ranks of the scores in a range. O(log n).
    pub fn score_range(&self, range: &ScoreRange) -> Range<usize> {
        either!(&self.0, form => form.score_range(range))
    }

    /// Returns the ranks of the first `most` scores in a range, or of the last ones if `is_reverse`. O(log n + most).
    pub fn score_range_end(&self, range: &ScoreRange, is_reverse: bool, most: usize) -> Range<usize> {
        match &self.0 {
            Form::Packed(packed) => {
                let ranks = packed.score_range(range);
                let count = ranks.len().min(most);
                if is_reverse { ranks.end - count..ranks.end } else { ranks.start..ranks.start + count }
            }
            Form::Indexed(indexed) => indexed.score_range_end(range, is_reverse, most),
        }
    }

    /// Returns the ranks of the members in a range, if all scores are equal. Otherwise the result depends on the form,
    /// and in a listpack on the end from which the search starts. O(log n).
    pub fn lex_range(&self, range: &LexRange<'_>, is_reverse: bool) -> Range<usize> {
        match &self.0 {
            Form::Packed(packed) => packed.lex_range(range, is_reverse),
            Form::Indexed(indexed) => indexed.lex_range(range),
        }
    }

    /// Returns a member chosen uniformly at random, and its score. O(1) expected; O(n) in a listpack.
    pub fn random(&self, random: &mut Random) -> Option<(Element<'_>, f64)> {
        match &self.0 {
            Form::Packed(packed) if packed.len() > 0 => {
                let rank = random.below(packed.len());
                packed.iter(rank..rank + 1).next()
            }
            Form::Packed(_) => None,
            Form::Indexed(indexed) => {
                indexed.random(random).map(|(member, score)| (Element::Bytes(member), score))
            }
        }
    }

    /// Returns `count` different ranks in ascending order, or all if there are fewer; every choice has the same
    /// probability. O(count log count), or O(n) if `count` is a large part of the set.
    pub fn random_ranks(&self, count: usize, random: &mut Random) -> Vec<usize> {
        let len = self.len();
        if count >= len {
            return (0..len).collect();
        }
        // Floyd's method (Bentley, Floyd, "Programming Pearls: A Sample of Brilliance", CACM 30(9), 1987).
        let mut chosen = HashSet::new();
        for last in len - count..len {
            let rank = random.below(last + 1);
            if !chosen.insert(rank) {
                chosen.insert(last);
            }
        }
        let mut ranks: Vec<usize> = chosen.into_iter().collect();
        ranks.sort_unstable();
        ranks
    }

    /// Calls `visit` for about `count` members and the texts of their scores from `cursor` on, 0 at the beginning;
    /// returns the cursor to continue from, 0 at the end. A listpack is visited whole, with the texts stored in it:
    /// large integers have all their digits. Members that exist from the first call to the last are visited.
    pub fn scan(&self, cursor: u64, count: usize, visit: impl FnMut(&[u8], &[u8])) -> u64 {
        match &self.0 {
            Form::Packed(packed) => {
                packed.visit_texts(visit);
                0
            }
            Form::Indexed(indexed) => indexed.scan(cursor, count, visit),
        }
    }
}

impl Collection for SortedSet {
    const TYPE: ValueType = ValueType::SortedSet;

    fn encoding_name(&self) -> &'static str {
        match self.0 {
            Form::Packed(_) => "listpack",
            Form::Indexed(_) => "skiplist",
        }
    }

    fn memory_bytes(&self) -> usize {
        match &self.0 {
            Form::Packed(packed) => packed.memory_bytes(),
            Form::Indexed(indexed) => size_class(size_of::<Indexed>()) + indexed.memory_bytes(),
        }
    }

    fn len(&self) -> usize {
        either!(&self.0, form => form.len())
    }

    fn fetch_elements(&self, names: &[&[u8]]) {
        if let Form::Indexed(indexed) = &self.0 {
            indexed.fetch_ahead(names);
        }
    }

    fn free_effort(&self) -> usize {
        match &self.0 {
            Form::Packed(_) => 1,
            Form::Indexed(indexed) => indexed.len(),
        }
    }

    fn move_inside(&mut self, from: u64, most: usize, mover: &mut Mover<'_>) -> u64 {
        match &mut self.0 {
            Form::Packed(packed) => {
                packed.move_to(mover);
                0
            }
            Form::Indexed(indexed) => {
                if from == 0 {
                    mover.move_box(indexed);
                }
                indexed.move_inside(from, most, mover)
            }
        }
    }

    fn check_invariants(&self) {
        either!(&self.0, form => form.check_invariants());
        let mut previous: Option<(Vec<u8>, f64)> = None;
        for (member, score) in self.iter_all() {
            let member = member.to_vec();
            if let Some((before, lower)) = &previous {
                assert!(*lower < score || (*lower == score && *before < member), "members are in order");
            }
            previous = Some((member, score));
        }
    }
}

/// Members and scores in order; see [`SortedSet::iter`].
pub struct Iter<'a>(FormIter<'a>);

enum FormIter<'a> {
    Packed(PackedIter<'a>),
    Indexed(IndexedIter<'a>),
}

impl<'a> Iterator for Iter<'a> {
    type Item = (Element<'a>, f64);

    #[inline]
    fn next(&mut self) -> Option<(Element<'a>, f64)> {
        match &mut self.0 {
            FormIter::Packed(packed) => packed.next(),
            FormIter::Indexed(indexed) => {
                indexed.next().map(|(member, score)| (Element::Bytes(member), score))
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match &self.0 {
            FormIter::Packed(packed) => packed.size_hint(),
            FormIter::Indexed(indexed) => indexed.size_hint(),
        }
    }
}

impl<'a> DoubleEndedIterator for Iter<'a> {
    #[inline]
    fn next_back(&mut self) -> Option<(Element<'a>, f64)> {
        match &mut self.0 {
            FormIter::Packed(packed) => packed.next_back(),
            FormIter::Indexed(indexed) => {
                indexed.next_back().map(|(member, score)| (Element::Bytes(member), score))
            }
        }
    }
}

impl ExactSizeIterator for Iter<'_> {}
