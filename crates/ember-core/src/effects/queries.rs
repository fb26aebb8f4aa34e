//! The live queries that read keys of a shard.

use std::sync::Arc;

use ember_protocol::{Args, Protocol};

use super::live_query::{LiveQuery, digest};
use crate::entries::hash::TAG_BITS;
use crate::memory::{buffer_bytes, size_class};

/// An entry of the list: a query, the tag of the hash of one of its keys, and the hash of its words.
struct Place {
    tag: u32,
    digest: u32,
    query: Arc<LiveQuery>,
}

impl Place {
    fn name(&self) -> (u32, u32) {
        (self.tag, self.digest)
    }
}

/// The maximum number of entries in one piece of the list: an insertion moves at most one piece, plus the headers of
/// the later pieces.
const PIECE_MAX: usize = 512;

/// The queries of a shard's keys, ordered by the tags of the keys' hashes. Two keys may have the same tag: then a
/// change of one key also causes an evaluation of the other key's queries, whose results stay the same.
#[derive(Default)]
pub(super) struct Queries {
    /// The entries, sorted by tag and by the hash of the query's words, in pieces that are never empty. Unused capacity
    /// is at most an eighth of a piece: a hash table with space for growth would take twice the memory.
    pieces: Vec<Vec<Place>>,
    count: usize,
    /// The memory in bytes of the pieces.
    pieces_bytes: usize,
}

impl Queries {
    /// Returns whether the shard's keys have no queries.
    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Returns the memory of the list in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        buffer_bytes(&self.pieces) + self.pieces_bytes
    }

    /// Returns the queries of all keys; a query of several keys in this shard appears several times.
    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<LiveQuery>> {
        self.pieces.iter().flatten().map(|place| &place.query)
    }

    /// Returns the queries of keys with this tag. O(log queries).
    pub(super) fn of(&self, tag: u32) -> impl Iterator<Item = &Arc<LiveQuery>> {
        self.from((tag, 0)).take_while(move |place| place.tag == tag).map(|place| &place.query)
    }

    /// Returns the query that watches this call, if it reads a key with this tag. O(log queries).
    pub(super) fn find(
        &self,
        tag: u32,
        call: Args<'_>,
        database: usize,
        protocol: Protocol,
    ) -> Option<&Arc<LiveQuery>> {
        self.named((tag, digest(call))).find(|query| query.is_for(call, database, protocol))
    }

    /// Returns the index of the piece that contains the first entry with this name (tag and word hash) or a later one;
    /// the number of pieces if there is no such entry.
    fn piece_of(&self, name: (u32, u32)) -> usize {
        self.pieces.partition_point(|piece| piece.last().is_some_and(|last| last.name() < name))
    }

    /// Returns the entries with this name and all later ones.
    fn from(&self, name: (u32, u32)) -> impl Iterator<Item = &Place> {
        let (first, after) = self.pieces[self.piece_of(name)..].split_first().unzip();
        let first =
            first.map_or(&[][..], |piece| &piece[piece.partition_point(|place| place.name() < name)..]);
        first.iter().chain(after.into_iter().flatten().flatten())
    }

    fn named(&self, name: (u32, u32)) -> impl Iterator<Item = &Arc<LiveQuery>> {
        self.from(name).take_while(move |place| place.name() == name).map(|place| &place.query)
    }

    /// Adds a query to the keys with this tag, unless it was added before; `filter` contains the tags of these queries.
    /// O(log queries), and a copy of one piece.
    pub(super) fn enter(&mut self, tag: u32, query: &Arc<LiveQuery>, filter: &mut TagFilter) {
        let place = Place { tag, digest: query.digest(), query: Arc::clone(query) };
        let name = place.name();
        if self.named(name).any(|other| Arc::ptr_eq(other, query)) {
            return;
        }
        if self.pieces.is_empty() {
            self.pieces.push(Vec::new());
        }
        let mut at = self.piece_of(name).min(self.pieces.len() - 1);
        self.pieces_bytes -= buffer_bytes(&self.pieces[at]);
        if self.pieces[at].len() == PIECE_MAX {
            let after = self.pieces[at].split_off(PIECE_MAX / 2);
            self.pieces[at].shrink_to_fit();
            let is_after = after[0].name() < name;
            self.pieces.insert(at + 1, after);
            self.pieces_bytes += buffer_bytes(&self.pieces[at + usize::from(!is_after)]);
            at += usize::from(is_after);
        }
        let piece = &mut self.pieces[at];
        if piece.len() == piece.capacity() {
            piece.reserve_exact(1 + piece.len() / 8);
        }
        piece.insert(piece.partition_point(|other| other.name() < name), place);
        self.pieces_bytes += buffer_bytes(piece);
        self.count += 1;
        filter.enter(tag, self);
    }

    /// Removes a query from the keys with this tag; `filter` contains the tags of these queries. O(log queries), and a
    /// copy of one piece.
    pub(super) fn leave(&mut self, tag: u32, query: &Arc<LiveQuery>, filter: &mut TagFilter) {
        let name = (tag, query.digest());
        let mut at = self.piece_of(name);
        // Different calls nearly never have the same word hash: the query is nearly always in the first piece that may
        // contain it.
        let within = loop {
            let Some(piece) = self.pieces.get(at).filter(|piece| piece[0].name() <= name) else { return };
            let from = piece.partition_point(|place| place.name() < name);
            let mut same = piece[from..].iter().take_while(|place| place.name() == name);
            if let Some(within) = same.position(|place| Arc::ptr_eq(&place.query, query)) {
                break from + within;
            }
            at += 1;
        };
        let piece = &mut self.pieces[at];
        self.pieces_bytes -= buffer_bytes(piece);
        piece.remove(within);
        if piece.len() < piece.capacity() / 2 {
            piece.shrink_to_fit();
        }
        if piece.is_empty() {
            self.pieces.remove(at);
            if self.pieces.is_empty() || self.pieces.len() < self.pieces.capacity() / 2 {
                self.pieces.shrink_to_fit();
            }
        } else {
            self.pieces_bytes += buffer_bytes(piece);
        }
        self.count -= 1;
        filter.leave(tag, self);
    }
}

/// A blocked Bloom filter of the tags of a shard's queries: one memory access rules out nearly all other tags. A block
/// is one word. The higher bits of a tag select the word, the lower bits select two bits of that word, which are set if
/// the tag is present. There are 16 to 32 bits for each tag, so 1 % of other tags are false positives.
///
/// Even with a million watched queries, a write to a key without queries reads only this filter.
#[derive(Default)]
pub(crate) struct TagFilter {
    /// The words of the filter; empty while there are no queries.
    words: Box<[u64]>,
}

/// The maximum number of tags per word, above which the number of words grows, and the number of tags per word below
/// which it shrinks.
const WORD_TAGS_MAX: usize = 4;
const WORD_TAGS_MIN: usize = 1;

/// The maximum number of words, with which the filter has one bit for each possible tag.
const FILTER_WORDS_MAX: usize = 1 << (TAG_BITS - u64::BITS.trailing_zeros());

impl TagFilter {
    /// Returns the index of a tag's word, and the tag's bits in that word. Adjacent tags share a word.
    #[inline]
    fn place(&self, tag: u32) -> (usize, u64) {
        let scaled = u64::from(tag) * self.words.len() as u64;
        let within = scaled << (u64::BITS - TAG_BITS);
        let bits = 1 << (within >> 58) | 1 << (within >> 52 & 63);
        ((scaled >> TAG_BITS) as usize, bits)
    }

    /// Returns whether a tag may be present; if the result is false, the tag is not present.
    #[inline]
    pub(crate) fn may_have(&self, tag: u32) -> bool {
        let (at, bits) = self.place(tag);
        self.words.get(at).is_some_and(|word| word & bits == bits)
    }

    /// Returns the address of the word that [`TagFilter::may_have`] reads, for prefetching only.
    #[inline]
    pub(crate) fn address(&self, tag: u32) -> *const u8 {
        self.words.as_ptr().wrapping_add(self.place(tag).0).cast()
    }

    /// Returns the memory of the filter in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        if self.words.is_empty() { 0 } else { size_class(size_of_val(&self.words[..])) }
    }

    fn rebuild(&mut self, queries: &Queries) {
        let words = queries.count.div_ceil(WORD_TAGS_MAX).next_power_of_two().min(FILTER_WORDS_MAX);
        self.words = vec![0; words].into();
        queries.pieces.iter().flatten().for_each(|place| self.set(place.tag));
    }

    fn set(&mut self, tag: u32) {
        let (at, bits) = self.place(tag);
        self.words[at] |= bits;
    }

    /// Adds a tag; `queries` contains a query with this tag already.
    fn enter(&mut self, tag: u32, queries: &Queries) {
        let words = self.words.len();
        if queries.count > words * WORD_TAGS_MAX && words < FILTER_WORDS_MAX {
            self.rebuild(queries);
        } else {
            self.set(tag);
        }
    }

    /// Updates the filter after a query with this tag was removed from `queries`.
    fn leave(&mut self, tag: u32, queries: &Queries) {
        if queries.is_empty() {
            *self = TagFilter::default();
        } else if queries.count < self.words.len() * WORD_TAGS_MIN {
            self.rebuild(queries);
        } else if queries.of(tag).next().is_none() {
            let at = self.place(tag).0;
            // The lowest tag of this word. The loop visits each present tag once, however many queries have that tag.
            let mut next = ((at as u64) << TAG_BITS).div_ceil(self.words.len() as u64) as u32;
            let mut bits = 0;
            while let Some(place) =
                queries.from((next, 0)).next().filter(|place| self.place(place.tag).0 == at)
            {
                bits |= self.place(place.tag).1;
                next = place.tag + 1;
            }
            self.words[at] = bits;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_found_by_tag_until_the_last_one_is_removed() {
        let (mut queries, mut filter) = (Queries::default(), TagFilter::default());
        let (a, b, c) = (LiveQuery::of_string("a"), LiveQuery::of_string("b"), LiveQuery::of_string("c"));
        for (tag, query) in [(1, &a), (1, &b), (1, &b), (2, &c)] {
            queries.enter(tag, query, &mut filter);
        }
        let count = |queries: &Queries, tag: u32| queries.of(tag).count();
        assert_eq!([1, 2, 3].map(|tag| count(&queries, tag)), [2, 1, 0]);
        queries.leave(1, &a, &mut filter);
        queries.leave(1, &c, &mut filter);
        assert!(Arc::ptr_eq(queries.of(1).next().unwrap(), &b) && count(&queries, 1) == 1);
        assert!(filter.may_have(1));
        queries.leave(1, &b, &mut filter);
        queries.leave(2, &c, &mut filter);
        assert!(queries.is_empty() && !filter.may_have(1));
    }

    #[test]
    fn the_filter_contains_every_tag_with_few_false_positives() {
        const TAGS: u32 = 1 << TAG_BITS;
        // Returns tags spread over the whole range, in adjacent pairs that share a word.
        let tag = |number: u32| (number / 2).wrapping_mul(0x9E37_79B1) % TAGS + number % 2;
        let (mut queries, mut filter, a) =
            (Queries::default(), TagFilter::default(), LiveQuery::of_string("a"));
        let check = |queries: &Queries, filter: &TagFilter, there: &[u32]| {
            assert!(there.iter().all(|&tag| filter.may_have(tag) && queries.of(tag).count() == 1));
            let mut sorted = there.to_vec();
            sorted.sort_unstable();
            let others = || (0..TAGS).step_by(97).filter(|tag| sorted.binary_search(tag).is_err());
            let falsely = others().filter(|&tag| filter.may_have(tag)).count();
            let tested = others().count();
            assert!(falsely <= tested / 30, "{falsely} of {tested} with {} tags", there.len());
            let bits = filter.words.len() * 64;
            assert!(bits <= 64 * there.len(), "{bits} bits for {}", there.len());
        };
        let mut tags: Vec<u32> = (0..3000).map(tag).collect();
        assert_eq!(tags.iter().collect::<std::collections::HashSet<_>>().len(), tags.len());
        for (count, &tag) in tags.iter().enumerate() {
            queries.enter(tag, &a, &mut filter);
            if (count + 1).is_power_of_two() && count > 100 {
                check(&queries, &filter, &tags[..=count]);
            }
        }
        check(&queries, &filter, &tags);
        while let Some(tag) = tags.pop() {
            queries.leave(tag, &a, &mut filter);
            if tags.len().is_power_of_two() && tags.len() > 100 {
                check(&queries, &filter, &tags);
            }
        }
        assert!((0..TAGS).step_by(97).all(|tag| !filter.may_have(tag)));
    }

    #[test]
    fn a_full_size_filter_contains_every_tag() {
        let tags = (0..1 << TAG_BITS).step_by(3);
        let queries = Queries::default();
        let mut filter = TagFilter { words: vec![0; FILTER_WORDS_MAX].into() };
        tags.clone().for_each(|tag| filter.enter(tag, &queries));
        assert_eq!(filter.words.len(), FILTER_WORDS_MAX);
        assert!(tags.clone().all(|tag| filter.may_have(tag)));
        let falsely = tags.filter(|tag| filter.may_have(tag + 1)).count();
        assert!(falsely <= FILTER_WORDS_MAX, "{falsely}");
    }

    #[test]
    fn many_queries_of_one_key_are_added_found_and_removed() {
        let (mut queries, mut filter) = (Queries::default(), TagFilter::default());
        let all: Vec<_> = (0..100_000).map(|number| LiveQuery::of_string(&number.to_string())).collect();
        all.iter().for_each(|query| queries.enter(1, query, &mut filter));
        all.iter().step_by(7).for_each(|query| queries.enter(1, query, &mut filter));
        let names: Vec<_> = queries.pieces.iter().flatten().map(Place::name).collect();
        assert!(names.len() == all.len() && names.is_sorted() && queries.count == all.len());
        let bytes = queries.memory_bytes();
        assert!(bytes <= 20 * all.len(), "{bytes}");
        let pieces: usize = queries.pieces.iter().map(buffer_bytes).sum();
        assert_eq!(queries.pieces_bytes, pieces);
        for query in &all {
            let found = queries.find(1, query.call(), 0, Protocol::Resp2).unwrap();
            assert!(Arc::ptr_eq(found, query) && queries.find(1, query.call(), 1, Protocol::Resp2).is_none());
        }
        for (number, query) in all.iter().enumerate() {
            queries.leave(1, query, &mut filter);
            assert_eq!(filter.may_have(1), number + 1 < all.len());
        }
        assert!(queries.is_empty() && queries.count == 0 && queries.memory_bytes() == 0);
    }
}
