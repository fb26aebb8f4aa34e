//! Parameters for the size limits of the compact encodings of collections.

use super::bounds::INT_MAX;
use crate::parameter::{Kind, Parameter};

pub(super) static PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "hash-max-listpack-entries",
        aliases: &["hash-max-ziplist-entries"],
        kind: integer!(hash_max_listpack_entries, 0..=i64::MAX),
        default: "512",
        mutable: true,
        about: "The maximum number of fields of a hash in one packed buffer.",
    },
    Parameter {
        name: "hash-max-listpack-value",
        aliases: &["hash-max-ziplist-value"],
        kind: integer!(hash_max_listpack_value, 0..=i64::MAX),
        default: "64",
        mutable: true,
        about: "The maximum length of a field or value, in bytes, of a hash in one packed buffer.",
    },
    Parameter {
        name: "set-max-intset-entries",
        aliases: &[],
        kind: integer!(set_max_intset_entries, 0..=i64::MAX),
        default: "512",
        mutable: true,
        about: "The maximum number of members of a set that is stored as an array of integers.",
    },
    Parameter {
        name: "set-max-listpack-entries",
        aliases: &[],
        kind: integer!(set_max_listpack_entries, 0..=i64::MAX),
        default: "128",
        mutable: true,
        about: "The maximum number of members of a set in one packed buffer.",
    },
    Parameter {
        name: "set-max-listpack-value",
        aliases: &[],
        kind: integer!(set_max_listpack_value, 0..=i64::MAX),
        default: "64",
        mutable: true,
        about: "The maximum length of a member, in bytes, of a set in one packed buffer.",
    },
    Parameter {
        name: "zset-max-listpack-entries",
        aliases: &["zset-max-ziplist-entries"],
        kind: integer!(zset_max_listpack_entries, 0..=i64::MAX),
        default: "128",
        mutable: true,
        about: "The maximum number of members of a sorted set in one packed buffer.",
    },
    Parameter {
        name: "zset-max-listpack-value",
        aliases: &["zset-max-ziplist-value"],
        kind: integer!(zset_max_listpack_value, 0..=i64::MAX),
        default: "64",
        mutable: true,
        about: "The maximum length of a member, in bytes, of a sorted set in one packed buffer.",
    },
    Parameter {
        name: "list-max-listpack-size",
        aliases: &["list-max-ziplist-size"],
        kind: integer!(list_max_listpack_size, i32::MIN as i64..=INT_MAX),
        default: "-2",
        mutable: true,
        about: "The maximum size of a node of a list: a number of elements, or with -1 to -5, 4, 8, 16, 32 or 64 kb.",
    },
    Parameter {
        name: "list-compress-depth",
        aliases: &[],
        kind: integer!(list_compress_depth, 0..=INT_MAX),
        default: "0",
        mutable: true,
        about: "The number of nodes at each end of a list that are not compressed; 0 to compress none. It applies to \
                nodes that are created or changed from then on.",
    },
    Parameter {
        name: "stream-node-max-bytes",
        aliases: &[],
        kind: integer!(stream_node_max_bytes, 0..=i64::MAX),
        default: "4096",
        mutable: true,
        about: "The maximum size of a node of a stream in bytes; 0 for no limit.",
    },
    Parameter {
        name: "stream-node-max-entries",
        aliases: &[],
        kind: integer!(stream_node_max_entries, 0..=i64::MAX),
        default: "100",
        mutable: true,
        about: "The maximum number of entries in a node of a stream; 0 for no limit.",
    },
    Parameter {
        name: "hll-sparse-max-bytes",
        aliases: &[],
        kind: integer!(hll_sparse_max_bytes, 0..=i64::MAX),
        default: "3000",
        mutable: true,
        about: "The maximum number of bytes of a HyperLogLog in sparse form.",
    },
];
