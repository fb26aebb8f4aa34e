//! Moves allocations out of sparsely used memory, so that the rest of it can be returned to the system.
//!
//! The allocator knows which allocations are worth moving; a [`Mover`] asks it about one after the other. Moving is a
//! copy and a store, so only data with one owner are moved, by that owner.

use std::mem;

/// Size limit in bytes: larger allocations have their own pages or are mapped separately.
const MOVED_MAX_BYTES: usize = 28 * 1024;

/// Decides which allocations are moved, and counts them.
pub struct Mover<'w> {
    is_worth_it: &'w mut dyn FnMut(*const u8) -> bool,
    /// Allocations that were moved.
    pub moved: u64,
    /// Allocations that were left in place.
    pub left: u64,
}

impl<'w> Mover<'w> {
    /// Returns a mover of the allocations for whose addresses `is_worth_it` returns true.
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

    /// Returns the box, or a new one with its contents if moving is worthwhile.
    pub(crate) fn moved_box<T>(&mut self, boxed: Box<T>) -> Box<T> {
        if self.wants(std::ptr::from_ref::<T>(&boxed).cast(), size_of::<T>()) {
            // The new box is allocated before the old one is freed.
            Box::write(Box::new_uninit(), *boxed)
        } else {
            boxed
        }
    }

    /// Moves a box, if worthwhile. Its contents keep the allocations that they own.
    pub(crate) fn move_box<T: Default>(&mut self, boxed: &mut Box<T>) {
        if self.wants(std::ptr::from_ref::<T>(boxed).cast(), size_of::<T>()) {
            let moved = Box::new(mem::take(&mut **boxed));
            *boxed = moved;
        }
    }

    /// Moves bytes, if worthwhile.
    pub(crate) fn move_bytes(&mut self, bytes: &mut Box<[u8]>) {
        if self.wants(bytes.as_ptr(), bytes.len()) {
            *bytes = Box::from(&**bytes);
        }
    }

    /// Moves the elements of a vector, if worthwhile. The capacity stays the same.
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
        // Not moved: an empty allocation and one that is too large.
        mover.move_bytes(&mut Box::default());
        mover.move_bytes(&mut vec![0; MOVED_MAX_BYTES + 1].into());
        assert_eq!((mover.moved, mover.left, mover.examined()), (3, 2, 5));
    }
}
