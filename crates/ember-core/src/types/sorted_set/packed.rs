//! A small sorted set: member, score, member, score, … in one listpack, in order.

use std::cmp::Ordering;
use std::ops::Range;

use ember_protocol::number;

use super::range::{LexRange, ScoreRange};
use crate::memory::moving::Mover;
use crate::types::listpack::{Element, Listpack};

/// Members and scores in a listpack.
#[derive(Clone, Default)]
pub(super) struct Packed(Listpack);

/// Returns the score in an element of a listpack.
fn score_of(element: Element<'_>) -> f64 {
    match element {
        Element::Integer(number) => number as f64,
        Element::Bytes(bytes) => number::parse_f64(bytes).expect("every other element is a score"),
    }
}

/// Returns the text of a score in a listpack: integers up to 2^62 as such, without the sign of a zero.
fn score_text(score: f64) -> Vec<u8> {
    const INTEGER_MAX: f64 = 4_611_686_018_427_387_904.0;
    let mut text = Vec::with_capacity(24);
    if score.abs() <= INTEGER_MAX && score.trunc() == score {
        number::write_i64(&mut text, score as i64);
    } else {
        number::write_f64(&mut text, score);
    }
    text
}

impl Packed {
    /// Moves the listpack to another allocation of the same size, if that is worth it.
    pub(super) fn move_to(&mut self, mover: &mut Mover<'_>) {
        self.0.move_to(mover);
    }

    pub(super) fn len(&self) -> usize {
        self.0.len() / 2
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }

    /// Returns whether a member of `bytes` bytes may be added.
    pub(super) fn can_hold(&self, bytes: usize) -> bool {
        self.0.can_hold(bytes)
    }

    /// Returns the listpack. Files contain the same bytes.
    pub(super) fn listpack(&self) -> &Listpack {
        &self.0
    }

    fn score_after(&self, member_at: usize) -> f64 {
        score_of(self.0.get(self.0.next(member_at).expect("a score follows each member")))
    }

    fn find(&self, member: &[u8]) -> Option<usize> {
        self.0.find(self.0.first()?, member, 1)
    }

    /// Returns the score of a member. O(bytes).
    pub(super) fn score(&self, member: &[u8]) -> Option<f64> {
        self.find(member).map(|at| self.score_after(at))
    }

    /// Changes the score of an existing member; returns the previous score. O(bytes).
    pub(super) fn change(&mut self, member: &[u8], score: f64) -> Option<f64> {
        let at = self.find(member)?;
        let previous = self.score_after(at);
        if previous != score {
            self.0.remove_range(at, 2);
            self.insert(member, score);
        }
        Some(previous)
    }

    /// Inserts a member that does not exist yet, in order. O(bytes).
    pub(super) fn insert(&mut self, member: &[u8], score: f64) {
        let mut digits = itoa::Buffer::new();
        let mut at = self.0.first();
        while let Some(member_at) = at {
            let is_after = match self.score_after(member_at).partial_cmp(&score) {
                Some(Ordering::Equal) => self.0.get(member_at).bytes(&mut digits) > member,
                order => order == Some(Ordering::Greater),
            };
            if is_after {
                let member_at = self.0.insert_before(member_at, member);
                self.0.insert_after(member_at, &score_text(score));
                return;
            }
            at = self.0.next(member_at).and_then(|score_at| self.0.next(score_at));
        }
        self.push_back(member, score);
    }

    /// Appends a member that does not exist yet and belongs after all others.
    pub(super) fn push_back(&mut self, member: &[u8], score: f64) {
        self.0.push_back(member);
        self.0.push_back(&score_text(score));
    }

    /// Removes a member and returns its score. O(bytes).
    pub(super) fn remove(&mut self, member: &[u8]) -> Option<f64> {
        let at = self.find(member)?;
        let score = self.score_after(at);
        self.0.remove_range(at, 2);
        Some(score)
    }

    /// Removes the members with ranks in `range`. O(bytes).
    pub(super) fn remove_range(&mut self, range: Range<usize>) {
        if !range.is_empty()
            && let Some(at) = self.0.at(2 * range.start as isize)
        {
            self.0.remove_range(at, 2 * range.len());
        }
    }

    /// Returns the rank and the score of a member. O(bytes).
    pub(super) fn rank(&self, member: &[u8]) -> Option<(usize, f64)> {
        let mut rank = 0;
        let mut at = self.0.first();
        while let Some(member_at) = at {
            if self.0.get(member_at).eq_bytes(member) {
                return Some((rank, self.score_after(member_at)));
            }
            rank += 1;
            at = self.0.next(member_at).and_then(|score_at| self.0.next(score_at));
        }
        None
    }

    /// Returns the members with ranks in `range`, which must be within the set, iterable from both ends.
    pub(super) fn iter(&self, range: Range<usize>) -> PackedIter<'_> {
        let at = |rank: usize| self.0.at(2 * rank as isize);
        PackedIter {
            listpack: &self.0,
            left: range.len(),
            front: if range.is_empty() { None } else { at(range.start) },
            back: if range.is_empty() { None } else { at(range.end - 1) },
        }
    }

    /// Returns the ranks of the scores in a range. O(bytes).
    pub(super) fn score_range(&self, range: &ScoreRange) -> Range<usize> {
        let scores = || self.iter(0..self.len()).map(|(_, score)| score);
        let start = scores().take_while(|&score| range.is_before(score)).count();
        let end = scores().take_while(|&score| range.is_not_after(score)).count();
        start..end.max(start)
    }

    /// Returns the ranks of the members in a range, if all members have one score; searches from the last member if
    /// `is_reverse`. O(bytes).
    ///
    /// If scores differ, the result is that of Redis for this encoding: the search starts at one end, finds the first
    /// member that the near bound allows, and continues while the far bound allows.
    pub(super) fn lex_range(&self, range: &LexRange<'_>, is_reverse: bool) -> Range<usize> {
        let mut digits = itoa::Buffer::new();
        let mut is_before = |member: Element<'_>| range.is_before(member.bytes(&mut digits));
        let mut digits = itoa::Buffer::new();
        let mut is_after = |member: Element<'_>| !range.is_not_after(member.bytes(&mut digits));
        let len = self.len();
        let members = || self.iter(0..len).map(|(member, _)| member);
        let is_outside =
            members().next_back().is_none_or(&mut is_before) || members().next().is_none_or(&mut is_after);
        if is_outside {
            return 0..0;
        }
        if is_reverse {
            let skipped = members().rev().take_while(|&member| is_after(member)).count();
            let count = members().rev().skip(skipped).take_while(|&member| !is_before(member)).count();
            len - skipped - count..len - skipped
        } else {
            let start = members().take_while(|&member| is_before(member)).count();
            let count = members().skip(start).take_while(|&member| !is_after(member)).count();
            start..start + count
        }
    }

    /// Calls `visit` for each member and the text of its score.
    pub(super) fn visit_texts(&self, mut visit: impl FnMut(&[u8], &[u8])) {
        let (mut member_digits, mut score_digits) = (itoa::Buffer::new(), itoa::Buffer::new());
        let mut elements = self.0.iter();
        while let (Some(member), Some(score)) = (elements.next(), elements.next()) {
            visit(member.bytes(&mut member_digits), score.bytes(&mut score_digits));
        }
    }

    pub(super) fn check_invariants(&self) {
        self.0.check_invariants();
        assert!(self.0.len().is_multiple_of(2), "a score follows each member");
    }
}

/// Members and scores of a listpack; see [`Packed::iter`].
#[derive(Clone)]
pub(super) struct PackedIter<'a> {
    listpack: &'a Listpack,
    left: usize,
    /// The offset of the next member from the front.
    front: Option<usize>,
    /// The offset of the next member from the back.
    back: Option<usize>,
}

impl<'a> Iterator for PackedIter<'a> {
    type Item = (Element<'a>, f64);

    fn next(&mut self) -> Option<(Element<'a>, f64)> {
        self.left = self.left.checked_sub(1)?;
        let member_at = self.front?;
        let score_at = self.listpack.next(member_at)?;
        self.front = self.listpack.next(score_at);
        Some((self.listpack.get(member_at), score_of(self.listpack.get(score_at))))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<'a> DoubleEndedIterator for PackedIter<'a> {
    fn next_back(&mut self) -> Option<(Element<'a>, f64)> {
        self.left = self.left.checked_sub(1)?;
        let member_at = self.back?;
        let score_at = self.listpack.next(member_at)?;
        self.back = self.listpack.prev(member_at).and_then(|score_at| self.listpack.prev(score_at));
        Some((self.listpack.get(member_at), score_of(self.listpack.get(score_at))))
    }
}
