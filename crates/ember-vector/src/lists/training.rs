//! Centres of lists, found in steps beside the changes of an index.
//!
//! ```text
//! begin     a view of the index                                                      short
//! step      centres are chosen from a sample (k-means++), moved to the means of
//!           what is nearest to them, and all vectors of the view are copied to lists  long
//! advance   takes what has changed since; with much of it the lists catch up with
//!           another view, with little they become those of the index                 short
//! ```
//!
//! k-means++: Arthur and Vassilvitskii, 2007; the rest: Lloyd, 1982. With [`Metric::Cosine`] centres are of length 1.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Lists;
use crate::arena::ByteRows;
use crate::config::{Config, Kind, Metric};
use crate::graph::pending::Pending;
use crate::index::Index;
use crate::random::split_mix;

/// Vectors for each list, before there are lists at all: with fewer, centres follow single vectors.
pub const VECTORS_PER_LIST: usize = 39;

/// Vectors for each list of which centres are the means; more of them hardly move these.
const SAMPLE_PER_LIST: usize = 128;

/// How often centres are moved.
const ROUNDS: usize = 12;

/// With so many times the vectors of the training there is another one.
const GROWTH: usize = 4;

/// Vectors that may be pending when new lists are installed, and bytes of them: they are copied under a lock.
const LEFT_MAX: usize = 64;
const LEFT_BYTES_MAX: usize = 512 * 1024;

/// Insertions after which nobody waits for a training any more: who began it has lost the index out of sight.
const CLAIM_INSERTIONS: u64 = 100_000;

/// Changes that are noted for a training; with more it is given up, too.
const CHANGES_MAX: usize = 65_536;

/// A number that is given once.
pub(super) fn next_token() -> u64 {
    static TOKENS: AtomicU64 = AtomicU64::new(0);
    // Nothing but that it is another number hangs on it.
    TOKENS.fetch_add(1, Ordering::Relaxed)
}

/// What an index knows of its training.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    token: u64,
    /// After which insertion it was last heard of.
    inserted: u64,
    /// Slots whose vectors are others since, or gone.
    changes: Vec<u32>,
}

impl Claim {
    pub(crate) fn changes_capacity(&self) -> usize {
        self.changes.capacity()
    }
}

/// Lists that are being made for an index.
#[derive(Debug)]
pub struct Training {
    token: u64,
    view: Index,
    lists: Lists,
    stage: Stage,
    /// Slots that have changed since the view.
    changes: Vec<u32>,
    seed: u64,
    /// Rows that were those of the index before they were in lists: it takes time to free them.
    replaced: Option<ByteRows>,
}

#[derive(Debug)]
enum Stage {
    /// Centres are chosen: each next one with a probability that grows with the squared distance from those before.
    Seeding { sample: Vec<u32>, wanted: usize, nearest: Vec<f32>, at: usize },
    /// They become the means of what is nearest to them.
    Refining { sample: Vec<u32>, round: usize, at: usize, means: Means },
    /// The lists are those of an earlier view, of which these slots are others in this one.
    CatchingUp { changes: Vec<u32> },
    /// Lists are chosen for slots, the last first.
    Choosing { slots: Vec<u32>, chosen: Vec<(u32, u32)> },
    /// Slots are put into the lists that were chosen, those of the last list first.
    Placing { chosen: Vec<(u32, u32)> },
    /// All of the view are.
    Placed,
    /// The lists are those of the index now.
    Over,
}

/// Sums of what is nearest to each centre.
#[derive(Debug)]
struct Means {
    sums: Vec<f32>,
    counts: Vec<u32>,
    /// The centre of each vector of the sample.
    nearest: Vec<u32>,
}

impl Means {
    fn new(lists: usize, dim: usize, sample: usize) -> Means {
        Means { sums: vec![0.0; lists * dim], counts: vec![0; lists], nearest: vec![0; sample] }
    }
}

impl Index {
    /// Whether lists are to be made, for the first time or for a size that the index has grown to.
    pub fn is_training_due(&self) -> bool {
        let Kind::Ivf { lists } = self.config.kind else { return false };
        match &self.lists {
            None => self.len >= lists.saturating_mul(VECTORS_PER_LIST),
            Some(lists) => self.len >= lists.trained_len.saturating_mul(GROWTH),
        }
    }

    /// Whether lists are due or wanted, or somebody makes them.
    pub fn is_training_near(&self) -> bool {
        self.is_training_due() || self.is_training_wanted || self.training.is_some()
    }

    /// How many lists there are; 0 before they are made.
    pub fn lists(&self) -> usize {
        self.lists.as_ref().map_or(0, |lists| lists.count())
    }

    /// Notes that lists are to be made even if it is not time, of the vectors that there are.
    pub fn want_training(&mut self) {
        self.is_training_wanted = matches!(self.config.kind, Kind::Ivf { .. }) && self.len > 0;
    }

    /// Begins to make lists, if that is due or wanted and nobody does it. O(groups of blocks + vectors / 64).
    pub fn begin_training(&mut self) -> Option<Training> {
        let is_claimed = self
            .training
            .as_ref()
            .is_some_and(|claim| self.inserted.wrapping_sub(claim.inserted) < CLAIM_INSERTIONS);
        if !self.is_training_due() && !self.is_training_wanted || is_claimed || self.len == 0 {
            return None;
        }
        let Kind::Ivf { lists: wanted } = self.config.kind else { return None };
        let token = next_token();
        self.is_training_wanted = false;
        self.training = Some(Box::new(Claim { token, inserted: self.inserted, changes: Vec::new() }));
        let config = &self.config;
        let mut lists = Lists::new(config.dim, config.metric, self.space.width(), config.account);
        lists.trained_len = self.len;
        let wanted = wanted.min(self.len / VECTORS_PER_LIST).max(1);
        let view = self.clone();
        // The rest is done where nobody waits for it.
        let stage = Stage::Seeding { sample: Vec::new(), wanted, nearest: Vec::new(), at: 0 };
        let changes = Vec::new();
        Some(Training { token, view, lists, stage, changes, seed: self.inserted, replaced: None })
    }

    /// Notes for a training that the vector of a slot is another one.
    pub(crate) fn note_change(&mut self, slot: u32) {
        if let Some(claim) = &mut self.training {
            claim.changes.push(slot);
            if claim.changes.len() > CHANGES_MAX {
                self.training = None;
            }
        }
    }

    /// Tells a training what has changed, and makes its lists those of the index if they are complete: whether it is to go
    /// on. What it holds afterwards takes time to be freed. O(1) distances.
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
        // What was pending is in the new lists, or it is left.
        self.pending = Pending::default();
        for slot in left {
            // Numbers of insertions to come are higher.
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

    /// Makes lists here and now, if that is due or wanted. O(n · lists) distances.
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
    /// Goes on for about so many distances; whether there is nothing to do but [`Index::advance_training`].
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

    /// A number below `end` that follows from those before.
    fn random(&mut self, end: usize) -> usize {
        self.seed = split_mix(self.seed);
        (self.seed % end as u64) as usize
    }

    /// Different slots, so many for each list.
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

    /// One of them, the more probable the larger its weight is.
    fn by_weight(&mut self, weights: &[f32]) -> usize {
        let sum: f64 = weights.iter().map(|&weight| f64::from(weight)).sum();
        let any = self.random(weights.len());
        if sum.is_nan() || sum <= 0.0 {
            // All vectors are centres already.
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

    /// Moves each centre to its mean; one that has nothing goes into the midst of those that have most.
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
            self.lists.make_places(self.view.len);
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

/// Makes the vectors of lists those of an index, in which these slots have others than they had, and returns the slots that
/// are in no list.
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

/// The numbers of a slot of a view.
fn floats_of(view: &Index, slot: u32) -> Cow<'_, [u8]> {
    view.space.floats(view.row(slot))
}

fn numbers(floats: &[u8]) -> impl Iterator<Item = f32> + '_ {
    floats.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes))
}
