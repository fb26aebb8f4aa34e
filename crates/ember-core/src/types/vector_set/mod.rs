//! Vector sets: elements with a name, a vector and attributes, found by the distance of their vectors.
//!
//! An index of `ember-vector` stores the vectors with their graph or lists; its slots number the elements
//! ([`elements`]). A copy of a set shares all blocks with the original; a block is copied when one of the two changes
//! it.

mod conditions;
mod elements;
mod filter;
mod json;
mod projection;
mod tuple;
mod verdicts;

use std::borrow::Cow;
use std::cell::RefCell;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ember_vector::{Config, Facts, Hit, Index, Restore, Scratch, VECTORS_PER_LIST};

pub use elements::Element;
pub use ember_vector::{
    DIM_MAX, Kind, LEVEL_MAX, LINKS_MAX, LINKS_MIN, LISTS_MAX, Linking, Metric, Plan, Prepared, Scalar,
    Training,
};
pub use filter::{FILTER_BYTES_MAX, Filter, FilterError, steps_to_compile};
pub use json::{FieldPaths, PATH_NAMES_MAX};
pub use projection::{MATRIX_NUMBERS_MAX, Projection};

use self::elements::Elements;
use self::filter::{BYTES_PER_STEP as TEXT_BYTES_PER_STEP, Work};
use crate::algorithms::random::Random;
use crate::memory::moving::Mover;
use crate::memory::size_class;
use crate::types::collection::Collection;
use crate::types::value::ValueType;

/// The default number of links of a node on each level except the lowest.
pub const LINKS_DEFAULT: usize = 16;

/// The maximum number of vectors that wait to be linked, and of slots of removed vectors that wait to be freed: above
/// it, each call links or frees one itself ([`VectorSet::keep_up`]). Callers that can wait for the linking threads are
/// delayed long before that. The limit is for callers that cannot wait, and for a system that provides no threads.
const LEFT_MAX: usize = 65_536;

/// One in this number of unlinked or removed vectors notifies the linking threads, so that they learn of a set that has
/// moved to another key meanwhile, and more of them work when there are many.
const PENDING_PER_NOTICE: usize = 32;

/// One in this number of vectors added to an index whose lists are due for training notifies the linking threads.
const INSERTED_PER_NOTICE: u64 = 64;

/// The approximate bytes of vectors that are compared in one step of a call. The default of `long-call-elements`
/// corresponds to 4 MiB of vectors, which takes some 0.4 ms.
const BYTES_PER_STEP: usize = 256;

/// The number of steps of running a filter for an element, in addition to those for its text and the filter's length.
const STEPS_PER_FILTERED: usize = 2;

/// The approximate number of elements whose blocks are freed together.
const ELEMENTS_PER_BLOCK: usize = 64;

/// The number of sets created so far.
static SETS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The working memory of a search or an insertion, a bit for each element of the largest set; the next one reuses
    /// it.
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Returns the bytes of the elements' own allocation.
fn elements_bytes() -> usize {
    const COUNTERS_BYTES: usize = 16;
    size_class(COUNTERS_BYTES + size_of::<Elements>())
}

fn with_scratch<R>(run: impl FnOnce(&mut Scratch) -> R) -> R {
    SCRATCH.with_borrow_mut(run)
}

/// The parameters of `VECTOR.CREATE` beyond the shape of the index. An index with these parameters is not removed when
/// it has no elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// The number of near vectors from which the neighbors of a new one are chosen.
    pub build_width: usize,
    /// The default number of near vectors to find in a search.
    pub search_width: usize,
    /// The number of lists that a search reads by default.
    pub probes: usize,
}

/// The parameters of an index that does not specify them, or was not created as an index.
pub const TUNING_DEFAULT: Tuning = Tuning { build_width: 200, search_width: 50, probes: 32 };

/// The parameters that the first element of a set, or `VECTOR.CREATE`, determines.
#[derive(Clone, Debug)]
pub struct Shape {
    /// The dimensions of the stored vectors.
    pub dim: usize,
    /// The metric of distances.
    pub metric: Metric,
    /// The stored form of the vectors' numbers.
    pub scalar: Scalar,
    /// The kind of index that finds nearest neighbors.
    pub kind: Kind,
    /// The projection that reduces vectors before they are stored, if there is one.
    pub projection: Option<Projection>,
    /// The other parameters of `VECTOR.CREATE`; `None` if it did not create the set.
    pub tuning: Option<Tuning>,
}

#[derive(Clone, Debug)]
struct Parts {
    projection: Option<Projection>,
    tuning: Option<Tuning>,
    index: Index,
    /// The elements; shared, because links are built without reading them.
    elements: Arc<Elements>,
    /// The number of elements with attributes.
    attributes: usize,
    /// The number that identifies the set.
    number: u64,
}

/// The value of a key that holds a vector set. The empty value has no shape yet.
#[derive(Clone, Debug, Default)]
pub struct VectorSet(Option<Box<Parts>>);

/// The parameters of a search.
#[derive(Clone, Debug)]
pub struct Search {
    /// The maximum number of results.
    pub count: usize,
    /// The number of near elements to find.
    pub width: usize,
    /// The number of lists to read, if the set has some; `None` for the number given at creation.
    pub probes: Option<usize>,
    /// Whether to compare all elements.
    pub is_exact: bool,
    /// The condition that results must match.
    pub filter: Option<Filter>,
    /// The maximum number of elements examined for the filter.
    pub filter_effort: Option<usize>,
}

/// An element as it was saved.
#[derive(Debug)]
pub struct Saved<'s> {
    /// The name of the element.
    pub name: &'s [u8],
    /// The attributes; empty if there are none.
    pub attributes: &'s [u8],
    /// The stored numbers of the vector.
    pub numbers: &'s [u8],
    /// [`Facts::norm`] of the vector.
    pub norm: f32,
    /// [`Facts::range`] of the vector.
    pub range: f32,
    /// The highest level of the element's node.
    pub level: usize,
}

/// A vector set that is being loaded.
#[derive(Debug)]
pub struct Loading {
    parts: Parts,
    elements: Elements,
    restore: Restore,
}

impl Shape {
    fn index_config(&self) -> Config {
        Config {
            dim: self.dim,
            metric: self.metric,
            scalar: self.scalar,
            kind: self.kind,
            account: size_class,
        }
    }

    /// Returns an empty set of this shape; `None` if the shape is not possible.
    fn parts(self) -> Option<(Parts, Config)> {
        let config = self.index_config();
        let index = Index::new(config).ok()?;
        let Shape { projection, tuning, .. } = self;
        // A relaxed order suffices, because only uniqueness matters.
        let number = SETS.fetch_add(1, Ordering::Relaxed);
        let elements = Arc::<Elements>::default();
        Some((Parts { projection, tuning, index, elements, attributes: 0, number }, config))
    }
}

impl Parts {
    fn prepared(&self, vector: &[f32]) -> Prepared {
        let config = self.index.config();
        Prepared::new(vector, config.metric, config.scalar)
    }
}

impl VectorSet {
    fn parts(&self) -> &Parts {
        self.0.as_deref().expect("a set that is kept has elements")
    }

    fn parts_mut(&mut self) -> &mut Parts {
        self.0.as_deref_mut().expect("a set that is kept has elements")
    }

    /// Sets the shape of an empty set. Dimensions and links must be within their limits.
    pub fn shape(&mut self, shape: Shape) {
        let (parts, _) = shape.parts().expect("the limits were checked");
        self.0 = Some(Box::new(parts));
    }

    /// Returns the dimensions of the stored vectors.
    pub fn dim(&self) -> usize {
        self.parts().index.config().dim
    }

    /// Returns the metric of distances.
    pub fn metric(&self) -> Metric {
        self.parts().index.config().metric
    }

    /// Returns the stored form of numbers.
    pub fn scalar(&self) -> Scalar {
        self.parts().index.config().scalar
    }

    /// Returns the kind of index that finds nearest neighbors.
    pub fn kind(&self) -> Kind {
        self.parts().index.config().kind
    }

    /// Returns the links of a node on each level but the lowest; 0 without a graph.
    pub fn links(&self) -> usize {
        match self.kind() {
            Kind::Hnsw { links } => links,
            Kind::Ivf { .. } | Kind::Flat => 0,
        }
    }

    /// Returns the parameters of `VECTOR.CREATE`, if it created the set.
    pub fn tuning(&self) -> Option<Tuning> {
        self.0.as_ref()?.tuning
    }

    /// Returns whether the shape of the set is determined.
    pub fn has_shape(&self) -> bool {
        self.0.is_some()
    }

    /// Converts a distance to its form in replies: the cosine distance (0 to 2), the distance of two points, or the
    /// inner product.
    pub fn metric_distance(&self, distance: f32) -> f32 {
        self.parts().index.metric_distance(distance)
    }

    /// Returns the distance of an element from a vector with the stored number of dimensions.
    pub fn distance_to(&self, vector: &[f32], slot: u32) -> f32 {
        let parts = self.parts();
        parts.index.distance(&parts.prepared(vector), slot)
    }

    /// Rebuilds the graph or the lists. O(n · width · log n) distances, or O(n · lists).
    pub fn rebuild(&mut self, width: usize) {
        self.bury(usize::MAX);
        let parts = self.parts_mut();
        parts.index = with_scratch(|scratch| parts.index.rebuilt(width, scratch));
    }

    /// Returns the projection that reduces vectors, if there is one.
    pub fn projection(&self) -> Option<&Projection> {
        self.parts().projection.as_ref()
    }

    /// Returns the number of elements with attributes. O(1).
    pub fn attributes_count(&self) -> usize {
        self.parts().attributes
    }

    /// Returns the number that identifies the set.
    pub fn number(&self) -> u64 {
        self.parts().number
    }

    /// Returns the number of vectors set so far.
    pub fn inserted(&self) -> u64 {
        self.parts().index.inserted()
    }

    /// Returns the highest level of all nodes.
    pub fn top_level(&self) -> usize {
        self.parts().index.top_level()
    }

    /// Returns the slot of an element. O(log n).
    pub fn find(&self, name: &[u8]) -> Option<u32> {
        self.0.as_ref()?.elements.find(name)
    }

    /// Returns the element of a slot, which must exist.
    pub fn element(&self, slot: u32) -> Element<'_> {
        self.parts().elements.at(slot)
    }

    /// Returns the given vector, reduced if this set reduces vectors ([`VectorSet::steps_of_reduction`]).
    pub fn reduced(&self, vector: Vec<f32>) -> Vec<f32> {
        match &self.parts().projection {
            Some(projection) => projection.apply(&vector, self.dim()),
            None => vector,
        }
    }

    /// Returns the form in which this set stores a vector with the stored number of dimensions. O(dimensions).
    pub fn prepared(&self, vector: &[f32]) -> Prepared {
        self.parts().prepared(vector)
    }

    /// Sets the vector of an element, in the form in which this set stores it, and its attributes if given: an empty
    /// text removes them. Returns whether the element is new; `None`, with nothing changed, if there is no slot for
    /// another one. O(dimensions + log n) if the vector `is_linked_later` ([`VectorSet::begin_linking`]), else O(width
    /// · log n).
    pub fn set(
        &mut self,
        name: &[u8],
        vector: &Prepared,
        attributes: Option<&[u8]>,
        width: usize,
        is_linked_later: bool,
    ) -> Option<bool> {
        let parts = self.parts_mut();
        let found = parts.elements.find(name);
        let stays = found.is_some() && !(is_linked_later && parts.index.is_mended());
        if !stays && parts.elements.slots() >= ember_vector::SLOTS_MAX {
            return None;
        }
        match found {
            Some(slot) if stays => {
                with_scratch(|scratch| parts.index.exchange(slot, vector, width, scratch));
            }
            Some(slot) => {
                let elements = Arc::make_mut(&mut parts.elements);
                let kept = elements.at(slot).attributes_shared();
                elements.set_attributes(slot, None);
                elements.take_out(slot);
                elements.push_with(name, kept);
                parts.index.kill(slot);
                parts.index.add(vector, width);
            }
            None => {
                parts.index.add(vector, width);
                Arc::make_mut(&mut parts.elements).push(name, None);
            }
        }
        let parts = self.parts_mut();
        if !is_linked_later {
            parts.index.train();
            self.link_pending(usize::MAX);
        }
        let parts = self.parts_mut();
        if let Some(attributes) = attributes
            && let Some(slot) = parts.elements.find(name)
        {
            self.set_attributes(slot, attributes);
        }
        Some(found.is_none())
    }

    /// Sets the attributes of an element; an empty text removes them.
    pub fn set_attributes(&mut self, slot: u32, attributes: &[u8]) {
        let parts = self.parts_mut();
        let attributes = (!attributes.is_empty()).then_some(attributes);
        parts.attributes += usize::from(attributes.is_some());
        parts.attributes -= usize::from(Arc::make_mut(&mut parts.elements).set_attributes(slot, attributes));
    }

    /// Removes an element. Returns whether it existed. O(log n) if the linking threads repair the graph later, else
    /// O(links²) distances.
    pub fn remove(&mut self, name: &[u8], is_mended_later: bool) -> bool {
        let Some(slot) = self.find(name) else { return false };
        let parts = self.parts_mut();
        let elements = Arc::make_mut(&mut parts.elements);
        parts.attributes -= usize::from(elements.set_attributes(slot, None));
        elements.take_out(slot);
        if is_mended_later && parts.index.is_mended() {
            parts.index.kill(slot);
        } else {
            elements.free(slot);
            with_scratch(|scratch| parts.index.remove(slot, scratch));
        }
        true
    }

    /// Frees the slots of up to `most` removed vectors, and repairs the graph around them. O(links²) distances per
    /// vector.
    pub fn bury(&mut self, most: usize) {
        let Some(parts) = &mut self.0 else { return };
        for _ in 0..most {
            let Some(&slot) = parts.index.dead_slots().last() else { return };
            Arc::make_mut(&mut parts.elements).free(slot);
            with_scratch(|scratch| parts.index.remove(slot, scratch));
        }
    }

    /// Links or frees one vector at once if the work left to the linking threads exceeds a limit. Must follow each call
    /// that has left work to them.
    pub fn keep_up(&mut self) {
        if self.pending() > LEFT_MAX {
            self.link_pending(1);
        }
        if self.dead() > LEFT_MAX {
            self.bury(1);
        }
    }

    /// Returns the amount of work left to the linking threads: vectors, and slots of removed ones.
    pub fn left_to_linkers(&self) -> usize {
        self.pending() + self.dead()
    }

    /// Returns the number of slots of removed vectors that wait to be freed.
    pub fn dead(&self) -> usize {
        self.0.as_ref().map_or(0, |parts| parts.index.dead())
    }

    /// Returns the number of vectors that are not linked yet.
    pub fn pending(&self) -> usize {
        self.0.as_ref().map_or(0, |parts| parts.index.pending())
    }

    /// Returns whether the linking threads must be notified of the set, after an addition.
    pub fn needs_linkers(&self) -> bool {
        let Some(Parts { index, .. }) = self.0.as_deref() else { return false };
        index.pending() % PENDING_PER_NOTICE == 1
            || index.dead() % PENDING_PER_NOTICE == 1
            || index.inserted().is_multiple_of(INSERTED_PER_NOTICE) && index.is_training_due()
    }

    /// Returns the number of lists that exist and the configured number; `None` if the set has no lists.
    pub fn lists(&self) -> Option<(usize, usize)> {
        match self.kind() {
            Kind::Ivf { lists } => Some((self.parts().index.lists(), lists)),
            Kind::Hnsw { .. } | Kind::Flat => None,
        }
    }

    /// Returns the centroids of the lists, row by row, and the number of vectors at the time they were trained.
    pub fn centres(&self) -> Option<(Vec<f32>, usize)> {
        self.parts().index.centres()
    }

    /// Returns the list that contains an element.
    pub fn list_of(&self, slot: u32) -> Option<u32> {
        self.parts().index.list_of(slot)
    }

    /// Returns the approximate number of distances computed to rebuild the lists.
    pub fn training_steps(&self) -> usize {
        let lists = self.lists().map_or(0, |(_, wanted)| wanted.min(self.len() / VECTORS_PER_LIST).max(1));
        self.len().saturating_mul(lists)
    }

    /// Returns whether there is work to do in the background.
    pub fn has_work(&self) -> bool {
        let has_work = |index: &Index| index.pending() > 0 || index.dead() > 0 || index.is_training_near();
        self.0.as_ref().is_some_and(|parts| has_work(&parts.index))
    }

    /// Returns whether a training of the set's lists is due, requested or running.
    pub fn is_training_near(&self) -> bool {
        self.0.as_ref().is_some_and(|parts| parts.index.is_training_near())
    }

    /// Requests that the lists are rebuilt.
    pub fn request_training(&mut self) {
        self.parts_mut().index.request_training();
    }

    /// Begins to build lists, if that is due or requested and no training is running.
    pub fn begin_training(&mut self) -> Option<Training> {
        self.0.as_mut()?.index.begin_training()
    }

    /// Passes changes to a training. Returns whether it continues.
    pub fn advance_training(&mut self, training: &mut Training) -> bool {
        self.0.as_mut().is_some_and(|parts| parts.index.advance_training(training))
    }

    /// Begins to link up to `most` vectors that no thread is linking yet; `None` if there are none.
    pub fn begin_linking(&mut self, most: usize) -> Option<Linking> {
        self.0.as_mut()?.index.begin_linking(most)
    }

    /// Inserts planned links.
    pub fn commit(&mut self, plan: &Plan) {
        if let Some(parts) = &mut self.0 {
            with_scratch(|scratch| parts.index.commit(plan, scratch));
        }
    }

    /// Links up to `most` vectors on this thread. O(width · log n) per vector.
    pub fn link_pending(&mut self, most: usize) {
        if let Some(parts) = &mut self.0 {
            with_scratch(|scratch| parts.index.link_pending(most, scratch));
        }
    }

    /// Returns the set with all its vectors linked, and without slots of removed vectors.
    pub fn linked(&self) -> Cow<'_, VectorSet> {
        if self.pending() == 0 && self.dead() == 0 {
            return Cow::Borrowed(self);
        }
        let mut linked = self.clone();
        linked.bury(usize::MAX);
        linked.link_pending(usize::MAX);
        Cow::Owned(linked)
    }

    /// Returns the vector of an element, with the stored precision. O(dimensions).
    pub fn vector(&self, slot: u32) -> Vec<f32> {
        self.parts().index.vector(slot)
    }

    /// Returns the stored vector of an element: its numbers, [`Facts::norm`] and [`Facts::range`].
    pub fn stored(&self, slot: u32) -> (Vec<u8>, f32, f32) {
        let stored = self.parts().index.stored(slot);
        let Facts { norm, range } = stored.facts();
        (stored.bytes().to_vec(), norm, range)
    }

    /// Returns the highest level of an element's node.
    pub fn level(&self, slot: u32) -> usize {
        self.parts().index.level(slot)
    }

    /// Returns the neighbors of an element on one of its levels.
    pub fn neighbors(&self, slot: u32, level: usize) -> Vec<u32> {
        let index = &self.parts().index;
        let mut neighbors = index.neighbors(slot, level);
        neighbors.retain(|&neighbor| !index.is_dead(neighbor));
        neighbors
    }

    /// Returns the distance of two elements, 0 to 2.
    pub fn distance(&self, a: u32, b: u32) -> f32 {
        self.parts().index.distance_between(a, b)
    }

    /// Returns the approximate maximum number of steps of a search ([`crate::call::Call::steps_max`]).
    pub fn steps_of(&self, search: &Search) -> usize {
        let index = &self.parts().index;
        let near =
            if search.is_exact { index.len() } else { index.distances_of_search(self.breadth(search)) };
        let Some(filter) = &search.filter else {
            return self.steps_of_distances(near);
        };
        // All matching elements are found, however few, unless the effort is bounded.
        let filtered = match search.filter_effort {
            Some(effort) if !search.is_exact => near.max(effort).min(index.len()),
            _ => index.len(),
        };
        let steps_each = STEPS_PER_FILTERED + filter.steps_of(self.attributes_len_mean());
        self.steps_of_distances(filtered).saturating_add(filtered.saturating_mul(steps_each))
    }

    /// Returns an approximate upper bound of the mean bytes of attributes per element.
    fn attributes_len_mean(&self) -> usize {
        let elements = &self.parts().elements;
        elements.text_bytes() / elements.slots().max(1)
    }

    /// Returns the bytes of attributes of these elements. O(their number).
    pub fn attributes_len(&self, slots: impl IntoIterator<Item = u32>) -> usize {
        let elements = &self.parts().elements;
        slots.into_iter().filter_map(|slot| elements.at(slot).attributes()).map(<[u8]>::len).sum()
    }

    /// Returns the number of steps to read attributes of this many bytes.
    pub fn steps_of_attributes(&self, bytes: usize) -> usize {
        bytes / TEXT_BYTES_PER_STEP
    }

    /// Returns the number of steps to reduce a vector.
    pub fn steps_of_reduction(&self) -> usize {
        self.projection().map_or(0, |projection| projection.steps(self.dim()))
    }

    /// Returns the number of steps to compute this number of distances.
    pub fn steps_of_distances(&self, distances: usize) -> usize {
        let config = self.parts().index.config();
        let bytes = distances.saturating_mul(config.scalar.bytes(config.dim));
        distances.max(bytes / BYTES_PER_STEP)
    }

    /// Returns the number of near elements to find in a search, or the number of lists to read.
    fn breadth(&self, search: &Search) -> usize {
        match (self.kind(), self.tuning()) {
            (Kind::Ivf { .. }, tuning) => search.probes.or(tuning.map(|tuning| tuning.probes)).unwrap_or(1),
            _ => search.width.min(self.parts().index.len()),
        }
    }

    /// Returns the elements nearest to a vector with the stored number of dimensions, the nearest first, and the steps
    /// that the search's filter took. `None` if the filter would take more than `filter_steps_max`: where attributes
    /// are much longer than the mean, [`VectorSet::steps_of`] is too low.
    pub fn search(
        &self,
        vector: &[f32],
        search: &Search,
        filter_steps_max: usize,
    ) -> Option<(Vec<Hit>, usize)> {
        let Parts { index, elements, number, .. } = self.parts();
        let query = self.parts().prepared(vector);
        let most = search.count.min(index.len());
        let width = self.breadth(search);
        let Some(filter) = &search.filter else {
            let hits = with_scratch(|scratch| {
                let hits = match search.is_exact {
                    true => index.search_all(&query, most, |_| true, scratch),
                    false => index.search(&query, most, width, scratch),
                };
                hits.to_vec()
            });
            return Some((hits, 0));
        };
        verdicts::with(*number, filter, elements, |verdicts| {
            let mut work = Work::within(filter_steps_max);
            let effort = search.filter_effort.filter(|_| !search.is_exact);
            let listed_max = if search.is_exact { index.len() / 2 } else { index.listed_max(most, width) };
            let is_listed = effort.is_none() && verdicts.are_known(elements, listed_max, &mut work);
            if work.is_exhausted() {
                return None;
            }
            let hits = with_scratch(|scratch| {
                let keep = |slot: u32| verdicts.matches(elements, slot, &mut work);
                let hits = match effort {
                    _ if is_listed => index.search_listed(&query, most, verdicts.matching(), scratch),
                    _ if search.is_exact => index.search_all(&query, most, keep, scratch),
                    None => index.search_filtered(&query, most, width, keep, scratch),
                    Some(effort) => index.search_within(&query, most, width, effort, keep, scratch),
                };
                hits.to_vec()
            });
            (!work.is_exhausted()).then(|| (hits, work.steps()))
        })
    }

    /// Returns a random element; `None` if the set is empty.
    pub fn random(&self, random: &mut Random) -> Option<Element<'_>> {
        (!self.is_empty()).then(|| self.nth(random.below(self.len())))
    }

    /// Returns a different element for each number below the count of elements. O(slots that wait to be freed).
    pub fn nth(&self, nth: usize) -> Element<'_> {
        let Parts { index, elements, .. } = self.parts();
        let slot = nth as u32;
        if !index.is_dead(slot) {
            return elements.at(slot);
        }
        // The slots from the count of elements on contain as many elements as there are dead slots below the count.
        let before = index.dead_slots().iter().filter(|&&dead| dead < slot).count();
        let next = (elements.len() as u32..).filter(|&slot| !index.is_dead(slot)).nth(before);
        elements.at(next.expect("slots are those of elements, or dead"))
    }

    /// Returns the slots of the names after `name`, and of `name` itself if `is_included`, in order.
    pub fn names_from(&self, name: &[u8], is_included: bool) -> impl Iterator<Item = u32> + '_ {
        self.parts().elements.from(name, is_included)
    }
}

/// Chooses links for the vectors in `linking`. May run on any thread.
pub fn plan(linking: &Linking) -> Vec<Plan> {
    with_scratch(|scratch| linking.plan(scratch))
}

impl Loading {
    /// Begins to load a set of this shape; `None` if the shape is not possible.
    pub fn new(shape: Shape) -> Option<Loading> {
        let (parts, config) = shape.parts()?;
        let secret = [0, 1].map(|number| RandomState::new().hash_one(number));
        let restore = Restore::new(config, secret).ok()?;
        Some(Loading { parts, elements: Elements::default(), restore })
    }

    /// Adds the next element; `None` if it does not fit this set. O(dimensions).
    pub fn push(&mut self, saved: Saved<'_>) -> Option<()> {
        let Saved { name, attributes, numbers, norm, range, level } = saved;
        self.restore.push(numbers, Facts { norm, range }, level).ok()?;
        let attributes = (!attributes.is_empty()).then(|| attributes.into());
        self.parts.attributes += usize::from(attributes.is_some());
        self.elements.append(name, attributes);
        Some(())
    }

    /// Sets the neighbors of an element on one of its levels. Impossible ones are omitted.
    pub fn link(&mut self, slot: u32, level: usize, neighbors: impl IntoIterator<Item = u32>) {
        self.restore.link(slot, level, neighbors);
    }

    /// Sets the lists of a set that has some: centroids, row by row, the number of vectors with which they were
    /// trained, and the list of each element that was added. `None` if they do not fit this set.
    pub fn lists(&mut self, centres: &[f32], trained_len: usize, list_of: &[u32]) -> Option<()> {
        self.restore.lists(centres, trained_len, list_of).ok()
    }

    /// Returns the set; `inserted` is the number of vectors set so far. Elements that cannot be found by their links
    /// are linked again. `None` if two elements have the same name. O(n log n).
    pub fn finish(self, inserted: u64) -> Option<VectorSet> {
        let Loading { mut parts, mut elements, restore } = self;
        elements.put_in_order()?;
        parts.elements = Arc::new(elements);
        (parts.index, _) = with_scratch(|scratch| restore.finish(inserted, scratch));
        Some(VectorSet(Some(Box::new(parts))))
    }
}

impl Collection for VectorSet {
    const TYPE: ValueType = ValueType::VectorSet;

    fn encoding_name(&self) -> &'static str {
        "raw"
    }

    fn memory_bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |parts| {
            let projection = parts.projection.as_ref().map_or(0, Projection::memory_bytes);
            size_class(size_of::<Parts>())
                + elements_bytes()
                + parts.index.memory_bytes()
                + parts.elements.memory_bytes()
                + projection
        })
    }

    fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |parts| parts.elements.len())
    }

    fn is_vacant(&self) -> bool {
        self.is_empty() && self.tuning().is_none()
    }

    fn free_effort(&self) -> usize {
        // The effort counts names, attributes, and the blocks of vectors and links.
        self.len() + self.0.as_ref().map_or(0, |parts| parts.attributes) + self.len() / ELEMENTS_PER_BLOCK
    }

    /// Moves only names and attributes: blocks of vectors and links are large.
    fn move_inside(&mut self, from: u64, most: usize, mover: &mut Mover<'_>) -> u64 {
        // Shared parts stay in place.
        let elements = self.0.as_mut().and_then(|parts| Arc::get_mut(&mut parts.elements));
        elements.map_or(0, |elements| elements.move_inside(from, most, mover))
    }

    fn is_shared_in_parts(&self) -> bool {
        true
    }

    fn check_invariants(&self) {
        let Some(parts) = &self.0 else { return };
        parts.elements.check_invariants();
        parts.index.check_invariants();
        assert_eq!(parts.elements.len(), parts.index.len());
        assert_eq!(parts.elements.slots(), parts.index.slots());
        let slots = 0..parts.elements.slots() as u32;
        assert!(slots.clone().all(|slot| {
            let is_named = parts.elements.find(parts.elements.at(slot).name()) == Some(slot);
            is_named != parts.index.is_dead(slot)
        }));
        let with_attributes = slots.filter(|&slot| parts.elements.at(slot).attributes().is_some());
        assert_eq!(with_attributes.count(), parts.attributes);
    }
}
