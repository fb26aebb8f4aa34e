//! Protection of rows: a checksum against errors or, in an encrypted store, a seal that also hides the contents; and
//! the names of rows, which an encrypted store derives from keys by a keyed hash.

use crc_fast::{CrcAlgorithm, Digest};

use super::StoreError;
use super::engine::Table;
#[cfg(feature = "encryption")]
use crate::encryption::RowSeal;

/// Length of the checksum after a row, in bytes.
const CHECK_BYTES: usize = 4;

/// The maximum length of a key that its row's name contains, in bytes: LMDB's row keys have at most 511 bytes.
const NAMED_BYTES_MAX: usize = 480;

/// Values of the byte after the database number in a name, which determines the form of the name.
const NAMED: u8 = 0;
const HASHED: u8 = 1;
#[cfg(feature = "encryption")]
const KEYED_HASH: u8 = 2;

/// The protection of a store's rows.
#[derive(Debug)]
pub(super) enum Protection {
    Checked,
    #[cfg(feature = "encryption")]
    Sealed(Box<RowSeal>),
}

fn check(table: Table, row_key: &[u8], row: &[u8]) -> [u8; CHECK_BYTES] {
    let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
    digest.update(&[table as u8]);
    digest.update(&(row_key.len() as u32).to_le_bytes());
    digest.update(row_key);
    digest.update(row);
    (digest.finalize() as u32).to_le_bytes()
}

#[cfg(feature = "encryption")]
fn bound_to(table: Table, row_key: &[u8]) -> Vec<u8> {
    [&[table as u8], row_key].concat()
}

impl Protection {
    /// Turns the plain contents of `row` into a protected row.
    pub(super) fn protect(&self, table: Table, row_key: &[u8], row: &mut Vec<u8>) {
        match self {
            Protection::Checked => row.extend_from_slice(&check(table, row_key, row)),
            #[cfg(feature = "encryption")]
            Protection::Sealed(seal) => seal.seal(&bound_to(table, row_key), row),
        }
    }

    /// Turns a protected row back into its plain contents.
    pub(super) fn open(&self, table: Table, row_key: &[u8], row: &mut Vec<u8>) -> Result<(), StoreError> {
        let is_intact = match self {
            Protection::Checked => row
                .split_last_chunk::<CHECK_BYTES>()
                .is_some_and(|(body, found)| *found == check(table, row_key, body)),
            #[cfg(feature = "encryption")]
            Protection::Sealed(seal) => {
                return match seal.open(&bound_to(table, row_key), row) {
                    true => Ok(()),
                    false => Err(StoreError::damaged(table, row_key)),
                };
            }
        };
        if !is_intact {
            return Err(StoreError::damaged(table, row_key));
        }
        row.truncate(row.len() - CHECK_BYTES);
        Ok(())
    }

    /// Writes the name of a key's rows to `out`, see [`super`].
    pub(super) fn name(&self, database: u32, key: &[u8], out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(&database.to_be_bytes());
        match self {
            #[cfg(feature = "encryption")]
            Protection::Sealed(seal) => {
                out.push(KEYED_HASH);
                out.extend_from_slice(&seal.name(key));
            }
            Protection::Checked if key.len() <= NAMED_BYTES_MAX => {
                out.push(NAMED);
                out.extend_from_slice(key);
            }
            Protection::Checked => {
                out.push(HASHED);
                out.extend_from_slice(sha256(key).as_ref());
            }
        }
    }
}

fn sha256(key: &[u8]) -> impl AsRef<[u8]> {
    aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, key)
}

/// Returns the database in a name, and the key if the name contains it; None if `name` is not a valid name.
pub(super) fn parse_name(name: &[u8]) -> Option<(u32, Option<&[u8]>)> {
    let (database, rest) = name.split_first_chunk::<4>()?;
    let (&form, key) = rest.split_first()?;
    Some((u32::from_be_bytes(*database), (form == NAMED).then_some(key)))
}
