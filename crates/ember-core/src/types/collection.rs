//! What the keyspace asks of a type of value with elements.

use super::value::ValueType;
use crate::effects::journal::Names;
use crate::memory::moving::Mover;

/// A type of value with elements. Its default is the empty value.
pub trait Collection: Default + Clone + Send + Sync + 'static {
    /// The type, as `TYPE` names it.
    const TYPE: ValueType;

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

    /// Moves what the value owns to other allocations, as far as that is worth it: what belongs to about `most` elements,
    /// from place `from` on, where 0 is the beginning. Returns the place to go on from; 0 at the end. What is changed in
    /// between may lead to elements that are left out or looked at twice. Neither elements nor the bytes counted change.
    fn move_inside(&mut self, from: u64, most: usize, mover: &mut Mover<'_>) -> u64;

    /// Whether a copy shares its parts with the original, and only those that are changed are copied.
    fn is_shared_in_parts(&self) -> bool {
        false
    }

    /// Checks what must always hold; for tests.
    ///
    /// # Panics
    /// If something does not.
    fn check_invariants(&self);
}
