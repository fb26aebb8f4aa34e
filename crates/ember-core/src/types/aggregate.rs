//! A value with elements, of any type.

use std::fmt;

use super::collection::Collection;
use super::hash::Hash;
use super::list::List;
use super::set::Set;
use super::sorted_set::SortedSet;
use super::stream::Stream;
use super::value::ValueType;
use super::vector_set::VectorSet;
use crate::effects::journal::Names;
use crate::memory::moving::Mover;
use crate::memory::reclaim;
use crate::memory::size_class;

/// Values that take at least this number of deallocations are freed by the background thread: fewer take less time than it
/// takes to wake it.
const RECLAIM_EFFORT_MIN: usize = 256;

/// The number of allocations from which `UNLINK` frees a value in the background. Redis does so above 64, and monitoring
/// counts them in `lazyfreed_objects`.
const PARTS_MIN: usize = 65;

/// The same for the blocks and pending entries of a stream: Redis counts the nodes of its tree, about three per block.
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
}

// A small value costs what its elements take and this: each of the types keeps to 24 bytes.
const _: () = assert!(size_of::<Aggregate>() <= 32);

/// Does the same with a value of any type.
macro_rules! with_any {
    ($aggregate:expr, $value:ident => $result:expr) => {
        match $aggregate {
            Aggregate::List($value) => $result,
            Aggregate::Set($value) => $result,
            Aggregate::SortedSet($value) => $result,
            Aggregate::Hash($value) => $result,
            Aggregate::Stream($value) => $result,
            Aggregate::VectorSet($value) => $result,
        }
    };
}

/// A type of value that an [`Aggregate`] can be.
pub trait Variant: Collection {
    /// The value in an aggregate of this type.
    fn of(aggregate: &Aggregate) -> Option<&Self>;

    /// The same, to be changed.
    fn of_mut(aggregate: &mut Aggregate) -> Option<&mut Self>;

    /// The aggregate that holds this value.
    fn into_aggregate(self) -> Aggregate;
}

/// Connects a type with the variant of its name.
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

fn type_of<T: Collection>(_: &T) -> ValueType {
    T::TYPE
}

impl Aggregate {
    /// The type of the value.
    pub fn value_type(&self) -> ValueType {
        with_any!(self, value => type_of(value))
    }

    /// The name that `OBJECT ENCODING` answers.
    pub fn encoding_name(&self) -> &'static str {
        with_any!(self, value => value.encoding_name())
    }

    /// Bytes of memory that the value takes, with the allocation it stands in. O(1).
    pub fn footprint_bytes(&self) -> usize {
        size_class(size_of::<Aggregate>()) + with_any!(self, value => value.memory_bytes())
    }

    /// The number of elements. O(1).
    pub fn len(&self) -> usize {
        with_any!(self, value => value.len())
    }

    /// Whether the value has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the key is to be removed with this value in it.
    pub fn is_vacant(&self) -> bool {
        with_any!(self, value => value.is_vacant())
    }

    /// As [`Collection::is_shared_in_parts`].
    pub fn is_shared_in_parts(&self) -> bool {
        with_any!(self, value => value.is_shared_in_parts())
    }

    /// Whether `UNLINK` leaves the value to the background thread whatever its bytes are. O(consumer groups).
    pub fn is_of_many_parts(&self) -> bool {
        let parts_min = if matches!(self, Aggregate::Stream(_)) { STREAM_PARTS_MIN } else { PARTS_MIN };
        self.free_effort() >= parts_min
    }

    /// How many allocations, about, are freed with the value. O(consumer groups).
    fn free_effort(&self) -> usize {
        with_any!(self, value => value.free_effort())
    }

    /// Frees the value, in the background if that takes long.
    pub fn free(self: Box<Self>) {
        if self.free_effort() >= RECLAIM_EFFORT_MIN {
            reclaim::later(self, 1);
        }
    }

    /// Asks the processor to fetch what look-ups of these elements will read. O(names).
    pub fn fetch_elements(&self, names: &[&[u8]]) {
        with_any!(self, value => value.fetch_elements(names));
    }

    /// The earliest time at which [`Aggregate::remove_expired`] has something to do, Unix time in ms. O(1).
    #[inline]
    pub fn next_expiry_ms(&self) -> Option<i64> {
        with_any!(self, value => value.next_expiry_ms())
    }

    /// Removes elements that have expired at `now_ms`, looking at no more than `max`, and returns how many were removed.
    pub fn remove_expired(&mut self, now_ms: i64, max: usize, names: &mut Names) -> usize {
        with_any!(self, value => value.remove_expired(now_ms, max, names))
    }

    /// Moves what the value owns to other allocations; see [`Collection::move_inside`].
    pub fn move_inside(&mut self, from: u64, most: usize, mover: &mut Mover<'_>) -> u64 {
        with_any!(self, value => value.move_inside(from, most, mover))
    }

    /// Checks what must always hold; for tests.
    ///
    /// # Panics
    /// If something does not.
    pub fn check_invariants(&self) {
        with_any!(self, value => value.check_invariants());
    }
}

impl fmt::Debug for Aggregate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} elements ({})", self.value_type().name(), self.len(), self.encoding_name())
    }
}
