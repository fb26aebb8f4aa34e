//! One entry of a listpack: how an element is written and read.
//!
//! ```text
//! first byte  what follows                       element
//! 0xxxxxxx    nothing                            integer 0..=127
//! 10xxxxxx    the bytes                          string of up to 63 bytes
//! 110xxxxx    1 byte                             signed integer of 13 bits, high bits first
//! 1110xxxx    1 byte, the bytes                  string of up to 4095 bytes, length high bits first
//! 11110000    4 bytes, the bytes                 string, length little-endian
//! 11110001    2 bytes (…0010 3, …0011 4, …0100 8)  signed integer, little-endian
//! ```
//!
//! Each entry is followed by its length in bytes (the *back length*), in groups of seven bits, the lowest last; all
//! groups but the first have the high bit set, so that it can be read from the end.

use super::Element;

/// The maximum size in bytes of an integer entry, without its back length: a first byte and 64 bits.
const HEAD_BYTES_MAX: usize = 9;
/// The maximum size in bytes of a back length.
const BACK_BYTES_MAX: usize = 5;

const INT16: u8 = 0xF1;
const INT24: u8 = 0xF2;
const INT32: u8 = 0xF3;
const INT64: u8 = 0xF4;
const STRING32: u8 = 0xF0;

/// An entry to be written: its head, the bytes of a string, and the back length.
pub(super) struct Draft<'a> {
    head: [u8; HEAD_BYTES_MAX],
    head_len: usize,
    payload: &'a [u8],
    back: [u8; BACK_BYTES_MAX],
    back_len: usize,
}

impl<'a> Draft<'a> {
    /// Returns the entry for `element`, as an integer if `element` is the text of an integer.
    pub(super) fn new(element: &'a [u8]) -> Draft<'a> {
        match super::fits_integer(element) {
            Some(number) => Draft::integer(number),
            None => Draft::string(element),
        }
    }

    /// Returns the entry for an integer.
    pub(super) fn integer(number: i64) -> Draft<'a> {
        let little = number.to_le_bytes();
        match number {
            0..=127 => Draft::of(&[number as u8], b""),
            -4096..=4095 => Draft::of(&[0xC0 | ((number >> 8) as u8 & 0x1F), number as u8], b""),
            -0x8000..=0x7FFF => Draft::of(&[INT16, little[0], little[1]], b""),
            -0x80_0000..=0x7F_FFFF => Draft::of(&[INT24, little[0], little[1], little[2]], b""),
            -0x8000_0000..=0x7FFF_FFFF => {
                Draft::of(&[INT32, little[0], little[1], little[2], little[3]], b"")
            }
            _ => {
                let mut head = [INT64; HEAD_BYTES_MAX];
                head[1..].copy_from_slice(&little);
                Draft::of(&head, b"")
            }
        }
    }

    fn string(bytes: &'a [u8]) -> Draft<'a> {
        let len = bytes.len();
        match len {
            0..=63 => Draft::of(&[0x80 | len as u8], bytes),
            64..=4095 => Draft::of(&[0xE0 | (len >> 8) as u8, len as u8], bytes),
            _ => {
                let len = u32::try_from(len).expect("a listpack is not asked to hold 4 GiB");
                let [a, b, c, d] = len.to_le_bytes();
                Draft::of(&[STRING32, a, b, c, d], bytes)
            }
        }
    }

    fn of(head: &[u8], payload: &'a [u8]) -> Draft<'a> {
        let mut draft = Draft {
            head: [0; HEAD_BYTES_MAX],
            head_len: head.len(),
            payload,
            back: [0; BACK_BYTES_MAX],
            back_len: 0,
        };
        draft.head[..head.len()].copy_from_slice(head);
        let (back, back_len) = back_length(head.len() + payload.len());
        (draft.back, draft.back_len) = (back, back_len);
        draft
    }

    /// Returns the size of the entry in bytes, including the back length.
    pub(super) fn len_bytes(&self) -> usize {
        self.head_len + self.payload.len() + self.back_len
    }

    /// Writes the entry over `target`, which has exactly its length.
    pub(super) fn write(&self, target: &mut [u8]) {
        let (head, rest) = target.split_at_mut(self.head_len);
        let (payload, back) = rest.split_at_mut(self.payload.len());
        head.copy_from_slice(&self.head[..self.head_len]);
        payload.copy_from_slice(self.payload);
        back.copy_from_slice(&self.back[..self.back_len]);
    }
}

/// Returns the back length of an entry of `len` bytes, and the number of bytes that it takes.
fn back_length(len: usize) -> ([u8; BACK_BYTES_MAX], usize) {
    let count = back_length_bytes(len);
    let mut bytes = [0; BACK_BYTES_MAX];
    for (position, byte) in bytes[..count].iter_mut().enumerate() {
        let group = (len >> (7 * (count - 1 - position))) as u8 & 0x7F;
        *byte = if position == 0 { group } else { group | 0x80 };
    }
    (bytes, count)
}

/// Returns the number of bytes that the back length of an entry of `len` bytes takes. The format is what Redis writes,
/// and Redis uses one group more than necessary for the largest number of two, three and four groups.
#[inline]
pub(super) fn back_length_bytes(len: usize) -> usize {
    match len {
        0..=127 => 1,
        128..16_383 => 2,
        16_383..2_097_151 => 3,
        2_097_151..268_435_455 => 4,
        _ => 5,
    }
}

/// Returns the length of the entry (without its back length) at the end of `bytes`. `None` if there is no entry.
#[inline]
pub(super) fn len_from_end(bytes: &[u8]) -> Option<usize> {
    let mut len = 0;
    for (position, &byte) in bytes.iter().rev().take(BACK_BYTES_MAX).enumerate() {
        len |= usize::from(byte & 0x7F) << (7 * position);
        if byte & 0x80 == 0 {
            return Some(len);
        }
    }
    None
}

/// Returns the element of the entry at the beginning of `bytes`, and the entry's length without its back length. `None`
/// if there is no whole entry.
#[inline]
pub(super) fn read(bytes: &[u8]) -> Option<(Element<'_>, usize)> {
    let (&first, rest) = bytes.split_first()?;
    let string = |len: usize, head_len: usize| {
        let payload = bytes.get(head_len..head_len.checked_add(len)?)?;
        Some((Element::Bytes(payload), head_len + len))
    };
    match first {
        0..0x80 => Some((Element::Integer(i64::from(first)), 1)),
        0x80..0xC0 => string(usize::from(first & 0x3F), 1),
        0xC0..0xE0 => {
            let bits = i64::from(first & 0x1F) << 8 | i64::from(*rest.first()?);
            Some((Element::Integer(if bits < 1 << 12 { bits } else { bits - (1 << 13) }), 2))
        }
        0xE0..0xF0 => string(usize::from(first & 0x0F) << 8 | usize::from(*rest.first()?), 2),
        STRING32 => string(u32::from_le_bytes(*rest.first_chunk()?) as usize, 5),
        INT16 => Some((Element::Integer(i16::from_le_bytes(*rest.first_chunk()?).into()), 3)),
        INT24 => {
            let [low, middle, high] = *rest.first_chunk()?;
            Some((Element::Integer((i32::from_le_bytes([0, low, middle, high]) >> 8).into()), 4))
        }
        INT32 => Some((Element::Integer(i32::from_le_bytes(*rest.first_chunk()?).into()), 5)),
        INT64 => Some((Element::Integer(i64::from_le_bytes(*rest.first_chunk()?)), 9)),
        _ => None,
    }
}

/// Returns the length of the entry at the beginning of `bytes`, including its back length, if the entry is whole and
/// the back length is correct.
pub(super) fn validated_len(bytes: &[u8]) -> Option<usize> {
    let (_, len) = read(bytes)?;
    let (back, count) = back_length(len);
    (bytes.get(len..len + count)? == &back[..count]).then_some(len + count)
}
