//! The index: vectors, and the structure for searching them.

use crate::config::{Config, ConfigError, Kind, Metric};
use crate::graph::Graph;
use crate::graph::hnsw::Beam;
use crate::graph::pending::Pending;
use crate::lists::training::Claim;
use crate::lists::{Lists, PLACES_SPARE};
use crate::quantize::Prepared;
use crate::random::{level_of, split_mix};
use crate::search::{Hit, SCANNED_AT_ONCE, Scratch, key};
use crate::space::Space;

/// The maximum number of vectors in an index: in lists, each place has a 32-bit number, and some of these numbers are
/// unused.
pub const SLOTS_MAX: usize = u32::MAX as usize - PLACES_SPARE;

/// An index whose vectors take at most this many bytes is searched by scanning all of them: a scan of that size takes
/// no longer than following links, and is exact.
const SCANNED_MAX_BYTES: usize = 256 * 1024;

/// Slots sampled to estimate the share that passes a filter: at most this many; sampling stops early once
/// `SAMPLE_TAKEN` have passed.
const SAMPLE: u32 = 512;
const SAMPLE_TAKEN: u32 = 8;

/// For filtered searches: the expected number of accepted vectors in the beam, divided by the requested number.
const TAKEN_IN_BEAM: f64 = 1.5;

/// For filtered searches: the number of contiguous vectors that are scanned in the time of following one link of a node
/// in the beam.
const SCANNED_PER_LINK: usize = 2;

/// Like [`SCANNED_PER_LINK`], for scattered vectors.
const LISTED_PER_LINK: usize = 2;

/// The number of parts that a scan of lists prefetches ahead, about as many bytes as in a scan of all vectors.
const PARTS_AHEAD: usize = 1;

/// Vectors, and the structure for searching them.
#[derive(Clone, Debug)]
pub struct Index {
    pub(crate) config: Config,
    pub(crate) space: Space,
    /// The graph, for [`Kind::Hnsw`].
    pub(crate) graph: Option<Graph>,
    /// The lists, for [`Kind::Ivf`] once they are built.
    pub(crate) lists: Option<Box<Lists>>,
    /// The training in progress, if any.
    pub(crate) training: Option<Box<Claim>>,
    /// Whether building lists was requested, regardless of the number of vectors.
    pub(crate) is_training_requested: bool,
    pub(crate) len: usize,
    /// The number of insertions so far.
    pub(crate) inserted: u64,
    /// Vectors that are not linked yet.
    pub(crate) pending: Pending,
    /// Slots of removed vectors that are still in the graph.
    pub(crate) dead: Vec<u32>,
    /// The number of removals and replacements, by which a plan detects that slots may have changed.
    pub(crate) moves: u64,
}

impl Index {
    /// Creates an index without vectors.
    ///
    /// # Errors
    /// Returns an error if the configuration is invalid.
    pub fn new(config: Config) -> Result<Index, ConfigError> {
        config.check()?;
        let graph = match config.kind {
            Kind::Hnsw { links } => Some(Graph::new(links, config.account)),
            Kind::Ivf { .. } | Kind::Flat => None,
        };
        Ok(Index {
            config,
            space: Space::new(&config),
            graph,
            lists: None,
            training: None,
            is_training_requested: false,
            len: 0,
            inserted: 0,
            pending: Pending::default(),
            dead: Vec::new(),
            moves: 0,
        })
    }

    /// Returns the configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the number of vectors.
    pub fn len(&self) -> usize {
        self.len - self.dead.len()
    }

    /// Whether there are no vectors.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of slots: one for each vector and each dead slot.
    pub fn slots(&self) -> usize {
        self.len
    }

    /// Returns the number of insertions and replacements so far; the newest vector has this insertion number.
    pub fn inserted(&self) -> u64 {
        self.inserted
    }

    /// Continues the insertion count after this number, if it is higher.
    pub fn count_from(&mut self, inserted: u64) {
        self.inserted = self.inserted.max(inserted);
    }

    /// Returns the memory beyond the index itself in bytes, including allocator rounding. O(1).
    pub fn memory_bytes(&self) -> usize {
        self.space.memory_bytes()
            + self.graph.as_ref().map_or(0, Graph::memory_bytes)
            + self.lists_bytes(Lists::memory_bytes)
            + self.training_bytes()
            + self.pending.memory_bytes(self.config.account)
            + self.dead_bytes()
    }

    fn dead_bytes(&self) -> usize {
        match self.dead.capacity() {
            0 => 0,
            capacity => (self.config.account)(capacity * size_of::<u32>()),
        }
    }

    fn lists_bytes(&self, of: impl Fn(&Lists) -> usize) -> usize {
        self.lists.as_ref().map_or(0, |lists| (self.config.account)(size_of::<Lists>()) + of(lists))
    }

    /// Returns the memory for the changes recorded for a training, in bytes.
    fn training_bytes(&self) -> usize {
        let Some(claim) = &self.training else { return 0 };
        let changes = match claim.changes_capacity() {
            0 => 0,
            capacity => (self.config.account)(capacity * size_of::<u32>()),
        };
        (self.config.account)(size_of::<Claim>()) + changes
    }

    /// Adds a vector and returns its slot, which follows all others. Searches find it from now on; it is linked later
    /// ([`Index::begin_linking`], [`Index::link_pending`]). `width` is the number of near vectors from which its
    /// neighbors are chosen. O(dimensions).
    ///
    /// # Panics
    /// Panics if the vector's number of dimensions differs from that of the index, or there are [`SLOTS_MAX`] vectors.
    pub fn add(&mut self, vector: &Prepared, width: usize) -> u32 {
        assert!(self.len < SLOTS_MAX, "the owner checks that there is space");
        let slot = self.len as u32;
        let row = self.space.row_of(vector);
        match &mut self.lists {
            Some(lists) => lists.push(&row),
            None => self.space.push(&row),
        }
        self.len += 1;
        self.inserted += 1;
        if let Some(graph) = &mut self.graph {
            graph.push(level_of(self.inserted, graph.links));
            graph.set_pending(slot, true);
            self.pending.push(slot, self.inserted, width);
        }
        if self.lists.is_some() {
            self.pending.push(slot, self.inserted, width);
        }
        slot
    }

    /// Like [`Index::add`], and links the vector. O(width · log n) distances.
    ///
    /// # Panics
    /// As for [`Index::add`].
    pub fn insert(&mut self, vector: &Prepared, width: usize, scratch: &mut Scratch) -> u32 {
        let slot = self.add(vector, width);
        self.link_slot(slot, scratch);
        slot
    }

    /// Replaces the vector of a slot. Like a new vector, it is linked later.
    ///
    /// # Panics
    /// Panics if the vector's number of dimensions differs from that of the index, or there is no such slot.
    pub fn exchange(&mut self, slot: u32, vector: &Prepared, width: usize, scratch: &mut Scratch) {
        let row = self.space.row_of(vector);
        self.inserted += 1;
        self.moves += 1;
        if let Some(graph) = &mut self.graph {
            if graph.is_pending(slot) {
                self.pending.remove(slot);
            } else {
                graph.detach(&self.space, slot, scratch);
            }
            graph.lower(slot);
            self.space.set(slot, &row);
            graph.raise(slot, level_of(self.inserted, graph.links));
            graph.set_pending(slot, true);
            self.pending.push(slot, self.inserted, width);
            return;
        }
        self.mark_changed(slot);
        let Some(lists) = &mut self.lists else { return self.space.set(slot, &row) };
        if !lists.take_out(slot) {
            self.pending.remove(slot);
        }
        lists.set(slot, &row);
        self.pending.push(slot, self.inserted, width);
    }

    /// Like [`Index::exchange`], and links the vector.
    ///
    /// # Panics
    /// As for [`Index::exchange`].
    pub fn replace(&mut self, slot: u32, vector: &Prepared, width: usize, scratch: &mut Scratch) {
        self.exchange(slot, vector, width, scratch);
        self.link_slot(slot, scratch);
    }

    /// Whether removing a vector requires a repair of the graph, which [`Index::kill`] can defer.
    pub fn is_mended(&self) -> bool {
        self.graph.is_some()
    }

    /// Hides a vector from searches. The slot becomes dead: it exists until [`Index::remove`] repairs the graph and
    /// removes it. O(pending vectors).
    ///
    /// # Panics
    /// Panics if there is no such slot, the slot is dead already, or there is no graph.
    pub fn kill(&mut self, slot: u32) {
        assert!(!self.is_dead(slot), "a vector is removed once");
        let graph = self.graph.as_mut().expect("the owner has checked that there is one");
        if graph.is_pending(slot) {
            self.pending.remove(slot);
        }
        graph.set_dead(slot);
        self.dead.push(slot);
    }

    /// Returns the number of dead slots.
    pub fn dead(&self) -> usize {
        self.dead.len()
    }

    /// Whether a slot is dead.
    #[inline]
    pub fn is_dead(&self, slot: u32) -> bool {
        !self.dead.is_empty() && self.graph.as_ref().is_some_and(|graph| graph.is_dead(slot))
    }

    /// Returns the dead slots; the last of them should be removed first.
    pub fn dead_slots(&self) -> &[u32] {
        &self.dead
    }

    /// Removes a slot from the dead ones, and records that the slot `last` has moved into its place.
    fn forget_dead(&mut self, slot: u32, last: u32) {
        if self.is_dead(slot) {
            let at = self.dead.iter().rposition(|&dead| dead == slot).expect("dead slots are noted");
            self.dead.swap_remove(at);
        }
        if slot != last && self.graph.as_ref().is_some_and(|graph| graph.is_dead(last)) {
            let moved = self.dead.iter_mut().find(|dead| **dead == last).expect("dead slots are noted");
            *moved = slot;
        }
        if self.dead.is_empty() {
            self.dead = Vec::new();
        }
    }

    /// Removes the vector of a slot, or a dead slot. The last slot moves into its place.
    ///
    /// # Panics
    /// Panics if there is no such slot.
    pub fn remove(&mut self, slot: u32, scratch: &mut Scratch) {
        self.moves += 1;
        if !self.dead.is_empty() {
            self.forget_dead(slot, (self.len - 1) as u32);
        }
        if let Some(graph) = &mut self.graph {
            if graph.is_pending(slot) {
                self.pending.remove(slot);
            } else {
                graph.detach(&self.space, slot, scratch);
            }
            graph.lower(slot);
            let last = (self.len - 1) as u32;
            if slot != last && graph.is_pending(last) {
                self.pending.rename(last, slot);
            }
            graph.swap_remove(slot);
        }
        if let Some(lists) = &mut self.lists {
            let last = (self.len - 1) as u32;
            if lists.list_of(slot).is_none() {
                self.pending.remove(slot);
            }
            if slot != last && lists.list_of(last).is_none() {
                self.pending.rename(last, slot);
            }
            lists.swap_remove(slot);
        } else {
            self.space.swap_remove(slot);
        }
        self.mark_changed(slot);
        self.mark_changed((self.len - 1) as u32);
        self.len -= 1;
    }

    /// Returns an index of the same vectors in the same slots, with a newly built graph or lists. O(n · width · log n)
    /// distances, or O(n · lists).
    ///
    /// # Panics
    /// Panics if there are dead slots.
    #[must_use]
    pub fn rebuilt(&self, width: usize, scratch: &mut Scratch) -> Index {
        assert!(self.dead.is_empty(), "the owner has buried them");
        if self.graph.is_none() {
            let mut index = self.clone();
            index.training = None;
            index.request_training();
            index.train();
            index.link_pending(usize::MAX, scratch);
            return index;
        }
        let mut index = Index::new(self.config).expect("there is one like it");
        (index.inserted, index.moves) = (self.inserted, self.moves + 1);
        (0..self.len as u32).for_each(|slot| _ = index.insert(&self.stored(slot), width, scratch));
        index
    }

    /// Returns the row of a slot.
    #[inline]
    pub(crate) fn row(&self, slot: u32) -> &[u8] {
        match &self.lists {
            Some(lists) => lists.row(slot),
            None => self.space.row(slot),
        }
    }

    /// Returns the stored form of a slot's vector.
    pub fn stored(&self, slot: u32) -> Prepared {
        self.space.stored(self.row(slot))
    }

    /// Returns the vector of a slot, with the precision of its stored form; with cosine multiplied by its original
    /// length, except for bits.
    pub fn vector(&self, slot: u32) -> Vec<f32> {
        self.space.vector(self.row(slot))
    }

    /// Returns the distance between the vectors of two slots; see [`Hit::distance`].
    pub fn distance_between(&self, a: u32, b: u32) -> f32 {
        self.space.distance(self.row(a), self.row(b))
    }

    /// Returns the distance between a vector and the vector of a slot; see [`Hit::distance`].
    pub fn distance(&self, query: &Prepared, slot: u32) -> f32 {
        self.space.distance(&self.space.row_of(query), self.row(slot))
    }

    /// Returns the highest level of a slot's node; 0 without a graph.
    pub fn level(&self, slot: u32) -> usize {
        self.graph.as_ref().map_or(0, |graph| graph.level(slot))
    }

    /// Returns the highest level of the graph; 0 without a graph.
    pub fn top_level(&self) -> usize {
        self.graph.as_ref().map_or(0, Graph::top)
    }

    /// Returns the slots that a slot is linked with on one of its levels, including dead ones; empty without a graph.
    pub fn neighbors(&self, slot: u32, level: usize) -> Vec<u32> {
        self.graph.as_ref().map_or(Vec::new(), |graph| graph.neighbors(slot, level).to_vec())
    }

    /// Whether a search scans all vectors.
    pub fn is_scanned(&self) -> bool {
        self.graph.is_none() && self.lists.is_none()
            || self.len * self.config.scalar.bytes(self.config.dim) <= SCANNED_MAX_BYTES
    }

    /// Returns the list of a slot, if it is in one.
    pub fn list_of(&self, slot: u32) -> Option<u32> {
        self.lists.as_ref()?.list_of(slot)
    }

    /// Returns the centroids of the lists, concatenated, and the number of vectors at their training; `None` without
    /// lists.
    pub fn centres(&self) -> Option<(Vec<f32>, usize)> {
        self.lists.as_ref().map(|lists| (lists.centres(), lists.trained_len))
    }

    /// Returns the approximate number of distances that a search computes with a beam of `width` vectors, or in `width`
    /// lists.
    pub fn distances_of_search(&self, width: usize) -> usize {
        if let Some(lists) = self.lists.as_ref().filter(|_| !self.is_scanned()) {
            let compared = self.len.saturating_mul(width.min(lists.count())) / lists.count();
            return compared + lists.count() + self.pending.len();
        }
        match &self.graph {
            Some(graph) if !self.is_scanned() => {
                width.saturating_mul(graph.links).saturating_add(self.pending.len()).min(self.len)
            }
            _ => self.len,
        }
    }

    /// Returns the `most` nearest vectors, nearest first. `width` is the number of candidates in a graph, or of lists
    /// to scan: larger values raise the recall.
    pub fn search<'s>(
        &self,
        query: &Prepared,
        most: usize,
        width: usize,
        scratch: &'s mut Scratch,
    ) -> &'s [Hit] {
        let Some((graph, entry)) = self.graph.as_ref().and_then(|graph| Some((graph, graph.entry?))) else {
            return self.search_within(query, most, width, usize::MAX, |_| true, scratch);
        };
        if self.is_scanned() {
            return self.search_all(query, most, |_| true, scratch);
        }
        let row = self.space.row_of(query);
        let from = graph.descend(&self.space, &row, 0, entry);
        let width = width.max(most).max(1);
        graph.find_alive(&self.space, &row, Beam::new(0, from, width), scratch);
        self.offer_pending(&row, width, &mut |slot| !self.is_dead(slot), scratch);
        scratch.finish(most);
        &scratch.hits
    }

    /// Returns the `most` nearest vectors that `keep` accepts. In a graph at most about `distances_max` distances are
    /// computed; then the result contains the vectors found so far, even if they are fewer than `most`.
    pub fn search_within<'s>(
        &self,
        query: &Prepared,
        most: usize,
        width: usize,
        distances_max: usize,
        mut keep: impl FnMut(u32) -> bool,
        scratch: &'s mut Scratch,
    ) -> &'s [Hit] {
        if let Some(lists) = self.lists.as_ref().filter(|_| !self.is_scanned() || distances_max < self.len) {
            self.search_lists(lists, query, (most, width, distances_max), &mut keep, scratch);
            return &scratch.hits;
        }
        let Some((graph, entry)) = self.graph.as_ref().and_then(|graph| Some((graph, graph.entry?))) else {
            return self.search_all(query, most, keep, scratch);
        };
        if self.is_scanned() && distances_max >= self.len {
            return self.search_all(query, most, keep, scratch);
        }
        let row = self.space.row_of(query);
        let from = graph.descend(&self.space, &row, 0, entry);
        let width = width.max(most).max(1);
        let beam = Beam { distances_max, ..Beam::new(0, from, width) };
        let mut keep = |slot: u32| !self.is_dead(slot) && keep(slot);
        graph.find_near(&self.space, &row, beam, &mut keep, scratch);
        self.offer_pending(&row, width, &mut keep, scratch);
        scratch.finish(most);
        &scratch.hits
    }

    /// Returns the `most` nearest vectors that `keep` accepts, or all accepted ones if there are fewer. If few are
    /// accepted, all vectors are scanned; otherwise the graph is searched.
    pub fn search_filtered<'s>(
        &self,
        query: &Prepared,
        most: usize,
        width: usize,
        mut keep: impl FnMut(u32) -> bool,
        scratch: &'s mut Scratch,
    ) -> &'s [Hit] {
        if self.lists.is_some() {
            // Lists are scanned until there are enough results.
            return self.search_within(query, most, width, usize::MAX, keep, scratch);
        }
        let width = width.max(most).max(1);
        let Some((graph, entry)) = self.graph.as_ref().and_then(|graph| Some((graph, graph.entry?))) else {
            return self.search_all(query, most, keep, scratch);
        };
        if self.is_scanned() {
            return self.search_all(query, most, keep, scratch);
        }
        let mut keep = |slot: u32| !self.is_dead(slot) && keep(slot);
        let share = self.share_taken(&mut keep);
        // Wide enough that the requested number of vectors passes the filter, plus the margin of a search without a
        // filter.
        let beam_width = (TAKEN_IN_BEAM * most as f64 / share) as usize + (width - most);
        if most == 0 || share == 0.0 || self.len < beam_width.saturating_mul(graph.links * SCANNED_PER_LINK) {
            return self.search_all(query, most, keep, scratch);
        }
        let row = self.space.row_of(query);
        let from = graph.descend(&self.space, &row, 0, entry);
        let mut beam = Beam { distances_max: self.len / 4, ..Beam::new(0, from, beam_width) };
        while !graph.find_taken(&self.space, &row, (beam, most), &mut keep, scratch) {
            // The beam was too narrow, because fewer vectors are accepted near the query than elsewhere.
            beam.width *= 2;
            if beam.width.saturating_mul(graph.links * SCANNED_PER_LINK) > self.len {
                return self.search_all(query, most, keep, scratch);
            }
        }
        self.offer_pending(&row, most, &mut keep, scratch);
        scratch.finish(most);
        &scratch.hits
    }

    /// Returns the `most` nearest vectors among the given slots, exactly. Skips dead slots. O(slots).
    pub fn search_listed<'s>(
        &self,
        query: &Prepared,
        most: usize,
        slots: impl Iterator<Item = u32> + Clone,
        scratch: &'s mut Scratch,
    ) -> &'s [Hit] {
        let row = self.space.row_of(query);
        scratch.begin(0);
        let mut ahead = slots.clone().skip(self.space.rows_ahead()).fuse();
        for slot in slots {
            if self.lists.is_none()
                && let Some(slot) = ahead.next()
            {
                self.space.prefetch(slot);
            }
            if most > 0 && !self.is_dead(slot) {
                scratch.offer(key(self.space.distance(&row, self.row(slot)), slot), most);
            }
        }
        scratch.finish(most);
        &scratch.hits
    }

    /// Returns the approximate number of slots up to which [`Index::search_listed`] is faster than
    /// [`Index::search_filtered`] with a filter that accepts these slots.
    pub fn listed_max(&self, most: usize, width: usize) -> usize {
        if let Some(lists) = self.lists.as_ref().filter(|_| !self.is_scanned()) {
            return 2 * (self.len.saturating_mul(width.min(lists.count())) / lists.count());
        }
        match &self.graph {
            Some(graph) if !self.is_scanned() => {
                // The number of slots for which a search with a filter, whose beam is as wide as their share requires,
                // takes as long.
                let per_width = (graph.links * LISTED_PER_LINK) as f64;
                let fixed = width.saturating_sub(most) as f64 * per_width;
                let of_share = TAKEN_IN_BEAM * most as f64 * self.len as f64 * per_width;
                (fixed / 2.0 + (fixed * fixed / 4.0 + of_share).sqrt()) as usize
            }
            _ => self.len / 2,
        }
    }

    /// Estimates the share of slots that a filter accepts; 0 if it is very small. The sampled slots depend only on the
    /// number of slots, so that equal searches have equal results.
    fn share_taken(&self, keep: &mut impl FnMut(u32) -> bool) -> f64 {
        let mut taken = 0;
        for asked in 1..=SAMPLE {
            let slot = (split_mix(u64::from(asked)) % self.len as u64) as u32;
            taken += u32::from(keep(slot));
            if taken == SAMPLE_TAKEN {
                return f64::from(taken) / f64::from(asked);
            }
        }
        f64::from(taken) / f64::from(SAMPLE)
    }

    /// Scans `width` lists, and further ones until `most` vectors are found or `distances_max` distances are computed.
    fn search_lists(
        &self,
        lists: &Lists,
        query: &Prepared,
        (most, width, distances_max): (usize, usize, usize),
        keep: &mut impl FnMut(u32) -> bool,
        scratch: &mut Scratch,
    ) {
        let row = self.space.row_of(query);
        scratch.begin(0);
        if most > 0 {
            self.offer_pending(&row, most, keep, scratch);
            let width = width.max(1);
            let mut promising = lists.by_promise(&self.space.floats(&row), width);
            let count = promising.len();
            let (first, others) = promising.split_at_mut(width.min(count));
            let mut distances = 0;
            let mut compare_lists = |promising: &[u64], scratch: &mut Scratch| {
                let parts = promising.iter().flat_map(|&key| lists.parts(key as u32));
                self.offer_parts(lists, &row, parts, (most, distances_max, &mut distances), keep, scratch);
            };
            compare_lists(first, scratch);
            if scratch.nearest.len() < most {
                others.sort_unstable();
                for list in others.chunks(1) {
                    if scratch.nearest.len() < most {
                        compare_lists(list, scratch);
                    }
                }
            }
        }
        scratch.finish(most);
    }

    /// Scans parts of lists and adds their vectors to the nearest, until more than `distances_max` distances are
    /// computed.
    fn offer_parts<'p>(
        &self,
        lists: &Lists,
        row: &[u8],
        parts: impl Iterator<Item = (u32, &'p [u8])> + Clone,
        (most, distances_max, distances): (usize, usize, &mut usize),
        keep: &mut impl FnMut(u32) -> bool,
        scratch: &mut Scratch,
    ) {
        let mut ahead = parts.clone().skip(PARTS_AHEAD);
        for (first, rows) in parts {
            if *distances > distances_max {
                return;
            }
            *distances += rows.len() / self.space.width();
            let ahead = ahead.next().map_or(&[][..], |(_, rows)| rows);
            self.offer_rows(row, (rows, ahead), |at| lists.slot_at(first, at), most, keep, scratch);
        }
    }

    /// Scans contiguous rows, whose slots `slot_of` returns, and prefetches the next ones meanwhile. `keep` is called
    /// only for vectors near enough to be in the result, because a call may take longer than computing a distance.
    fn offer_rows(
        &self,
        row: &[u8],
        (rows, ahead): (&[u8], &[u8]),
        slot_of: impl Fn(usize) -> u32,
        most: usize,
        keep: &mut impl FnMut(u32) -> bool,
        scratch: &mut Scratch,
    ) {
        let (width, mut distances) = (self.space.width(), [0.0; SCANNED_AT_ONCE]);
        let mut limit = scratch.limit(most);
        for (part, rows) in rows.chunks(SCANNED_AT_ONCE * width).enumerate() {
            let first = part * SCANNED_AT_ONCE;
            let ahead = ahead.get(first * width..).unwrap_or_default();
            let distances = &mut distances[..rows.len() / width];
            self.space.scan(row, rows, ahead, distances);
            for (at, &distance) in distances.iter().enumerate() {
                if distance > limit {
                    continue;
                }
                let slot = slot_of(first + at);
                if keep(slot) {
                    scratch.offer(key(distance, slot), most);
                    limit = scratch.limit(most);
                }
            }
        }
    }

    /// Compares the vectors that are not linked yet, and adds them to the nearest.
    fn offer_pending(
        &self,
        row: &[u8],
        most: usize,
        keep: &mut impl FnMut(u32) -> bool,
        scratch: &mut Scratch,
    ) {
        for slot in self.pending.slots().filter(|&slot| keep(slot)) {
            scratch.offer(key(self.space.distance(row, self.row(slot)), slot), most);
        }
    }

    /// Returns the `most` nearest vectors that `keep` accepts, exactly. O(n).
    pub fn search_all<'s>(
        &self,
        query: &Prepared,
        most: usize,
        mut keep: impl FnMut(u32) -> bool,
        scratch: &'s mut Scratch,
    ) -> &'s [Hit] {
        let row = self.space.row_of(query);
        scratch.begin(0);
        if most > 0 {
            let mut keep = |slot: u32| !self.is_dead(slot) && keep(slot);
            if let Some(lists) = &self.lists {
                let all = (most, usize::MAX, &mut 0);
                self.offer_parts(lists, &row, lists.all_parts(), all, &mut keep, scratch);
            }
            let mut ahead = self.space.runs().skip(1);
            for (first, rows) in self.space.runs() {
                let ahead = ahead.next().map_or(&[][..], |(_, rows)| rows);
                self.offer_rows(&row, (rows, ahead), |at| first + at as u32, most, &mut keep, scratch);
            }
        }
        scratch.finish(most);
        &scratch.hits
    }

    /// Converts [`Hit::distance`] to the distance shown to users: with cosine 0 to 2, with L2 the Euclidean distance,
    /// with the inner product the product itself.
    pub fn metric_distance(&self, distance: f32) -> f32 {
        match self.config.metric {
            Metric::Cosine => distance,
            Metric::L2 => distance.sqrt(),
            Metric::InnerProduct => -distance,
        }
    }

    /// Checks the invariants; for tests. O(n).
    ///
    /// # Panics
    /// Panics if an invariant is violated.
    pub fn check_invariants(&self) {
        let recounted = self.space.recounted_bytes()
            + self.graph.as_ref().map_or(0, Graph::recounted_bytes)
            + self.lists_bytes(Lists::recounted_bytes)
            + self.training_bytes()
            + self.pending.memory_bytes(self.config.account)
            + self.dead_bytes();
        assert_eq!(self.memory_bytes(), recounted, "bytes are those of the blocks");
        let of_space = if self.lists.is_some() { 0 } else { self.len };
        assert_eq!(self.space.len(), of_space, "lists have the vectors, if there are some");
        if let Some(graph) = &self.graph {
            assert_eq!(graph.len(), self.len);
            graph.check();
            let pending: std::collections::BTreeSet<u32> = self.pending.slots().collect();
            assert_eq!(pending.len(), self.pending.len());
            let dead: std::collections::BTreeSet<u32> = self.dead.iter().copied().collect();
            assert_eq!(dead.len(), self.dead.len());
            // A node that died before it was linked has no links, and will not be linked.
            assert!((0..self.len as u32).all(|slot| graph.is_dead(slot) == dead.contains(&slot)
                && (graph.is_pending(slot) == pending.contains(&slot) || graph.is_dead(slot))));
        } else {
            assert!(self.dead.is_empty());
        }
        if let Some(lists) = &self.lists {
            assert_eq!(lists.len(), self.len);
            lists.check();
            let pending: std::collections::BTreeSet<u32> = self.pending.slots().collect();
            assert_eq!(pending.len(), self.pending.len());
            let slots = 0..self.len as u32;
            assert!(slots.into_iter().all(|slot| lists.list_of(slot).is_none() == pending.contains(&slot)));
        }
    }
}
