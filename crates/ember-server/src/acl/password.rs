//! Password hashes: SHA-256, as 64 lowercase hexadecimal digits, compared in constant time.

use std::fmt;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{SHA256, SHA256_OUTPUT_LEN, digest};

/// The SHA-256 hash of a password. Passwords themselves are not stored.
#[derive(Clone, Copy)]
pub(super) struct PasswordHash([u8; SHA256_OUTPUT_LEN]);

impl PasswordHash {
    /// Returns the hash of `password`. Takes O(length) steps.
    pub(super) fn of(password: &[u8]) -> PasswordHash {
        let mut bytes = [0; SHA256_OUTPUT_LEN];
        bytes.copy_from_slice(digest(&SHA256, password).as_ref());
        PasswordHash(bytes)
    }

    /// Parses a hash of exactly 64 lowercase hexadecimal digits.
    pub(super) fn parse(digits: &[u8]) -> Option<PasswordHash> {
        if digits.len() != SHA256_OUTPUT_LEN * 2 {
            return None;
        }
        let value = |digit: u8| match digit {
            b'0'..=b'9' => Some(digit - b'0'),
            b'a'..=b'f' => Some(digit - b'a' + 10),
            _ => None,
        };
        let mut bytes = [0; SHA256_OUTPUT_LEN];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = value(pair[0])? << 4 | value(pair[1])?;
        }
        Some(PasswordHash(bytes))
    }

    /// Whether both are hashes of the same password. The time of the comparison reveals nothing about either hash.
    pub(super) fn matches(&self, other: &PasswordHash) -> bool {
        verify_slices_are_equal(&self.0, &other.0).is_ok()
    }
}

impl fmt::Display for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PasswordHash")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_sha256_in_lower_case_digits() {
        let digits = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
        let hash = PasswordHash::of(b"test");
        assert_eq!(hash.to_string(), digits);
        assert!(PasswordHash::parse(digits.as_bytes()).is_some_and(|parsed| parsed.matches(&hash)));
        assert!(!PasswordHash::of(b"tesT").matches(&hash));
        assert_eq!(format!("{hash:?}"), "PasswordHash", "a log never shows a hash");
    }

    #[test]
    fn nothing_but_64_lower_case_digits_is_a_hash() {
        let digits = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
        for wrong in ["", "9f86", &digits[1..], &digits.to_uppercase(), &digits.replace('9', "g")] {
            assert!(PasswordHash::parse(wrong.as_bytes()).is_none(), "{wrong}");
        }
    }
}
