//! Byte strings as arrays of bits: counting, searching, integer fields, and the operations of BITOP.
//!
//! Bit 0 is the highest bit of byte 0. Reads past the end yield zero bits.

use std::ops::Range;

/// Counts the bits that are set.
pub fn count(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let words: u64 = words.iter().map(|word| u64::from(u64::from_ne_bytes(*word).count_ones())).sum();
    words + rest.iter().map(|byte| u64::from(byte.count_ones())).sum::<u64>()
}

/// Counts the bits that are set in a range of bits, which must be inside `bytes`.
pub fn count_in(bytes: &[u8], range: Range<u64>) -> u64 {
    if range.is_empty() {
        return 0;
    }
    let (first, last) = (byte_of(range.start), byte_of(range.end - 1));
    let before = bytes[first] & !mask_from(range.start);
    let after = bytes[last] & !mask_up_to(range.end - 1);
    count(&bytes[first..=last]) - u64::from(before.count_ones()) - u64::from(after.count_ones())
}

/// Returns the position of the first bit that equals `bit` in the range, which must be inside `bytes`.
pub fn find(bytes: &[u8], range: Range<u64>, bit: bool) -> Option<u64> {
    if range.is_empty() {
        return None;
    }
    // If a clear bit is searched, all bits are inverted, so that the search is always for a set bit.
    let flip = if bit { 0 } else { u8::MAX };
    let (first, last) = (byte_of(range.start), byte_of(range.end - 1));
    let first_byte = (bytes[first] ^ flip) & mask_from(range.start);
    let at =
        if first_byte != 0 { first } else { first + 1 + first_unlike(bytes.get(first + 1..=last)?, flip)? };
    let byte = if at == first { first_byte } else { bytes[at] ^ flip };
    let position = at as u64 * 8 + u64::from(byte.leading_zeros());
    (position < range.end).then_some(position)
}

/// Returns the index of the first byte that is not `common`.
fn first_unlike(bytes: &[u8], common: u8) -> Option<usize> {
    let pattern = u64::from_ne_bytes([common; 8]);
    let (words, _) = bytes.as_chunks::<8>();
    let skipped = words.iter().take_while(|word| u64::from_ne_bytes(**word) == pattern).count() * 8;
    bytes[skipped..].iter().position(|&byte| byte != common).map(|index| skipped + index)
}

fn byte_of(position: u64) -> usize {
    (position / 8) as usize
}

/// Returns a mask of the bits of a byte from bit `position` to the last.
fn mask_from(position: u64) -> u8 {
    u8::MAX >> (position % 8)
}

/// Returns a mask of the bits of a byte from the first to bit `position`.
fn mask_up_to(position: u64) -> u8 {
    u8::MAX << (7 - position % 8)
}

/// Returns the bit at `position`; false after the end.
#[inline]
pub fn get(bytes: &[u8], position: u64) -> bool {
    bytes.get(byte_of(position)).is_some_and(|byte| byte >> (7 - position % 8) & 1 == 1)
}

/// Sets the bit at `position`, which must be inside `bytes`.
#[inline]
pub fn set(bytes: &mut [u8], position: u64, bit: bool) {
    let mask = 1 << (7 - position % 8);
    let byte = &mut bytes[byte_of(position)];
    *byte = if bit { *byte | mask } else { *byte & !mask };
}

/// The handling of a number that does not fit into its field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// Store the lowest bits of the number.
    Wrap,
    /// Store the nearest number that fits.
    Saturate,
    /// Leave the field unchanged.
    Fail,
}

/// The type of an integer field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldType {
    signed: bool,
    bits: u32,
}

impl FieldType {
    /// Returns a signed type of 1 to 64 bits or an unsigned one of 1 to 63, so that every value is an `i64`.
    pub fn new(signed: bool, bits: i64) -> Option<FieldType> {
        let bits_max = if signed { 64 } else { 63 };
        (1..=bits_max).contains(&bits).then_some(FieldType { signed, bits: bits as u32 })
    }

    /// Returns the width of the field in bits.
    pub fn bits(self) -> u32 {
        self.bits
    }

    /// Returns the number of bytes that a string must have for a field at bit `position`.
    pub fn end_bytes(self, position: u64) -> usize {
        byte_of(position + u64::from(self.bits) - 1) + 1
    }

    /// Returns the lowest `bits` of `number` as a value of this type.
    fn wrap(self, number: i128) -> i64 {
        let unused = i128::BITS - self.bits;
        let shifted = number << unused;
        if self.signed { (shifted >> unused) as i64 } else { ((shifted as u128) >> unused) as i64 }
    }

    /// Returns the value to store for `number`; `None` if it does not fit and `overflow` is [`Overflow::Fail`].
    pub fn fit(self, number: i128, overflow: Overflow) -> Option<i64> {
        let (min, max) = if self.signed {
            (-(1i128 << (self.bits - 1)), (1i128 << (self.bits - 1)) - 1)
        } else {
            (0, (1i128 << self.bits) - 1)
        };
        if (min..=max).contains(&number) {
            return Some(number as i64);
        }
        match overflow {
            Overflow::Wrap => Some(self.wrap(number)),
            Overflow::Saturate => Some(number.clamp(min, max) as i64),
            Overflow::Fail => None,
        }
    }

    /// Returns a `SET` argument as the number that must fit: for unsigned fields, its 64 bits are read as an unsigned
    /// number.
    pub fn argument(self, number: i64) -> i128 {
        if self.signed { i128::from(number) } else { i128::from(number as u64) }
    }

    /// Returns the value of the field at bit `position`; bits after the end are zero.
    pub fn get(self, bytes: &[u8], position: u64) -> i64 {
        let window = load_window(bytes.get(byte_of(position)..).unwrap_or_default());
        self.wrap((window >> self.shift(position)) as i128)
    }

    /// Sets the field at bit `position`, which must be inside `bytes`, to the lowest bits of `value`.
    pub fn set(self, bytes: &mut [u8], position: u64, value: i64) {
        let tail = &mut bytes[byte_of(position)..];
        let mask = (u128::MAX >> (u128::BITS - self.bits)) << self.shift(position);
        let window = load_window(tail) & !mask | ((value as u128) << self.shift(position)) & mask;
        let len = tail.len().min(WINDOW_BYTES);
        tail[..len].copy_from_slice(&window.to_be_bytes()[..len]);
    }

    /// Returns the number of bits between the field's last bit and the end of the window, which begins with the field's
    /// first byte.
    fn shift(self, position: u64) -> u32 {
        u128::BITS - (position % 8) as u32 - self.bits
    }
}

/// The size in bytes of a window that contains a field of any width, at whichever bit of the first byte it begins.
const WINDOW_BYTES: usize = 16;

fn load_window(bytes: &[u8]) -> u128 {
    let mut window = [0; WINDOW_BYTES];
    let len = bytes.len().min(WINDOW_BYTES);
    window[..len].copy_from_slice(&bytes[..len]);
    u128::from_be_bytes(window)
}

/// The operations with which BITOP combines its sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Bits set in all sources.
    And,
    /// Bits set in any source.
    Or,
    /// Bits set in an odd number of sources.
    Xor,
}

/// Replaces `sum` by the result of the operation on `sum` and `other`; the shorter of the two is padded with zeros.
/// O(length), vectorized by the compiler.
pub fn combine(operation: Operation, sum: &mut Vec<u8>, other: &[u8]) {
    let common = sum.len().min(other.len());
    let (pairs, beyond) = other.split_at(common);
    let each = sum.iter_mut().zip(pairs);
    match operation {
        Operation::And => {
            each.for_each(|(byte, other)| *byte &= other);
            sum[common..].fill(0);
            sum.resize(sum.len() + beyond.len(), 0);
        }
        Operation::Or => {
            each.for_each(|(byte, other)| *byte |= other);
            sum.extend_from_slice(beyond);
        }
        Operation::Xor => {
            each.for_each(|(byte, other)| *byte ^= other);
            sum.extend_from_slice(beyond);
        }
    }
}

/// Inverts all bits.
pub fn invert(bytes: &mut [u8]) {
    bytes.iter_mut().for_each(|byte| *byte = !*byte);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn as_bits(bytes: &[u8]) -> Vec<bool> {
        bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1 == 1)).collect()
    }

    fn as_bytes(bits: &[bool]) -> Vec<u8> {
        bits.chunks(8).map(|byte| byte.iter().fold(0, |sum, &bit| sum << 1 | u8::from(bit))).collect()
    }

    /// Strings with long runs of equal bytes, which the word-wise searches need.
    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![Just(0u8), Just(u8::MAX), any::<u8>()];
        prop::collection::vec((byte, 1usize..20), 0..6)
            .prop_map(|runs| runs.into_iter().flat_map(|(byte, len)| vec![byte; len]).collect())
    }

    fn bytes_and_range() -> impl Strategy<Value = (Vec<u8>, Range<u64>)> {
        (bytes(), any::<(u64, u64)>()).prop_map(|(bytes, (start, end))| {
            let bits = bytes.len() as u64 * 8;
            let start = start % (bits + 1);
            (bytes, start..start + end % (bits - start + 1))
        })
    }

    /// Returns the value of a field, read bit by bit.
    fn naive_field(bits: &[bool], position: usize, field: FieldType) -> i64 {
        let at = |index: usize| bits.get(position + index).copied().unwrap_or(false);
        let start = if field.signed && at(0) { -1 } else { 0 };
        (0..field.bits as usize).fold(start, |sum, index| sum << 1 | i64::from(at(index)))
    }

    fn field_types() -> impl Strategy<Value = FieldType> {
        (any::<bool>(), 1i64..=64)
            .prop_filter_map("u64 is no type", |(signed, bits)| FieldType::new(signed, bits))
    }

    proptest! {
        #[test]
        fn counts_and_searches_agree_with_a_walk_over_the_bits((bytes, range) in bytes_and_range()) {
            let bits = as_bits(&bytes);
            let part = &bits[range.start as usize..range.end as usize];
            prop_assert_eq!(count(&bytes), bits.iter().filter(|&&bit| bit).count() as u64);
            prop_assert_eq!(count_in(&bytes, range.clone()), part.iter().filter(|&&bit| bit).count() as u64);
            for wanted in [false, true] {
                let expected = part.iter().position(|&bit| bit == wanted).map(|at| range.start + at as u64);
                prop_assert_eq!(find(&bytes, range.clone(), wanted), expected);
            }
        }

        #[test]
        fn setting_a_bit_changes_no_other_bit(mut bytes in bytes(), position: u64, bit: bool) {
            prop_assert!(!get(&bytes, bytes.len() as u64 * 8));
            if !bytes.is_empty() {
                let position = position % (bytes.len() as u64 * 8);
                let mut bits = as_bits(&bytes);
                prop_assert_eq!(get(&bytes, position), bits[position as usize]);
                bits[position as usize] = bit;
                set(&mut bytes, position, bit);
                prop_assert_eq!(bytes, as_bytes(&bits));
            }
        }

        #[test]
        fn fields_read_and_write_only_their_own_bits(
            mut bytes in bytes(), position in 0u64..900, field in field_types(), value: i64,
        ) {
            let mut bits = as_bits(&bytes);
            prop_assert_eq!(field.get(&bytes, position), naive_field(&bits, position as usize, field));
            let len = bytes.len().max(field.end_bytes(position));
            bytes.resize(len, 0);
            bits.resize(len * 8, false);
            for index in 0..field.bits() {
                bits[position as usize + index as usize] = value >> (field.bits() - 1 - index) & 1 == 1;
            }
            field.set(&mut bytes, position, value);
            prop_assert_eq!(&bytes, &as_bytes(&bits));
            prop_assert_eq!(field.get(&bytes, position), naive_field(&bits, position as usize, field));
        }

        #[test]
        fn overflow_wraps_saturates_or_fails(field in field_types(), number in -(1i128 << 65)..1 << 65) {
            let wrapped = field.fit(number, Overflow::Wrap).unwrap();
            let mut bytes = [0; 8];
            field.set(&mut bytes, 0, number as i64);
            prop_assert_eq!(wrapped, field.get(&bytes, 0));
            match field.fit(number, Overflow::Fail) {
                Some(kept) => {
                    prop_assert_eq!(i128::from(kept), number);
                    prop_assert_eq!(kept, wrapped);
                    prop_assert_eq!(field.fit(number, Overflow::Saturate), Some(kept));
                }
                None => {
                    let nearest = i128::from(field.fit(number, Overflow::Saturate).unwrap());
                    prop_assert!(i128::from(wrapped) != number);
                    prop_assert_eq!(nearest < number, number > 0);
                    let beyond = nearest + (number - nearest).signum();
                    prop_assert_eq!(field.fit(beyond, Overflow::Fail), None);
                }
            }
        }

        #[test]
        fn operations_agree_with_the_bits_of_padded_strings(a in bytes(), b in bytes()) {
            let len = a.len().max(b.len());
            let at = |bytes: &[u8], index: usize| bytes.get(index).copied().unwrap_or(0);
            for (operation, naive) in [
                (Operation::And, (|a, b| a & b) as fn(u8, u8) -> u8),
                (Operation::Or, |a, b| a | b),
                (Operation::Xor, |a, b| a ^ b),
            ] {
                let mut sum = a.clone();
                combine(operation, &mut sum, &b);
                let expected: Vec<u8> = (0..len).map(|index| naive(at(&a, index), at(&b, index))).collect();
                prop_assert_eq!(sum, expected);
            }
            let mut inverted = a.clone();
            invert(&mut inverted);
            prop_assert_eq!(count(&inverted), a.len() as u64 * 8 - count(&a));
        }
    }
}
