//! An entry and what it owns, moved to other allocations of the same sizes.
#![allow(unsafe_code, reason = "a part of the entry layout")]

use std::alloc::dealloc;
use std::ptr::{self, NonNull};

use super::{Encoding, Shape, Slot, allocate, layout_of};
use crate::memory::moving::Mover;
use crate::types::aggregate::Aggregate;

/// Moves an allocation of `bytes` bytes: returns where its content is now.
///
/// # Safety
/// `place` is an allocation made by [`allocate`] for this many bytes. It is the caller's, who refers to the new one in its
/// place from now on.
unsafe fn moved(place: NonNull<u8>, bytes: usize) -> NonNull<u8> {
    let new = allocate(bytes);
    // SAFETY: both are as long, the new one is nobody else's yet, and the old one is the caller's with the layout that
    // `allocate` has given it.
    unsafe {
        ptr::copy_nonoverlapping(place.as_ptr(), new.as_ptr(), bytes);
        dealloc(place.as_ptr(), layout_of(bytes));
    }
    new
}

impl Slot {
    /// Moves the entry, a string that stands apart from it, and the allocation that a value with elements stands in, as far
    /// as that is worth it; not what those own in turn ([`Slot::own_aggregate_mut`]), and nothing that has another owner.
    /// Key, value, metadata and the bytes that are counted stay the same.
    pub fn move_to(&mut self, mover: &mut Mover<'_>) {
        let shape = self.entry().shape();
        if mover.wants(self.address(), shape.allocation_bytes()) {
            // SAFETY: the slot owns this allocation of the shape's layout, and refers to the new one next.
            unsafe {
                let base = moved(self.base(), shape.allocation_bytes());
                let old = std::mem::replace(self, Slot::own(self.tag(), base));
                // What it referred to is gone, and the new slot owns what the entry owns.
                std::mem::forget(old);
            }
        }
        match self.entry().encoding() {
            Encoding::Apart => self.move_apart(shape, mover),
            Encoding::Aggregate => self.move_aggregate(shape, mover),
            Encoding::Int
            | Encoding::Embstr
            | Encoding::Raw
            | Encoding::Large
            | Encoding::Shared
            | Encoding::External => {}
        }
    }

    fn move_apart(&mut self, shape: Shape, mover: &mut Mover<'_>) {
        // SAFETY: the Apart encoding has the address of such an allocation in its eight value bytes, which the entry owns.
        unsafe {
            let place = self.base().add(shape.value_offset()).cast::<NonNull<u8>>();
            let apart = place.read_unaligned();
            if mover.wants(apart.as_ptr(), shape.apart_allocation_bytes()) {
                place.write_unaligned(moved(apart, shape.apart_allocation_bytes()));
            }
        }
    }

    fn move_aggregate(&mut self, shape: Shape, mover: &mut Mover<'_>) {
        // SAFETY: the Aggregate encoding has a box in raw form in its eight value bytes, which the entry owns; nobody looks
        // at them before they have it again. Nothing refers to the inside of the box.
        unsafe {
            let place = self.base().add(shape.value_offset()).cast::<*mut Aggregate>();
            let aggregate = mover.moved_box(Box::from_raw(place.read_unaligned()));
            place.write_unaligned(Box::into_raw(aggregate));
        }
    }

    /// The value with elements, if the entry is its only owner: one that a snapshot has its share of is neither given nor
    /// copied.
    pub fn own_aggregate_mut(&mut self) -> Option<&mut Aggregate> {
        if self.entry().encoding() == Encoding::Aggregate { self.aggregate_mut() } else { None }
    }
}
