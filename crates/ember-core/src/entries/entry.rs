//! An entry: key, metadata and value of one key in one allocation or two, and the table slot that owns it.
//!
//! ```text
//! offset  bytes
//!  0      1   type (low 4 bits) and encoding (high 4 bits)
//!  1      1   flags: EXPIRES, WIDE_KEY, GENERATION, COPIED, FETCHED, PENDING, CUT
//!  2      1   key length, 0..=254; with WIDE_KEY the length is the u32 below
//!  3      3   eviction clock (LRU: quarter seconds; LFU: 16 bits of minutes and an 8-bit counter)
//!  6      2   length of a string in bytes, inline or apart; the facts of a cold value
//!  8      8   expiry, Unix time in ms       only with EXPIRES
//!  …      4   key length                    only with WIDE_KEY
//!  …          key
//!  …          value: inline bytes, or 8 bytes: an i64 (Int), a pointer (Apart, Large, Aggregate, Shared)
//!             or a location (External)
//! ```
//!
//! A string is stored after the key, or *apart* from it, in an allocation of its bytes alone, where that takes less
//! memory because both allocations fill their size classes better than one does. This applies to strings of a power of
//! two bytes.
//!
//! A [`Slot`] is one word of a hash table: 20 hash bits (the *tag*) above a 44-bit entry address, which is
//! the pointer without its three low bits (entries are aligned to 8). Zero is the empty slot.
//!
//! # Invariants
//!
//! * A non-zero slot owns exactly one live allocation of `Shape::layout` bytes; `Slot` is neither `Copy` nor `Clone`.
//! * The size of the allocation follows from the bytes the header declares (`entry_class`), so it can be
//!   computed again from the header alone, and a value that stays in its class is overwritten in place.
//! * The `Apart` encoding's eight value bytes are the address of such a size class for the string's bytes, which the
//!   entry owns. Whether a string is stored apart follows from the lengths of key and string and the expiry
//!   (`Shape::of_string`).
//! * The `Large` encoding's eight value bytes are an `Arc<Vec<u8>>` turned into a raw pointer; the entry holds that one
//!   reference. Those of `Aggregate` are a `Box<Aggregate>` in raw form, which the entry owns. `Shared` is an aggregate
//!   that a snapshot reads without the lock: an `Arc<Aggregate>` in raw form, until it is next changed.
//! * The `External` encoding's eight value bytes are a [`Record`] in raw form, which the entry owns: its value is cold.
//! * The type in the header is `String` exactly for the encodings of strings; for the others it is that of the value.
//!   Only the type of a cold value may be any.
//!
//! `forms` has the forms of values, `editing` changes them in place, and `moving` moves entries to other allocations.
//! All `unsafe` code of the layout is here, in `editing` and in `moving`; `tests/keyspace/keyspace_model.rs` compares
//! the structures on top with a safe model.
#![allow(unsafe_code, reason = "the entry layout is laid out by hand here, in `editing` and in `moving`")]

mod editing;
mod forms;
mod moving;
#[cfg(test)]
mod tests;

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::{self, NonNull};

use self::forms::{EMBSTR_MAX_BYTES, Encoding};
pub use self::forms::{NewValue, SharedValue, ValueRef};
use crate::entries::external::{External, ExternalRef, Facts, Location, Record};
use crate::entries::hash::TAG_BITS;
use crate::memory::{LargeRef, prefetch, size_class};
use crate::types::aggregate::Aggregate;
pub use crate::types::value::{LARGE_VALUE_MIN_BYTES, StringValue, ValueType};

const HEADER_BYTES: usize = 8;
const EXPIRY_BYTES: usize = 8;
const WIDE_KEY_BYTES: usize = 4;
/// The size in bytes of a value that is an integer or a pointer.
const WORD_BYTES: usize = 8;
const LG_ENTRY_ALIGN: u32 = 3;
const ENTRY_ALIGN: usize = 1 << LG_ENTRY_ALIGN;
const ADDRESS_BITS: u32 = 64 - TAG_BITS;
const ADDRESS_MASK: u64 = (1 << ADDRESS_BITS) - 1;

const FLAG_EXPIRES: u8 = 1;
const FLAG_WIDE_KEY: u8 = 2;
const FLAG_GENERATION: u8 = 4;
/// A record contains the same value, so the value can be demoted without a write. With a store: the store contains the
/// key with its current value and expiry.
const FLAG_COPIED: u8 = 8;
/// The value was cold, and has not been used since it was fetched.
const FLAG_FETCHED: u8 = 16;
/// The current checkpoint saves the key as it is now, so that the store contains it when the checkpoint is complete.
const FLAG_PENDING: u8 = 32;
/// Like GENERATION, for checkpoints; meaningless in an entry that is COPIED.
const FLAG_CUT: u8 = 64;
/// The flags that determine where the parts of an entry are.
const SHAPE_FLAGS: u8 = FLAG_EXPIRES | FLAG_WIDE_KEY;
/// The value of the key length byte when the real length is in the wide field.
const KEY_LEN_WIDE: u8 = 255;

const _: () = assert!(LARGE_VALUE_MIN_BYTES <= u16::MAX as usize + 1);
const _: () = assert!(size_of::<Slot>() == 8);

/// Asserts at compile time that a slot can move between threads with everything that it owns.
const fn assert_shareable<T: Send + Sync>() {}
const _: () = assert_shareable::<Aggregate>();

/// Whether an entry is older than the newest snapshot: the generation of such entries differs from that of their shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Generation(bool);

impl Generation {
    /// Returns the other generation.
    #[must_use]
    pub fn next(self) -> Generation {
        Generation(!self.0)
    }
}

/// The sizes from which an [`EntryRef`] finds its parts.
#[derive(Clone, Copy)]
struct Shape {
    flags: u8,
    key_len: usize,
    /// Bytes of the value in the entry.
    value_bytes: usize,
    /// Bytes of a string that is stored apart, at least 1; 0 for all other values.
    apart_bytes: usize,
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
        Shape { flags, key_len, value_bytes, apart_bytes: 0 }
    }

    /// Returns the shape of an entry with this value.
    #[inline]
    fn of_value(key_len: usize, expires: bool, value: &NewValue<'_>) -> Shape {
        match value {
            NewValue::Bytes(bytes) | NewValue::Edited(bytes) => {
                Shape::of_string(key_len, expires, bytes.len())
            }
            NewValue::Int(_) | NewValue::Large(_) | NewValue::Aggregate(_) | NewValue::External(_) => {
                Shape::new(key_len, expires, WORD_BYTES)
            }
        }
    }

    /// Returns the shape that takes the least memory for a string of `len` bytes: inline if both shapes take the same,
    /// because reading an inline string takes one access less. `embstr` strings are always inline.
    #[inline]
    fn of_string(key_len: usize, expires: bool, len: usize) -> Shape {
        let inline = Shape::new(key_len, expires, len);
        let unused = inline.allocation_bytes() - inline.used_bytes();
        // A string stored apart needs 8 bytes for its pointer, and sizes differ by multiples of 8, so at least 16
        // unused bytes are required for a gain.
        if unused < 2 * WORD_BYTES || len <= EMBSTR_MAX_BYTES {
            return inline;
        }
        let apart = Shape { value_bytes: WORD_BYTES, apart_bytes: len, ..inline };
        if apart.footprint_bytes() < inline.footprint_bytes() { apart } else { inline }
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

    /// Returns the bytes of the entry itself.
    fn used_bytes(self) -> usize {
        self.value_offset() + self.value_bytes
    }

    fn allocation_bytes(self) -> usize {
        entry_class(self.used_bytes())
    }

    /// Returns the bytes of the allocation for a string that is stored apart; 0 for all other values.
    #[inline]
    fn apart_allocation_bytes(self) -> usize {
        if self.apart_bytes == 0 { 0 } else { size_class(self.apart_bytes) }
    }

    fn footprint_bytes(self) -> usize {
        self.allocation_bytes() + self.apart_allocation_bytes()
    }

    /// Returns whether a value of the shape `other` fits exactly into the allocations of this shape.
    #[inline]
    fn can_hold(self, other: Shape) -> bool {
        self.flags == other.flags
            && self.allocation_bytes() == other.allocation_bytes()
            && self.apart_allocation_bytes() == other.apart_allocation_bytes()
    }

    fn layout(self) -> Layout {
        layout_of(self.allocation_bytes())
    }
}

/// Returns the size of the allocation for an entry of `bytes` bytes: their size class, or 128 instead of the class 120.
/// Consecutive entries of 120 bytes occupy 2.75 cache lines on average, entries of 128 bytes two. Entries of 88 bytes
/// keep their class: they occupy 2.25 lines instead of the 2 of 96 bytes (`docs/decisions/string-layout.md`).
#[inline]
const fn entry_class(bytes: usize) -> usize {
    match bytes {
        113..=120 => 128,
        _ => size_class(bytes),
    }
}

fn layout_of(bytes: usize) -> Layout {
    Layout::from_size_align(bytes, ENTRY_ALIGN)
        .expect("lengths come from slices in memory, so their sum fits")
}

fn allocate(bytes: usize) -> NonNull<u8> {
    let layout = layout_of(bytes);
    // SAFETY: all callers request space for at least one byte.
    let Some(base) = NonNull::new(unsafe { alloc(layout) }) else { handle_alloc_error(layout) };
    base
}

/// A shared view of an entry.
#[derive(Clone, Copy)]
pub struct EntryRef<'a> {
    base: NonNull<u8>,
    owner: std::marker::PhantomData<&'a Slot>,
}

/// The times at which an entry and its elements expire, as Unix times in ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dues {
    /// The expiry of the whole key.
    pub key_ms: Option<i64>,
    /// The next expiry of an element of its value.
    pub elements_ms: Option<i64>,
}

impl Dues {
    /// Neither the key nor an element expires.
    pub const NONE: Dues = Dues { key_ms: None, elements_ms: None };

    /// Returns the earlier time.
    #[inline]
    pub fn next_ms(self) -> Option<i64> {
        match (self.key_ms, self.elements_ms) {
            (Some(key), Some(elements)) => Some(key.min(elements)),
            (key, elements) => key.or(elements),
        }
    }
}

impl<'a> EntryRef<'a> {
    /// Returns the byte at `offset` of the header.
    fn header(self, offset: usize) -> u8 {
        debug_assert!(offset < HEADER_BYTES);
        // SAFETY: every entry begins with HEADER_BYTES initialized bytes and lives as long as 'a.
        unsafe { self.base.add(offset).read() }
    }

    #[inline]
    fn shape(self) -> Shape {
        // SAFETY: the header is initialized; the wide key length is present when its flag is set, after the optional
        // expiry. Reads are unaligned-safe.
        unsafe {
            let word = self.base.cast::<u64>().read();
            let flags = (word >> 8) as u8;
            let mut key_len = (word >> 16) as u8 as usize;
            if flags & FLAG_WIDE_KEY != 0 {
                let offset = HEADER_BYTES + if flags & FLAG_EXPIRES != 0 { EXPIRY_BYTES } else { 0 };
                key_len = self.base.add(offset).cast::<u32>().read_unaligned() as usize;
            }
            let encoding = Encoding::from_bits((word as u8) >> 4);
            let string_bytes = (word >> 48) as usize;
            let (value_bytes, apart_bytes) = match encoding {
                Encoding::Int
                | Encoding::Large
                | Encoding::Aggregate
                | Encoding::Shared
                | Encoding::External => (WORD_BYTES, 0),
                Encoding::Embstr | Encoding::Raw => (string_bytes, 0),
                Encoding::Apart => (WORD_BYTES, string_bytes),
            };
            Shape { flags: flags & SHAPE_FLAGS, key_len, value_bytes, apart_bytes }
        }
    }

    fn encoding(self) -> Encoding {
        Encoding::from_bits(self.header(0) >> 4)
    }

    /// Returns the type of the value.
    #[inline]
    pub fn value_type(self) -> ValueType {
        ValueType::from_bits(self.header(0) & 0x0F)
    }

    /// Returns the key.
    pub fn key(self) -> &'a [u8] {
        let shape = self.shape();
        // SAFETY: there are key_len initialized bytes at key_offset, for as long as the entry lives.
        unsafe { std::slice::from_raw_parts(self.base.add(shape.key_offset()).as_ptr(), shape.key_len) }
    }

    /// Returns whether this is the entry of `key`.
    #[inline]
    pub fn has_key(self, key: &[u8]) -> bool {
        self.key() == key
    }

    /// Returns the expiry of the key, Unix time in milliseconds.
    #[inline]
    pub fn expire_at_ms(self) -> Option<i64> {
        if self.header(1) & FLAG_EXPIRES == 0 {
            return None;
        }
        // SAFETY: EXPIRES means that the eight bytes after the header are an initialized i64.
        Some(unsafe { self.base.add(HEADER_BYTES).cast::<i64>().read_unaligned() })
    }

    /// Returns whether the key has an expiry.
    #[inline]
    pub fn is_volatile(self) -> bool {
        self.header(1) & FLAG_EXPIRES != 0
    }

    /// Returns whether the key has expired at `now_ms`, so that it is invisible to clients.
    pub fn is_expired(self, now_ms: i64) -> bool {
        self.expire_at_ms().is_some_and(|expire_at_ms| expire_at_ms <= now_ms)
    }

    /// Returns the time of the next expiry, Unix time in ms: that of the key, or of an element of its value that may
    /// expire before. O(1).
    #[inline]
    pub fn next_due_ms(self) -> Option<i64> {
        self.dues().next_ms()
    }

    /// Returns the expiry of the key, and the next one of the elements of its value. O(1).
    #[inline]
    pub fn dues(self) -> Dues {
        Dues {
            key_ms: self.expire_at_ms(),
            elements_ms: self.aggregate().and_then(Aggregate::next_expiry_ms),
        }
    }

    /// Returns the generation. If it equals the shard's, the current snapshot has saved the entry, or the entry is
    /// newer than the snapshot.
    #[inline]
    pub fn generation(self) -> Generation {
        Generation(self.header(1) & FLAG_GENERATION != 0)
    }

    /// Like [`EntryRef::generation`], for the current checkpoint. Entries that the store contains may have any
    /// generation.
    #[inline]
    pub fn cut(self) -> Generation {
        Generation(self.header(1) & FLAG_CUT != 0)
    }

    /// Returns whether a record contains the same value.
    #[inline]
    pub fn is_copied(self) -> bool {
        self.header(1) & FLAG_COPIED != 0
    }

    /// Returns whether the value was cold, and has not been used since it was fetched.
    #[inline]
    pub fn is_fetched(self) -> bool {
        self.header(1) & FLAG_FETCHED != 0
    }

    /// Returns whether the store will contain the key with its current value and expiry once the current checkpoint has
    /// succeeded.
    #[inline]
    pub fn is_pending(self) -> bool {
        self.header(1) & FLAG_PENDING != 0
    }

    /// Returns the 24-bit eviction clock; its meaning depends on the policy (see [`crate::eviction::policy`]).
    pub fn clock(self) -> u32 {
        u32::from(self.header(3)) | u32::from(self.header(4)) << 8 | u32::from(self.header(5)) << 16
    }

    /// Returns the string value.
    ///
    /// # Panics
    /// Panics if the value is an aggregate, or cold.
    #[inline]
    pub fn string(self) -> StringValue<'a> {
        let shape = self.shape();
        // SAFETY: there are value_bytes initialized bytes at value_offset; for Int they are an i64, for Large the
        // pointer that Arc::into_raw returned for the reference this entry holds, for Apart the address of apart_bytes
        // initialized bytes, which the entry owns.
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
                Encoding::Apart => {
                    let bytes = value.cast::<*const u8>().read_unaligned();
                    StringValue::Inline(std::slice::from_raw_parts(bytes, shape.apart_bytes))
                }
                Encoding::Aggregate | Encoding::Shared => panic!("an aggregate is no string"),
                Encoding::External => panic!("a cold value is fetched before it is read"),
            }
        }
    }

    /// Returns the value with elements; `None` for a string.
    #[inline]
    pub fn aggregate(self) -> Option<&'a Aggregate> {
        if !matches!(self.encoding(), Encoding::Aggregate | Encoding::Shared) {
            return None;
        }
        // SAFETY: these encodings' eight value bytes are the box that this entry owns, or its reference to the shared
        // value, in raw form: the value's address in either case. A shared value is never changed.
        unsafe {
            let value = self.base.add(self.shape().value_offset());
            Some(&*value.cast::<*const Aggregate>().read_unaligned())
        }
    }

    /// Returns whether the value has elements and may have other owners.
    pub(crate) fn is_shared(self) -> bool {
        self.encoding() == Encoding::Shared
    }

    /// Returns whether the value is cold.
    #[inline]
    pub fn is_cold(self) -> bool {
        self.encoding() == Encoding::External
    }

    /// Returns the location of the value, if it is cold, and its facts.
    pub fn external(self) -> Option<ExternalRef> {
        if !self.is_cold() {
            return None;
        }
        // SAFETY: the External encoding has the location in its eight value bytes; bytes 6..8 are part of the header.
        unsafe {
            let facts = Facts::from_bits(self.base.add(6).cast::<u16>().read_unaligned());
            let bits = self.base.add(self.shape().value_offset()).cast::<u64>().read_unaligned();
            Some(ExternalRef { location: Location::from_bits(bits), facts })
        }
    }

    /// Returns another reference to a cold value, for another entry.
    pub(crate) fn duplicate_external(self) -> Option<External> {
        let ExternalRef { location, facts } = self.external()?;
        Some(External { value_type: self.value_type(), facts, record: Record::new(location) })
    }

    /// Returns a string or a cold value in a form in which another entry stores it with the same encoding; a large
    /// string is shared.
    pub fn duplicate_string(self) -> NewValue<'a> {
        if let Some(external) = self.duplicate_external() {
            return NewValue::External(external);
        }
        match self.string() {
            StringValue::Int(number) => NewValue::Int(number),
            StringValue::Inline(bytes) if self.encoding() == Encoding::Raw => NewValue::Edited(bytes),
            StringValue::Inline(bytes) => NewValue::Bytes(bytes),
            StringValue::Large(large) => NewValue::Large(large.share()),
        }
    }

    /// Returns the name in the reply of `OBJECT ENCODING`.
    pub fn encoding_name(self) -> &'static str {
        match self.encoding() {
            Encoding::Int => "int",
            Encoding::Embstr => "embstr",
            Encoding::Raw | Encoding::Apart | Encoding::Large => "raw",
            Encoding::Aggregate | Encoding::Shared => self.aggregate().map_or("", Aggregate::encoding_name),
            Encoding::External => self.external().map_or("", |external| external.facts.encoding_name()),
        }
    }

    /// Returns the bytes of memory that the entry takes, including the allocator's rounding.
    pub fn footprint_bytes(self) -> usize {
        let inside = self.shape().footprint_bytes();
        let outside = match self.encoding() {
            Encoding::Int | Encoding::Embstr | Encoding::Raw | Encoding::Apart | Encoding::External => 0,
            Encoding::Large => self.large_bytes(),
            Encoding::Aggregate | Encoding::Shared => self.aggregate().map_or(0, Aggregate::footprint_bytes),
        };
        inside + outside
    }

    /// Returns the bytes of memory that the entry takes while its value is resident.
    pub fn resident_bytes(self) -> usize {
        self.external().map_or_else(|| self.footprint_bytes(), |external| external.facts.memory_bytes())
    }

    fn large_bytes(self) -> usize {
        let StringValue::Large(large) = self.string() else { return 0 };
        size_class(large.capacity()) + size_class(size_of::<Vec<u8>>() + 2 * size_of::<usize>())
    }
}

/// The address of an entry, for a structure that refers to entries that a table owns.
///
/// An entry stays at its address until it is removed or moved, or its value or expiry takes another number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntryAddress(u64);

impl EntryAddress {
    /// Returns the entry.
    ///
    /// # Safety
    /// The address must be that of an entry that still exists and has not moved. During `'a` the entry must not be
    /// removed, moved or changed.
    #[inline]
    pub unsafe fn entry<'a>(self) -> EntryRef<'a> {
        let base = ptr::with_exposed_provenance_mut(self.0 as usize);
        let base = NonNull::new(base).expect("no entry has the address 0");
        EntryRef { base, owner: std::marker::PhantomData }
    }

    /// Prefetches the entry's first cache line, if there is an entry.
    #[inline]
    pub fn prefetch(self) {
        prefetch(ptr::with_exposed_provenance(self.0 as usize));
    }
}

impl EntryRef<'_> {
    /// Returns the address of the entry.
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
        let shape = Shape::of_value(key.len(), expire_at_ms.is_some(), &value);
        let base = allocate(shape.allocation_bytes());
        // SAFETY: every write below stays inside the allocation: the parts follow each other as Shape places them, and
        // their sum is at most allocation_bytes.
        unsafe {
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
            if shape.apart_bytes > 0 {
                slot.write_apart(shape, allocate(shape.apart_allocation_bytes()));
            }
            slot.write_value(shape, value);
            slot.set_clock(clock);
            slot
        }
    }

    /// # Safety
    /// `base` must be a fresh allocation made by [`Slot::new`], with header, expiry and key in place, and without an
    /// owner.
    unsafe fn own(tag: u32, base: NonNull<u8>) -> Slot {
        let address = base.as_ptr().expose_provenance() as u64;
        let lg_address_end = ADDRESS_BITS + LG_ENTRY_ALIGN;
        assert!(
            address >> lg_address_end == 0 && tag < 1 << TAG_BITS,
            "user addresses have {lg_address_end} bits, tags {TAG_BITS}"
        );
        Slot(u64::from(tag) << ADDRESS_BITS | address >> LG_ENTRY_ALIGN)
    }

    /// Returns whether the slot owns no entry.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0 == 0
    }

    /// Returns whether the slot has this tag; an empty slot has tag 0.
    #[inline]
    pub(super) fn has_tag(&self, tag: u32) -> bool {
        (self.0 ^ u64::from(tag) << ADDRESS_BITS) <= ADDRESS_MASK
    }

    /// Returns the hash bits stored with the address; 0 for an empty slot.
    #[inline]
    pub fn tag(&self) -> u32 {
        (self.0 >> ADDRESS_BITS) as u32
    }

    #[inline]
    fn base(&self) -> NonNull<u8> {
        let address = ((self.0 & ADDRESS_MASK) << LG_ENTRY_ALIGN) as usize;
        NonNull::new(ptr::with_exposed_provenance_mut(address)).expect("the slot is not empty")
    }

    /// Returns the entry.
    ///
    /// # Panics
    /// Panics if the slot is empty.
    #[inline]
    pub fn entry(&self) -> EntryRef<'_> {
        EntryRef { base: self.base(), owner: std::marker::PhantomData }
    }

    /// Changes the hash bits stored with the address, for a move to a table that places its entries by other bits.
    ///
    /// # Panics
    /// Panics if the slot is empty or the tag has more than [`TAG_BITS`] bits.
    #[inline]
    pub fn set_tag(&mut self, tag: u32) {
        assert!(!self.is_empty() && tag < 1 << TAG_BITS, "tags have {TAG_BITS} bits, empty slots have none");
        self.0 = u64::from(tag) << ADDRESS_BITS | self.0 & ADDRESS_MASK;
    }

    /// Returns the address of the entry; null for an empty slot.
    #[inline]
    pub fn address(&self) -> *const u8 {
        ptr::with_exposed_provenance(((self.0 & ADDRESS_MASK) << LG_ENTRY_ALIGN) as usize)
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
        self.set_flags(FLAG_GENERATION, generation.0);
    }

    /// Sets the generation for checkpoints.
    #[inline]
    pub fn set_cut(&mut self, cut: Generation) {
        self.set_flags(FLAG_CUT, cut.0);
    }

    #[inline]
    fn set_flags(&mut self, mask: u8, there: bool) {
        let flags = self.entry().header(1) & !mask;
        // SAFETY: byte 1 is part of the header, and &mut self is the only access to the entry.
        unsafe { self.base().add(1).write(flags | if there { mask } else { 0 }) };
    }

    /// Sets or clears both flags of a fetched value: a record contains the same value, and the value has not been used
    /// yet.
    pub fn set_copied(&mut self, is_copied: bool) {
        self.set_flags(FLAG_COPIED | FLAG_FETCHED, is_copied);
    }

    /// Records whether the store contains the key with its current value and expiry.
    pub fn set_stored(&mut self, is_stored: bool) {
        self.set_flags(FLAG_COPIED, is_stored);
    }

    /// Records whether the current checkpoint saves the key as it is now. That is false after the key has changed, and
    /// after the checkpoint has ended.
    pub fn set_pending(&mut self, is_pending: bool) {
        self.set_flags(FLAG_PENDING, is_pending);
    }

    /// Records that the value was fetched and has not been used yet.
    pub fn set_fetched(&mut self) {
        self.set_flags(FLAG_FETCHED, true);
    }

    /// Records the first use of a fetched value.
    pub fn clear_fetched(&mut self) {
        self.set_flags(FLAG_FETCHED, false);
    }

    /// Returns a new entry with the same key, clock and generations, but another value and expiry.
    fn rebuilt(&self, value: NewValue<'_>, expire_at_ms: Option<i64>) -> Slot {
        let entry = self.entry();
        let mut slot = Slot::new(self.tag(), entry.key(), value, expire_at_ms, entry.clock());
        slot.set_generation(entry.generation());
        slot.set_cut(entry.cut());
        slot
    }

    /// Replaces value and expiry: in place if the bytes stay in the same size class and no expiry is added or removed,
    /// otherwise in a new entry. The key and the clock do not change.
    pub fn set(&mut self, value: NewValue<'_>, expire_at_ms: Option<i64>) {
        let old = self.entry().shape();
        let new = Shape::of_value(old.key_len, expire_at_ms.is_some(), &value);
        if old.can_hold(new) {
            if new.apart_bytes == 0 {
                self.release_owned();
            }
            if let Some(at) = expire_at_ms {
                self.write_expiry(at);
            }
            // SAFETY: flags and key length are the same, so `new` describes these allocations, whose sizes are
            // unchanged; the old value holds no reference any more, or only the reference to the bytes apart, which the
            // new value takes over.
            unsafe { self.write_value(new, value) };
        } else {
            *self = self.rebuilt(value, expire_at_ms);
        }
    }

    /// Changes only the expiry. The value keeps its encoding, and is copied only if its entry must grow or shrink.
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
        // SAFETY: the callers have seen EXPIRES set, so the eight bytes after the header are the expiry.
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
