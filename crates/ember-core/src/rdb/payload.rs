//! The payloads of `DUMP` and `RESTORE`: one value with version and checksum.

use crc_fast::CrcAlgorithm;

use super::format::{Reader, Writer};
use super::kind::{Kind, VERSION_MAX};
use super::read::{Value, read_value};
use super::write::{kind_of, write_value};
use crate::entries::entry::{EntryRef, ValueRef};
use crate::types::limits::EncodingLimits;

/// Version and checksum.
const FOOTER_BYTES: usize = 10;
const CHECKSUM_BYTES: usize = 8;

/// The checksum of payloads and files.
fn checksum(bytes: &[u8]) -> u64 {
    crc_fast::checksum(CrcAlgorithm::Crc64Redis, bytes)
}

/// Why a payload is no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestoreError {
    /// Its checksum is wrong or its version is not known.
    Footer,
    /// It is damaged or contradicts itself.
    Format,
}

/// The value of an entry as a payload, of the lowest version that has its form. O(its bytes).
pub fn dump(entry: EntryRef<'_>) -> Vec<u8> {
    dump_value(entry.into())
}

/// The same of a value whose kind and bytes are known.
pub fn dump_encoded(kind: Kind, value: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind as u8];
    bytes.extend_from_slice(value);
    bytes.extend_from_slice(&kind.version().to_le_bytes());
    let checksum = checksum(&bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    bytes
}

/// The same of a value.
pub(crate) fn dump_value(value: ValueRef<'_>) -> Vec<u8> {
    const NEVER_FAILS: &str = "a vector takes all bytes";
    let kind = kind_of(value);
    let mut writer = Writer::new(Vec::new());
    writer.byte(kind as u8).expect(NEVER_FAILS);
    write_value(&mut writer, value).expect(NEVER_FAILS);
    let mut bytes = writer.into_inner();
    bytes.extend_from_slice(&kind.version().to_le_bytes());
    let checksum = checksum(&bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    bytes
}

/// What is asked of the footer of a payload.
#[derive(Clone, Copy, Debug)]
pub struct PayloadChecks {
    /// Whether its checksum must be right.
    pub checksum: bool,
    /// The newest version that it may have.
    pub version_max: u16,
}

impl PayloadChecks {
    /// Those of Redis.
    pub const ALL: PayloadChecks = PayloadChecks { checksum: true, version_max: VERSION_MAX };
}

/// The version that a payload says it has; 0 if it is too short to say one.
pub(crate) fn version(payload: &[u8]) -> u16 {
    let footer = payload.len().checked_sub(FOOTER_BYTES).map(|at| &payload[at..]);
    footer.map_or(0, |footer| u16::from_le_bytes([footer[0], footer[1]]))
}

/// The value that a payload is; it may come from anywhere. It gets the encoding that `limits` ask for. O(its bytes).
///
/// # Errors
/// If it is not one.
pub fn restore(
    payload: &[u8],
    limits: &EncodingLimits,
    checks: PayloadChecks,
) -> Result<Value, RestoreError> {
    let (value, footer) =
        payload.len().checked_sub(FOOTER_BYTES).map(|at| payload.split_at(at)).ok_or(RestoreError::Footer)?;
    let (checked, expected) = payload.split_at(payload.len() - CHECKSUM_BYTES);
    if checks.checksum && checksum(checked).to_le_bytes() != expected
        || u16::from_le_bytes([footer[0], footer[1]]) > checks.version_max
    {
        return Err(RestoreError::Footer);
    }
    let (&kind, value) = value.split_first().ok_or(RestoreError::Format)?;
    let kind = Kind::from_byte(kind).ok_or(RestoreError::Format)?;
    read_value(&mut Reader::new(value), kind, limits).map_err(|_| RestoreError::Format)
}
