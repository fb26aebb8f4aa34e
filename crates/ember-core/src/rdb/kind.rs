//! The kinds of values in RDB: type and encoding in one number.

use super::{json, sketches, vector_set};
use crate::types::value::ValueType;

/// The newest supported version of the format: that of Redis 7.4, which has hashes whose fields expire.
pub const VERSION_MAX: u16 = 12;

/// The only version of Valkey's own format that is read and written: that of Valkey 9.0. Its number has no order
/// relative to those of Redis: Valkey leaves 12 to 79 to Redis.
pub const VALKEY_VERSION: u16 = 80;

/// Returns whether a version is one of Valkey, with the kinds of Valkey, rather than one of Redis.
pub const fn is_version_of_valkey(version: u16) -> bool {
    version >= VALKEY_VERSION
}

/// The version that every Redis since 2.6 reads.
const VERSION_MIN: u16 = 6;

/// The kinds of values that the format represents as values of a module: the number of the module, with which these
/// values begin, and the kind. In files and payloads the byte of all these kinds is that of [`Kind::Module`]; records
/// and rows contain the kind itself.
const MODULE_KINDS: [(u64, Kind); 11] = [
    (vector_set::MODULE_ID, Kind::Module),
    (vector_set::OWN_MODULE_ID, Kind::Module),
    (json::MODULE_IDS[0], Kind::Json),
    (json::MODULE_IDS[1], Kind::Json),
    (json::MODULE_IDS[2], Kind::Json),
    (json::MODULE_IDS[3], Kind::Json),
    (sketches::BLOOM_MODULE_ID, Kind::Bloom),
    (sketches::CUCKOO_MODULE_ID, Kind::Cuckoo),
    (sketches::COUNT_MIN_MODULE_ID, Kind::CountMin),
    (sketches::TOP_K_MODULE_ID, Kind::TopK),
    (sketches::T_DIGEST_MODULE_ID, Kind::TDigest),
];

/// The kind of a value, which determines the form of the bytes that follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A string.
    String = 0,
    /// Elements of a list, each a string.
    List = 1,
    /// Members of a set, each a string.
    Set = 2,
    /// Members of a sorted set with their scores as text.
    SortedSetText = 3,
    /// Fields of a hash: name, value.
    Hash = 4,
    /// Members of a sorted set with their scores as binary doubles.
    SortedSet = 5,
    /// A value of a module, which begins with the module's number: in records and rows a vector set, in files a value of
    /// any module.
    Module = 7,
    /// A hash as a zipmap.
    HashZipmap = 9,
    /// A list as one ziplist.
    ListZiplist = 10,
    /// A set as an intset.
    SetIntset = 11,
    /// A sorted set as a ziplist.
    SortedSetZiplist = 12,
    /// A hash as a ziplist.
    HashZiplist = 13,
    /// A list as ziplists.
    ListZiplists = 14,
    /// A stream, without the additions of later versions.
    Stream1 = 15,
    /// A hash as a listpack.
    HashListpack = 16,
    /// A sorted set as a listpack.
    SortedSetListpack = 17,
    /// A list as listpacks and large elements.
    ListListpacks = 18,
    /// A stream with its counters.
    Stream2 = 19,
    /// A set as a listpack.
    SetListpack = 20,
    /// A stream with the times at which consumers were active.
    Stream3 = 21,
    /// Fields of a hash: name, value, expiry or -1. Only in files of Valkey: in files of Redis this number means
    /// another kind.
    HashOfValkey = 22,
    /// Fields of a hash, after their earliest expiry. Each: expiry minus the earliest plus 1, or 0 for none; name,
    /// value.
    HashExpiring = 24,
    /// A hash as a listpack of triplets: name, value, expiry or 0. The earliest expiry precedes the listpack.
    HashTriplets = 25,
    /// A JSON document.
    Json = 64,
    /// A Bloom filter.
    Bloom = 65,
    /// A cuckoo filter.
    Cuckoo = 66,
    /// A count-min sketch.
    CountMin = 67,
    /// A top-k sketch.
    TopK = 68,
    /// A t-digest.
    TDigest = 69,
}

impl Kind {
    /// All kinds of Redis.
    const ALL: [Kind; 22] = [
        Kind::String,
        Kind::List,
        Kind::Set,
        Kind::SortedSetText,
        Kind::Hash,
        Kind::SortedSet,
        Kind::Module,
        Kind::HashZipmap,
        Kind::ListZiplist,
        Kind::SetIntset,
        Kind::SortedSetZiplist,
        Kind::HashZiplist,
        Kind::ListZiplists,
        Kind::Stream1,
        Kind::HashListpack,
        Kind::SortedSetListpack,
        Kind::ListListpacks,
        Kind::Stream2,
        Kind::SetListpack,
        Kind::Stream3,
        Kind::HashExpiring,
        Kind::HashTriplets,
    ];

    /// Returns the kind that a byte of a record or row stands for.
    pub fn from_byte(byte: u8) -> Option<Kind> {
        let of_module = MODULE_KINDS.iter().map(|&(_, kind)| kind).find(|&kind| kind as u8 == byte);
        of_module.or_else(|| Kind::from_redis_byte(byte))
    }

    /// Returns the kind that a byte stands for in a file or payload of Redis; [`Kind::Module`] for values of any module.
    pub fn from_redis_byte(byte: u8) -> Option<Kind> {
        Kind::ALL.into_iter().find(|&kind| kind as u8 == byte)
    }

    /// Like [`Kind::from_redis_byte`], for a file of Valkey: kinds that only newer files of Redis contain are unknown
    /// there.
    pub fn from_valkey_byte(byte: u8) -> Option<Kind> {
        match byte {
            22 => Some(Kind::HashOfValkey),
            23.. => None,
            _ => Kind::from_redis_byte(byte),
        }
    }

    /// Returns the kind that a byte stands for in files and payloads of `version`.
    pub fn from_byte_of(version: u16, byte: u8) -> Option<Kind> {
        if is_version_of_valkey(version) { Kind::from_valkey_byte(byte) } else { Kind::from_redis_byte(byte) }
    }

    /// Returns the kind of the values of the module with this number, if they can be stored.
    pub fn of_module(id: u64) -> Option<Kind> {
        MODULE_KINDS.iter().find(|&&(known, _)| known == id).map(|&(_, kind)| kind)
    }

    /// Returns whether values of this kind are values of a module in the format.
    pub fn is_of_module(self) -> bool {
        MODULE_KINDS.iter().any(|&(_, kind)| kind == self)
    }

    /// Returns the byte of this kind in files and payloads.
    pub fn file_byte(self) -> u8 {
        if self.is_of_module() { Kind::Module as u8 } else { self as u8 }
    }

    /// Returns the type of values of this kind.
    pub fn value_type(self) -> ValueType {
        match self {
            Kind::String => ValueType::String,
            Kind::List | Kind::ListZiplist | Kind::ListZiplists | Kind::ListListpacks => ValueType::List,
            Kind::Set | Kind::SetIntset | Kind::SetListpack => ValueType::Set,
            Kind::SortedSetText | Kind::SortedSet | Kind::SortedSetZiplist | Kind::SortedSetListpack => {
                ValueType::SortedSet
            }
            Kind::Hash
            | Kind::HashZipmap
            | Kind::HashZiplist
            | Kind::HashListpack
            | Kind::HashOfValkey
            | Kind::HashExpiring
            | Kind::HashTriplets => ValueType::Hash,
            Kind::Stream1 | Kind::Stream2 | Kind::Stream3 => ValueType::Stream,
            Kind::Module => ValueType::VectorSet,
            Kind::Json => ValueType::Json,
            Kind::Bloom => ValueType::Bloom,
            Kind::Cuckoo => ValueType::Cuckoo,
            Kind::CountMin => ValueType::CountMin,
            Kind::TopK => ValueType::TopK,
            Kind::TDigest => ValueType::TDigest,
        }
    }

    /// Returns whether readers of a version accept values of this kind; if not, the value must be written as an
    /// equivalent kind.
    pub(super) fn is_written_for(self, version: u16) -> bool {
        match self {
            Kind::SetListpack | Kind::Stream3 => self.version() <= version,
            Kind::HashExpiring | Kind::HashTriplets => version != VALKEY_VERSION,
            _ => true,
        }
    }

    /// Returns the first version of the format with this kind, but at least the version that all servers read.
    pub fn version(self) -> u16 {
        match self {
            Kind::ListZiplists => 7,
            Kind::SortedSet
            | Kind::Module
            | Kind::Json
            | Kind::Bloom
            | Kind::Cuckoo
            | Kind::CountMin
            | Kind::TopK
            | Kind::TDigest => 8,
            Kind::Stream1 => 9,
            Kind::HashListpack | Kind::SortedSetListpack | Kind::ListListpacks | Kind::Stream2 => 10,
            Kind::SetListpack | Kind::Stream3 => 11,
            Kind::HashExpiring | Kind::HashTriplets => 12,
            Kind::HashOfValkey => VALKEY_VERSION,
            _ => VERSION_MIN,
        }
    }
}
