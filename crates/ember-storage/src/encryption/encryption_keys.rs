//! Encryption keys: loading, fingerprints, and wiping from memory.

use std::fmt::{self, Debug, Display};
use std::path::{Path, PathBuf};

use aws_lc_rs::aead::{AES_256_GCM, LessSafeKey, UnboundKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Salt};
use aws_lc_rs::hmac;
use data_encoding::{BASE64, HEXLOWER, HEXLOWER_PERMISSIVE};
use zeroize::Zeroizing;

use crate::files::{Disk, DiskError};

/// Length of a key in bytes.
pub(super) const KEY_BYTES: usize = 32;
/// Length of a key's fingerprint in bytes.
pub(super) const FINGERPRINT_BYTES: usize = 16;
/// Length of the salt from which a file's own key is derived, in bytes.
pub(super) const SALT_BYTES: usize = 32;

/// HKDF info strings, which bind each derived key to one use.
const FINGERPRINT_INFO: &[u8] = b"ember key fingerprint v1";
const FILE_INFO: &[u8] = b"ember file encryption v1";
const ROW_INFO: &[u8] = b"ember store rows v1";
const NAME_INFO: &[u8] = b"ember store names v1";

/// The maximum size of a key file: enough for hundreds of keys.
const TEXT_MAX_BYTES: usize = 64 * 1024;

/// Mask of the permission bits for users that are neither the owner of a file nor in its group.
const OTHERS: u32 = 0o007;

/// A key of 256 bits. It is wiped from memory when it is dropped, and is never printed.
pub struct Key {
    bytes: Zeroizing<[u8; KEY_BYTES]>,
    fingerprint: [u8; FINGERPRINT_BYTES],
}

impl Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.fingerprint())
    }
}

struct Bytes(usize);

impl KeyType for Bytes {
    fn len(&self) -> usize {
        self.0
    }
}

impl Key {
    /// Creates a key from its bytes.
    pub fn new(bytes: [u8; KEY_BYTES]) -> Key {
        const FITS: &str = "HKDF gives up to 8160 bytes";
        let bytes = Zeroizing::new(bytes);
        let mut fingerprint = [0; FINGERPRINT_BYTES];
        let derived = Salt::new(HKDF_SHA256, &[]).extract(&bytes[..]);
        let derived = derived.expand(&[FINGERPRINT_INFO], Bytes(FINGERPRINT_BYTES)).expect(FITS);
        derived.fill(&mut fingerprint).expect(FITS);
        Key { bytes, fingerprint }
    }

    /// Returns the fingerprint in hexadecimal: it identifies the key and reveals nothing else about it.
    pub fn fingerprint(&self) -> String {
        HEXLOWER.encode(&self.fingerprint)
    }

    pub(super) fn fingerprint_bytes(&self) -> &[u8; FINGERPRINT_BYTES] {
        &self.fingerprint
    }

    /// Derives the key of the file with this salt.
    pub(super) fn of_file(&self, salt: &[u8; SALT_BYTES]) -> LessSafeKey {
        let derived = Salt::new(HKDF_SHA256, salt).extract(&self.bytes[..]);
        let derived =
            derived.expand(&[FILE_INFO], &AES_256_GCM).expect("32 bytes are no more than HKDF gives");
        LessSafeKey::new(UnboundKey::from(derived))
    }

    /// Derives the keys for rows and for names of the store with this salt.
    pub(super) fn of_store(&self, salt: &[u8; SALT_BYTES]) -> (LessSafeKey, hmac::Key) {
        const FITS: &str = "32 bytes are no more than HKDF gives";
        let derived = Salt::new(HKDF_SHA256, salt).extract(&self.bytes[..]);
        let rows = derived.expand(&[ROW_INFO], &AES_256_GCM).expect(FITS);
        let names = derived.expand(&[NAME_INFO], hmac::HMAC_SHA256).expect(FITS);
        (LessSafeKey::new(UnboundKey::from(rows)), hmac::Key::from(names))
    }
}

/// No key could be loaded.
#[derive(Debug)]
pub enum KeyError {
    /// The key file cannot be read.
    Disk(DiskError),
    /// The environment variable is not set.
    Unset(String),
    /// The source contains no key.
    Empty,
    /// The line with this number, from 1, is not a key.
    Line(usize),
    /// The source is longer than a key file may be.
    TooLong,
    /// Every user of the machine may read or write the key file.
    TooOpen {
        /// The key file.
        path: PathBuf,
        /// The permission bits of the key file.
        permissions: u32,
    },
}

impl Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const FORMS: &str = "a key is 32 bytes, in binary, as 64 hexadecimal digits, or in base64";
        match self {
            KeyError::Disk(error) => write!(f, "{error}"),
            KeyError::Unset(name) => write!(f, "the environment variable {name} is not set; {FORMS}"),
            KeyError::Empty => write!(f, "there is no key; {FORMS}"),
            KeyError::Line(line) => write!(f, "line {line} is not a key; {FORMS}"),
            KeyError::TooLong => write!(f, "this is too long for a file of keys; {FORMS}"),
            KeyError::TooOpen { path, permissions } => {
                let path = path.display();
                write!(
                    f,
                    "its permissions {permissions:04o} are too open: remove those of other users (chmod o= \
                     '{path}')"
                )
            }
        }
    }
}

impl std::error::Error for KeyError {}

/// The known keys: the current one, used for writing and reading, and older ones, used for reading only.
#[derive(Debug)]
pub struct KeyRing {
    /// The first one is the current key.
    keys: Vec<Key>,
}

impl KeyRing {
    /// Creates a key ring with the current key alone.
    pub fn new(current: Key) -> KeyRing {
        KeyRing { keys: vec![current] }
    }

    /// Adds an older key, used for reading only.
    pub fn add_older(&mut self, key: Key) {
        self.keys.push(key);
    }

    /// Loads the keys of a key file ([`KeyRing::parse`]) and wipes the bytes that were read.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or contains no valid keys, or if every user of the machine can read
    /// or write it. Access by the file's group is accepted, because mounted secrets are readable by a group.
    pub fn from_file(disk: &dyn Disk, path: &Path) -> Result<KeyRing, KeyError> {
        let file = disk.open_to_read(path).map_err(KeyError::Disk)?;
        let permissions = file.permissions().map_err(KeyError::Disk)?;
        if permissions & OTHERS != 0 {
            return Err(KeyError::TooOpen { path: path.to_owned(), permissions });
        }
        // The buffer never grows, so that no copy of a key remains in memory.
        let mut text = Zeroizing::new(vec![0; TEXT_MAX_BYTES + 1]);
        let mut len = 0;
        while len < text.len() {
            match file.read_at(len as u64, &mut text[len..]).map_err(KeyError::Disk)? {
                0 => break,
                count => len += count,
            }
        }
        KeyRing::parse(&text[..len])
    }

    /// Loads the keys of an environment variable ([`KeyRing::parse`]). The copy that was read is wiped; the environment
    /// is not.
    ///
    /// # Errors
    /// Returns an error if the variable is not set, or contains no valid keys.
    pub fn from_environment(name: &str) -> Result<KeyRing, KeyError> {
        let text = std::env::var_os(name).ok_or_else(|| KeyError::Unset(name.to_owned()))?;
        KeyRing::parse(&Zeroizing::new(text.into_encoded_bytes()))
    }

    /// Parses the keys of a key file or an environment variable: exactly 32 bytes, or lines with one key each, the
    /// current one first. Empty lines and lines that begin with `#` are ignored. The caller must wipe `text`
    /// (`zeroize::Zeroizing`).
    ///
    /// # Errors
    /// Returns an error if `text` has neither form. The error does not contain any of `text`.
    pub fn parse(text: &[u8]) -> Result<KeyRing, KeyError> {
        if let Ok(bytes) = <[u8; KEY_BYTES]>::try_from(text) {
            return Ok(KeyRing::new(Key::new(bytes)));
        }
        if text.len() > TEXT_MAX_BYTES {
            return Err(KeyError::TooLong);
        }
        let mut keys = Vec::new();
        for (index, line) in text.split(|&byte| byte == b'\n').enumerate() {
            let line = line.trim_ascii();
            if !line.is_empty() && !line.starts_with(b"#") {
                keys.push(parse_line(line).ok_or(KeyError::Line(index + 1))?);
            }
        }
        if keys.is_empty() { Err(KeyError::Empty) } else { Ok(KeyRing { keys }) }
    }

    /// Returns the key used for writing.
    pub fn current(&self) -> &Key {
        &self.keys[0]
    }

    /// Whether one of the keys has this fingerprint.
    pub fn holds(&self, fingerprint: &str) -> bool {
        self.keys.iter().any(|key| key.fingerprint() == fingerprint)
    }

    pub(super) fn find(&self, fingerprint: &[u8; FINGERPRINT_BYTES]) -> Option<&Key> {
        self.keys.iter().find(|key| key.fingerprint == *fingerprint)
    }
}

fn parse_line(line: &[u8]) -> Option<Key> {
    let decoded =
        if line.len() == 2 * KEY_BYTES { HEXLOWER_PERMISSIVE.decode(line) } else { BASE64.decode(line) };
    let decoded = Zeroizing::new(decoded.ok()?);
    <[u8; KEY_BYTES]>::try_from(decoded.as_slice()).ok().map(Key::new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::SimulatedDisk;

    #[test]
    fn keys_are_read_in_every_form() {
        let bytes: [u8; KEY_BYTES] = std::array::from_fn(|index| index as u8 * 7);
        let fingerprint = Key::new(bytes).fingerprint();
        assert_eq!(fingerprint.len(), 32);
        let (hex, base64) = (HEXLOWER.encode(&bytes), BASE64.encode(&bytes));
        for text in [&bytes[..], hex.as_bytes(), hex.to_uppercase().as_bytes(), base64.as_bytes()] {
            assert_eq!(KeyRing::parse(text).unwrap().current().fingerprint(), fingerprint);
        }
        let older = Key::new([9; KEY_BYTES]);
        let both = format!("# current\n{hex}\r\n\n{}\n", BASE64.encode(&[9; KEY_BYTES]));
        let ring = KeyRing::parse(both.as_bytes()).unwrap();
        assert_eq!(ring.current().fingerprint(), fingerprint);
        assert!(ring.find(older.fingerprint_bytes()).is_some());
        assert!(ring.find(&[0; FINGERPRINT_BYTES]).is_none());
        assert!(!format!("{ring:?}").contains(&hex[..8]));
    }

    #[test]
    fn invalid_keys_are_rejected_without_being_shown() {
        let line_31 = BASE64.encode(&[1; 31]);
        let long = [b'\n'; TEXT_MAX_BYTES + 1];
        for (text, expected) in [
            (&b""[..], "there is no key; "),
            (b"# nothing\n", "there is no key; "),
            (b"\nsecret\n", "line 2 is not a key; "),
            (&[b'g'; 64], "line 1 is not a key; "),
            (line_31.as_bytes(), "line 1 is not a key; "),
            (&long, "this is too long "),
        ] {
            let error = KeyRing::parse(text).unwrap_err().to_string();
            assert!(error.starts_with(expected) && !error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn keys_come_from_a_file_or_the_environment() {
        let disk = SimulatedDisk::new(1);
        let path = Path::new("d/key");
        let hex = HEXLOWER.encode(&[5; KEY_BYTES]);
        disk.create(path).unwrap().write_at(0, hex.as_bytes()).unwrap();
        let ring = KeyRing::from_file(&disk, path).unwrap();
        assert_eq!(ring.current().fingerprint(), Key::new([5; KEY_BYTES]).fingerprint());
        disk.create(path).unwrap().write_at(0, &[b'\n'; 2 * TEXT_MAX_BYTES]).unwrap();
        assert!(matches!(KeyRing::from_file(&disk, path), Err(KeyError::TooLong)));
        let error = KeyRing::from_file(&disk, Path::new("d/none")).unwrap_err();
        assert!(error.to_string().starts_with("cannot open d/none: "), "{error}");
        let error = KeyRing::from_environment("EMBER_NO_SUCH_KEY").unwrap_err();
        assert!(error.to_string().contains("EMBER_NO_SUCH_KEY is not set"), "{error}");
        // `PATH` is set in every process, and its value is not a key.
        assert!(matches!(KeyRing::from_environment("PATH"), Err(KeyError::Line(1))));
    }
}
