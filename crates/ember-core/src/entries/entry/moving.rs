//! Moves of an entry and what it owns to other allocations of the same sizes.
#![allow(unsafe_code, reason = "a part of the entry layout")]

use std::alloc::dealloc;
use std::ptr::{self, NonNull};

use super::{Encoding, Shape, Slot, allocate, layout_of};
use crate::memory::moving::Mover;
use crate::types::aggregate::Aggregate;

/// Moves an allocation of `bytes` bytes and returns its new address.
///
/// # Safety
/// `place` must be an allocation made by [`allocate`] for this many bytes. The caller owns it and must replace its
/// address by the returned one.
unsafe fn moved(place: NonNull<u8>, bytes: usize) -> NonNull<u8> {
    let new = allocate(bytes);
    // SAFETY: both have the same length, nothing refers to the new one yet, and the old one belongs to the caller, with
    // the layout of `allocate`.
    unsafe {
        ptr::copy_nonoverlapping(place.as_ptr(), new.as_ptr(), bytes);
        dealloc(place.as_ptr(), layout_of(bytes));
    }
    new
}

impl Slot {
    /// Moves the allocations of the entry, of a string stored apart and of an aggregate, each if that is worth it. A
    /// value with another owner is not moved, nor are the allocations that an aggregate owns
    /// ([`Slot::own_aggregate_mut`]). Key, value, metadata and the counted bytes stay the same.
    pub fn move_to(&mut self, mover: &mut Mover<'_>) {
        let shape = self.entry().shape();
        if mover.wants(self.address(), shape.allocation_bytes()) {
            // SAFETY: the slot owns this allocation of the shape's layout, and refers to the new one next.
            unsafe {
                let base = moved(self.base(), shape.allocation_bytes());
                let old = std::mem::replace(self, Slot::own(self.tag(), base));
                // The old allocation is already freed, and the new slot owns everything that the old one owned.
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
        // SAFETY: the Apart encoding has the address of such an allocation in its eight value bytes, which the entry
        // owns.
        unsafe {
            let place = self.base().add(shape.value_offset()).cast::<NonNull<u8>>();
            let apart = place.read_unaligned();
            if mover.wants(apart.as_ptr(), shape.apart_allocation_bytes()) {
                place.write_unaligned(moved(apart, shape.apart_allocation_bytes()));
            }
        }
    }

    fn move_aggregate(&mut self, shape: Shape, mover: &mut Mover<'_>) {
        // SAFETY: the Aggregate encoding has a box in raw form in its eight value bytes, which the entry owns; they are
        // not read before they contain a box again. Nothing refers to the inside of the box.
        unsafe {
            let place = self.base().add(shape.value_offset()).cast::<*mut Aggregate>();
            let aggregate = mover.moved_box(Box::from_raw(place.read_unaligned()));
            place.write_unaligned(Box::into_raw(aggregate));
        }
    }

    /// Returns the value with elements, if the entry is its only owner: a value shared with a snapshot is neither
    /// returned nor copied.
    pub fn own_aggregate_mut(&mut self) -> Option<&mut Aggregate> {
        if self.entry().encoding() == Encoding::Aggregate { self.aggregate_mut() } else { None }
    }
}
