//! Training of list centroids, in steps during changes of an index.
//!
//! ```text
//! begin     takes a view of the index                                                 short
//! step      chooses centroids from a sample (k-means++), moves them to the means of
//!           their nearest vectors, and copies all vectors of the view to lists        long
//! advance   collects the changes since; after many, the lists catch up with another
//!           view; after few, they become those of the index                           short
//! ```
//!
//! k-means++: Arthur and Vassilvitskii, 2007; the rest: Lloyd, 1982. With [`Metric::Cosine`] centroids are normalized.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Lists;
use crate::arena::ByteRows;
use crate::config::{Config, Kind, Metric};
use crate::graph::pending::Pending;
use crate::index::Index;
use crate::random::split_mix;

/// The number of vectors per list required before lists are built: with fewer, the centroids would fit individual
/// vectors.
pub const VECTORS_PER_LIST: usize = 39;

/// The number of sampled vectors per list from which centroids are computed; more would hardly change the centroids.
const SAMPLE_PER_LIST: usize = 128;

/// The number of rounds in which centroids are moved to the means of their vectors.
const ROUNDS: usize = 12;

/// The factor by which the number of vectors must grow before lists are trained again.
const GROWTH: usize = 4;

/// The maximum number of pending vectors when new lists are installed, and the maximum of their bytes: these vectors
/// are copied under a lock.
const LEFT_MAX: usize = 64;
const LEFT_BYTES_MAX: usize = 512 * 1024;

/// Insertions after which a training's claim expires: its owner has probably lost access to the index.
const CLAIM_INSERTIONS: u64 = 100_000;

/// The maximum number of changes recorded for a training; a training with more is also abandoned.
const CHANGES_MAX: usize = 65_536;

/// Returns a unique number.
pub(super) fn next_token() -> u64 {
    static TOKENS: AtomicU64 = AtomicU64::new(0);
    // Relaxed suffices: only uniqueness matters.
    TOKENS.fetch_add(1, Ordering::Relaxed)
}

/// An index's record of its training.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    token: u64,
    /// The number of insertions when the training last advanced.
    inserted: u64,
    /// Slots whose vectors have been replaced or removed since the training last advanced.
    changes: Vec<u32>,
}

impl Claim {
    pub(crate) fn changes_capacity(&self) -> usize {
        self.changes.capacity()
    }
}

/// Lists being built for an index.
#[derive(Debug)]
pub struct Training {
    token: u64,
    view: Index,
    lists: Lists,
    stage: Stage,
    /// Slots changed since the view.
    changes: Vec<u32>,
    seed: u64,
    /// The rows of the index from before it had lists. They are stored here because freeing them takes time.
    replaced: Option<ByteRows>,
}

#[derive(Debug)]
enum Stage {
    /// Centroids are chosen: the probability of each is proportional to the squared distance from the centroids chosen
    /// before.
    Seeding { sample: Vec<u32>, wanted: usize, nearest: Vec<f32>, at: usize },
    /// Centroids move to the means of their nearest vectors.
    Refining { sample: Vec<u32>, round: usize, at: usize, means: Means },
    /// The lists are those of an earlier view, which differs from this one in these slots.
    CatchingUp { changes: Vec<u32> },
    /// Lists are chosen for slots, from the last slot to the first.
    Choosing { slots: Vec<u32>, chosen: Vec<(u32, u32)> },
    /// Slots are put into the chosen lists, from the last list to the first.
    Placing { chosen: Vec<(u32, u32)> },
    /// All slots of the view are placed.
    Placed,
    /// The lists have been installed in the index.
    Over,
}

/// Sums of the vectors nearest to each centroid.
#[derive(Debug)]
struct Means {
    sums: Vec<f32>,
    counts: Vec<u32>,
    /// The centroid of each sampled vector.
    nearest: Vec<u32>,
}

impl Means {
    fn new(lists: usize, dim: usize, sample: usize) -> Means {
        Means { sums: vec![0.0; lists * dim], counts: vec![0; lists], nearest: vec![0; sample] }
    }
}

impl Index {
    /// Whether lists should be built, for the first time or because the index has grown.
    pub fn is_training_due(&self) -> bool {
        let Kind::Ivf { lists } = self.config.kind else { return false };
        match &self.lists {
            None => self.len >= lists.saturating_mul(VECTORS_PER_LIST),
            Some(lists) => self.len >= lists.trained_len.saturating_mul(GROWTH),
        }
    }

    /// Whether building lists is due, requested, or in progress.
    pub fn is_training_near(&self) -> bool {
        self.is_training_due() || self.is_training_requested || self.training.is_some()
    }

    /// Returns the number of lists; 0 before they are built.
    pub fn lists(&self) -> usize {
        self.lists.as_ref().map_or(0, |lists| lists.count())
    }

    /// Requests that lists be built from the present vectors, even if they are not due.
    pub fn request_training(&mut self) {
        self.is_training_requested = matches!(self.config.kind, Kind::Ivf { .. }) && self.len > 0;
    }

    /// Begins to build lists, if they are due or requested and no training is in progress. O(groups of blocks + vectors
    /// / 64).
    pub fn begin_training(&mut self) -> Option<Training> {
        let is_claimed = self
            .training
            .as_ref()
            .is_some_and(|claim| self.inserted.wrapping_sub(claim.inserted) < CLAIM_INSERTIONS);
        if !self.is_training_due() && !self.is_training_requested || is_claimed || self.len == 0 {
            return None;
        }
        let Kind::Ivf { lists: wanted } = self.config.kind else { return None };
        let token = next_token();
        self.is_training_requested = false;
        self.training = Some(Box::new(Claim { token, inserted: self.inserted, changes: Vec::new() }));
        let config = &self.config;
        let mut lists = Lists::new(config.dim, config.metric, self.space.width(), config.account);
        lists.trained_len = self.len;
        let wanted = wanted.min(self.len / VECTORS_PER_LIST).max(1);
        let view = self.clone();
        // Further work happens outside the lock.
        let stage = Stage::Seeding { sample: Vec::new(), wanted, nearest: Vec::new(), at: 0 };
        let changes = Vec::new();
        Some(Training { token, view, lists, stage, changes, seed: self.inserted, replaced: None })
    }

    /// Records a changed slot for a training.
    pub(crate) fn mark_changed(&mut self, slot: u32) {
        if let Some(claim) = &mut self.training {
            claim.changes.push(slot);
            if claim.changes.len() > CHANGES_MAX {
                self.training = None;
            }
        }
    }

    /// Passes changes to a training and installs its lists if they are complete; returns whether it must continue.
    /// Dropping the training afterwards takes time. O(1) distances.
    pub fn advance_training(&mut self, training: &mut Training) -> bool {
        let Some(claim) = self.training.as_mut().filter(|claim| claim.token == training.token) else {
            return false;
        };
        claim.inserted = self.inserted;
        training.changes.append(&mut claim.changes);
        claim.changes = Vec::new();
        if !matches!(training.stage, Stage::Placed) {
            return true;
        }
        let added = self.len.saturating_sub(training.view.len);
        let left_max = (LEFT_BYTES_MAX / self.space.width()).clamp(1, LEFT_MAX);
        if training.changes.len() + added > left_max {
            training.view = self.clone();
            training.stage = Stage::CatchingUp { changes: std::mem::take(&mut training.changes) };
            return true;
        }
        let changes = std::mem::take(&mut training.changes);
        let left = catch_up(&mut training.lists, changes, self);
        // Each pending vector is in the new lists, or in `left`.
        self.pending = Pending::default();
        for slot in left {
            // Slots serve as insertion numbers here: the numbers of later insertions are higher.
            self.pending.push(slot, u64::from(slot), 1);
        }
        self.training = None;
        training.stage = Stage::Over;
        let Config { dim, metric, account, .. } = self.config;
        let none = Lists::new(dim, metric, self.space.width(), account);
        let made = std::mem::replace(&mut training.lists, none);
        training.replaced = Some(self.space.take_rows(account));
        if let Some(old) = self.lists.replace(Box::new(made)) {
            training.lists = *old;
        }
        false
    }

    /// Builds lists immediately, if they are due or requested. O(n · lists) distances.
    pub fn train(&mut self) {
        let Some(mut training) = self.begin_training() else { return };
        loop {
            while !training.step(usize::MAX) {}
            if !self.advance_training(&mut training) {
                return;
            }
        }
    }
}

impl Training {
    /// Continues the training for about this many distances; returns whether the next step is
    /// [`Index::advance_training`].
    pub fn step(&mut self, distances: usize) -> bool {
        let mut left = distances;
        while left > 0 {
            let stage = std::mem::replace(&mut self.stage, Stage::Placed);
            let (stage, taken) = match stage {
                Stage::Seeding { sample, wanted, nearest, at } => {
                    self.seed_some(sample, wanted, nearest, at, left)
                }
                Stage::Refining { sample, round, at, means } => {
                    self.refine_some(sample, round, at, means, left)
                }
                Stage::CatchingUp { changes } => {
                    let slots = catch_up(&mut self.lists, changes, &self.view);
                    (Stage::Choosing { slots, chosen: Vec::new() }, 1)
                }
                Stage::Choosing { slots, chosen } => self.choose_some(slots, chosen, left),
                Stage::Placing { chosen } => self.place_some(chosen, left),
                done @ (Stage::Placed | Stage::Over) => {
                    self.stage = done;
                    return true;
                }
            };
            self.stage = stage;
            left = left.saturating_sub(taken.max(1));
        }
        false
    }

    /// Returns a pseudorandom number below `end`.
    fn random(&mut self, end: usize) -> usize {
        self.seed = split_mix(self.seed);
        (self.seed % end as u64) as usize
    }

    /// Samples distinct slots, a fixed number for each list.
    fn sample(&mut self, lists: usize) -> Vec<u32> {
        let mut slots: Vec<u32> = (0..self.view.len as u32).collect();
        let count = slots.len().min(lists.saturating_mul(SAMPLE_PER_LIST));
        for at in 0..count {
            let other = at + self.random(slots.len() - at);
            slots.swap(at, other);
        }
        slots.truncate(count);
        slots
    }

    fn seed_some(
        &mut self,
        mut sample: Vec<u32>,
        wanted: usize,
        mut nearest: Vec<f32>,
        mut at: usize,
        most: usize,
    ) -> (Stage, usize) {
        if sample.is_empty() {
            sample = self.sample(wanted);
            nearest = vec![f32::INFINITY; sample.len()];
            self.lists.push_list(&floats_of(&self.view, sample[0]));
        }
        let last = self.lists.count() - 1;
        let end = sample.len().min(at.saturating_add(most));
        for (distance, &slot) in nearest[at..end].iter_mut().zip(&sample[at..end]) {
            *distance = distance.min(self.lists.centres.distance(&floats_of(&self.view, slot), last));
        }
        let taken = end - at;
        at = end;
        if at < sample.len() {
            return (Stage::Seeding { sample, wanted, nearest, at }, taken);
        }
        if last + 1 == wanted {
            let means = Means::new(wanted, self.view.config.dim, sample.len());
            return (Stage::Refining { sample, round: 0, at: 0, means }, taken);
        }
        let chosen = self.by_weight(&nearest);
        self.lists.push_list(&floats_of(&self.view, sample[chosen]));
        (Stage::Seeding { sample, wanted, nearest, at: 0 }, taken)
    }

    /// Picks an index with a probability proportional to its weight.
    fn by_weight(&mut self, weights: &[f32]) -> usize {
        let sum: f64 = weights.iter().map(|&weight| f64::from(weight)).sum();
        let any = self.random(weights.len());
        if sum.is_nan() || sum <= 0.0 {
            // All weights are zero, because all vectors are centroids already.
            return any;
        }
        self.seed = split_mix(self.seed);
        let mut left = (self.seed >> 11) as f64 / (1u64 << 53) as f64 * sum;
        for (at, &weight) in weights.iter().enumerate() {
            left -= f64::from(weight);
            if left < 0.0 {
                return at;
            }
        }
        any
    }

    fn refine_some(
        &mut self,
        sample: Vec<u32>,
        round: usize,
        at: usize,
        mut means: Means,
        most: usize,
    ) -> (Stage, usize) {
        let (lists, dim) = (self.lists.count(), self.view.config.dim);
        let end = sample.len().min(at.saturating_add((most / lists).max(1)));
        for (place, &slot) in means.nearest[at..end].iter_mut().zip(&sample[at..end]) {
            let floats = floats_of(&self.view, slot);
            let nearest = self.lists.nearest(&floats);
            *place = nearest;
            means.counts[nearest as usize] += 1;
            let sums = &mut means.sums[nearest as usize * dim..][..dim];
            sums.iter_mut().zip(numbers(&floats)).for_each(|(sum, number)| *sum += number);
        }
        let taken = (end - at) * lists;
        if end < sample.len() {
            return (Stage::Refining { sample, round, at: end, means }, taken);
        }
        self.move_centres(&sample, means);
        if round + 1 == ROUNDS {
            let slots = (0..self.view.len as u32).rev().collect();
            return (Stage::Choosing { slots, chosen: Vec::new() }, taken);
        }
        let means = Means::new(lists, dim, sample.len());
        (Stage::Refining { sample, round: round + 1, at: 0, means }, taken)
    }

    /// Moves each centroid to the mean of its vectors; a centroid without vectors moves to a sampled vector of the
    /// centroid with the most vectors.
    fn move_centres(&mut self, sample: &[u32], mut means: Means) {
        let dim = self.view.config.dim;
        for list in 0..means.counts.len() {
            let centre: Vec<u8> = if means.counts[list] == 0 {
                let most = (0..means.counts.len()).max_by_key(|&list| means.counts[list]).unwrap_or(0);
                means.counts[most] /= 2;
                let from = self.random(sample.len());
                let places = (from..sample.len()).chain(0..from);
                let place = places.into_iter().find(|&place| means.nearest[place] as usize == most);
                floats_of(&self.view, sample[place.unwrap_or(from)]).into_owned()
            } else {
                let mean = &mut means.sums[list * dim..][..dim];
                let mut scale = 1.0 / means.counts[list] as f32;
                if self.view.config.metric == Metric::Cosine {
                    let length = mean.iter().map(|number| number * number).sum::<f32>().sqrt();
                    scale = if length > 0.0 { 1.0 / length } else { 1.0 };
                }
                mean.iter().flat_map(|number| (number * scale).to_le_bytes()).collect()
            };
            self.lists.centres.rows.set(list, &centre);
        }
    }

    fn choose_some(
        &mut self,
        mut slots: Vec<u32>,
        mut chosen: Vec<(u32, u32)>,
        most: usize,
    ) -> (Stage, usize) {
        let lists = self.lists.count();
        let count = slots.len().min((most / lists).max(1));
        for slot in slots.split_off(slots.len() - count) {
            chosen.push((self.lists.nearest(&floats_of(&self.view, slot)), slot));
        }
        if !slots.is_empty() {
            return (Stage::Choosing { slots, chosen }, count * lists);
        }
        chosen.sort_unstable_by(|a, b| b.cmp(a));
        if self.lists.len() == 0 {
            self.lists.add_places(self.view.len);
        }
        (Stage::Placing { chosen }, count * lists)
    }

    fn place_some(&mut self, mut chosen: Vec<(u32, u32)>, most: usize) -> (Stage, usize) {
        let count = chosen.len().min(most);
        for (list, slot) in chosen.split_off(chosen.len() - count).into_iter().rev() {
            self.lists.put_in(slot, list, self.view.row(slot));
        }
        (if chosen.is_empty() { Stage::Placed } else { Stage::Placing { chosen } }, count)
    }
}

/// Updates lists to an index whose vectors have changed in these slots, and returns the slots that are in no list.
fn catch_up(lists: &mut Lists, mut changes: Vec<u32>, index: &Index) -> Vec<u32> {
    let (before, len) = (lists.len(), index.len);
    changes.sort_unstable();
    changes.dedup();
    changes.retain(|&slot| (slot as usize) < before.min(len));
    (len..before).rev().for_each(|slot| lists.swap_remove(slot as u32));
    for &slot in &changes {
        lists.take_out(slot);
        lists.set(slot, index.row(slot));
    }
    (before..len).for_each(|slot| lists.push(index.row(slot as u32)));
    changes.extend(before as u32..len.max(before) as u32);
    changes
}

/// Returns the numbers of a slot's vector as the bytes of 32-bit floats.
fn floats_of(view: &Index, slot: u32) -> Cow<'_, [u8]> {
    view.space.floats(view.row(slot))
}

fn numbers(floats: &[u8]) -> impl Iterator<Item = f32> + '_ {
    floats.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes))
}
