//! The payloads of `DUMP` and `RESTORE`: one value with version and checksum.

use std::io;

use crc_fast::CrcAlgorithm;

use super::format::{LoadError, Reader, Writer};
use super::kind::{Kind, VALKEY_VERSION, VERSION_MAX};
use super::read::{Value, read_value};
use super::write::{kind_for, kind_of, kind_without_expiries, write_value_as};
use crate::entries::entry::{EntryRef, ValueRef};
use crate::types::limits::EncodingLimits;

/// The size of version and checksum in bytes.
const FOOTER_BYTES: usize = 10;
const CHECKSUM_BYTES: usize = 8;

/// Computes the checksum of payloads and files.
fn checksum(bytes: &[u8]) -> u64 {
    crc_fast::checksum(CrcAlgorithm::Crc64Redis, bytes)
}

/// The reason why a payload is not a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestoreError {
    /// The checksum is wrong, or the version is unknown.
    Footer,
    /// The value is damaged or inconsistent.
    Format,
}

/// The version of the payloads of Redis 7.0, which replicas may run.
const KNOWN_TO_REPLICAS: u16 = 10;

/// Returns the value of an entry as a payload for readers of `version` of the format, 10 or newer; the payload states
/// the lowest version that supports its form. O(its bytes).
pub fn dump(entry: EntryRef<'_>, version: u16) -> Vec<u8> {
    let value: ValueRef<'_> = entry.into();
    payload(value, kind_for(value, version))
}

/// Like [`dump`], for a value already encoded as `kind`.
///
/// # Errors
/// Returns an error if the value must be decoded for these readers and is invalid.
pub fn dump_encoded(kind: Kind, value: &[u8], version: u16) -> Result<Vec<u8>, LoadError> {
    if kind.is_written_for(version) {
        return Ok(sealed(kind, |writer| writer.raw(value)));
    }
    let value = read_value(&mut Reader::new(value), kind, &EncodingLimits::DEFAULT)?;
    Ok(dump_read(&value, version))
}

/// Like [`dump`], for a decoded value.
pub fn dump_read(value: &Value, version: u16) -> Vec<u8> {
    payload(value.as_value(), kind_for(value.as_value(), version))
}

/// Returns the payload of a value in the form that ember writes.
pub(crate) fn dump_value(value: ValueRef<'_>) -> Vec<u8> {
    payload(value, kind_of(value))
}

/// Returns the payload of a value in a form that all replicas read, including Redis 7.0 and Valkey 9: without the
/// expiries of a hash's fields. O(its bytes).
pub(crate) fn dump_for_stream(value: ValueRef<'_>) -> Vec<u8> {
    payload(value, kind_without_expiries(value, KNOWN_TO_REPLICAS))
}

/// Returns whether all replicas read a payload as it is, whatever version it states. O(1).
pub(crate) fn is_for_stream(payload: &[u8]) -> bool {
    let kind = payload.first().and_then(|&byte| Kind::from_byte_of(version(payload), byte));
    version(payload) <= KNOWN_TO_REPLICAS && kind.is_some_and(|kind| kind.version() <= KNOWN_TO_REPLICAS)
}

fn payload(value: ValueRef<'_>, kind: Kind) -> Vec<u8> {
    sealed(kind, |writer| write_value_as(writer, value, kind))
}

/// Returns a payload of the lowest version that supports `kind`; `write` writes the value.
fn sealed(kind: Kind, write: impl FnOnce(&mut Writer<Vec<u8>>) -> io::Result<()>) -> Vec<u8> {
    const NEVER_FAILS: &str = "a vector takes all bytes";
    let mut writer = Writer::new(Vec::new());
    writer.byte(kind.file_byte()).expect(NEVER_FAILS);
    write(&mut writer).expect(NEVER_FAILS);
    let mut bytes = writer.into_inner();
    bytes.extend_from_slice(&kind.version().to_le_bytes());
    let checksum = checksum(&bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    bytes
}

/// The checks of a payload's footer.
#[derive(Clone, Copy, Debug)]
pub struct PayloadChecks {
    /// Whether the checksum is verified.
    pub checksum: bool,
    /// The newest RDB version of Redis that is accepted. [`VALKEY_VERSION`] is accepted in any case.
    pub version_max: u16,
}

impl PayloadChecks {
    /// Returns whether a payload may have this version.
    pub fn allow(self, version: u16) -> bool {
        version <= self.version_max || version == VALKEY_VERSION
    }

    /// The checks of Redis.
    pub const ALL: PayloadChecks = PayloadChecks { checksum: true, version_max: VERSION_MAX };
}

/// Returns the version that a payload states; 0 if it is too short to state one.
fn version(payload: &[u8]) -> u16 {
    let footer = payload.len().checked_sub(FOOTER_BYTES).map(|at| &payload[at..]);
    footer.map_or(0, |footer| u16::from_le_bytes([footer[0], footer[1]]))
}

/// Decodes a payload of any origin. The value receives the encoding that `limits` require. O(its bytes).
///
/// # Errors
/// Returns an error if the bytes are not a valid payload.
pub fn restore(
    payload: &[u8],
    limits: &EncodingLimits,
    checks: PayloadChecks,
) -> Result<Value, RestoreError> {
    let value =
        payload.len().checked_sub(FOOTER_BYTES).map(|at| &payload[..at]).ok_or(RestoreError::Footer)?;
    let (checked, expected) = payload.split_at(payload.len() - CHECKSUM_BYTES);
    if checks.checksum && checksum(checked).to_le_bytes() != expected || !checks.allow(version(payload)) {
        return Err(RestoreError::Footer);
    }
    let (&kind, value) = value.split_first().ok_or(RestoreError::Format)?;
    let kind = Kind::from_byte_of(version(payload), kind).ok_or(RestoreError::Format)?;
    read_value(&mut Reader::new(value), kind, limits).map_err(|_| RestoreError::Format)
}
