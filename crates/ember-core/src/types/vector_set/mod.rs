//! Vector sets: elements with a name, a vector and attributes, found by what they are near to.
//!
//! The vectors and their graph are an index of `ember-vector`, whose slots number the elements ([`elements`]). A copy of a
//! set shares all with the original until one of the two is changed, block by block.

mod elements;
mod filter;
mod json;
mod projection;

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

use ember_vector::{Config, Facts, Hit, Index, Kind, Metric, Prepared, Restore, Scalar, Scratch};

pub use elements::Element;
pub use ember_vector::{DIM_MAX, LEVEL_MAX, LINKS_MAX, LINKS_MIN};
pub use filter::{Filter, SyntaxError};
pub use projection::Projection;

use self::elements::Elements;
use crate::algorithms::random::Random;
use crate::memory::moving::Mover;
use crate::memory::size_class;
use crate::types::collection::Collection;
use crate::types::value::ValueType;

/// Links of a node on each level but the lowest, unless told otherwise.
pub const LINKS_DEFAULT: usize = 16;

/// Blocks of this many elements are freed together, about.
const ELEMENTS_PER_BLOCK: usize = 64;

/// Sets that were made so far.
static SETS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// What a search or an insertion keeps while it runs: a bit for each element of the largest set, kept for the next one.
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

fn with_scratch<R>(run: impl FnOnce(&mut Scratch) -> R) -> R {
    SCRATCH.with_borrow_mut(run)
}

/// How the numbers of vectors are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantization {
    /// As they are.
    None,
    /// As integers of 8 bits.
    Q8,
    /// As their signs.
    Binary,
}

impl Quantization {
    /// The name in VINFO and VEMB.
    pub fn name(self) -> &'static str {
        match self {
            Quantization::None => "f32",
            Quantization::Q8 => "int8",
            Quantization::Binary => "bin",
        }
    }

    /// The option of VADD.
    pub fn option(self) -> &'static str {
        match self {
            Quantization::None => "NOQUANT",
            Quantization::Q8 => "Q8",
            Quantization::Binary => "BIN",
        }
    }

    fn scalar(self) -> Scalar {
        match self {
            Quantization::None => Scalar::F32,
            Quantization::Q8 => Scalar::Int8,
            Quantization::Binary => Scalar::Binary,
        }
    }
}

/// What the first element of a set decides.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Dimensions of the vectors that are kept.
    pub dim: usize,
    /// How their numbers are kept.
    pub quantization: Quantization,
    /// Links of a node on each level but the lowest.
    pub links: usize,
    /// What reduces vectors before, if anything does.
    pub projection: Option<Projection>,
}

#[derive(Clone, Debug)]
struct Parts {
    quantization: Quantization,
    links: usize,
    projection: Option<Projection>,
    index: Index,
    elements: Elements,
    /// Elements with attributes.
    attributes: usize,
    /// Tells sets apart.
    number: u64,
}

/// The value of a key that holds a vector set. The empty one has no shape yet.
#[derive(Clone, Debug, Default)]
pub struct VectorSet(Option<Box<Parts>>);

/// How a search is to be made.
#[derive(Clone, Debug)]
pub struct Search {
    /// The most elements that are wanted.
    pub count: usize,
    /// How many near ones are looked for.
    pub width: usize,
    /// Whether all elements are to be looked at.
    pub is_exact: bool,
    /// Which ones are wanted.
    pub filter: Option<Filter>,
    /// How many are looked at for the filter at most.
    pub filter_effort: Option<usize>,
}

/// An element that was saved.
#[derive(Debug)]
pub struct Saved<'s> {
    /// Its name.
    pub name: &'s [u8],
    /// Its attributes; empty if there are none.
    pub attributes: &'s [u8],
    /// The stored numbers of its vector.
    pub numbers: Vec<u8>,
    /// The length that was taken out, and the largest number.
    pub norm: f32,
    /// The largest number of a vector of integers.
    pub range: f32,
    /// The highest level of its node.
    pub level: usize,
}

/// A vector set that is being read.
#[derive(Debug)]
pub struct Loading {
    parts: Parts,
    restore: Restore,
}

impl Shape {
    fn index_config(&self) -> Config {
        Config {
            dim: self.dim,
            metric: Metric::Cosine,
            scalar: self.quantization.scalar(),
            kind: Kind::Hnsw { links: self.links },
            account: size_class,
        }
    }

    /// An empty set of this shape; `None` if there can be none.
    fn parts(self) -> Option<(Parts, Config)> {
        let config = self.index_config();
        let index = Index::new(config).ok()?;
        let Shape { quantization, links, projection, .. } = self;
        // Only told, never compared with anything.
        let number = SETS.fetch_add(1, Ordering::Relaxed);
        let elements = Elements::default();
        Some((Parts { quantization, links, projection, index, elements, attributes: 0, number }, config))
    }
}

impl Parts {
    fn prepared(&self, vector: &[f32]) -> Prepared {
        Prepared::new(vector, Metric::Cosine, self.quantization.scalar())
    }
}

impl VectorSet {
    fn parts(&self) -> &Parts {
        self.0.as_deref().expect("a set that is kept has elements")
    }

    fn parts_mut(&mut self) -> &mut Parts {
        self.0.as_deref_mut().expect("a set that is kept has elements")
    }

    /// Gives an empty set its shape. Dimensions and links are in their limits.
    pub fn shape(&mut self, shape: Shape) {
        let (parts, _) = shape.parts().expect("the limits were looked at");
        self.0 = Some(Box::new(parts));
    }

    /// Dimensions of the vectors that are kept.
    pub fn dim(&self) -> usize {
        self.parts().index.config().dim
    }

    /// How numbers are kept.
    pub fn quantization(&self) -> Quantization {
        self.parts().quantization
    }

    /// Links of a node on each level but the lowest.
    pub fn links(&self) -> usize {
        self.parts().links
    }

    /// What reduces vectors, if anything does.
    pub fn projection(&self) -> Option<&Projection> {
        self.parts().projection.as_ref()
    }

    /// How many elements have attributes. O(1).
    pub fn attributes_count(&self) -> usize {
        self.parts().attributes
    }

    /// The number of the set, which tells it from others.
    pub fn number(&self) -> u64 {
        self.parts().number
    }

    /// How many vectors were set so far.
    pub fn inserted(&self) -> u64 {
        self.parts().index.inserted()
    }

    /// The highest level of all nodes.
    pub fn top_level(&self) -> usize {
        self.parts().index.top_level()
    }

    /// The slot of an element. O(log n).
    pub fn find(&self, name: &[u8]) -> Option<u32> {
        self.0.as_ref()?.elements.find(name)
    }

    /// The element of a slot that is there.
    pub fn element(&self, slot: u32) -> &Element {
        self.parts().elements.at(slot)
    }

    /// The vector as it was given, reduced if this set reduces vectors. O(dimensions²) then.
    pub fn reduced(&self, vector: Vec<f32>) -> Vec<f32> {
        match &self.parts().projection {
            Some(projection) => projection.apply(&vector, self.dim()),
            None => vector,
        }
    }

    /// Sets the vector of an element, which is as long as this set keeps them, and its attributes if there are any: an empty
    /// text removes those it has. Whether the element is new. `None`, with nothing changed, if there is no place for another
    /// one. O(width · log n).
    pub fn set(
        &mut self,
        name: &[u8],
        vector: &[f32],
        attributes: Option<&[u8]>,
        width: usize,
    ) -> Option<bool> {
        let parts = self.parts_mut();
        let vector = parts.prepared(vector);
        let found = parts.elements.find(name);
        if found.is_none() && parts.elements.len() >= ember_vector::SLOTS_MAX {
            return None;
        }
        with_scratch(|scratch| match found {
            Some(slot) => parts.index.replace(slot, &vector, width, scratch),
            None => {
                parts.index.insert(&vector, width, scratch);
                parts.elements.push(name, None);
            }
        });
        if let Some(attributes) = attributes {
            let slot = found.unwrap_or(parts.elements.len() as u32 - 1);
            self.set_attributes(slot, attributes);
        }
        Some(found.is_none())
    }

    /// Sets the attributes of an element; an empty text removes them.
    pub fn set_attributes(&mut self, slot: u32, attributes: &[u8]) {
        let parts = self.parts_mut();
        let attributes = (!attributes.is_empty()).then_some(attributes);
        parts.attributes += usize::from(attributes.is_some());
        parts.attributes -= usize::from(parts.elements.set_attributes(slot, attributes));
    }

    /// Removes an element; whether it was there. O(log n).
    pub fn remove(&mut self, name: &[u8]) -> bool {
        let Some(slot) = self.find(name) else { return false };
        let parts = self.parts_mut();
        parts.attributes -= usize::from(parts.elements.at(slot).attributes().is_some());
        parts.elements.swap_remove(slot);
        with_scratch(|scratch| parts.index.remove(slot, scratch));
        true
    }

    /// The vector of an element, as far as it was kept. O(dimensions).
    pub fn vector(&self, slot: u32) -> Vec<f32> {
        self.parts().index.vector(slot)
    }

    /// The vector of an element as it is stored: numbers, the length that was taken out, the largest number.
    pub fn stored(&self, slot: u32) -> (Vec<u8>, f32, f32) {
        let stored = self.parts().index.stored(slot);
        let Facts { norm, range } = stored.facts();
        (stored.bytes().to_vec(), norm, range)
    }

    /// The highest level of an element's node.
    pub fn level(&self, slot: u32) -> usize {
        self.parts().index.level(slot)
    }

    /// The neighbours of an element on a level that it is on.
    pub fn neighbours(&self, slot: u32, level: usize) -> &[u32] {
        self.parts().index.neighbours(slot, level)
    }

    /// The distance of two elements, 0 to 2.
    pub fn distance(&self, a: u32, b: u32) -> f32 {
        self.parts().index.distance_between(a, b)
    }

    /// About how many distances a search computes.
    pub fn steps_of(&self, search: &Search) -> usize {
        let index = &self.parts().index;
        if search.is_exact { index.len() } else { index.distances_of_search(search.width) }
    }

    /// The elements nearest to a vector of as many dimensions as are kept, the nearest first.
    pub fn search(&self, vector: &[f32], search: &Search) -> Vec<Hit> {
        let Parts { index, elements, .. } = self.parts();
        let query = self.parts().prepared(vector);
        let most = search.count.min(index.len());
        let width = search.width.min(index.len());
        let keep = |slot: u32| match &search.filter {
            Some(filter) => {
                elements.at(slot).attributes().is_some_and(|attributes| filter.matches(attributes))
            }
            None => true,
        };
        with_scratch(|scratch| {
            let hits = match (&search.filter, search.filter_effort) {
                _ if search.is_exact => index.search_all(&query, most, keep, scratch),
                (None, _) => index.search(&query, most, width, scratch),
                (Some(_), None) => index.search_filtered(&query, most, width, keep, scratch),
                (Some(_), Some(effort)) => index.search_within(&query, most, width, effort, keep, scratch),
            };
            hits.to_vec()
        })
    }

    /// A random element; `None` of an empty set.
    pub fn random(&self, random: &mut Random) -> Option<&Element> {
        (!self.is_empty()).then(|| self.element(random.below(self.len()) as u32))
    }

    /// The slots of names from one on, or behind it, in order.
    pub fn names_from(&self, name: &[u8], is_included: bool) -> impl Iterator<Item = u32> + '_ {
        self.parts().elements.from(name, is_included)
    }
}

impl Loading {
    /// A set of this shape of which nothing was read yet; `None` if there can be none.
    pub fn new(shape: Shape) -> Option<Loading> {
        let (parts, config) = shape.parts()?;
        Some(Loading { parts, restore: Restore::new(config).ok()? })
    }

    /// Adds the next element; `None` if it is none of this set or there twice.
    pub fn push(&mut self, saved: Saved<'_>) -> Option<()> {
        let Saved { name, attributes, numbers, norm, range, level } = saved;
        let config = self.parts.index.config();
        let vector = Prepared::from_stored(numbers, Facts { norm, range }, config.dim, config.scalar)?;
        if self.parts.elements.find(name).is_some() {
            return None;
        }
        self.restore.push(&vector, level).ok()?;
        let attributes = (!attributes.is_empty()).then_some(attributes);
        self.parts.attributes += usize::from(attributes.is_some());
        self.parts.elements.push(name, attributes);
        Some(())
    }

    /// Sets the neighbours of an element on a level that it is on. Those that cannot be are left out.
    pub fn link(&mut self, slot: u32, level: usize, neighbours: impl IntoIterator<Item = u32>) {
        self.restore.link(slot, level, neighbours);
    }

    /// The set; `inserted` vectors were set in it. Elements that cannot be found by their links are linked anew.
    pub fn finish(self, inserted: u64) -> VectorSet {
        let mut parts = self.parts;
        (parts.index, _) = with_scratch(|scratch| self.restore.finish(inserted, scratch));
        VectorSet(Some(Box::new(parts)))
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
                + parts.index.memory_bytes()
                + parts.elements.memory_bytes()
                + projection
        })
    }

    fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |parts| parts.elements.len())
    }

    fn free_effort(&self) -> usize {
        // Names and attributes, and blocks of the rest.
        self.len() + self.0.as_ref().map_or(0, |parts| parts.attributes) + self.len() / ELEMENTS_PER_BLOCK
    }

    /// Blocks of vectors and links are large: only names and attributes are moved.
    fn move_inside(&mut self, from: u64, most: usize, mover: &mut Mover<'_>) -> u64 {
        self.0.as_mut().map_or(0, |parts| parts.elements.move_inside(from, most, mover))
    }

    fn check_invariants(&self) {
        let Some(parts) = &self.0 else { return };
        parts.elements.check_invariants();
        parts.index.check_invariants();
        assert_eq!(parts.elements.len(), parts.index.len());
        let slots = 0..parts.elements.len() as u32;
        let with_attributes = slots.filter(|&slot| parts.elements.at(slot).attributes().is_some());
        assert_eq!(with_attributes.count(), parts.attributes);
    }
}
