//! An entry returns the stored bytes for all sizes, and takes as little memory as possible.

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
fn an_entry_returns_the_stored_key_value_and_expiry() {
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
fn grown_values_keep_their_metadata_and_are_padded_with_zeros() {
    let lengths = [0, 1, 8, 20, 44, 45, 100, 3000, LARGE_VALUE_MIN_BYTES - 1, LARGE_VALUE_MIN_BYTES, 70_000];
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

#[test]
fn strings_are_stored_inline_or_apart_whichever_takes_less_memory() {
    let mut apart = 0;
    for key_len in [0, 1, 16, 33, 100, 254, 255, 1000] {
        for expire in [None, Some(77)] {
            let key = vec![b'k'; key_len];
            let wide = if key_len < 255 { 0 } else { 4 };
            let head = 8 + 8 * usize::from(expire.is_some()) + wide + key_len;
            for len in 0..10_000 {
                let together = entry_class(head + len);
                let in_two = entry_class(head + 8) + size_class(len.max(1));
                let slot = Slot::new(1, &key, NewValue::from_opaque(&vec![b'v'; len]), expire, 0);
                let bytes = slot.entry().footprint_bytes();
                apart += usize::from(bytes < together);
                let expected = if len <= 44 { together } else { together.min(in_two) };
                assert_eq!(bytes, expected, "a key of {key_len} bytes, a value of {len}, expiry {expire:?}");
            }
        }
    }
    assert!(apart > 1000, "values stored apart: {apart}");
}

#[test]
fn strings_keep_their_bytes_when_moved_between_inline_and_apart() {
    // With a key of 16 bytes, strings of these lengths are stored apart, inline, and apart in the same and in another
    // size class.
    let lengths = [1024, 1025, 1000, 512, 600, 2048, 2049, 500, 3];
    for from in lengths {
        for to in lengths {
            let mut slot = Slot::new(1, &[b'k'; 16], NewValue::from_opaque(&vec![b'a'; from]), None, 5);
            let address = slot.entry().address();
            slot.set(NewValue::from_opaque(&vec![b'b'; to]), None);
            assert_eq!(bytes_of(&slot), vec![b'b'; to]);
            assert_eq!(slot.entry().encoding_name(), if to > 44 { "raw" } else { "embstr" });
            if from == to {
                assert_eq!(slot.entry().address(), address, "{from} bytes are overwritten where they stand");
            }
            let copy = Slot::new(1, b"copy", slot.entry().duplicate_string(), Some(9), 5);
            slot.bytes_mut().unwrap()[0] = b'c';
            assert_eq!((bytes_of(&copy), bytes_of(&slot)[0]), (vec![b'b'; to], b'c'));
            slot.set(NewValue::Int(7), Some(3));
            assert_eq!((bytes_of(&slot), slot.entry().expire_at_ms()), (b"7".to_vec(), Some(3)));
        }
    }
}

#[test]
fn an_entry_takes_its_size_class_or_the_next_one() {
    for bytes in 8..4000 {
        let class = entry_class(bytes);
        assert_eq!(size_class(class), class, "{bytes}: it is a size class");
        assert!(class == size_class(bytes) || class == size_class(bytes) + 8, "{bytes}: {class}");
    }
}
