//! Moves allocations out of sparsely used pages, so that these pages can be returned to the system.
//!
//! The allocator knows which allocations are worth moving; a [`Mover`] queries the allocator for each allocation. A
//! move is a copy and a store, so only data with one owner are moved, and only by that owner.

use std::mem;

/// The maximum size in bytes of allocations that are moved: larger allocations have their own pages or are mapped
/// separately.
const MOVED_MAX_BYTES: usize = 28 * 1024;

/// Decides which allocations are moved, and counts the examined allocations.
pub struct Mover<'w> {
    is_worth_it: &'w mut dyn FnMut(*const u8) -> bool,
    /// The number of allocations that were moved.
    pub moved: u64,
    /// The number of allocations that were examined and not moved.
    pub left: u64,
}

impl<'w> Mover<'w> {
    /// Returns a mover that moves an allocation if `is_worth_it` returns true for its address.
    pub fn new(is_worth_it: &'w mut dyn FnMut(*const u8) -> bool) -> Mover<'w> {
        Mover { is_worth_it, moved: 0, left: 0 }
    }

    /// Returns the number of examined allocations.
    pub fn examined(&self) -> u64 {
        self.moved + self.left
    }

    /// Returns whether the caller must move the allocation of `bytes` at `address`.
    pub(crate) fn wants(&mut self, address: *const u8, bytes: usize) -> bool {
        let wants = (1..=MOVED_MAX_BYTES).contains(&bytes) && (self.is_worth_it)(address);
        if wants {
            self.moved += 1;
        } else {
            self.left += 1;
        }
        wants
    }

    /// Returns the given box, or a new box with its contents if moving is worthwhile.
    pub(crate) fn moved_box<T>(&mut self, boxed: Box<T>) -> Box<T> {
        if self.wants(std::ptr::from_ref::<T>(&boxed).cast(), size_of::<T>()) {
            // The new box is allocated before the old one is freed.
            Box::write(Box::new_uninit(), *boxed)
        } else {
            boxed
        }
    }

    /// Moves a box to a new allocation if this is worthwhile. Allocations that the contents own are not moved.
    pub(crate) fn move_box<T: Default>(&mut self, boxed: &mut Box<T>) {
        if self.wants(std::ptr::from_ref::<T>(boxed).cast(), size_of::<T>()) {
            let moved = Box::new(mem::take(&mut **boxed));
            *boxed = moved;
        }
    }

    /// Moves a byte string to a new allocation if this is worthwhile.
    pub(crate) fn move_bytes(&mut self, bytes: &mut Box<[u8]>) {
        if self.wants(bytes.as_ptr(), bytes.len()) {
            *bytes = Box::from(&**bytes);
        }
    }

    /// Moves the elements of a vector to a new allocation of the same capacity if this is worthwhile.
    pub(crate) fn move_vec<T>(&mut self, elements: &mut Vec<T>) {
        if self.wants(elements.as_ptr().cast(), elements.capacity() * size_of::<T>()) {
            let mut moved = Vec::new();
            moved.reserve_exact(elements.capacity());
            moved.append(elements);
            *elements = moved;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moved_allocations_keep_their_contents() {
        let mut all = |_| true;
        let mut mover = Mover::new(&mut all);
        let mut boxed = Box::new(vec![1, 2]);
        let mut bytes: Box<[u8]> = Box::from(&b"bytes"[..]);
        let mut elements = Vec::with_capacity(100);
        elements.push("element".to_owned());
        let places = (std::ptr::from_ref(&*boxed), bytes.as_ptr(), elements.as_ptr());
        mover.move_box(&mut boxed);
        mover.move_bytes(&mut bytes);
        mover.move_vec(&mut elements);
        assert_eq!((&*boxed, &*bytes, &*elements), (&vec![1, 2], &b"bytes"[..], &["element".to_owned()][..]));
        assert!(places.0 != std::ptr::from_ref(&*boxed) && places.1 != bytes.as_ptr());
        assert!(places.2 != elements.as_ptr() && elements.capacity() == 100);
        // An empty allocation and one above the size limit are not moved.
        mover.move_bytes(&mut Box::default());
        mover.move_bytes(&mut vec![0; MOVED_MAX_BYTES + 1].into());
        assert_eq!((mover.moved, mover.left, mover.examined()), (3, 2, 5));
    }
}
