//! RDB: the binary form in which Redis saves values, in files and in the payloads of `DUMP`.
//!
//! ```text
//! value     kind, 1 byte ([`Kind`]) | parts that depend on the kind
//! length    00…… 6 bits | 01…… 14 bits | 0x80, 4 bytes | 0x81, 8 bytes             big-endian
//! string    length, bytes | 0xC0, 0xC1, 0xC2: integer of 1, 2, 4 bytes, little-endian
//!           | 0xC3, length packed, length unpacked, bytes packed by LZF
//! key       [0xFC | Unix time in ms, 8 bytes] [0xF8 | idle s, length] [0xF9 | frequency, 1 byte]
//!           kind, 1 byte | name, string | value                                      in files
//! payload   value | version, 2 bytes | CRC-64 of all before it, 8 bytes               little-endian
//! ```
//!
//! [`Writer`] and [`Reader`] write parts to any sink of bytes and read them from any source; [`write_value`] and
//! [`read_value`] handle one value, [`write_key`] and [`Encoded`] keys as in files, [`dump`] and [`restore`] a payload.
//!
//! Input may be hostile. Everything is checked before it becomes a value, no allocation is larger than a fixed factor
//! of the bytes that have arrived, and no input causes a panic.
//!
//! The format: Redis, `rdb.c` and `rdb.h` by S. Sanfilippo, up to version [`VERSION_MAX`], and Valkey's
//! [`VALKEY_VERSION`]. Values are written as Redis 7.2 writes them, or for files as 7.0 does ([`kind_for`]); the forms
//! of older versions are only read.

mod cbor;
mod format;
mod json;
mod key;
mod kind;
mod library_text;
mod parts;
mod payload;
mod read;
mod rows;
mod sketches;
mod stream;
mod target;
mod vector_set;
mod write;
mod ziplist;
mod zipmap;

pub use format::{LoadError, Reader, Writer};
pub use key::{EXPIRY_MS, Encoded, FREQUENCY, IDLE, KeyFacts, KeyForm, PACKED_MAX_BYTES, write_key};
pub use kind::{Kind, VALKEY_VERSION, VERSION_MAX, is_version_of_valkey};
pub use library_text::{library_for_redis, plain_library};
pub use payload::{PayloadChecks, RestoreError, dump, dump_encoded, dump_read, restore};
pub(crate) use payload::{dump_for_stream, dump_value, is_for_stream};
pub use read::{Value, read_string, read_value};
pub use rows::{Row, rows};
pub use target::{Features, Target};
pub use write::{kind_for, kind_of, kind_without_expiries, write_value, write_value_as};
