//! Rows of a store, encrypted with AES-256-GCM and each bound to its table and row key.
//!
//! ```text
//! row      nonce, 12 bytes | encrypted bytes | tag, 16 bytes
//! ```
//!
//! A store has its own two keys, derived by HKDF from the key with the store's salt: one for rows, one for the names of
//! keys (HMAC-SHA-256). Nonces begin at a random number whenever the store is opened and increase by one, like those of
//! chunks.

use std::fmt;

use aws_lc_rs::aead::{Aad, LessSafeKey, Nonce};
use aws_lc_rs::hmac;
use parking_lot::Mutex;

use super::KeyRing;
use super::chunks::{NONCE_BYTES, random, random_nonce};
use super::encryption_keys::{FINGERPRINT_BYTES, SALT_BYTES};

/// Length of the stored seal head in bytes.
const HEAD_BYTES: usize = FINGERPRINT_BYTES + SALT_BYTES;

/// The encryption and decryption of the rows of one store.
pub struct RowSeal {
    key: LessSafeKey,
    names: hmac::Key,
    /// Nonce of the next row.
    nonce: Mutex<u128>,
}

impl fmt::Debug for RowSeal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowSeal").finish_non_exhaustive()
    }
}

impl RowSeal {
    /// Creates the seal of a new store with the current key; also returns the head that the store must save to be
    /// opened again. The head is not secret.
    pub fn begin(keys: &KeyRing) -> (RowSeal, Vec<u8>) {
        let salt = random::<SALT_BYTES>();
        let head = [&keys.current().fingerprint_bytes()[..], &salt].concat();
        (RowSeal::of(keys.current(), &salt), head)
    }

    /// Restores the seal of the store that saved `head`.
    ///
    /// # Errors
    /// Returns the fingerprint of the store's key, if `keys` does not contain that key.
    pub fn resume(keys: &KeyRing, head: &[u8]) -> Result<RowSeal, String> {
        let head: &[u8; HEAD_BYTES] = head.try_into().map_err(|_| "of another length".to_owned())?;
        let fingerprint = std::array::from_fn(|index| head[index]);
        let salt = std::array::from_fn(|index| head[FINGERPRINT_BYTES + index]);
        match keys.find(&fingerprint) {
            Some(key) => Ok(RowSeal::of(key, &salt)),
            None => Err(data_encoding::HEXLOWER.encode(&fingerprint)),
        }
    }

    fn of(key: &super::Key, salt: &[u8; SALT_BYTES]) -> RowSeal {
        let (rows, names) = key.of_store(salt);
        RowSeal { key: rows, names, nonce: Mutex::new(random_nonce()) }
    }

    /// Encrypts the contents of `row`, bound to `place` (its table and row key).
    pub fn seal(&self, place: &[u8], row: &mut Vec<u8>) {
        let nonce = {
            let mut nonce = self.nonce.lock();
            let this = *nonce;
            *nonce = (this + 1) & ((1 << (8 * NONCE_BYTES)) - 1);
            this.to_le_bytes()
        };
        let nonce: [u8; NONCE_BYTES] = std::array::from_fn(|index| nonce[index]);
        row.splice(..0, nonce);
        let unique = Nonce::assume_unique_for_key(nonce);
        let tag = self.key.seal_in_place_separate_tag(unique, Aad::from(place), &mut row[NONCE_BYTES..]);
        row.extend_from_slice(tag.expect("a row is shorter than the cipher's limit").as_ref());
    }

    /// Decrypts a row that was sealed for `place`. Returns false if the row was sealed for another place, or changed;
    /// the contents of `row` are then undefined.
    pub fn open(&self, place: &[u8], row: &mut Vec<u8>) -> bool {
        let Some((nonce, sealed)) = row.split_first_chunk_mut::<NONCE_BYTES>() else { return false };
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let Ok(plain) = self.key.open_in_place(nonce, Aad::from(place), sealed) else { return false };
        let len = plain.len();
        row.copy_within(NONCE_BYTES..NONCE_BYTES + len, 0);
        row.truncate(len);
        true
    }

    /// Returns the keyed hash that replaces a key's name, so that the name cannot be read.
    pub fn name(&self, key: &[u8]) -> [u8; 32] {
        let tag = hmac::sign(&self.names, key);
        std::array::from_fn(|index| tag.as_ref()[index])
    }
}

#[cfg(test)]
mod tests {
    use super::super::Key;
    use super::*;

    #[test]
    fn rows_are_decrypted_only_in_their_place_and_with_their_key() {
        let keys = KeyRing::new(Key::new([1; 32]));
        let (seal, head) = RowSeal::begin(&keys);
        let again = RowSeal::resume(&keys, &head).unwrap();
        for plain in [&b""[..], b"the value"] {
            let mut row = plain.to_vec();
            seal.seal(b"place", &mut row);
            assert_eq!(row.len(), plain.len() + 28);
            for byte in 0..row.len() {
                let mut damaged = row.clone();
                damaged[byte] ^= 1;
                assert!(!again.open(b"place", &mut damaged));
            }
            assert!(!again.open(b"other", &mut row.clone()));
            assert!(again.open(b"place", &mut row) && row == plain);
        }
        assert!(!again.open(b"place", &mut vec![0; 11]));
        assert_eq!(seal.name(b"key"), again.name(b"key"));
        assert_ne!(seal.name(b"key"), seal.name(b"kez"));
        let (other, _) = RowSeal::begin(&keys);
        assert_ne!(seal.name(b"key"), other.name(b"key"), "each store has its own keys");
        let wrong = KeyRing::new(Key::new([2; 32]));
        assert_eq!(RowSeal::resume(&wrong, &head).unwrap_err(), keys.current().fingerprint());
    }
}
