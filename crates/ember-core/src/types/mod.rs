//! Values with elements: one module for each type, apart from the commands on them.
//!
//! An entry owns an [`Aggregate`] behind one pointer. What a type must offer for that is [`Collection`].

pub mod elements;
pub mod geo;
pub mod hash;
pub mod hyperloglog;
pub mod intset;
pub mod limits;
pub mod list;
pub mod listpack;
pub mod set;
pub mod sorted_set;
pub mod stream;
pub mod value;

use std::fmt;

use crate::journal::Names;
use crate::memory::size_class;
use crate::reclaim;
use hash::Hash;
use list::List;
use set::Set;
use sorted_set::SortedSet;
use stream::Stream;
use value::ValueType;

/// Values that take at least so many deallocations are freed by the background thread: fewer take less time than it takes
/// to wake it.
const RECLAIM_EFFORT_MIN: usize = 256;

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
}

// A small value costs what its elements take and this: each of the types keeps to 24 bytes.
const _: () = assert!(size_of::<Aggregate>() <= 32);

/// A type of value with elements. Its default is the empty value.
pub trait Collection: Default + Clone + Send + Sync + 'static {
    /// The type, as `TYPE` names it.
    const TYPE: ValueType;

    /// The value in an aggregate of this type.
    fn of(aggregate: &Aggregate) -> Option<&Self>;

    /// The same, to be changed.
    fn of_mut(aggregate: &mut Aggregate) -> Option<&mut Self>;

    /// The aggregate that holds this value.
    fn into_aggregate(self) -> Aggregate;

    /// The name that `OBJECT ENCODING` answers.
    fn encoding_name(&self) -> &'static str;

    /// Bytes of memory that the value owns beyond its own size, allocator rounding included. O(1).
    fn memory_bytes(&self) -> usize;

    /// The number of elements. O(1).
    fn len(&self) -> usize;

    /// Whether the value has no elements.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the key is to be removed with this value in it: empty ones are, except for streams.
    fn is_vacant(&self) -> bool {
        self.is_empty()
    }

    /// How many allocations, about, are freed with the value.
    fn free_effort(&self) -> usize {
        self.len()
    }

    /// Asks the processor to fetch what look-ups of these elements will read, where that is likely not in the cache.
    fn fetch_elements(&self, _names: &[&[u8]]) {}

    /// The earliest time at which [`Collection::remove_expired`] has something to do, Unix time in ms: no element expires
    /// before it. O(1).
    fn next_expiry_ms(&self) -> Option<i64> {
        None
    }

    /// Removes elements that have expired at `now_ms`, looking at no more than `max`, and returns how many were removed;
    /// their names are added to `names`.
    fn remove_expired(&mut self, _now_ms: i64, _max: usize, _names: &mut Names) -> usize {
        0
    }

    /// Checks what must always hold; for tests.
    ///
    /// # Panics
    /// If something does not.
    fn check_invariants(&self);
}

/// Does the same with a value of any type.
macro_rules! with_any {
    ($aggregate:expr, $value:ident => $result:expr) => {
        match $aggregate {
            Aggregate::List($value) => $result,
            Aggregate::Set($value) => $result,
            Aggregate::SortedSet($value) => $result,
            Aggregate::Hash($value) => $result,
            Aggregate::Stream($value) => $result,
        }
    };
}

/// The parts of [`Collection`] that follow from the variant's name.
macro_rules! variant {
    ($name:ident) => {
        const TYPE: crate::types::value::ValueType = crate::types::value::ValueType::$name;

        fn of(aggregate: &crate::types::Aggregate) -> Option<&Self> {
            match aggregate {
                crate::types::Aggregate::$name(value) => Some(value),
                _ => None,
            }
        }

        fn of_mut(aggregate: &mut crate::types::Aggregate) -> Option<&mut Self> {
            match aggregate {
                crate::types::Aggregate::$name(value) => Some(value),
                _ => None,
            }
        }

        fn into_aggregate(self) -> crate::types::Aggregate {
            crate::types::Aggregate::$name(self)
        }
    };
}
pub(crate) use variant;

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

    /// Frees the value, in the background if that takes long.
    pub fn free(self: Box<Self>) {
        if with_any!(&*self, value => value.free_effort()) >= RECLAIM_EFFORT_MIN {
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
