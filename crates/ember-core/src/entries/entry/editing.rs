//! Changes of a value inside its entry, in place.
#![allow(unsafe_code, reason = "a part of the entry layout")]

use std::alloc::dealloc;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use super::{Encoding, NewValue, Shape, SharedValue, Slot, layout_of};
use crate::entries::external::Record;
use crate::memory::{MAPPED_MIN_BYTES, PAGE_BYTES, capacity_class, grows_by_zeros, reclaim};
use crate::types::aggregate::Aggregate;
use crate::types::value::{LARGE_VALUE_MIN_BYTES, StringValue, ValueType};

impl Slot {
    /// Moves the value out, for another entry; the caller must drop this slot next. O(1), except for the bytes of an
    /// inline string.
    pub fn moved_value(&mut self) -> NewValue<'_> {
        match self.take_aggregate() {
            Some(aggregate) => NewValue::Aggregate(aggregate),
            None => self.entry().duplicate_string(),
        }
    }

    /// Returns a mutable reference to the value with elements; `None` for a string.
    #[inline]
    pub fn aggregate_mut(&mut self) -> Option<&mut Aggregate> {
        // SAFETY: the pointer comes from Box::into_raw, and the borrow of self is the only access to the value.
        self.aggregate_pointer().map(|aggregate| unsafe { &mut *aggregate })
    }

    /// Replaces the value by another form of it, with the same key, expiry, clock and generations; returns a slot with
    /// the old form.
    pub fn exchange(&mut self, value: NewValue<'_>) -> Slot {
        let new = self.rebuilt(value, self.entry().expire_at_ms());
        std::mem::replace(self, new)
    }

    /// Returns another owner of a value that the entry refers to by a pointer; `None` for values inside the entry.
    /// O(1).
    ///
    /// The value of the other owner never changes: if the entry's value is changed while that owner exists, the entry
    /// copies it first.
    pub fn share(&mut self) -> Option<SharedValue> {
        match self.entry().encoding() {
            Encoding::Int | Encoding::Embstr | Encoding::Raw | Encoding::Apart | Encoding::External => None,
            Encoding::Large => {
                let StringValue::Large(large) = self.entry().string() else { return None };
                Some(SharedValue::String(large.share()))
            }
            Encoding::Aggregate => {
                let value_type = self.entry().value_type();
                let shared = Arc::from(self.take_aggregate()?);
                self.write_shared(Arc::clone(&shared), value_type);
                Some(SharedValue::Aggregate(shared))
            }
            Encoding::Shared => {
                let shared = self.take_shared();
                self.write_shared(Arc::clone(&shared), shared.value_type());
                Some(SharedValue::Aggregate(shared))
            }
        }
    }

    /// Makes the entry the only owner of its value with elements; copies the value if it has another owner.
    #[cold]
    fn unshare(&mut self) {
        let aggregate = Box::new(Arc::unwrap_or_clone(self.take_shared()));
        let value_type = aggregate.value_type();
        let offset = self.entry().shape().value_offset();
        // SAFETY: Int, which take_shared leaves here, has eight value bytes, which store the box in raw form.
        unsafe {
            self.base().add(offset).cast::<*mut Aggregate>().write_unaligned(Box::into_raw(aggregate));
            self.base().write(value_type as u8 | (Encoding::Aggregate as u8) << 4);
        }
    }

    /// Removes and returns the entry's reference to a shared value; the entry then contains the integer 0.
    fn take_shared(&mut self) -> Arc<Aggregate> {
        assert!(self.entry().encoding() == Encoding::Shared, "the callers have seen the encoding");
        let offset = self.entry().shape().value_offset();
        // SAFETY: the Shared encoding's eight value bytes are the entry's own reference, made by Arc::into_raw. The
        // header says Int before the entry is read again, and Int has eight value bytes, too.
        unsafe {
            let place = self.base().add(offset);
            let shared = Arc::from_raw(place.cast::<*const Aggregate>().read_unaligned());
            self.base().write(ValueType::String as u8 | (Encoding::Int as u8) << 4);
            place.cast::<i64>().write_unaligned(0);
            shared
        }
    }

    /// Replaces an integer by a reference to a shared value of type `value_type`.
    pub(crate) fn write_shared(&mut self, shared: Arc<Aggregate>, value_type: ValueType) {
        assert!(self.entry().encoding() == Encoding::Int, "the callers have taken the value out");
        let offset = self.entry().shape().value_offset();
        // SAFETY: Int has eight value bytes, which store the reference in raw form.
        unsafe {
            self.base().add(offset).cast::<*const Aggregate>().write_unaligned(Arc::into_raw(shared));
            self.base().write(value_type as u8 | (Encoding::Shared as u8) << 4);
        }
    }

    /// Returns the box of an aggregate in raw form; an aggregate shared with a snapshot is first made the entry's own.
    #[inline]
    fn aggregate_pointer(&mut self) -> Option<*mut Aggregate> {
        if self.entry().encoding() != Encoding::Aggregate {
            if self.entry().encoding() != Encoding::Shared {
                return None;
            }
            self.unshare();
        }
        let entry = self.entry();
        // SAFETY: the Aggregate encoding has the pointer in its eight value bytes.
        Some(unsafe {
            entry.base.add(entry.shape().value_offset()).cast::<*mut Aggregate>().read_unaligned()
        })
    }

    /// Removes and returns the aggregate; the entry then contains the integer 0.
    pub(super) fn take_aggregate(&mut self) -> Option<Box<Aggregate>> {
        let aggregate = self.aggregate_pointer()?;
        let offset = self.entry().shape().value_offset();
        // SAFETY: the box is the entry's own, made by Box::into_raw. The header says Int before the entry is read
        // again, and Int has eight value bytes, too.
        unsafe {
            self.base().write(ValueType::String as u8 | (Encoding::Int as u8) << 4);
            self.base().add(offset).cast::<i64>().write_unaligned(0);
            Some(Box::from_raw(aggregate))
        }
    }

    /// Makes the entry own `bytes`, the allocation of a string stored apart. The caller must write the content next.
    ///
    /// # Safety
    /// `shape` must describe this entry with a string apart, the previous value must hold no reference, and `bytes`
    /// must be an allocation as `shape` describes it, without an owner.
    pub(super) unsafe fn write_apart(&mut self, shape: Shape, bytes: NonNull<u8>) {
        // SAFETY: by the caller's guarantee the eight value bytes exist, for an address.
        unsafe { self.base().add(shape.value_offset()).cast::<NonNull<u8>>().write_unaligned(bytes) };
    }

    /// # Safety
    /// `shape` must describe this entry's allocations with `value` in it. The previous value must hold no reference;
    /// only if the new value is a string stored apart, the entry must already own its bytes, as after
    /// [`Slot::write_apart`].
    pub(super) unsafe fn write_value(&mut self, shape: Shape, value: NewValue<'_>) {
        let base = self.base();
        let is_apart = shape.apart_bytes > 0;
        let encoding = if is_apart { Encoding::Apart } else { value.encoding() };
        let value_type = value.value_type();
        // SAFETY: by the caller's guarantee the value's bytes fit after the key or apart, and nothing else accesses the
        // entry.
        unsafe {
            base.write(value_type as u8 | (encoding as u8) << 4);
            let string_len = match encoding {
                Encoding::Embstr | Encoding::Raw => shape.value_bytes,
                _ => shape.apart_bytes,
            };
            let string_len =
                u16::try_from(string_len).expect("strings in an entry are below LARGE_VALUE_MIN_BYTES");
            let known =
                if let NewValue::External(external) = &value { external.facts.bits() } else { string_len };
            base.add(6).cast::<u16>().write_unaligned(known);
            let target = base.add(shape.value_offset());
            match value {
                NewValue::Int(number) => target.cast::<i64>().write_unaligned(number),
                NewValue::Bytes(bytes) | NewValue::Edited(bytes) => {
                    let target =
                        if is_apart { target.cast::<*mut u8>().read_unaligned() } else { target.as_ptr() };
                    ptr::copy_nonoverlapping(bytes.as_ptr(), target, bytes.len());
                }
                NewValue::Large(large) => {
                    target.cast::<*const Vec<u8>>().write_unaligned(Arc::into_raw(large))
                }
                NewValue::Aggregate(aggregate) => {
                    target.cast::<*mut Aggregate>().write_unaligned(Box::into_raw(aggregate));
                }
                NewValue::External(external) => {
                    target.cast::<u64>().write_unaligned(external.record.into_raw());
                }
            }
        }
    }

    /// Overwrites the integer of an `Int` value in place.
    ///
    /// # Panics
    /// Panics if the value is not an integer.
    pub fn set_int(&mut self, number: i64) {
        let entry = self.entry();
        assert!(entry.encoding() == Encoding::Int, "set_int is for the int encoding");
        let offset = entry.shape().value_offset();
        // SAFETY: the Int encoding has eight value bytes at value_offset.
        unsafe { self.base().add(offset).cast::<i64>().write_unaligned(number) };
    }

    /// Returns the bytes of the value for an edit that does not change their number; the value is `raw` from now on.
    /// `None` for an integer, which has no bytes to edit.
    pub fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        let shape = self.entry().shape();
        let base = self.base();
        match self.entry().encoding() {
            Encoding::Int | Encoding::Aggregate | Encoding::Shared => None,
            Encoding::External => panic!("a cold value is fetched before it is changed"),
            Encoding::Large => Some(self.large_mut().expect("the encoding is Large").as_mut_slice()),
            // SAFETY: there are value_bytes initialized bytes at value_offset; the borrow of self covers the slice.
            Encoding::Embstr | Encoding::Raw => unsafe {
                base.write(ValueType::String as u8 | (Encoding::Raw as u8) << 4);
                let value = base.add(shape.value_offset());
                Some(std::slice::from_raw_parts_mut(value.as_ptr(), shape.value_bytes))
            },
            // SAFETY: as above, with the bytes apart, which the entry owns.
            Encoding::Apart => unsafe {
                Some(std::slice::from_raw_parts_mut(self.apart_bytes(shape).as_ptr(), shape.apart_bytes))
            },
        }
    }

    /// Returns the bytes of the value for an edit, extended with zeros to at least `len_min` bytes. An integer becomes
    /// its digits; the value is `raw` from now on.
    ///
    /// Amortized O(bytes added): the bytes stay in place while the entry's size class or the capacity of a large value
    /// suffices. Both grow by a fraction of their size; a very large value grows by a constant, because its pages are
    /// remapped and its bytes are not copied. A value that reaches [`LARGE_VALUE_MIN_BYTES`] becomes `Large`.
    pub fn bytes_mut_grown(&mut self, len_min: usize) -> &mut [u8] {
        match self.entry().string() {
            StringValue::Int(number) => {
                let mut digits = itoa::Buffer::new();
                self.move_padded(digits.format(number).as_bytes(), len_min);
            }
            StringValue::Inline(bytes) if bytes.len() < len_min => self.grow_inline(len_min),
            StringValue::Inline(_) => {}
            StringValue::Large(_) => {
                let bytes = self.large_mut().expect("the encoding is Large");
                if bytes.len() < len_min {
                    grow_large(bytes, len_min);
                }
            }
        }
        self.bytes_mut().expect("the value is no integer any more")
    }

    /// Appends zeros to an inline value until it has `len` bytes, which must be more than before.
    fn grow_inline(&mut self, len: usize) {
        let old = self.entry().shape();
        let is_apart = old.apart_bytes > 0;
        let new =
            if is_apart { Shape { apart_bytes: len, ..old } } else { Shape { value_bytes: len, ..old } };
        match u16::try_from(len) {
            Ok(string_len) if len < LARGE_VALUE_MIN_BYTES && old.can_hold(new) => {
                let base = self.base();
                // SAFETY: the allocations have space for `new`, of which only the string's length differs; the bytes
                // added to the string are initialized here.
                unsafe {
                    let (place, old_len) = if is_apart {
                        (self.apart_bytes(old), old.apart_bytes)
                    } else {
                        (base.add(old.value_offset()), old.value_bytes)
                    };
                    place.add(old_len).write_bytes(0, len - old_len);
                    base.add(6).cast::<u16>().write_unaligned(string_len);
                }
            }
            _ => {
                let StringValue::Inline(bytes) = self.entry().string() else { return };
                let bytes = bytes.to_vec();
                self.move_padded(&bytes, len);
            }
        }
    }

    /// Returns the address of the bytes of a string stored apart.
    ///
    /// # Safety
    /// `shape` must be the entry's, with such a string.
    unsafe fn apart_bytes(&self, shape: Shape) -> NonNull<u8> {
        // SAFETY: by the caller's guarantee the eight value bytes are the address.
        unsafe { self.base().add(shape.value_offset()).cast::<NonNull<u8>>().read_unaligned() }
    }

    /// Stores `bytes`, followed by zeros up to `len_min` bytes, as the value in a new allocation.
    fn move_padded(&mut self, bytes: &[u8], len_min: usize) {
        let mut padded = vec![0; len_min.max(bytes.len())];
        padded[..bytes.len()].copy_from_slice(bytes);
        let value = if padded.len() >= LARGE_VALUE_MIN_BYTES {
            NewValue::Large(Arc::new(padded))
        } else {
            NewValue::Edited(&padded)
        };
        *self = self.rebuilt(value, self.entry().expire_at_ms());
    }

    /// Calls `edit` with a `Large` value, which is copied first if it has another owner. Returns `None` without calling
    /// `edit` for other encodings.
    pub fn edit_large<R>(&mut self, edit: impl FnOnce(&mut Vec<u8>) -> R) -> Option<R> {
        self.large_mut().map(edit)
    }

    fn large_mut(&mut self) -> Option<&mut Vec<u8>> {
        let entry = self.entry();
        if entry.encoding() != Encoding::Large {
            return None;
        }
        let offset = entry.shape().value_offset();
        // SAFETY: the Large encoding has the entry's own reference there, in raw form. If make_mut moves to a new
        // allocation, it has dropped that reference, and the new one is stored in its place at once.
        unsafe {
            let place = self.base().add(offset).cast::<*const Vec<u8>>();
            let mut large = Arc::from_raw(place.read_unaligned());
            Arc::make_mut(&mut large);
            let raw = Arc::into_raw(large);
            place.write_unaligned(raw);
            Some(&mut *raw.cast_mut())
        }
    }

    /// Releases the allocation to which the value bytes refer; the caller must overwrite or free these bytes next.
    #[inline]
    pub(super) fn release_owned(&mut self) {
        if !matches!(self.entry().encoding(), Encoding::Int | Encoding::Embstr | Encoding::Raw) {
            self.release_elsewhere();
        }
    }

    /// Releases the allocation outside of the entry to which the value bytes refer.
    #[cold]
    fn release_elsewhere(&mut self) {
        match self.entry().encoding() {
            Encoding::Int | Encoding::Embstr | Encoding::Raw => {}
            Encoding::Large => {
                let StringValue::Large(large) = self.entry().string() else { return };
                // SAFETY: this is the entry's own reference; the caller overwrites or frees the bytes that held it.
                let large = unsafe { Arc::from_raw(large.as_raw()) };
                if large.capacity() >= FREED_LATER_BYTES
                    && let Some(bytes) = Arc::into_inner(large)
                {
                    // No freed object is counted: Redis frees strings in the foreground, whatever their size.
                    reclaim::later(bytes, 0);
                }
            }
            Encoding::External => {
                if let Some(external) = self.entry().external() {
                    drop(Record::from_raw(external.location.bits()));
                }
            }
            Encoding::Apart => {
                let shape = self.entry().shape();
                // SAFETY: the entry owns the allocation, which has this layout; the caller overwrites or frees the
                // bytes that held its address.
                unsafe {
                    dealloc(self.apart_bytes(shape).as_ptr(), layout_of(shape.apart_allocation_bytes()))
                };
            }
            Encoding::Aggregate => {
                if let Some(aggregate) = self.take_aggregate() {
                    aggregate.free();
                }
            }
            Encoding::Shared => {
                if let Some(aggregate) = Arc::into_inner(self.take_shared()) {
                    Box::new(aggregate).free();
                }
            }
        }
    }
}

/// The size in bytes from which strings are freed in the background: returning their pages takes milliseconds.
const FREED_LATER_BYTES: usize = 8 << 20;

/// The spare capacity in bytes that a growing value receives: at most its own length, and otherwise this or an eighth
/// of the length, whichever is larger; from `MAPPED_MIN_BYTES` on, exactly this.
const SPARE_BYTES: usize = 1 << 20;

static ZEROS: [u8; PAGE_BYTES] = [0; PAGE_BYTES];

/// Appends zeros to a value until it has `len` bytes, which must be more than before.
fn grow_large(bytes: &mut Vec<u8>, len: usize) {
    if len <= bytes.capacity() {
        bytes.resize(len, 0);
        return;
    }
    let spare = if len < MAPPED_MIN_BYTES { len.min(SPARE_BYTES.max(len / 8)) } else { SPARE_BYTES };
    let capacity = capacity_class(len + spare);
    let old_capacity = bytes.capacity();
    if grows_by_zeros(old_capacity) {
        bytes.reserve_exact(capacity - bytes.len());
        bytes.resize(old_capacity, 0);
        // SAFETY: there is capacity for `len` bytes. Those after the old capacity are zeros, by the allocator's
        // guarantee.
        unsafe { bytes.set_len(len) };
        return;
    }
    if len - bytes.len() < bytes.len() {
        bytes.reserve_exact(capacity - bytes.len());
        bytes.resize(len, 0);
        return;
    }
    // At least half of the value is new zeros: the system provides their pages as zeros, and only on first use. Old
    // pages are copied unless they contain only zeros, so a bitmap stays as sparse as it was.
    let mut grown = vec![0; capacity];
    for (old, new) in bytes.chunks(PAGE_BYTES).zip(grown.chunks_mut(PAGE_BYTES)) {
        if old != &ZEROS[..old.len()] {
            new[..old.len()].copy_from_slice(old);
        }
    }
    grown.truncate(len);
    *bytes = grown;
}
