//! The servers for which values are written, and the features of values that only some servers support.

use super::kind::{Kind, VALKEY_VERSION, VERSION_MAX};
use super::vector_set::{OWN_MODULE_ID, is_of_redis};
use crate::entries::entry::ValueRef;
use crate::types::{Aggregate, Collection};

/// Features that only some readers of the format support.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features(u8);

impl Features {
    /// No features.
    pub const NONE: Features = Features(0);
    /// Expiries of single hash fields.
    pub const FIELD_EXPIRIES: Features = Features(1);
    /// Vector sets like those of Redis 8.
    pub const VECTOR_SETS: Features = Features(2);
    /// Vector indexes, which only ember has.
    pub const VECTOR_INDEXES: Features = Features(4);
    /// JSON documents like those of Redis 8.
    pub const JSON: Features = Features(8);
    /// Sketches like those of Redis Stack and Redis 8.
    pub const SKETCHES: Features = Features(16);

    /// The names of the features in messages.
    const NAMES: [(Features, &'static str); 5] = [
        (Features::FIELD_EXPIRIES, "hash fields that expire"),
        (Features::VECTOR_SETS, "vector sets"),
        (Features::VECTOR_INDEXES, "vector indexes"),
        (Features::JSON, "JSON documents"),
        (Features::SKETCHES, "sketches"),
    ];

    /// Returns the features of both.
    pub const fn and(self, other: Features) -> Features {
        Features(self.0 | other.0)
    }

    /// Returns the common features of both.
    pub const fn common(self, other: Features) -> Features {
        Features(self.0 & other.0)
    }

    /// Returns whether there are no features.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the features of a value. O(1).
    pub fn of(value: ValueRef<'_>) -> Features {
        match value {
            ValueRef::Aggregate(Aggregate::Hash(hash)) if hash.next_expiry_ms().is_some() => {
                Features::FIELD_EXPIRIES
            }
            ValueRef::Aggregate(Aggregate::VectorSet(set)) if is_of_redis(set) => Features::VECTOR_SETS,
            ValueRef::Aggregate(Aggregate::VectorSet(_)) => Features::VECTOR_INDEXES,
            ValueRef::Aggregate(Aggregate::Json(_)) => Features::JSON,
            ValueRef::Aggregate(
                Aggregate::Bloom(_)
                | Aggregate::Cuckoo(_)
                | Aggregate::CountMin(_)
                | Aggregate::TopK(_)
                | Aggregate::TDigest(_),
            ) => Features::SKETCHES,
            _ => Features::NONE,
        }
    }

    /// Returns the features that a command requires, whatever the case of its name; none for commands of Redis 7.0.
    pub fn of_command(name: &[u8]) -> Features {
        const FIELDS: [&[u8]; 7] =
            [b"hpexpireat", b"hpersist", b"hsetex", b"hexpire", b"hpexpire", b"hexpireat", b"hgetex"];
        const VECTORS: [&[u8]; 3] = [b"vadd", b"vrem", b"vsetattr"];
        const OWN_PREFIX: &[u8] = b"vector.";
        const SKETCH_PREFIXES: [&[u8]; 5] = [b"bf.", b"cf.", b"cms.", b"topk.", b"tdigest."];
        let begins_with =
            |prefix: &[u8]| name.get(..prefix.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(prefix));
        let is_one_of = |names: &[&[u8]]| names.iter().any(|known| name.eq_ignore_ascii_case(known));
        match name.first().map(u8::to_ascii_lowercase) {
            Some(b'h') if is_one_of(&FIELDS) => Features::FIELD_EXPIRIES,
            Some(b'v') if is_one_of(&VECTORS) => Features::VECTOR_SETS,
            Some(b'v') if is_one_of(&[b"vadd_batch"]) => Features::VECTOR_INDEXES,
            Some(b'v') if begins_with(OWN_PREFIX) => Features::VECTOR_INDEXES,
            Some(b'j') if begins_with(b"json.") => Features::JSON,
            Some(b'b' | b'c' | b't') if SKETCH_PREFIXES.iter().any(|prefix| begins_with(prefix)) => {
                Features::SKETCHES
            }
            _ => Features::NONE,
        }
    }

    /// Returns the features of the value in a payload of RESTORE that begins with these bytes. Ten bytes suffice. O(1).
    pub fn of_payload(begin: &[u8]) -> Features {
        let Some((&kind, value)) = begin.split_first() else { return Features::NONE };
        // Valkey's additional kind has a number that no stored kind of Redis has.
        let kind = Kind::from_redis_byte(kind).or_else(|| Kind::from_valkey_byte(kind));
        kind.map_or(Features::NONE, |kind| Features::of_encoded(kind, value))
    }

    /// Returns the features of a value encoded as this kind. O(1).
    pub(super) fn of_encoded(kind: Kind, value: &[u8]) -> Features {
        match kind {
            Kind::HashExpiring | Kind::HashTriplets | Kind::HashOfValkey => Features::FIELD_EXPIRIES,
            // The number of a module is encoded like a length of 64 bits: a byte precedes it.
            Kind::Module => {
                let id = value.get(1..).and_then(<[u8]>::first_chunk).map(|id| u64::from_be_bytes(*id));
                match id.map(|id| (id, Kind::of_module(id))) {
                    Some((OWN_MODULE_ID, _)) => Features::VECTOR_INDEXES,
                    Some((_, Some(kind))) if kind != Kind::Module => Features::of_encoded(kind, value),
                    _ => Features::VECTOR_SETS,
                }
            }
            Kind::Json => Features::JSON,
            Kind::Bloom | Kind::Cuckoo | Kind::CountMin | Kind::TopK | Kind::TDigest => Features::SKETCHES,
            _ => Features::NONE,
        }
    }
}

impl std::fmt::Display for Features {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = Features::NAMES.iter().filter(|(feature, _)| self.0 & feature.0 != 0);
        for (number, (_, name)) in names.enumerate() {
            write!(f, "{}{name}", if number == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

/// The oldest server that must read the written data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Target {
    /// Redis: the lowest version that supports all of the data.
    #[default]
    Redis,
    /// Redis 7.2.
    Redis72,
    /// Redis 7.4 and 8.
    Redis8,
    /// Valkey 9.
    Valkey9,
}

impl Target {
    /// Returns the version of the files that it reads; a file for [`Target::Redis`] may need a higher one.
    pub const fn file_version(self) -> u16 {
        match self {
            Target::Redis => 10,
            Target::Redis72 => 11,
            Target::Redis8 => VERSION_MAX,
            Target::Valkey9 => VALKEY_VERSION,
        }
    }

    /// Returns the version of the readers of DUMP payloads. For [`Target::Redis`] that is the version that ember
    /// reports: a payload states its own version, the lowest that supports its form.
    pub const fn payload_version(self) -> u16 {
        match self {
            Target::Redis => VERSION_MAX,
            target => target.file_version(),
        }
    }

    /// Returns the features that the server does not support: it refuses a file with such values.
    pub const fn unsupported(self) -> Features {
        match self {
            Target::Redis => Features::NONE,
            Target::Redis72 => Features::FIELD_EXPIRIES.and(Target::Valkey9.unsupported()),
            Target::Redis8 => Features::VECTOR_INDEXES,
            Target::Valkey9 => Features::VECTOR_SETS
                .and(Features::VECTOR_INDEXES)
                .and(Features::JSON)
                .and(Features::SKETCHES),
        }
    }

    /// Returns the name of the target in the configuration and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Target::Redis => "redis",
            Target::Redis72 => "redis-7.2",
            Target::Redis8 => "redis-8",
            Target::Valkey9 => "valkey-9",
        }
    }
}
