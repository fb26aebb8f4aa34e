//! Parameters of workers and databases.

use emberkv_core::keyspace::hash::HashFunction;

use crate::parameter::{Field, Kind, Parameter};

/// The maximum number of shards: more workers would only add contention.
const SHARDS_MAX: i64 = 128;

/// The maximum number of databases: each adds a table to every shard, even if it is unused.
const DATABASES_MAX: i64 = 1024;

pub(super) static PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "shards",
        aliases: &[],
        kind: integer!(shards, 0..=SHARDS_MAX),
        default: "0",
        mutable: false,
        about: "The number of worker threads that serve clients; 0 for one per core.",
    },
    Parameter {
        name: "concurrent",
        aliases: &[],
        kind: Kind::YesNo(field!(concurrent)),
        default: "yes",
        mutable: false,
        about: "Whether the worker that reads a command also runs it (`yes`), or forwards it to the worker that owns \
                the key (`no`).",
    },
    Parameter {
        name: "long-call-elements",
        aliases: &[],
        kind: integer!(long_call_elements, 0..=i64::MAX),
        default: "16384",
        mutable: true,
        about: "A command that reads or changes more elements than this runs on a separate thread while its worker \
                serves other clients; 0 for never.",
    },
    Parameter {
        name: "databases",
        aliases: &[],
        kind: integer!(databases, 1..=DATABASES_MAX),
        default: "16",
        mutable: false,
        about: "The number of databases.",
    },
    Parameter {
        name: "hash-function",
        aliases: &[],
        kind: choice!(hash_function: HashFunction),
        default: "rapidhash",
        mutable: false,
        about: "The hash function of keys, members and fields. `siphash` is slower and protects against clients that \
                choose colliding keys.",
    },
    Parameter {
        name: "hz",
        aliases: &[],
        kind: integer!(hz, 1..=500),
        default: "10",
        mutable: true,
        about: "How many times per second background work runs: expiry of keys, idle connections, statistics.",
    },
    Parameter {
        name: "active-expire-effort",
        aliases: &[],
        kind: integer!(active_expire_effort, 1..=10),
        default: "1",
        mutable: true,
        about: "The effort of workers to remove expired keys: in each turn of its loop a worker checks this many \
                thousand keys, which takes about 0.1 ms per thousand.",
    },
];
