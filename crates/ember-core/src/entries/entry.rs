//! An entry: key, metadata and value of one key in one allocation, and the table slot that owns it.
//!
//! ```text
//! offset  bytes
//!  0      1   type (low 4 bits) and encoding (high 4 bits)
//!  1      1   flags: EXPIRES, WIDE_KEY, GENERATION
//!  2      1   key length, 0..=254; with WIDE_KEY the length is the u32 below
//!  3      3   eviction clock (LRU: quarter seconds; LFU: 16 bits of minutes and an 8-bit counter)
//!  6      2   length of an inline value
//!  8      8   expiry, Unix time in ms       only with EXPIRES
//!  …      4   key length                    only with WIDE_KEY
//!  …          key
//!  …          value: inline bytes, or 8 bytes: an i64 (Int) or a pointer (Large, Aggregate, Shared)
//! ```
//!
//! A [`Slot`] is one word of a hash table: 20 hash bits (the *tag*) above a 44-bit entry address, which is
//! the pointer without its four low bits (entries are aligned to 16). Zero is the empty slot.
//!
//! # Invariants
//!
//! * A non-zero slot owns exactly one live allocation of `Shape::layout` bytes; `Slot` is neither `Copy` nor `Clone`.
//! * The size of the allocation is always the size class of the bytes the header declares, so it can be
//!   computed again from the header alone, and a value that stays in its class is overwritten in place.
//! * The `Large` encoding's eight value bytes are an `Arc<Vec<u8>>` turned into a raw pointer; the entry holds
//!   that one reference. The `Aggregate` encoding's are a `Box<Aggregate>` in raw form, which the entry owns. `Shared` is
//!   an aggregate that a snapshot reads without the lock: an `Arc<Aggregate>` in raw form, until it is next changed.
//! * The type in the header is `String` exactly for the encodings of strings; for the others it is that of the value.
//!
//! `forms` has the forms of values, `editing` what changes them where they stand. Here and in `editing` is all `unsafe`
//! code of the layout; `tests/keyspace/keyspace_model.rs` compares what is built on it with a safe model.
#![allow(unsafe_code, reason = "the entry layout is laid out by hand here and in `editing`")]

mod editing;
mod forms;

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::{self, NonNull};

use self::forms::Encoding;
pub use self::forms::{NewValue, SharedValue, ValueRef};
use crate::entries::hash::TAG_BITS;
use crate::memory::{LargeRef, prefetch, size_class};
use crate::types::aggregate::Aggregate;
pub use crate::types::value::{LARGE_VALUE_MIN_BYTES, StringValue, ValueType};

const HEADER_BYTES: usize = 8;
const EXPIRY_BYTES: usize = 8;
const WIDE_KEY_BYTES: usize = 4;
const ENTRY_ALIGN: usize = 16;
const ADDRESS_BITS: u32 = 64 - TAG_BITS;
const ADDRESS_MASK: u64 = (1 << ADDRESS_BITS) - 1;

const FLAG_EXPIRES: u8 = 1;
const FLAG_WIDE_KEY: u8 = 2;
const FLAG_GENERATION: u8 = 4;
/// The flags that say where the parts of an entry are.
const SHAPE_FLAGS: u8 = FLAG_EXPIRES | FLAG_WIDE_KEY;
/// The value of the key length byte when the real length is in the wide field.
const KEY_LEN_WIDE: u8 = 255;

const _: () = assert!(LARGE_VALUE_MIN_BYTES <= u16::MAX as usize + 1);
const _: () = assert!(size_of::<Slot>() == 8);

/// A slot goes from thread to thread with all it owns.
const fn assert_shareable<T: Send + Sync>() {}
const _: () = assert_shareable::<Aggregate>();

/// Whether an entry is older than the newest snapshot: those that are differ from their shard in this.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Generation(bool);

impl Generation {
    /// The other one.
    #[must_use]
    pub fn next(self) -> Generation {
        Generation(!self.0)
    }
}

/// What an [`EntryRef`] needs to know to find its parts.
#[derive(Clone, Copy)]
struct Shape {
    flags: u8,
    key_len: usize,
    value_bytes: usize,
}

impl Shape {
    fn new(key_len: usize, expires: bool, value_bytes: usize) -> Shape {
        let mut flags = 0;
        if expires {
            flags |= FLAG_EXPIRES;
        }
        if key_len >= KEY_LEN_WIDE as usize {
            flags |= FLAG_WIDE_KEY;
        }
        Shape { flags, key_len, value_bytes }
    }

    fn key_offset(self) -> usize {
        let mut offset = HEADER_BYTES;
        if self.flags & FLAG_EXPIRES != 0 {
            offset += EXPIRY_BYTES;
        }
        if self.flags & FLAG_WIDE_KEY != 0 {
            offset += WIDE_KEY_BYTES;
        }
        offset
    }

    fn value_offset(self) -> usize {
        self.key_offset() + self.key_len
    }

    fn allocation_bytes(self) -> usize {
        size_class(self.value_offset() + self.value_bytes)
    }

    fn layout(self) -> Layout {
        Layout::from_size_align(self.allocation_bytes(), ENTRY_ALIGN)
            .expect("lengths come from slices in memory, so their sum fits")
    }
}

/// A shared view of an entry.
#[derive(Clone, Copy)]
pub struct EntryRef<'a> {
    base: NonNull<u8>,
    owner: std::marker::PhantomData<&'a Slot>,
}

impl<'a> EntryRef<'a> {
    /// The byte at `offset` of the header.
    fn header(self, offset: usize) -> u8 {
        debug_assert!(offset < HEADER_BYTES);
        // SAFETY: every entry begins with HEADER_BYTES initialised bytes and lives as long as 'a.
        unsafe { self.base.add(offset).read() }
    }

    #[inline]
    fn shape(self) -> Shape {
        // SAFETY: the header is initialised; the wide key length is present when its flag is set, behind the
        // optional expiry. Reads are unaligned-safe.
        unsafe {
            let word = self.base.cast::<u64>().read();
            let flags = (word >> 8) as u8;
            let mut key_len = (word >> 16) as u8 as usize;
            if flags & FLAG_WIDE_KEY != 0 {
                let offset = HEADER_BYTES + if flags & FLAG_EXPIRES != 0 { EXPIRY_BYTES } else { 0 };
                key_len = self.base.add(offset).cast::<u32>().read_unaligned() as usize;
            }
            let encoding = Encoding::from_bits((word as u8) >> 4);
            let value_bytes = match encoding {
                Encoding::Int | Encoding::Large | Encoding::Aggregate | Encoding::Shared => 8,
                Encoding::Embstr | Encoding::Raw => (word >> 48) as usize,
            };
            Shape { flags: flags & SHAPE_FLAGS, key_len, value_bytes }
        }
    }

    fn encoding(self) -> Encoding {
        Encoding::from_bits(self.header(0) >> 4)
    }

    /// The type of the value.
    #[inline]
    pub fn value_type(self) -> ValueType {
        ValueType::from_bits(self.header(0) & 0x0F)
    }

    /// The key.
    pub fn key(self) -> &'a [u8] {
        let shape = self.shape();
        // SAFETY: key_len initialised bytes stand at key_offset, for as long as the entry lives.
        unsafe { std::slice::from_raw_parts(self.base.add(shape.key_offset()).as_ptr(), shape.key_len) }
    }

    /// Whether this is the entry of `key`.
    #[inline]
    pub fn has_key(self, key: &[u8]) -> bool {
        self.key() == key
    }

    /// When the key expires, Unix time in milliseconds.
    #[inline]
    pub fn expire_at_ms(self) -> Option<i64> {
        if self.header(1) & FLAG_EXPIRES == 0 {
            return None;
        }
        // SAFETY: EXPIRES says that the eight bytes behind the header are an initialised i64.
        Some(unsafe { self.base.add(HEADER_BYTES).cast::<i64>().read_unaligned() })
    }

    /// Whether the key has an expiry.
    #[inline]
    pub fn is_volatile(self) -> bool {
        self.header(1) & FLAG_EXPIRES != 0
    }

    /// Whether the key's time has come at `now_ms`: it is not there any more for anybody who asks.
    pub fn is_expired(self, now_ms: i64) -> bool {
        self.expire_at_ms().is_some_and(|expire_at_ms| expire_at_ms <= now_ms)
    }

    /// When time next takes something away: the key at its expiry, or an element of its value that may expire before. Unix
    /// time in ms. O(1).
    #[inline]
    pub fn next_due_ms(self) -> Option<i64> {
        let elements = self.aggregate().and_then(Aggregate::next_expiry_ms);
        match (self.expire_at_ms(), elements) {
            (Some(key), Some(elements)) => Some(key.min(elements)),
            (key, elements) => key.or(elements),
        }
    }

    /// Whether it has been saved by the snapshot under way, or is newer than that, if this is its shard's.
    #[inline]
    pub fn generation(self) -> Generation {
        Generation(self.header(1) & FLAG_GENERATION != 0)
    }

    /// The 24-bit eviction clock; what it means depends on the policy (see [`crate::eviction::policy`]).
    pub fn clock(self) -> u32 {
        u32::from(self.header(3)) | u32::from(self.header(4)) << 8 | u32::from(self.header(5)) << 16
    }

    /// The string value.
    ///
    /// # Panics
    /// If the value is an aggregate.
    pub fn string(self) -> StringValue<'a> {
        let shape = self.shape();
        // SAFETY: value_bytes initialised bytes stand at value_offset; for Int they are an i64, for Large the
        // pointer that Arc::into_raw gave for the reference this entry holds.
        unsafe {
            let value = self.base.add(shape.value_offset());
            match self.encoding() {
                Encoding::Int => StringValue::Int(value.cast::<i64>().read_unaligned()),
                Encoding::Large => {
                    StringValue::Large(LargeRef::of_shared(&*value.cast::<*const Vec<u8>>().read_unaligned()))
                }
                Encoding::Embstr | Encoding::Raw => {
                    StringValue::Inline(std::slice::from_raw_parts(value.as_ptr(), shape.value_bytes))
                }
                Encoding::Aggregate | Encoding::Shared => panic!("an aggregate is no string"),
            }
        }
    }

    /// The value with elements; `None` for a string.
    #[inline]
    pub fn aggregate(self) -> Option<&'a Aggregate> {
        if !matches!(self.encoding(), Encoding::Aggregate | Encoding::Shared) {
            return None;
        }
        // SAFETY: these encodings' eight value bytes are the box that this entry owns, or its share of the value, in raw
        // form: the value's address in either case. A shared value is changed by nobody.
        unsafe {
            let value = self.base.add(self.shape().value_offset());
            Some(&*value.cast::<*const Aggregate>().read_unaligned())
        }
    }

    /// The string value in a form that stores it elsewhere with the same encoding; a large one is shared.
    pub fn duplicate_string(self) -> NewValue<'a> {
        match self.string() {
            StringValue::Int(number) => NewValue::Int(number),
            StringValue::Inline(bytes) if self.encoding() == Encoding::Raw => NewValue::Edited(bytes),
            StringValue::Inline(bytes) => NewValue::Bytes(bytes),
            StringValue::Large(large) => NewValue::Large(large.share()),
        }
    }

    /// The name that `OBJECT ENCODING` answers.
    pub fn encoding_name(self) -> &'static str {
        match self.encoding() {
            Encoding::Int => "int",
            Encoding::Embstr => "embstr",
            Encoding::Raw | Encoding::Large => "raw",
            Encoding::Aggregate | Encoding::Shared => self.aggregate().map_or("", Aggregate::encoding_name),
        }
    }

    /// Bytes of memory that the entry takes, allocator rounding included.
    pub fn footprint_bytes(self) -> usize {
        let inside = self.shape().allocation_bytes();
        let outside = match self.encoding() {
            Encoding::Int | Encoding::Embstr | Encoding::Raw => 0,
            Encoding::Large => self.large_bytes(),
            Encoding::Aggregate | Encoding::Shared => self.aggregate().map_or(0, Aggregate::footprint_bytes),
        };
        inside + outside
    }

    fn large_bytes(self) -> usize {
        let StringValue::Large(large) = self.string() else { return 0 };
        size_class(large.capacity()) + size_class(size_of::<Vec<u8>>() + 2 * size_of::<usize>())
    }
}

/// The address of an entry, for a structure that refers to entries which a table beside it owns.
///
/// An entry stays at its address until it is removed, or its value or expiry takes another number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntryAddress(u64);

impl EntryAddress {
    /// The entry.
    ///
    /// # Safety
    /// The address is that of an entry that is there still and has not moved; for as long as `'a` it stays so, and nothing
    /// changes it.
    #[inline]
    pub unsafe fn entry<'a>(self) -> EntryRef<'a> {
        let base = ptr::with_exposed_provenance_mut(self.0 as usize);
        let base = NonNull::new(base).expect("no entry has the address 0");
        EntryRef { base, owner: std::marker::PhantomData }
    }

    /// Asks the processor to fetch the entry's first cache line, if there is an entry.
    #[inline]
    pub fn prefetch(self) {
        prefetch(ptr::with_exposed_provenance(self.0 as usize));
    }
}

impl EntryRef<'_> {
    /// The address of the entry.
    #[inline]
    pub fn address(self) -> EntryAddress {
        EntryAddress(self.base.as_ptr().expose_provenance() as u64)
    }
}

/// One word of a table: empty, or the owner of an entry and 20 bits of its hash.
#[derive(Default)]
#[repr(transparent)]
pub struct Slot(u64);

impl Slot {
    /// Builds an entry and the slot that owns it.
    pub fn new(tag: u32, key: &[u8], value: NewValue<'_>, expire_at_ms: Option<i64>, clock: u32) -> Slot {
        let shape = Shape::new(key.len(), expire_at_ms.is_some(), value.stored_bytes());
        let layout = shape.layout();
        // SAFETY: the layout is at least 16 bytes. Every write below stays inside it: the parts stand one behind
        // the other as Shape places them, and their sum is at most allocation_bytes.
        unsafe {
            let Some(base) = NonNull::new(alloc(layout)) else { handle_alloc_error(layout) };
            base.write_bytes(0, HEADER_BYTES);
            base.add(1).write(shape.flags);
            if let Some(at) = expire_at_ms {
                base.add(HEADER_BYTES).cast::<i64>().write_unaligned(at);
            }
            if shape.flags & FLAG_WIDE_KEY != 0 {
                let len = u32::try_from(key.len()).expect("a key is an argument, and those are below 4 GiB");
                base.add(shape.key_offset() - WIDE_KEY_BYTES).cast::<u32>().write_unaligned(len);
            } else {
                base.add(2).write(key.len() as u8);
            }
            ptr::copy_nonoverlapping(key.as_ptr(), base.add(shape.key_offset()).as_ptr(), key.len());
            let mut slot = Slot::own(tag, base);
            slot.write_value(shape, value);
            slot.set_clock(clock);
            slot
        }
    }

    /// # Safety
    /// `base` is a fresh allocation made by [`Slot::new`], with header, expiry and key in place, owned by nobody.
    unsafe fn own(tag: u32, base: NonNull<u8>) -> Slot {
        let address = base.as_ptr().expose_provenance() as u64;
        assert!(address < 1 << 48 && tag < 1 << TAG_BITS, "user addresses have 48 bits, tags {TAG_BITS}");
        Slot(u64::from(tag) << ADDRESS_BITS | address >> 4)
    }

    /// Whether the slot owns no entry.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0 == 0
    }

    /// The hash bits beside the address; 0 for an empty slot.
    #[inline]
    pub fn tag(&self) -> u32 {
        (self.0 >> ADDRESS_BITS) as u32
    }

    #[inline]
    fn base(&self) -> NonNull<u8> {
        let address = ((self.0 & ADDRESS_MASK) << 4) as usize;
        NonNull::new(ptr::with_exposed_provenance_mut(address)).expect("the slot is not empty")
    }

    /// The entry.
    ///
    /// # Panics
    /// If the slot is empty.
    #[inline]
    pub fn entry(&self) -> EntryRef<'_> {
        EntryRef { base: self.base(), owner: std::marker::PhantomData }
    }

    /// Changes the hash bits beside the address, for a move to a table that places its entries by other bits.
    ///
    /// # Panics
    /// If the slot is empty or the tag has more than [`TAG_BITS`] bits.
    #[inline]
    pub fn set_tag(&mut self, tag: u32) {
        assert!(!self.is_empty() && tag < 1 << TAG_BITS, "tags have {TAG_BITS} bits, empty slots have none");
        self.0 = u64::from(tag) << ADDRESS_BITS | self.0 & ADDRESS_MASK;
    }

    /// Where the entry is; null for an empty slot.
    #[inline]
    pub fn address(&self) -> *const u8 {
        ptr::with_exposed_provenance(((self.0 & ADDRESS_MASK) << 4) as usize)
    }

    /// Sets the eviction clock (24 bits).
    #[inline]
    pub fn set_clock(&mut self, clock: u32) {
        let base = self.base();
        // SAFETY: bytes 3..6 are part of the header, and &mut self is the only access to the entry.
        unsafe {
            let bytes = clock.to_le_bytes();
            base.add(3).cast::<[u8; 3]>().write([bytes[0], bytes[1], bytes[2]]);
        }
    }

    /// Sets the generation.
    #[inline]
    pub fn set_generation(&mut self, generation: Generation) {
        let flags = self.entry().header(1) & SHAPE_FLAGS;
        let flag = if generation.0 { FLAG_GENERATION } else { 0 };
        // SAFETY: byte 1 is part of the header, and &mut self is the only access to the entry.
        unsafe { self.base().add(1).write(flags | flag) };
    }

    /// The same key with another value and expiry in an entry of its own; clock and generation are the same.
    fn rebuilt(&self, value: NewValue<'_>, expire_at_ms: Option<i64>) -> Slot {
        let entry = self.entry();
        let mut slot = Slot::new(self.tag(), entry.key(), value, expire_at_ms, entry.clock());
        slot.set_generation(entry.generation());
        slot
    }

    /// Replaces value and expiry. In place when the bytes stay in the same size class and the expiry comes or
    /// goes with neither; otherwise the entry moves. The key and the clock stay.
    pub fn set(&mut self, value: NewValue<'_>, expire_at_ms: Option<i64>) {
        let old = self.entry().shape();
        let new = Shape::new(old.key_len, expire_at_ms.is_some(), value.stored_bytes());
        if new.flags == old.flags && new.allocation_bytes() == old.allocation_bytes() {
            self.release_owned();
            if let Some(at) = expire_at_ms {
                self.write_expiry(at);
            }
            // SAFETY: same flags and key length, so `new` describes this allocation, whose size is unchanged;
            // the old value holds no reference any more.
            unsafe { self.write_value(new, value) };
        } else {
            *self = self.rebuilt(value, expire_at_ms);
        }
    }

    /// Changes the expiry alone; the value is neither copied, unless its entry must grow or shrink, nor re-encoded.
    pub fn set_expiry(&mut self, expire_at_ms: Option<i64>) {
        match (self.entry().expire_at_ms(), expire_at_ms) {
            (None, None) => {}
            (Some(_), Some(at)) => self.write_expiry(at),
            _ => self.resize_expiry(expire_at_ms),
        }
    }

    fn resize_expiry(&mut self, expire_at_ms: Option<i64>) {
        let aggregate = self.take_aggregate().map(NewValue::Aggregate);
        let value = aggregate.unwrap_or_else(|| self.entry().duplicate_string());
        *self = self.rebuilt(value, expire_at_ms);
    }

    fn write_expiry(&mut self, at: i64) {
        debug_assert!(self.entry().expire_at_ms().is_some());
        // SAFETY: the callers have seen EXPIRES set, so the eight bytes behind the header are the expiry.
        unsafe { self.base().add(HEADER_BYTES).cast::<i64>().write_unaligned(at) };
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if self.is_empty() {
            return;
        }
        self.release_owned();
        let layout = self.entry().shape().layout();
        // SAFETY: the slot owns this allocation, made with the very layout that the header still declares.
        unsafe { dealloc(self.base().as_ptr(), layout) };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn bytes_of(slot: &Slot) -> Vec<u8> {
        match slot.entry().string() {
            StringValue::Int(number) => number.to_string().into_bytes(),
            StringValue::Inline(bytes) => bytes.to_vec(),
            StringValue::Large(large) => large.bytes().to_vec(),
        }
    }

    #[test]
    fn an_entry_gives_back_what_was_put_in() {
        for key_len in [0, 1, 16, 254, 255, 256, 70_000] {
            for expire in [None, Some(i64::MAX), Some(1)] {
                for value_len in [0, 1, 20, 44, 45, 1000, LARGE_VALUE_MIN_BYTES - 1, LARGE_VALUE_MIN_BYTES] {
                    let key = vec![b'k'; key_len];
                    let value = vec![b'v'; value_len];
                    let slot = Slot::new(0xABCDE, &key, NewValue::from_bytes(&value), expire, 0x00AB_CDEF);
                    assert_eq!(slot.tag(), 0xABCDE);
                    assert_eq!(slot.entry().key(), key);
                    assert_eq!(slot.entry().expire_at_ms(), expire);
                    assert_eq!(slot.entry().clock(), 0x00AB_CDEF);
                    assert_eq!(bytes_of(&slot), value);
                }
            }
        }
    }

    #[test]
    fn set_keeps_key_and_clock_whatever_the_sizes() {
        let values: [&[u8]; 6] = [b"", b"12345", b"short", &[b'x'; 60], &[b'y'; 3000], &[b'z'; 50_000]];
        for from in values {
            for to in values {
                for (old, new) in [(None, None), (None, Some(9)), (Some(8), None), (Some(8), Some(9))] {
                    let mut slot = Slot::new(7, b"key", NewValue::from_bytes(from), old, 99);
                    slot.set(NewValue::from_bytes(to), new);
                    assert_eq!((slot.entry().key(), slot.entry().clock()), (&b"key"[..], 99));
                    assert_eq!(slot.entry().expire_at_ms(), new);
                    assert_eq!(bytes_of(&slot), to);
                    slot.set_expiry(old);
                    assert_eq!(slot.entry().expire_at_ms(), old);
                    assert_eq!(bytes_of(&slot), to);
                }
            }
        }
    }

    #[test]
    fn a_shared_large_value_is_copied_before_an_edit() {
        let mut slot = Slot::new(1, b"k", NewValue::from_bytes(&[b'a'; 40_000]), None, 0);
        let StringValue::Large(large) = slot.entry().string() else { panic!("40,000 bytes are large") };
        let shared = large.share();
        slot.edit_large(|bytes| bytes[0] = b'b').unwrap();
        assert_eq!((shared[0], bytes_of(&slot)[0]), (b'a', b'b'));
        drop(slot);
        assert_eq!(Arc::strong_count(&shared), 1);
    }

    #[test]
    fn a_grown_value_keeps_its_bytes_key_clock_and_expiry_and_is_zero_behind_them() {
        let lengths =
            [0, 1, 8, 20, 44, 45, 100, 3000, LARGE_VALUE_MIN_BYTES - 1, LARGE_VALUE_MIN_BYTES, 70_000];
        for (index, from) in lengths.into_iter().enumerate() {
            for expire in [None, Some(77)] {
                let mut slot = Slot::new(5, b"key", NewValue::from_opaque(&vec![b'v'; from]), expire, 42);
                for &to in &lengths[index..] {
                    let mut expected = vec![b'v'; from];
                    expected.resize(to, 0);
                    assert_eq!(slot.bytes_mut_grown(to), expected);
                    assert_eq!(slot.bytes_mut_grown(0), expected, "a value never shrinks");
                    let entry = slot.entry();
                    assert_eq!((entry.key(), entry.clock(), entry.expire_at_ms()), (&b"key"[..], 42, expire));
                    assert_eq!(entry.encoding_name(), "raw");
                    let is_large = matches!(entry.string(), StringValue::Large(_));
                    assert_eq!(is_large, to >= LARGE_VALUE_MIN_BYTES);
                }
            }
        }
    }

    #[test]
    fn a_grown_integer_becomes_its_digits() {
        for (len, expected) in [(0, &b"-12"[..]), (3, b"-12"), (5, b"-12\0\0")] {
            let mut slot = Slot::new(5, b"key", NewValue::Int(-12), None, 42);
            assert_eq!(slot.bytes_mut_grown(len), expected);
            assert_eq!(slot.entry().encoding_name(), "raw");
        }
        let mut slot = Slot::new(5, b"key", NewValue::Int(7), None, 42);
        assert_eq!(slot.bytes_mut_grown(40_000).len(), 40_000);
        assert!(matches!(slot.entry().string(), StringValue::Large(_)));
    }
}
