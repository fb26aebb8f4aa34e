//! The index: vectors, and the links by which they are found.

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

/// The most vectors of an index: in lists, their places have numbers of 32 bits, some of which are empty.
pub const SLOTS_MAX: usize = u32::MAX as usize - PLACES_SPARE;

/// An index that takes at most this many bytes of vectors is searched by looking at all of them: that takes no longer than
/// following links, and finds all.
const SCANNED_MAX_BYTES: usize = 256 * 1024;

/// Slots that are asked whether they pass a filter, to know how many do: so many, or until so many have passed.
const SAMPLE: u32 = 512;
const SAMPLE_TAKEN: u32 = 8;

/// Of a filtered search: how often what is asked for is to be among what is near, with what does not pass.
const TAKEN_IN_BEAM: f64 = 1.5;

/// Of a filtered search: vectors that are looked at one behind the other in the time in which one link of a node of the beam
/// is followed.
const SCANNED_PER_LINK: usize = 2;

/// The same of vectors that are picked here and there.
const LISTED_PER_LINK: usize = 2;

/// How many parts ahead of lists a scan has vectors fetched: about as far as one of all vectors does.
const PARTS_AHEAD: usize = 1;

/// Vectors, and the links by which they are found.
#[derive(Clone, Debug)]
pub struct Index {
    pub(crate) config: Config,
    pub(crate) space: Space,
    /// Of [`Kind::Hnsw`].
    pub(crate) graph: Option<Graph>,
    /// Of [`Kind::Ivf`], once they are made.
    pub(crate) lists: Option<Box<Lists>>,
    /// Who makes lists, if anybody does.
    pub(crate) training: Option<Box<Claim>>,
    /// Whether lists are to be made whatever the size.
    pub(crate) is_training_wanted: bool,
    pub(crate) len: usize,
    /// Insertions so far.
    pub(crate) inserted: u64,
    /// What is not linked yet.
    pub(crate) pending: Pending,
    /// Slots whose vectors were removed from a graph that they are still in.
    pub(crate) dead: Vec<u32>,
    /// How often a vector was removed or replaced: who plans links sees whether slots are what they were.
    pub(crate) moves: u64,
}

impl Index {
    /// An index without vectors.
    ///
    /// # Errors
    /// If there can be no such index.
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
            is_training_wanted: false,
            len: 0,
            inserted: 0,
            pending: Pending::default(),
            dead: Vec::new(),
            moves: 0,
        })
    }

    /// What it is made of.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// How many vectors there are.
    pub fn len(&self) -> usize {
        self.len - self.dead.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many slots there are: one for each vector and each dead one.
    pub fn slots(&self) -> usize {
        self.len
    }

    /// How many vectors were inserted or replaced so far: the number of the newest.
    pub fn inserted(&self) -> u64 {
        self.inserted
    }

    /// Goes on counting insertions behind this one, if it is higher than the last.
    pub fn count_from(&mut self, inserted: u64) {
        self.inserted = self.inserted.max(inserted);
    }

    /// Bytes of memory beyond the index itself, allocator rounding included. O(1).
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

    /// Bytes of what is noted for a training.
    fn training_bytes(&self) -> usize {
        let Some(claim) = &self.training else { return 0 };
        let changes = match claim.changes_capacity() {
            0 => 0,
            capacity => (self.config.account)(capacity * size_of::<u32>()),
        };
        (self.config.account)(size_of::<Claim>()) + changes
    }

    /// Adds a vector and returns its slot, the one behind all others. Searches find it from now on; it is linked later
    /// ([`Index::begin_linking`], [`Index::link_pending`]). `width` is how many near vectors its neighbours are to be chosen
    /// from. O(dimensions).
    ///
    /// # Panics
    /// If it has other dimensions than the index, or there are [`SLOTS_MAX`] vectors.
    pub fn add(&mut self, vector: &Prepared, width: usize) -> u32 {
        assert!(self.len < SLOTS_MAX, "the owner looks whether there is room");
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

    /// As [`Index::add`], and links it. O(width · log n) distances.
    ///
    /// # Panics
    /// The same.
    pub fn insert(&mut self, vector: &Prepared, width: usize, scratch: &mut Scratch) -> u32 {
        let slot = self.add(vector, width);
        self.link_slot(slot, scratch);
        slot
    }

    /// Puts another vector in the place of that of a slot. As a new one it is linked later.
    ///
    /// # Panics
    /// If it has other dimensions than the index, or there is no such slot.
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
        self.note_change(slot);
        let Some(lists) = &mut self.lists else { return self.space.set(slot, &row) };
        if !lists.take_out(slot) {
            self.pending.remove(slot);
        }
        lists.set(slot, &row);
        self.pending.push(slot, self.inserted, width);
    }

    /// As [`Index::exchange`], and links it.
    ///
    /// # Panics
    /// The same.
    pub fn replace(&mut self, slot: u32, vector: &Prepared, width: usize, scratch: &mut Scratch) {
        self.exchange(slot, vector, width, scratch);
        self.link_slot(slot, scratch);
    }

    /// Whether removing a vector means to mend a graph, so that it can be left for later ([`Index::kill`]).
    pub fn is_mended(&self) -> bool {
        self.graph.is_some()
    }

    /// Removes a vector from what searches find. Its slot stays, dead, until [`Index::remove`] buries it: the graph is
    /// mended then. O(pending vectors).
    ///
    /// # Panics
    /// If there is no such slot, it is dead already, or there is no graph.
    pub fn kill(&mut self, slot: u32) {
        assert!(!self.is_dead(slot), "a vector is removed once");
        let graph = self.graph.as_mut().expect("the owner has asked whether there is one");
        if graph.is_pending(slot) {
            self.pending.remove(slot);
        }
        graph.set_dead(slot);
        self.dead.push(slot);
    }

    /// How many slots are dead.
    pub fn dead(&self) -> usize {
        self.dead.len()
    }

    /// Whether a slot is dead.
    #[inline]
    pub fn is_dead(&self, slot: u32) -> bool {
        !self.dead.is_empty() && self.graph.as_ref().is_some_and(|graph| graph.is_dead(slot))
    }

    /// Dead slots, those that are to be buried first last.
    pub fn dead_slots(&self) -> &[u32] {
        &self.dead
    }

    /// Notes that one slot is not dead any more, and that what was in another one is in its place.
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

    /// Removes the vector of a slot, or what is left of a dead one. The one in the last slot takes its place.
    ///
    /// # Panics
    /// If there is no such slot.
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
        self.note_change(slot);
        self.note_change((self.len - 1) as u32);
        self.len -= 1;
    }

    /// An index of the same vectors in the same slots, its graph or lists made anew. O(n · width · log n) distances, or
    /// O(n · lists).
    ///
    /// # Panics
    /// If there are dead slots.
    #[must_use]
    pub fn rebuilt(&self, width: usize, scratch: &mut Scratch) -> Index {
        assert!(self.dead.is_empty(), "the owner has buried them");
        if self.graph.is_none() {
            let mut index = self.clone();
            index.training = None;
            index.want_training();
            index.train();
            index.link_pending(usize::MAX, scratch);
            return index;
        }
        let mut index = Index::new(self.config).expect("there is one like it");
        (index.inserted, index.moves) = (self.inserted, self.moves + 1);
        (0..self.len as u32).for_each(|slot| _ = index.insert(&self.stored(slot), width, scratch));
        index
    }

    /// The row of a slot.
    #[inline]
    pub(crate) fn row(&self, slot: u32) -> &[u8] {
        match &self.lists {
            Some(lists) => lists.row(slot),
            None => self.space.row(slot),
        }
    }

    /// The vector of a slot as it is stored.
    pub fn stored(&self, slot: u32) -> Prepared {
        self.space.stored(self.row(slot))
    }

    /// The vector of a slot, as far as it was kept: of cosine with the length that was taken out, but for bits.
    pub fn vector(&self, slot: u32) -> Vec<f32> {
        self.space.vector(self.row(slot))
    }

    /// How far the vectors of two slots are from each other; see [`Hit::distance`].
    pub fn distance_between(&self, a: u32, b: u32) -> f32 {
        self.space.distance(self.row(a), self.row(b))
    }

    /// How far a vector is from that of a slot; see [`Hit::distance`].
    pub fn distance(&self, query: &Prepared, slot: u32) -> f32 {
        self.space.distance(&self.space.row_of(query), self.row(slot))
    }

    /// The highest level of a slot's node; 0 without a graph.
    pub fn level(&self, slot: u32) -> usize {
        self.graph.as_ref().map_or(0, |graph| graph.level(slot))
    }

    /// The highest level of all; 0 without a graph.
    pub fn top_level(&self) -> usize {
        self.graph.as_ref().map_or(0, Graph::top)
    }

    /// The slots that one is linked with on a level that it is on, dead ones too; none without a graph.
    pub fn neighbours(&self, slot: u32, level: usize) -> Vec<u32> {
        self.graph.as_ref().map_or(Vec::new(), |graph| graph.neighbours(slot, level).to_vec())
    }

    /// Whether a search looks at all vectors.
    pub fn is_scanned(&self) -> bool {
        self.graph.is_none() && self.lists.is_none()
            || self.len * self.config.scalar.bytes(self.config.dim) <= SCANNED_MAX_BYTES
    }

    /// The list of a slot, if it is in one.
    pub fn list_of(&self, slot: u32) -> Option<u32> {
        self.lists.as_ref()?.list_of(slot)
    }

    /// The centres of the lists, row behind row, and how many vectors there were when they were made.
    pub fn centres(&self) -> Option<(Vec<f32>, usize)> {
        self.lists.as_ref().map(|lists| (lists.centres(), lists.trained_len))
    }

    /// About how many distances a search of so many near vectors, or in so many lists, computes.
    pub fn distances_of_search(&self, width: usize) -> usize {
        if let Some(lists) = self.lists.as_ref().filter(|_| !self.is_scanned()) {
            let looked_at = self.len.saturating_mul(width.min(lists.count())) / lists.count();
            return looked_at + lists.count() + self.pending.len();
        }
        match &self.graph {
            Some(graph) if !self.is_scanned() => {
                width.saturating_mul(graph.links).saturating_add(self.pending.len()).min(self.len)
            }
            _ => self.len,
        }
    }

    /// The `most` nearest vectors, the nearest first. `width` is how many near ones are looked for in a graph, or how many
    /// lists are looked at: the more, the surer it is that none is missed.
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

    /// The `most` nearest vectors of those that `keep` takes. In the graph no more than about `distances_max` distances are
    /// computed; then what was found is the result, even if it is less than `most`.
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

    /// The `most` nearest vectors of those that `keep` takes, and so many if there are so many. If few are taken, all are
    /// looked at; else those that are met on the way through the graph.
    pub fn search_filtered<'s>(
        &self,
        query: &Prepared,
        most: usize,
        width: usize,
        mut keep: impl FnMut(u32) -> bool,
        scratch: &'s mut Scratch,
    ) -> &'s [Hit] {
        if self.lists.is_some() {
            // Lists are looked at until there are enough.
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
        // As many more as are needed that what is asked for passes, and beyond those as many as without a filter.
        let beam_width = (TAKEN_IN_BEAM * most as f64 / share) as usize + (width - most);
        if most == 0 || share == 0.0 || self.len < beam_width.saturating_mul(graph.links * SCANNED_PER_LINK) {
            return self.search_all(query, most, keep, scratch);
        }
        let row = self.space.row_of(query);
        let from = graph.descend(&self.space, &row, 0, entry);
        let mut beam = Beam { distances_max: self.len / 4, ..Beam::new(0, from, beam_width) };
        while !graph.find_taken(&self.space, &row, (beam, most), &mut keep, scratch) {
            // Fewer are taken near it than elsewhere.
            beam.width *= 2;
            if beam.width.saturating_mul(graph.links * SCANNED_PER_LINK) > self.len {
                return self.search_all(query, most, keep, scratch);
            }
        }
        self.offer_pending(&row, most, &mut keep, scratch);
        scratch.finish(most);
        &scratch.hits
    }

    /// The `most` nearest of the vectors of some slots, exactly. Dead ones are left out. O(slots).
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

    /// Up to how many slots [`Index::search_listed`] takes less time than [`Index::search_filtered`] with a filter that
    /// takes these, about.
    pub fn listed_max(&self, most: usize, width: usize) -> usize {
        if let Some(lists) = self.lists.as_ref().filter(|_| !self.is_scanned()) {
            return 2 * (self.len.saturating_mul(width.min(lists.count())) / lists.count());
        }
        match &self.graph {
            Some(graph) if !self.is_scanned() => {
                // That many that a beam of the width for their share takes as long.
                let per_width = (graph.links * LISTED_PER_LINK) as f64;
                let fixed = width.saturating_sub(most) as f64 * per_width;
                let of_share = TAKEN_IN_BEAM * most as f64 * self.len as f64 * per_width;
                (fixed / 2.0 + (fixed * fixed / 4.0 + of_share).sqrt()) as usize
            }
            _ => self.len / 2,
        }
    }

    /// About the share of slots that a filter takes; 0 if it is very small. Which slots are asked follows from how many
    /// there are, so the same search has the same result.
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

    /// Looks at `width` lists, and at more of them until `most` vectors are found or so many distances are computed.
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
            let mut look_at = |promising: &[u64], scratch: &mut Scratch| {
                let parts = promising.iter().flat_map(|&key| lists.parts(key as u32));
                self.offer_parts(lists, &row, parts, (most, distances_max, &mut distances), keep, scratch);
            };
            look_at(first, scratch);
            if scratch.nearest.len() < most {
                others.sort_unstable();
                for list in others.chunks(1) {
                    if scratch.nearest.len() < most {
                        look_at(list, scratch);
                    }
                }
            }
        }
        scratch.finish(most);
    }

    /// Looks at parts of lists until more than `distances_max` distances are computed.
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

    /// Looks at rows that lie one behind the other, of slots that are told by number, while the next ones are fetched. Only
    /// those that are near enough are asked whether they are taken: that may take longer than a distance.
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

    /// Looks at those that are not linked yet.
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

    /// The `most` nearest vectors of those that `keep` takes, exactly. O(n).
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

    /// What users of a metric are told: with cosine the distance 0 to 2, with L2 the distance, with the inner product that.
    pub fn told(&self, distance: f32) -> f32 {
        match self.config.metric {
            Metric::Cosine => distance,
            Metric::L2 => distance.sqrt(),
            Metric::InnerProduct => -distance,
        }
    }

    /// Checks what must always hold; for tests. O(n).
    ///
    /// # Panics
    /// If something does not.
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
            // One that has died before it was linked has no links, and nobody gives it some.
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
