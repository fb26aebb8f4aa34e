//! Parameters that limit clients.

use super::bounds::BYTES_MAX;
use crate::client_memory_limit::ClientMemoryLimit;
use crate::parameter::{Field, Kind, Parameter};

/// The minimum of `client-query-buffer-limit`: smaller buffers would refuse ordinary requests.
const BUFFER_BYTES_MIN: u64 = 1 << 20;

pub(super) static PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "client-output-buffer-limit",
        aliases: &[],
        kind: Kind::Words {
            shape: "`class hard soft seconds` once or more",
            get: |config| config.client_output_buffer_limit.format(),
            set: |config, text| config.client_output_buffer_limit.update(text),
        },
        default: "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60",
        mutable: true,
        about: "When a client that does not read its replies is disconnected: at once above `hard` bytes, or after \
                `seconds` above `soft` bytes; 0 for never. The classes are `normal`, `replica` (or `slave`) and \
                `pubsub`; a class that is not named keeps its limit. The output of MONITOR and client-side caching \
                counts separately, against `pubsub`.",
    },
    Parameter {
        name: "client-query-buffer-limit",
        aliases: &[],
        kind: Kind::Memory { range: BUFFER_BYTES_MIN..=BYTES_MAX, field: field!(client_query_buffer_limit) },
        default: "1gb",
        mutable: true,
        about: "The size of a client's unprocessed input above which the client is disconnected. It includes commands \
                queued since MULTI, and the keys, channels and names that the server stores for the client.",
    },
    Parameter {
        name: "maxmemory-clients",
        aliases: &[],
        kind: Kind::Words {
            shape: "a memory size, a percentage of `maxmemory`, or `auto`",
            get: |config| config.maxmemory_clients.format(),
            set: |config, text| {
                config.maxmemory_clients = ClientMemoryLimit::parse(text)?;
                Ok(())
            },
        },
        default: "auto",
        mutable: true,
        about: "The limit of the memory of all clients together: requests, transactions, subscriptions, unsent \
                replies. Above it the clients that take most are disconnected, except those with CLIENT NO-EVICT; 0 \
                for no limit. `auto` is half of `maxmemory`, but at least 64 MiB, and no limit while `maxmemory` is 0.",
    },
    Parameter {
        name: "proto-max-bulk-len",
        aliases: &[],
        kind: Kind::Memory { range: BUFFER_BYTES_MIN..=BYTES_MAX, field: field!(proto_max_bulk_len) },
        default: "512mb",
        mutable: true,
        about: "The maximum length of an argument of a command, and of a string value.",
    },
    Parameter {
        name: "watch-max-per-client",
        aliases: &[],
        kind: integer!(watch_max_per_client, 0..=i64::MAX),
        default: "10000",
        mutable: true,
        about: "The maximum number of live queries per client; 0 for none.",
    },
    Parameter {
        name: "watch-max-memory",
        aliases: &[],
        kind: Kind::Memory { range: 0..=BYTES_MAX, field: field!(watch_max_memory) },
        default: "256mb",
        mutable: true,
        about: "The memory limit of live queries, their watchers and results that are being sent. It is separate from \
                `maxmemory`.",
    },
    Parameter {
        name: "watch-max-reply",
        aliases: &[],
        kind: Kind::Memory { range: 1..=BYTES_MAX, field: field!(watch_max_reply) },
        default: "1mb",
        mutable: true,
        about: "The maximum length of a result of a live query; instead of a longer one it sends an error with the \
                length.",
    },
];
