//! The interface of value types with elements to the keyspace.

use super::value::ValueType;
use crate::effects::journal::Names;
use crate::memory::moving::Mover;

/// A type of value with elements. Its default is the empty value.
pub trait Collection: Default + Clone + Send + Sync + 'static {
    /// The type, as `TYPE` names it.
    const TYPE: ValueType;

    /// Returns the name in the reply of `OBJECT ENCODING`.
    fn encoding_name(&self) -> &'static str;

    /// Returns the bytes of memory that the value owns beyond its own size, including the allocator's rounding. O(1).
    fn memory_bytes(&self) -> usize;

    /// Returns the number of elements. O(1).
    fn len(&self) -> usize;

    /// Returns whether the value has no elements.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether the key must be removed if this is its value: empty values are, except for streams and for
    /// indexes created by `VECTOR.CREATE`.
    fn is_vacant(&self) -> bool {
        self.is_empty()
    }

    /// Returns the approximate number of allocations freed with the value.
    fn free_effort(&self) -> usize {
        self.len()
    }

    /// Prefetches the memory that look-ups of these elements will read, if it is probably not in the cache.
    fn fetch_elements(&self, _names: &[&[u8]]) {}

    /// Returns the earliest time at which [`Collection::remove_expired`] may remove something, Unix time in ms: no
    /// element expires before it. O(1).
    fn next_expiry_ms(&self) -> Option<i64> {
        None
    }

    /// Removes elements that have expired at `now_ms`, examining at most `max`, and returns how many were removed;
    /// their names are added to `names`.
    fn remove_expired(&mut self, _now_ms: i64, _max: usize, _names: &mut Names) -> usize {
        0
    }

    /// Moves memory that the value owns to other allocations, where that is worth it: the memory of about `most`
    /// elements, from position `from` on, where 0 is the beginning. Returns the position to continue from; 0 at the
    /// end. After changes in between, elements may be skipped or examined twice. Neither elements nor the counted bytes
    /// change.
    fn move_inside(&mut self, from: u64, most: usize, mover: &mut Mover<'_>) -> u64;

    /// Returns whether a copy shares its parts with the original, so that only changed parts are copied.
    fn is_shared_in_parts(&self) -> bool {
        false
    }

    /// Checks the invariants; for tests.
    ///
    /// # Panics
    /// Panics if an invariant does not hold.
    fn check_invariants(&self);
}
