//! Live queries: commands that somebody watches. When a key that one reads changes, it is run again.
//!
//! ```text
//! a key changes    the query is marked, under the lock of that key; who marks it first notifies its home   (observers.rs)
//! home worker      locks of all its keys ─ the mark is taken back ─ the command is run ─ its number ─ unlock
//! ```
//!
//! So no change is lost: one that comes before the mark is taken back is seen by the run, a later one marks the query again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ember_protocol::{Args, Protocol, StoredCommand};

use crate::entries::hash::TAG_BITS;
use crate::sync::{AtomicBool, Mutex};

/// What a query takes besides its words, with its place at one key, in bytes.
const QUERY_BYTES: usize = size_of::<LiveQuery>() + 2 * size_of::<usize>() + KEY_BYTES;

/// About what each key takes: its place in the shard's list, which has some room left, and in the filter.
const KEY_BYTES: usize = size_of::<Place>() + size_of::<Place>() / 8 + 4;

/// A command that is watched: all who watch the same words in the same database and protocol share it. There may be
/// millions: its fields are as small as what they count allows.
pub struct LiveQuery {
    // Fixed.
    call: StoredCommand,
    database: u32,
    home: u16,
    /// What the server knows the command by.
    pub command: u16,
    /// The protocol of its results.
    pub protocol: Protocol,
    // Shared.
    /// A key has changed since the query was last run.
    is_marked: AtomicBool,
    /// Who is to be told. Changed only under the locks of all keys.
    audience: Mutex<Audience>,
    /// Its home does not run it before this time, in a unit and from a beginning of the home's choice.
    pub not_before: AtomicU64,
}

/// A connection that watches a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receiver {
    /// Its client's id.
    pub client_id: u64,
    /// Its number at its worker.
    pub token: u32,
    /// The number that it knows the query by.
    pub number: u32,
}

/// A receiver, its worker, and whether it wants equal results too.
#[derive(Clone, Copy, Debug)]
struct Seat {
    receiver: Receiver,
    worker: u16,
    wants_equal: bool,
}

/// Who is to be told of a query's results.
#[derive(Debug, Default)]
pub struct Audience {
    seats: Seats,
    /// The hash of the result that all of them know, in halves, if there is one.
    known: [u64; 2],
    is_known: bool,
}

/// One, nearly always.
#[derive(Debug, Default)]
enum Seats {
    #[default]
    None,
    One(Seat),
    #[expect(clippy::box_collection, reason = "a vector in its place would make every query larger")]
    Many(Box<Vec<Seat>>),
}

impl std::fmt::Debug for LiveQuery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LiveQuery")
            .field("database", &self.database)
            .field("call", &self.call())
            .finish_non_exhaustive()
    }
}

impl LiveQuery {
    /// A query that nobody watches yet, of a database and with a home, the worker that runs it; none if the words are more
    /// than can be kept.
    pub fn new(
        args: Args<'_>,
        command: u16,
        database: usize,
        protocol: Protocol,
        home: usize,
    ) -> Option<LiveQuery> {
        Some(LiveQuery {
            call: StoredCommand::new(args)?,
            command,
            database: database as u32,
            protocol,
            home: home as u16,
            is_marked: AtomicBool::new(false),
            audience: Mutex::new(Audience::default()),
            not_before: AtomicU64::new(0),
        })
    }

    /// The call.
    pub fn call(&self) -> Args<'_> {
        self.call.args()
    }

    /// The number of its database.
    pub fn database(&self) -> usize {
        self.database as usize
    }

    /// The worker that runs it.
    pub fn home(&self) -> usize {
        usize::from(self.home)
    }

    /// Whether it is this call.
    pub fn is_for(&self, args: Args<'_>, database: usize, protocol: Protocol) -> bool {
        self.database() == database && self.protocol == protocol && self.call().iter().eq(args.iter())
    }

    /// About the memory in bytes that it takes when it has `keys` keys.
    pub fn memory_bytes(&self, keys: usize) -> usize {
        QUERY_BYTES + self.call.memory_bytes() + keys.saturating_sub(1) * KEY_BYTES
    }

    /// Marks it to be run again, under the lock of one of its keys; false if it was marked already.
    pub fn mark(&self) -> bool {
        // The locks of the keys order marks and runs. The load keeps the line shared while nothing is to be done.
        !self.is_marked.load(Ordering::Relaxed) && !self.is_marked.swap(true, Ordering::Relaxed)
    }

    /// Whether it is to be run again.
    pub fn is_marked(&self) -> bool {
        self.is_marked.load(Ordering::Relaxed)
    }

    /// Takes the mark back, under the locks of all its keys: the run that follows sees all changes so far.
    pub fn unmark(&self) {
        self.is_marked.store(false, Ordering::Relaxed);
    }

    /// Lets `look` see and change who is to be told.
    pub fn with_audience<R>(&self, look: impl FnOnce(&mut Audience) -> R) -> R {
        look(&mut self.audience.lock())
    }
}

impl Audience {
    fn seats(&self) -> &[Seat] {
        match &self.seats {
            Seats::None => &[],
            Seats::One(seat) => std::slice::from_ref(seat),
            Seats::Many(seats) => seats,
        }
    }

    /// Whether nobody is to be told.
    pub fn is_empty(&self) -> bool {
        self.seats().is_empty()
    }

    /// Adds a receiver of a worker that is not there.
    pub fn add(&mut self, worker: usize, receiver: Receiver, wants_equal: bool) {
        let seat = Seat { receiver, worker: worker as u16, wants_equal };
        self.seats = match std::mem::take(&mut self.seats) {
            Seats::None => Seats::One(seat),
            Seats::One(first) => Seats::Many(Box::new(vec![first, seat])),
            Seats::Many(mut seats) => {
                seats.push(seat);
                Seats::Many(seats)
            }
        };
    }

    /// Takes a receiver away, if it is there. O(receivers).
    pub fn remove(&mut self, receiver: Receiver) {
        match &mut self.seats {
            Seats::One(seat) if seat.receiver == receiver => self.seats = Seats::None,
            Seats::None | Seats::One(_) => {}
            Seats::Many(seats) => {
                if let Some(at) = seats.iter().position(|seat| seat.receiver == receiver) {
                    seats.swap_remove(at);
                }
                if let [last] = seats[..] {
                    self.seats = Seats::One(last);
                } else if seats.len() < seats.capacity() / 4 {
                    seats.shrink_to_fit();
                }
            }
        }
    }

    /// The receivers of a worker.
    pub fn receivers_of(&self, worker: usize) -> impl Iterator<Item = Receiver> {
        let seats = self.seats().iter().filter(move |seat| usize::from(seat.worker) == worker);
        seats.map(|seat| seat.receiver)
    }

    /// The workers that have receivers, each once.
    pub fn workers(&self) -> Vec<u16> {
        let mut workers = Vec::new();
        for seat in self.seats() {
            if !workers.contains(&seat.worker) {
                workers.push(seat.worker);
            }
        }
        workers
    }

    /// Whether somebody wants equal results too.
    pub fn wants_equal(&self) -> bool {
        self.seats().iter().any(|seat| seat.wants_equal)
    }

    /// The hash of the result that all of them know; `None` if some know another.
    pub fn known(&self) -> Option<u128> {
        let [high, low] = self.known;
        self.is_known.then_some(u128::from(high) << 64 | u128::from(low))
    }

    /// Notes which result all of them know.
    pub fn set_known(&mut self, hash: Option<u128>) {
        self.is_known = hash.is_some();
        let hash = hash.unwrap_or_default();
        self.known = [(hash >> 64) as u64, hash as u64];
    }
}

/// A query, with the tag of the hash of one of its keys.
type Place = (u32, Arc<LiveQuery>);

/// The queries of a shard's keys, by the tags of their keys' hashes. Two keys may have the same tag: then a change of one
/// runs the queries of the other too, whose results are the same as before.
#[derive(Default)]
pub(super) struct Queries {
    /// By ascending tag. Exact to within an eighth: a table with room for growth takes twice the memory.
    places: Vec<Place>,
}

impl Queries {
    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The queries of all keys, some of them several times.
    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<LiveQuery>> {
        self.places.iter().map(|(_, query)| query)
    }

    /// Those of keys with this tag. O(log queries).
    pub(super) fn of(&self, tag: u32) -> impl Iterator<Item = &Arc<LiveQuery>> {
        let from = &self.places[self.begin_of(tag)..];
        from.iter().take_while(move |(other, _)| *other == tag).map(|(_, query)| query)
    }

    fn begin_of(&self, tag: u32) -> usize {
        self.places.partition_point(|(other, _)| *other < tag)
    }

    /// Enters a query for a key with this tag, once; `filter` is the one of these queries. O(queries of the shard), a copy
    /// of their places.
    pub(super) fn enter(&mut self, tag: u32, query: &Arc<LiveQuery>, filter: &mut TagFilter) {
        if self.of(tag).any(|other| Arc::ptr_eq(other, query)) {
            return;
        }
        if self.places.len() == self.places.capacity() {
            self.places.reserve_exact(1 + self.places.len() / 8);
        }
        self.places.insert(self.begin_of(tag), (tag, Arc::clone(query)));
        filter.enter(tag, &self.places);
    }

    /// Takes a query away from the keys with this tag; `filter` is the one of these queries. O(queries of the shard), a copy
    /// of their places.
    pub(super) fn leave(&mut self, tag: u32, query: &Arc<LiveQuery>, filter: &mut TagFilter) {
        let from = self.begin_of(tag);
        let Some(at) = self.of(tag).position(|other| Arc::ptr_eq(other, query)) else { return };
        self.places.remove(from + at);
        if self.places.len() < self.places.capacity() / 2 {
            self.places.shrink_to_fit();
        }
        filter.leave(tag, from, &self.places);
    }
}

/// Says of nearly all tags that are not among those of a shard's queries that they are not, with one word of memory: a
/// Bloom filter in blocks of one word. The higher bits of a tag choose the word, the lower ones two bits in it, which are
/// set if the tag is there. There are 16 to 32 bits for each tag, so one in a hundred others is taken for one of them.
///
/// A write that nobody watches beside a million watches asks nothing else.
#[derive(Default)]
pub(crate) struct TagFilter {
    /// None while there are no queries.
    words: Box<[u64]>,
}

/// The most tags for each word, and for which there are so few that the words are made fewer.
const WORD_TAGS_MAX: usize = 4;
const WORD_TAGS_MIN: usize = 1;

/// There is a bit for each tag then.
const FILTER_WORDS_MAX: usize = 1 << (TAG_BITS - u64::BITS.trailing_zeros());

impl TagFilter {
    /// The number of a tag's word, and its bits there. Tags of one word are neighbours.
    #[inline]
    fn place(&self, tag: u32) -> (usize, u64) {
        let scaled = u64::from(tag) * self.words.len() as u64;
        let within = scaled << (u64::BITS - TAG_BITS);
        let bits = 1 << (within >> 58) | 1 << (within >> 52 & 63);
        ((scaled >> TAG_BITS) as usize, bits)
    }

    /// Whether a tag may be there. False is certain.
    #[inline]
    pub(crate) fn may_have(&self, tag: u32) -> bool {
        let (at, bits) = self.place(tag);
        self.words.get(at).is_some_and(|word| word & bits == bits)
    }

    /// The address of what [`TagFilter::may_have`] reads: to be fetched ahead, not to be read through.
    #[inline]
    pub(crate) fn address(&self, tag: u32) -> *const u8 {
        self.words.as_ptr().wrapping_add(self.place(tag).0).cast()
    }

    fn rebuild(&mut self, places: &[Place]) {
        let words = places.len().div_ceil(WORD_TAGS_MAX).next_power_of_two().min(FILTER_WORDS_MAX);
        self.words = vec![0; words].into();
        places.iter().for_each(|&(tag, _)| self.set(tag));
    }

    fn set(&mut self, tag: u32) {
        let (at, bits) = self.place(tag);
        self.words[at] |= bits;
    }

    /// Notes a tag that is among `places` by now.
    fn enter(&mut self, tag: u32, places: &[Place]) {
        let words = self.words.len();
        if places.len() > words * WORD_TAGS_MAX && words < FILTER_WORDS_MAX {
            self.rebuild(places);
        } else {
            self.set(tag);
        }
    }

    /// Notes that a place of a tag is gone, which those with that tag or larger ones follow at `from`.
    fn leave(&mut self, tag: u32, from: usize, places: &[Place]) {
        if places.is_empty() {
            *self = TagFilter::default();
        } else if places.len() < self.words.len() * WORD_TAGS_MIN {
            self.rebuild(places);
        } else {
            let at = self.place(tag).0;
            let of_word = |(other, _): &&Place| self.place(*other).0 == at;
            let bits = |(other, _): &Place| self.place(*other).1;
            let before = places[..from].iter().rev().take_while(of_word).map(bits);
            let behind = places[from..].iter().take_while(of_word).map(bits);
            self.words[at] = before.chain(behind).fold(0, |all, bits| all | bits);
        }
    }
}

#[cfg(test)]
mod tests {
    use ember_protocol::OwnedBatch;

    use super::*;

    fn query(name: &str) -> Arc<LiveQuery> {
        let mut batch = OwnedBatch::new();
        batch.push(&[b"GET", name.as_bytes()]);
        Arc::new(LiveQuery::new(batch.command(0), 1, 0, Protocol::Resp2, 0).unwrap())
    }

    fn receiver(client_id: u64) -> Receiver {
        Receiver { client_id, token: 1, number: 7 }
    }

    #[test]
    fn a_query_is_small() {
        assert!(size_of::<LiveQuery>() <= 112, "{}", size_of::<LiveQuery>());
    }

    #[test]
    fn a_mark_is_made_once_until_it_is_taken_back() {
        let query = query("a");
        assert!(!query.is_marked() && query.mark() && !query.mark() && query.is_marked());
        query.unmark();
        assert!(query.mark());
    }

    #[test]
    fn queries_are_found_by_tag_until_the_last_has_left() {
        let (mut queries, mut filter) = (Queries::default(), TagFilter::default());
        let (a, b, c) = (query("a"), query("b"), query("c"));
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
    fn the_filter_knows_every_tag_and_few_others() {
        const TAGS: u32 = 1 << TAG_BITS;
        // Spread over all tags, with neighbours that share words.
        let tag = |number: u32| (number / 2).wrapping_mul(0x9E37_79B1) % TAGS + number % 2;
        let (mut queries, mut filter, a) = (Queries::default(), TagFilter::default(), query("a"));
        let check = |queries: &Queries, filter: &TagFilter, there: &[u32]| {
            assert!(there.iter().all(|&tag| filter.may_have(tag) && queries.of(tag).count() == 1));
            let mut sorted = there.to_vec();
            sorted.sort_unstable();
            let others = || (0..TAGS).step_by(97).filter(|tag| sorted.binary_search(tag).is_err());
            let falsely = others().filter(|&tag| filter.may_have(tag)).count();
            let tested = others().count();
            assert!(falsely <= tested / 30, "{falsely} of {tested} beside {}", there.len());
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
    fn a_filter_of_very_many_tags_has_a_bit_for_each() {
        let tags = (0..1 << TAG_BITS).step_by(3);
        let places: Vec<Place> = tags.clone().map(|tag| (tag, query("a"))).take(2).collect();
        let mut filter = TagFilter { words: vec![0; FILTER_WORDS_MAX].into() };
        tags.clone().for_each(|tag| filter.enter(tag, &places));
        assert_eq!(filter.words.len(), FILTER_WORDS_MAX);
        assert!(tags.clone().all(|tag| filter.may_have(tag)));
        let falsely = tags.filter(|tag| filter.may_have(tag + 1)).count();
        assert!(falsely <= FILTER_WORDS_MAX, "{falsely}");
    }

    #[test]
    fn the_audience_is_told_by_workers_until_the_last_receiver_has_left() {
        let mut audience = Audience::default();
        audience.add(3, receiver(1), true);
        audience.add(3, receiver(2), false);
        audience.add(1, receiver(3), false);
        assert!(audience.wants_equal() && audience.workers() == [3, 1]);
        assert_eq!(audience.receivers_of(3).collect::<Vec<_>>(), [receiver(1), receiver(2)]);
        audience.remove(receiver(1));
        audience.add(3, receiver(1), false);
        assert!(!audience.wants_equal() && audience.receivers_of(3).count() == 2);
        (1..=3).for_each(|id| audience.remove(receiver(id)));
        assert!(audience.is_empty() && audience.workers().is_empty());
    }

    #[test]
    fn hashes_are_kept_whole() {
        let mut audience = Audience::default();
        assert_eq!(audience.known(), None);
        for hash in [0, 1, u128::MAX, 1 << 64] {
            audience.set_known(Some(hash));
            assert_eq!(audience.known(), Some(hash));
        }
        audience.set_known(None);
        assert_eq!(audience.known(), None);
    }
}
