//! A value with elements, of any type.

use std::fmt;

use super::collection::Collection;
use super::hash::Hash;
use super::json::Json;
use super::list::List;
use super::set::Set;
use super::sketches::{Bloom, CountMin, Cuckoo, TDigest, TopK};
use super::sorted_set::SortedSet;
use super::stream::Stream;
use super::value::ValueType;
use super::vector_set::VectorSet;
use crate::effects::journal::Names;
use crate::memory::moving::Mover;
use crate::memory::reclaim;
use crate::memory::size_class;

/// The number of deallocations from which the background thread frees a value: waking that thread takes longer than
/// fewer deallocations.
const RECLAIM_EFFORT_MIN: usize = 256;

/// The number of allocations from which `UNLINK` frees a value in the background. Redis does so above 64, and
/// monitoring counts these values in `lazyfreed_objects`.
const PARTS_MIN: usize = 65;

/// Like [`PARTS_MIN`], for the blocks and pending entries of a stream: Redis counts the nodes of its tree, about three
/// per block.
const STREAM_PARTS_MIN: usize = 20;

/// A value with elements, of one of the types.
#[derive(Clone)]
pub enum Aggregate {
    /// A list.
    List(List),
    /// A set.
    Set(Set),
    /// A sorted set.
    SortedSet(SortedSet),
    /// A hash.
    Hash(Hash),
    /// A stream.
    Stream(Stream),
    /// A vector set.
    VectorSet(VectorSet),
    /// A JSON document.
    Json(Json),
    /// A Bloom filter.
    Bloom(Bloom),
    /// A cuckoo filter.
    Cuckoo(Cuckoo),
    /// A count-min sketch.
    CountMin(CountMin),
    /// A top-k sketch.
    TopK(TopK),
    /// A t-digest.
    TDigest(TDigest),
}

// A small value takes the memory of its elements and of this enum: each type takes at most 24 bytes.
const _: () = assert!(size_of::<Aggregate>() <= 32);

/// Evaluates an expression on a value of any type.
macro_rules! with_any {
    ($aggregate:expr, $value:ident => $result:expr) => {
        match $aggregate {
            Aggregate::List($value) => $result,
            Aggregate::Set($value) => $result,
            Aggregate::SortedSet($value) => $result,
            Aggregate::Hash($value) => $result,
            Aggregate::Stream($value) => $result,
            Aggregate::VectorSet($value) => $result,
            Aggregate::Json($value) => $result,
            Aggregate::Bloom($value) => $result,
            Aggregate::Cuckoo($value) => $result,
            Aggregate::CountMin($value) => $result,
            Aggregate::TopK($value) => $result,
            Aggregate::TDigest($value) => $result,
        }
    };
}

/// A type of value that an [`Aggregate`] can be.
pub trait Variant: Collection {
    /// Returns the value of an aggregate of this type.
    fn of(aggregate: &Aggregate) -> Option<&Self>;

    /// Returns a mutable reference to the value of an aggregate of this type.
    fn of_mut(aggregate: &mut Aggregate) -> Option<&mut Self>;

    /// Wraps the value in an aggregate.
    fn into_aggregate(self) -> Aggregate;
}

/// Implements [`Variant`] for a type with the variant of its name.
macro_rules! variant {
    ($name:ident) => {
        impl Variant for $name {
            #[inline]
            fn of(aggregate: &Aggregate) -> Option<&$name> {
                match aggregate {
                    Aggregate::$name(value) => Some(value),
                    _ => None,
                }
            }

            #[inline]
            fn of_mut(aggregate: &mut Aggregate) -> Option<&mut $name> {
                match aggregate {
                    Aggregate::$name(value) => Some(value),
                    _ => None,
                }
            }

            fn into_aggregate(self) -> Aggregate {
                Aggregate::$name(self)
            }
        }
    };
}

variant!(List);
variant!(Set);
variant!(SortedSet);
variant!(Hash);
variant!(Stream);
variant!(VectorSet);
variant!(Json);
variant!(Bloom);
variant!(Cuckoo);
variant!(CountMin);
variant!(TopK);
variant!(TDigest);

fn type_of<T: Collection>(_: &T) -> ValueType {
    T::TYPE
}

impl Aggregate {
    /// Returns the type of the value.
    pub fn value_type(&self) -> ValueType {
        with_any!(self, value => type_of(value))
    }

    /// Returns the name in the reply of `OBJECT ENCODING`.
    pub fn encoding_name(&self) -> &'static str {
        with_any!(self, value => value.encoding_name())
    }

    /// Returns the bytes of memory that the value takes, including its own allocation. O(1).
    pub fn footprint_bytes(&self) -> usize {
        size_class(size_of::<Aggregate>()) + with_any!(self, value => value.memory_bytes())
    }

    /// Returns the number of elements. O(1).
    pub fn len(&self) -> usize {
        with_any!(self, value => value.len())
    }

    /// Returns whether the value has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether the key must be removed if this is its value.
    pub fn is_vacant(&self) -> bool {
        with_any!(self, value => value.is_vacant())
    }

    /// See [`Collection::is_shared_in_parts`].
    pub fn is_shared_in_parts(&self) -> bool {
        with_any!(self, value => value.is_shared_in_parts())
    }

    /// Returns whether `UNLINK` leaves the value to the background thread, whatever its size in bytes. O(consumer
    /// groups).
    pub fn is_of_many_parts(&self) -> bool {
        let parts_min = if matches!(self, Aggregate::Stream(_)) { STREAM_PARTS_MIN } else { PARTS_MIN };
        self.free_effort() >= parts_min
    }

    /// Returns the approximate number of allocations freed with the value. O(consumer groups).
    fn free_effort(&self) -> usize {
        with_any!(self, value => value.free_effort())
    }

    /// Frees the value, in the background if that takes long.
    pub fn free(self: Box<Self>) {
        if self.free_effort() >= RECLAIM_EFFORT_MIN {
            reclaim::later(self, 1);
        }
    }

    /// Prefetches the memory that look-ups of these elements will read. O(names).
    pub fn fetch_elements(&self, names: &[&[u8]]) {
        with_any!(self, value => value.fetch_elements(names));
    }

    /// Returns the earliest time at which [`Aggregate::remove_expired`] may remove something, Unix time in ms. O(1).
    #[inline]
    pub fn next_expiry_ms(&self) -> Option<i64> {
        with_any!(self, value => value.next_expiry_ms())
    }

    /// Removes elements that have expired at `now_ms`, examining at most `max`, and returns how many were removed.
    pub fn remove_expired(&mut self, now_ms: i64, max: usize, names: &mut Names) -> usize {
        with_any!(self, value => value.remove_expired(now_ms, max, names))
    }

    /// Moves memory that the value owns to other allocations; see [`Collection::move_inside`].
    pub fn move_inside(&mut self, from: u64, most: usize, mover: &mut Mover<'_>) -> u64 {
        with_any!(self, value => value.move_inside(from, most, mover))
    }

    /// Checks the invariants; for tests.
    ///
    /// # Panics
    /// Panics if an invariant does not hold.
    pub fn check_invariants(&self) {
        with_any!(self, value => value.check_invariants());
    }
}

impl fmt::Debug for Aggregate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} elements ({})", self.value_type().name(), self.len(), self.encoding_name())
    }
}
