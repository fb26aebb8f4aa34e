//! RDB files: a keyspace at one moment, in the format of Redis.
//!
//! ```text
//! file       "REDIS" | version, 4 digits | aux … | function … | database … | 0xFF | CRC-64 of all before it, 8 bytes
//! aux        0xFA | name, string | value, string                 redis-ver, redis-bits, ctime, used-mem, aof-base
//! function   0xF5 | code of a library, string
//! database   0xFE | number, length | 0xFB | keys, length | keys that expire, length | key …
//! key        [0xFC | Unix time in ms, 8 bytes] [0xF8 | idle s, length] [0xF9 | frequency, 1 byte]
//!            kind, 1 byte | name, string | value
//! ```
//!
//! Numbers are little-endian; lengths, strings, kinds and values are those of [`emberkv_core::rdb`]. Read but never
//! written: 0xFD with a Unix time in seconds, 4 bytes (before 2.6); 0xF4 with three lengths, the sizes of a cluster
//! slot (7.4); 0xF7, an auxiliary block of a module, whose contents are skipped. Refused by name: 0xF3, a slot of a cluster
//! that Valkey imports; kinds 6 and 7 of unknown modules, unless the reader skips kind 7; 0xF6, a function of a release
//! candidate of 7.0. Files up to version 4 end at 0xFF; a checksum of 0 is not checked.
//!
//! Files of Valkey 9 ([`emberkv_core::rdb::VALKEY_VERSION`]) begin with "VALKEY" and the three digits 080, and have a
//! separate value type for hashes with fields that expire. Which version is written depends on
//! [`emberkv_core::rdb::Target`].
//!
//! **Which version is written.** redis-server 7.0 refuses files above version 10, 7.2 those above 11. Version 10 can
//! represent everything except the expiries of single hash fields, and when consumers of streams were last active (they
//! count as active when they were last seen). So [`FILE_VERSION`], which 7.0 and 7.2 can read, is used for files that
//! other servers may read, and [`emberkv_core::rdb::VERSION_MAX`] where no information may be lost;
//! [`emberkv_core::rdb::kind_for`] implements the difference. A file that contains hashes with expiring fields always
//! has version 12 (Redis 7.4). Only at the end of a file is it certain whether it needs that version:
//! [`Written::header`] is the header that must then be written over the beginning.
//!
//! **Reading on several threads.** Finding the end of a value takes much less time than building it. The reading thread
//! copies the bytes of whole keys into batches ([`RdbReader::next`]), and any thread builds their values
//! ([`Batch::take`]) or inserts them into a keyspace ([`Inserter`]); [`load`] combines both. Values above
//! [`VALUE_BYTES_MAX`] are built by the reading thread, directly from the file, so that such a value is not in memory
//! twice.
//!
//! The format: Redis, `rdb.c` and `rdb.h` by S. Sanfilippo.

mod batch;
mod error;
mod inserting;
mod loading;
mod modules;
mod reader;
mod source;
mod spans;
mod writer;

pub use batch::{BATCH_BYTES, BATCH_KEYS, Batch, VALUE_BYTES_MAX};
use emberkv_core::rdb::VALKEY_VERSION;
pub use emberkv_core::rdb::{Encoded, KeyFacts, KeyForm};
pub use error::{RdbError, RdbProblem};
pub use inserting::{Inserted, Inserter};
pub use loading::load;
pub use modules::SkippedData;
pub use reader::{RdbReader, Step, VersionCheck};
pub use source::Source;
pub use writer::{FILE_VERSION, RdbWriter, SaveOptions, Written, save, save_to};

/// The bytes that introduce the parts of a file other than values.
mod opcode {
    pub(super) const SLOT_IMPORT: u8 = 243;
    pub(super) const SLOT_INFO: u8 = 244;
    pub(super) const FUNCTION: u8 = 245;
    pub(super) const FUNCTION_OF_CANDIDATE: u8 = 246;
    pub(super) const MODULE_AUX: u8 = 247;
    pub(super) use emberkv_core::rdb::{EXPIRY_MS, FREQUENCY, IDLE};

    pub(super) const AUX: u8 = 250;
    pub(super) const RESIZE: u8 = 251;
    pub(super) const EXPIRY_S: u8 = 253;
    pub(super) const DATABASE: u8 = 254;
    pub(super) const END: u8 = 255;
    /// The kinds of values that only modules can read.
    pub(super) const MODULE_VALUES: std::ops::RangeInclusive<u8> = 6..=7;
}

const MAGIC: &[u8; 5] = b"REDIS";

/// The magic of Valkey 9 files; it is followed by a version of three digits.
const VALKEY_MAGIC: &[u8; 6] = b"VALKEY";

/// Length of the magic and the version, in bytes.
const HEADER_BYTES: usize = 9;

/// The first RDB version with a checksum at the end of the file.
const CHECKSUM_SINCE: u16 = 5;

/// Returns the header of a file of this RDB version.
fn header(version: u16) -> [u8; HEADER_BYTES] {
    if version == VALKEY_VERSION {
        return *b"VALKEY080";
    }
    let mut header = *b"REDIS0000";
    let digits = format!("{:04}", version % 10_000);
    header[MAGIC.len()..].copy_from_slice(digits.as_bytes());
    header
}
