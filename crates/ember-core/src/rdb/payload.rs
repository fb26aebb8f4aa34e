//! The payloads of `DUMP` and `RESTORE`: one value with version and checksum.

use std::io;

use crc_fast::CrcAlgorithm;

use super::format::{LoadError, Reader, Writer};
use super::kind::{Kind, VALKEY_VERSION, VERSION_MAX};
use super::read::{Value, read_value};
use super::write::{kind_for, kind_of, kind_without_expiries, write_value_as};
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

/// The version of the payloads of Redis 7.0, which replicas may be.
const KNOWN_TO_REPLICAS: u16 = 10;

/// The value of an entry as a payload for readers of `version` of the format, 10 or newer; the payload itself is of the
/// lowest version that has its form. O(its bytes).
pub fn dump(entry: EntryRef<'_>, version: u16) -> Vec<u8> {
    let value: ValueRef<'_> = entry.into();
    payload(value, kind_for(value, version))
}

/// The same of a value that was written as this kind.
///
/// # Errors
/// If the value has to be read for these readers, and is none.
pub fn dump_encoded(kind: Kind, value: &[u8], version: u16) -> Result<Vec<u8>, LoadError> {
    if kind.is_written_for(version) {
        return Ok(sealed(kind, |writer| writer.raw(value)));
    }
    let value = read_value(&mut Reader::new(value), kind, &EncodingLimits::DEFAULT)?;
    Ok(dump_read(&value, version))
}

/// The same of a value that was read.
pub fn dump_read(value: &Value, version: u16) -> Vec<u8> {
    payload(value.as_value(), kind_for(value.as_value(), version))
}

/// A value as ember writes it.
pub(crate) fn dump_value(value: ValueRef<'_>) -> Vec<u8> {
    payload(value, kind_of(value))
}

/// A value as all replicas read it, Redis 7.0 and Valkey 9 too: without the expiries of a hash's fields. O(its bytes).
pub(crate) fn dump_for_stream(value: ValueRef<'_>) -> Vec<u8> {
    payload(value, kind_without_expiries(value, KNOWN_TO_REPLICAS))
}

/// Whether all replicas read a payload as it is, whatever version it says it has. O(1).
pub(crate) fn is_for_stream(payload: &[u8]) -> bool {
    let kind = payload.first().and_then(|&byte| Kind::from_byte_of(version(payload), byte));
    version(payload) <= KNOWN_TO_REPLICAS && kind.is_some_and(|kind| kind.version() <= KNOWN_TO_REPLICAS)
}

fn payload(value: ValueRef<'_>, kind: Kind) -> Vec<u8> {
    sealed(kind, |writer| write_value_as(writer, value, kind))
}

/// A payload of the lowest version that has `kind`; `write` writes the value.
fn sealed(kind: Kind, write: impl FnOnce(&mut Writer<Vec<u8>>) -> io::Result<()>) -> Vec<u8> {
    const NEVER_FAILS: &str = "a vector takes all bytes";
    let mut writer = Writer::new(Vec::new());
    writer.byte(kind as u8).expect(NEVER_FAILS);
    write(&mut writer).expect(NEVER_FAILS);
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
    /// The newest version of Redis that it may have. [`VALKEY_VERSION`] is read in any case.
    pub version_max: u16,
}

impl PayloadChecks {
    /// Whether a payload may be of this version.
    pub fn allow(self, version: u16) -> bool {
        version <= self.version_max || version == VALKEY_VERSION
    }

    /// Those of Redis.
    pub const ALL: PayloadChecks = PayloadChecks { checksum: true, version_max: VERSION_MAX };
}

/// The version that a payload says it has; 0 if it is too short to say one.
fn version(payload: &[u8]) -> u16 {
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
