//! Moving allocations out of memory of which little is in use, so that the rest of it can be given back.
//!
//! What is worth moving the allocator knows; a [`Mover`] asks it for one allocation after the other. Moving is a copy and a
//! store: so only what has one owner is moved, by that owner.

use std::mem;

/// Allocations of more bytes are not asked about: they have pages of their own, or are mapped by themselves.
const MOVED_MAX_BYTES: usize = 28 * 1024;

/// Says which allocations are to be moved, and counts them.
pub struct Mover<'w> {
    is_worth_it: &'w mut dyn FnMut(*const u8) -> bool,
    /// Allocations that were moved.
    pub moved: u64,
    /// Allocations that stay where they are.
    pub left: u64,
}

impl<'w> Mover<'w> {
    /// A mover of the allocations for whose addresses `is_worth_it` holds.
    pub fn new(is_worth_it: &'w mut dyn FnMut(*const u8) -> bool) -> Mover<'w> {
        Mover { is_worth_it, moved: 0, left: 0 }
    }

    /// How many allocations were looked at.
    pub fn looked(&self) -> u64 {
        self.moved + self.left
    }

    /// Whether the allocation of `bytes` at `address` is to be moved, which the caller does then.
    pub(crate) fn wants(&mut self, address: *const u8, bytes: usize) -> bool {
        let wants = (1..=MOVED_MAX_BYTES).contains(&bytes) && (self.is_worth_it)(address);
        if wants {
            self.moved += 1;
        } else {
            self.left += 1;
        }
        wants
    }

    /// A box with the same in it: another one, if that is worth it.
    pub(crate) fn moved_box<T>(&mut self, boxed: Box<T>) -> Box<T> {
        if self.wants(std::ptr::from_ref::<T>(&boxed).cast(), size_of::<T>()) {
            // The new one is there before the old one is freed.
            Box::write(Box::new_uninit(), *boxed)
        } else {
            boxed
        }
    }

    /// Moves a box, if that is worth it. What is in it keeps what it owns.
    pub(crate) fn move_box<T: Default>(&mut self, boxed: &mut Box<T>) {
        if self.wants(std::ptr::from_ref::<T>(boxed).cast(), size_of::<T>()) {
            let moved = Box::new(mem::take(&mut **boxed));
            *boxed = moved;
        }
    }

    /// Moves bytes, if that is worth it.
    pub(crate) fn move_bytes(&mut self, bytes: &mut Box<[u8]>) {
        if self.wants(bytes.as_ptr(), bytes.len()) {
            *bytes = Box::from(&**bytes);
        }
    }

    /// Moves the elements of a vector, if that is worth it. Its capacity stays.
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
    fn what_is_moved_stays_what_it_is() {
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
        // Nothing, and what is too large.
        mover.move_bytes(&mut Box::default());
        mover.move_bytes(&mut vec![0; MOVED_MAX_BYTES + 1].into());
        assert_eq!((mover.moved, mover.left, mover.looked()), (3, 2, 5));
    }
}
