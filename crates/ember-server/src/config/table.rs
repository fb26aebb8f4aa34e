//! The table of all parameters: the only place where one is described.
//!
//! Two rules. A parameter which would be accepted and ignored is absent, or accepts only the value which is true now
//! and says why others are refused ([`Kind::Fixed`]). A name which Redis has means here what it means there.

use super::parameter::{Field, Kind, Parameter};
use emberkv_core::eviction::EvictionPolicy;
use emberkv_core::keyspace::hash::HashFunction;

use super::value::{
    AppendFsync, DebugCommand, KeyspaceEvents, LogLevel, PubsubDefault, Supervised, TlsAuthClients,
};
use super::{bind_address, percentiles};
use crate::tls;

macro_rules! field {
    ($field:ident) => {
        Field { get: |config| &config.$field, get_mut: |config| &mut config.$field }
    };
}

/// The range must fit the type of the field; a test sets both of its ends.
macro_rules! integer {
    ($field:ident, $range:expr) => {
        Kind::Integer {
            range: $range,
            get: |config| i64::try_from(config.$field).expect("set from an i64"),
            set: |config, number| config.$field = number.try_into().expect("the range fits the field"),
        }
    };
}

macro_rules! choice {
    ($field:ident: $enum:ident) => {
        Kind::Choice {
            names: $enum::NAMES,
            get: |config| config.$field as usize,
            set: |config, position| config.$field = $enum::ALL[position],
        }
    };
}

/// The largest `int` of Redis's own ranges.
const INT_MAX: i64 = i32::MAX as i64;

/// The largest memory size which Redis accepts where it has a limit at all.
const BYTES_MAX: u64 = i64::MAX as u64;

/// Buffers smaller than this would refuse ordinary requests.
const BUFFER_BYTES_MIN: u64 = 1 << 20;

/// More workers than this share nothing but contention.
const SHARDS_MAX: i64 = 128;

/// Each database costs a table in every shard, used or not.
const DATABASES_MAX: i64 = 1024;

/// With less than one command in a million nothing would be found in time.
const SAMPLING_MAX: i64 = 1_000_000;

/// Less would hardly hold the libraries of scripts.
const SCRIPT_MEMORY_MIN: u64 = 1 << 20;

/// The parameter whose CONFIG SET reads the keys of files again, changed or not.
pub(super) const ENCRYPTION_KEY_FILE: &str = "encryption-key-file";

/// The name of a file in `dir`.
fn file_name(text: &str, parameter: &str) -> Result<String, String> {
    if text.is_empty() || text.contains(['/', '\0']) {
        return Err(format!("{parameter} can't be a path, just a filename"));
    }
    Ok(text.to_owned())
}

/// Every parameter, in the order of the documentation.
pub(crate) static PARAMETERS: &[Parameter] = &[
    // Network.
    Parameter {
        name: "bind",
        aliases: &["host"],
        kind: Kind::Words {
            shape: "up to 16 addresses",
            get: |config| bind_address::format(&config.bind),
            set: |config, text| bind_address::parse(text).map(|addresses| config.bind = addresses),
        },
        default: "127.0.0.1 -::1",
        mutable: false,
        about: "The addresses to listen on: IP addresses, host names, `*` (all IPv4) or `::*` (all IPv6). A `-` \
                before an address makes it no error when the machine does not have it. Without any address there \
                is no TCP listener.",
    },
    Parameter {
        name: "port",
        aliases: &[],
        kind: integer!(port, 0..=65535),
        default: "6379",
        mutable: false,
        about: "The TCP port to listen on; 0 for no TCP listener.",
    },
    Parameter {
        name: "tcp-backlog",
        aliases: &[],
        kind: integer!(tcp_backlog, 0..=INT_MAX),
        default: "511",
        mutable: false,
        about: "How many connections may wait to be accepted; the kernel's `somaxconn` limits it further.",
    },
    Parameter {
        name: "unixsocket",
        aliases: &[],
        kind: Kind::Path(field!(unixsocket)),
        default: "",
        mutable: false,
        about: "The path of a Unix socket to listen on; empty for none.",
    },
    Parameter {
        name: "unixsocketperm",
        aliases: &[],
        kind: Kind::Octal { max: 0o777, field: field!(unixsocketperm) },
        default: "0",
        mutable: false,
        about: "The permissions of the Unix socket; 0 leaves them to the umask.",
    },
    Parameter {
        name: "timeout",
        aliases: &[],
        kind: integer!(timeout, 0..=INT_MAX),
        default: "0",
        mutable: true,
        about: "Seconds after which an idle connection is closed; 0 for never.",
    },
    Parameter {
        name: "tcp-keepalive",
        aliases: &[],
        kind: integer!(tcp_keepalive, 0..=INT_MAX),
        default: "300",
        mutable: true,
        about: "Seconds between TCP keep-alive probes on an idle connection; 0 for none.",
    },
    Parameter {
        name: "maxclients",
        aliases: &[],
        kind: integer!(maxclients, 1..=u32::MAX as i64),
        default: "10000",
        mutable: true,
        about: "How many clients may be connected at a time.",
    },
    // Security.
    Parameter {
        name: "protected-mode",
        aliases: &[],
        kind: Kind::YesNo(field!(protected_mode)),
        default: "yes",
        mutable: true,
        about: "Whether only clients on this machine are served while there is no password.",
    },
    Parameter {
        name: "requirepass",
        aliases: &[],
        kind: Kind::Secret { field: field!(requirepass), file: field!(requirepass_file) },
        default: "",
        mutable: true,
        about: "The password of the default user; empty for none. On the command line every user of the machine can \
                read it: prefer `requirepass-file`.",
    },
    Parameter {
        name: "requirepass-file",
        aliases: &[],
        kind: Kind::Path(field!(requirepass_file)),
        default: "",
        mutable: false,
        about: "A file whose first line is the password, read once at the start; empty for none. The later of \
                `requirepass` and this one counts.",
    },
    Parameter {
        name: "aclfile",
        aliases: &[],
        kind: Kind::Path(field!(aclfile)),
        default: "",
        mutable: false,
        about: "A file with users, read at the start and by ACL LOAD, written by ACL SAVE; empty for none. Users stand \
                there or in lines `user` of the configuration file, not in both.",
    },
    Parameter {
        name: "acl-pubsub-default",
        aliases: &[],
        kind: choice!(acl_pubsub_default: PubsubDefault),
        default: "resetchannels",
        mutable: true,
        about: "Which channels of publish and subscribe new users may use.",
    },
    Parameter {
        name: "acllog-max-len",
        aliases: &[],
        kind: integer!(acllog_max_len, 0..=i64::MAX),
        default: "128",
        mutable: true,
        about: "How many denials ACL LOG keeps.",
    },
    Parameter {
        name: "enable-debug-command",
        aliases: &[],
        kind: choice!(enable_debug_command: DebugCommand),
        default: "no",
        mutable: false,
        about: "Who may call DEBUG: nobody, everybody, or clients on this machine.",
    },
    // TLS.
    Parameter {
        name: "tls-port",
        aliases: &[],
        kind: integer!(tls_port, 0..=65535),
        default: "0",
        mutable: false,
        about: "The TCP port for connections with TLS, on the addresses of `bind`; 0 for none. With `port` 0 there are \
                no others.",
    },
    Parameter {
        name: "tls-cert-file",
        aliases: &[],
        kind: Kind::Path(field!(tls_cert_file)),
        default: "",
        mutable: true,
        about: "The server's certificate and those it depends on, in the PEM format. Each CONFIG SET of a parameter of \
                TLS, to the same value too, reads all files again, for connections to come.",
    },
    Parameter {
        name: "tls-key-file",
        aliases: &[],
        kind: Kind::Path(field!(tls_key_file)),
        default: "",
        mutable: true,
        about: "The private key of that certificate, in the PEM format and not encrypted.",
    },
    Parameter {
        name: "tls-ca-cert-file",
        aliases: &[],
        kind: Kind::Path(field!(tls_ca_cert_file)),
        default: "",
        mutable: true,
        about: "The certificates of the authorities whose clients are trusted, in the PEM format.",
    },
    Parameter {
        name: "tls-ca-cert-dir",
        aliases: &[],
        kind: Kind::Path(field!(tls_ca_cert_dir)),
        default: "",
        mutable: true,
        about: "A directory of files with more such certificates.",
    },
    Parameter {
        name: "tls-auth-clients",
        aliases: &[],
        kind: choice!(tls_auth_clients: TlsAuthClients),
        default: "yes",
        mutable: true,
        about: "Whether clients must show a certificate (`yes`), may show one (`optional`) or are not asked for one.",
    },
    Parameter {
        name: "tls-protocols",
        aliases: &[],
        kind: Kind::Words {
            shape: "`TLSv1.2`, `TLSv1.3` or both",
            get: |config| config.tls_protocols.clone(),
            set: |config, text| tls::check_protocols(text).map(|()| config.tls_protocols = text.to_owned()),
        },
        default: "",
        mutable: true,
        about: "The versions of TLS that are spoken; empty for both.",
    },
    Parameter {
        name: "tls-ciphers",
        aliases: &[],
        kind: Kind::Words {
            shape: "names separated by colons",
            get: |config| config.tls_ciphers.clone(),
            set: |config, text| tls::check_ciphers(text).map(|()| config.tls_ciphers = text.to_owned()),
        },
        default: "",
        mutable: true,
        about: "The cipher suites of TLS 1.2, the preferred ones first; empty for all.",
    },
    Parameter {
        name: "tls-ciphersuites",
        aliases: &[],
        kind: Kind::Words {
            shape: "names separated by colons",
            get: |config| config.tls_ciphersuites.clone(),
            set: |config, text| {
                tls::check_ciphersuites(text).map(|()| config.tls_ciphersuites = text.to_owned())
            },
        },
        default: "",
        mutable: true,
        about: "The cipher suites of TLS 1.3, the preferred ones first; empty for all.",
    },
    Parameter {
        name: "tls-prefer-server-ciphers",
        aliases: &[],
        kind: Kind::YesNo(field!(tls_prefer_server_ciphers)),
        default: "no",
        mutable: true,
        about: "Whether the server's order of cipher suites counts, not the client's.",
    },
    Parameter {
        name: "tls-session-caching",
        aliases: &[],
        kind: Kind::YesNo(field!(tls_session_caching)),
        default: "yes",
        mutable: true,
        about: "Whether clients may resume a session with a shorter handshake.",
    },
    Parameter {
        name: "tls-session-cache-size",
        aliases: &[],
        kind: integer!(tls_session_cache_size, 1..=INT_MAX),
        default: "20480",
        mutable: true,
        about: "How many sessions are kept for that.",
    },
    Parameter {
        name: "tls-session-cache-timeout",
        aliases: &[],
        kind: integer!(tls_session_cache_timeout, 1..=INT_MAX),
        default: "300",
        mutable: true,
        about: "For how many seconds a session is kept.",
    },
    // Execution.
    Parameter {
        name: "shards",
        aliases: &[],
        kind: integer!(shards, 0..=SHARDS_MAX),
        default: "0",
        mutable: false,
        about: "How many worker threads serve clients; 0 for one per core.",
    },
    Parameter {
        name: "concurrent",
        aliases: &[],
        kind: Kind::YesNo(field!(concurrent)),
        default: "yes",
        mutable: false,
        about: "Whether the worker which reads a command also runs it (`yes`), or forwards it to the worker which \
                owns the key (`no`).",
    },
    Parameter {
        name: "databases",
        aliases: &[],
        kind: integer!(databases, 1..=DATABASES_MAX),
        default: "16",
        mutable: false,
        about: "How many databases SELECT can choose from.",
    },
    Parameter {
        name: "hash-function",
        aliases: &[],
        kind: choice!(hash_function: HashFunction),
        default: "rapidhash",
        mutable: false,
        about: "The hash function of keys and of members and fields. `siphash` is slower and withstands clients which choose keys that collide.",
    },
    Parameter {
        name: "hz",
        aliases: &[],
        kind: integer!(hz, 1..=500),
        default: "10",
        mutable: true,
        about: "How often per second background work runs: expiry of keys, idle connections, statistics.",
    },
    // Memory.
    Parameter {
        name: "maxmemory",
        aliases: &["max-memory"],
        kind: Kind::Memory { range: 0..=u64::MAX, field: field!(maxmemory) },
        default: "0",
        mutable: true,
        about: "How much memory the data may take before keys are evicted or writes refused; 0 for no limit.",
    },
    Parameter {
        name: "maxmemory-policy",
        aliases: &["eviction-policy"],
        kind: choice!(maxmemory_policy: EvictionPolicy),
        default: "noeviction",
        mutable: true,
        about: "Which keys are evicted at `maxmemory`.",
    },
    Parameter {
        name: "maxmemory-samples",
        aliases: &[],
        kind: integer!(maxmemory_samples, 1..=INT_MAX),
        default: "5",
        mutable: true,
        about: "How many keys are looked at to choose one to evict.",
    },
    Parameter {
        name: "lfu-log-factor",
        aliases: &[],
        kind: integer!(lfu_log_factor, 0..=INT_MAX),
        default: "10",
        mutable: true,
        about: "How much slower the access counter of the LFU policies grows the larger it is.",
    },
    Parameter {
        name: "lfu-decay-time",
        aliases: &[],
        kind: integer!(lfu_decay_time, 0..=INT_MAX),
        default: "1",
        mutable: true,
        about: "Minutes after which the access counter of the LFU policies is decremented; 0 for never.",
    },
    Parameter {
        name: "lazyfree-lazy-server-del",
        aliases: &[],
        kind: Kind::Fixed {
            accepts: &["no"],
            reason: "values which a command overwrites are freed at once in this version",
        },
        default: "no",
        mutable: true,
        about: "Whether values which a command overwrites are freed in the background.",
    },
    Parameter {
        name: "lazyfree-lazy-user-del",
        aliases: &[],
        kind: Kind::YesNo(field!(lazyfree_lazy_user_del)),
        default: "no",
        mutable: true,
        about: "Whether DEL frees in the background, as UNLINK does.",
    },
    Parameter {
        name: "lazyfree-lazy-user-flush",
        aliases: &[],
        kind: Kind::YesNo(field!(lazyfree_lazy_user_flush)),
        default: "no",
        mutable: true,
        about: "Whether FLUSHALL and FLUSHDB free in the background when they say neither SYNC nor ASYNC.",
    },
    // Encodings.
    Parameter {
        name: "hash-max-listpack-entries",
        aliases: &["hash-max-ziplist-entries"],
        kind: integer!(hash_max_listpack_entries, 0..=i64::MAX),
        default: "512",
        mutable: true,
        about: "Up to how many fields a hash is kept in one packed buffer.",
    },
    Parameter {
        name: "hash-max-listpack-value",
        aliases: &["hash-max-ziplist-value"],
        kind: integer!(hash_max_listpack_value, 0..=i64::MAX),
        default: "64",
        mutable: true,
        about: "Up to how many bytes the longest of a hash's fields and values may have in one packed buffer.",
    },
    Parameter {
        name: "set-max-intset-entries",
        aliases: &[],
        kind: integer!(set_max_intset_entries, 0..=i64::MAX),
        default: "512",
        mutable: true,
        about: "Up to how many members a set of integers is kept as an array of them.",
    },
    Parameter {
        name: "set-max-listpack-entries",
        aliases: &[],
        kind: integer!(set_max_listpack_entries, 0..=i64::MAX),
        default: "128",
        mutable: true,
        about: "Up to how many members a set is kept in one packed buffer.",
    },
    Parameter {
        name: "set-max-listpack-value",
        aliases: &[],
        kind: integer!(set_max_listpack_value, 0..=i64::MAX),
        default: "64",
        mutable: true,
        about: "Up to how many bytes the longest of a set's members may have in one packed buffer.",
    },
    Parameter {
        name: "zset-max-listpack-entries",
        aliases: &["zset-max-ziplist-entries"],
        kind: integer!(zset_max_listpack_entries, 0..=i64::MAX),
        default: "128",
        mutable: true,
        about: "Up to how many members a sorted set is kept in one packed buffer.",
    },
    Parameter {
        name: "zset-max-listpack-value",
        aliases: &["zset-max-ziplist-value"],
        kind: integer!(zset_max_listpack_value, 0..=i64::MAX),
        default: "64",
        mutable: true,
        about: "Up to how many bytes the longest of a sorted set's members may have in one packed buffer.",
    },
    Parameter {
        name: "list-max-listpack-size",
        aliases: &["list-max-ziplist-size"],
        kind: integer!(list_max_listpack_size, i32::MIN as i64..=INT_MAX),
        default: "-2",
        mutable: true,
        about: "How many elements a node of a list holds, or, as -1 to -5, 4, 8, 16, 32 or 64 kb of them.",
    },
    Parameter {
        name: "list-compress-depth",
        aliases: &[],
        kind: integer!(list_compress_depth, 0..=INT_MAX),
        default: "0",
        mutable: true,
        about: "How many nodes at each end of a list are not compressed; 0 if no node is to be. It counts for nodes which \
                are made or changed from then on.",
    },
    Parameter {
        name: "stream-node-max-bytes",
        aliases: &[],
        kind: integer!(stream_node_max_bytes, 0..=i64::MAX),
        default: "4096",
        mutable: true,
        about: "How many bytes a node of a stream holds; 0 for no limit.",
    },
    Parameter {
        name: "stream-node-max-entries",
        aliases: &[],
        kind: integer!(stream_node_max_entries, 0..=i64::MAX),
        default: "100",
        mutable: true,
        about: "How many entries a node of a stream holds; 0 for no limit.",
    },
    Parameter {
        name: "hll-sparse-max-bytes",
        aliases: &[],
        kind: integer!(hll_sparse_max_bytes, 0..=i64::MAX),
        default: "3000",
        mutable: true,
        about: "Up to how many bytes a HyperLogLog is kept in its sparse form.",
    },
    // Limits of clients.
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
        about: "When a client which does not read its replies is disconnected: at once above `hard` bytes, or after \
                `seconds` above `soft` bytes; 0 for never. The classes are `normal`, `replica` (or `slave`) and \
                `pubsub`; a class which is not named keeps its limit.",
    },
    Parameter {
        name: "client-query-buffer-limit",
        aliases: &[],
        kind: Kind::Memory { range: BUFFER_BYTES_MIN..=BYTES_MAX, field: field!(client_query_buffer_limit) },
        default: "1gb",
        mutable: true,
        about: "How much of a client's input may wait to be run before the client is disconnected.",
    },
    Parameter {
        name: "proto-max-bulk-len",
        aliases: &[],
        kind: Kind::Memory { range: BUFFER_BYTES_MIN..=BYTES_MAX, field: field!(proto_max_bulk_len) },
        default: "512mb",
        mutable: true,
        about: "The longest argument of a command, and the longest string value.",
    },
    Parameter {
        name: "sanitize-dump-payload",
        aliases: &[],
        kind: Kind::Fixed {
            accepts: &["yes"],
            reason: "the values that RESTORE gets are always checked in full, whoever sends them",
        },
        default: "yes",
        mutable: true,
        about: "Whether RESTORE checks all of a value before it is used.",
    },
    // Scripts.
    Parameter {
        name: "busy-reply-threshold",
        aliases: &["lua-time-limit"],
        kind: integer!(busy_reply_threshold, 0..=i64::MAX),
        default: "5000",
        mutable: true,
        about: "Milliseconds after which a script that still runs can be ended with `SCRIPT KILL` or `FUNCTION KILL`, \
                and other clients are told that the server is busy; 0 for never.",
    },
    Parameter {
        name: "script-memory-limit",
        aliases: &[],
        kind: Kind::Memory { range: SCRIPT_MEMORY_MIN..=BYTES_MAX, field: field!(script_memory_limit) },
        default: "256mb",
        mutable: false,
        about: "How much memory the scripts of each worker may take; one that asks for more gets an error.",
    },
    // Observation.
    Parameter {
        name: "slowlog-log-slower-than",
        aliases: &["commandlog-execution-slower-than"],
        kind: integer!(slowlog_log_slower_than, -1..=i64::MAX),
        default: "10000",
        mutable: true,
        about: "Commands which take at least this many microseconds enter the slow log; 0 for all, -1 for none.",
    },
    Parameter {
        name: "slowlog-max-len",
        aliases: &["commandlog-slow-execution-max-len"],
        kind: integer!(slowlog_max_len, 0..=i64::MAX),
        default: "128",
        mutable: true,
        about: "How many commands the slow log keeps.",
    },
    Parameter {
        name: "commandlog-request-larger-than",
        aliases: &[],
        kind: integer!(commandlog_request_larger_than, -1..=i64::MAX),
        default: "1048576",
        mutable: true,
        about: "Commands which come in at least this many bytes enter the log of large requests; -1 for none.",
    },
    Parameter {
        name: "commandlog-large-request-max-len",
        aliases: &[],
        kind: integer!(commandlog_large_request_max_len, 0..=i64::MAX),
        default: "128",
        mutable: true,
        about: "How many commands the log of large requests keeps.",
    },
    Parameter {
        name: "commandlog-reply-larger-than",
        aliases: &[],
        kind: integer!(commandlog_reply_larger_than, -1..=i64::MAX),
        default: "1048576",
        mutable: true,
        about: "Commands which are answered in at least this many bytes enter the log of large replies; -1 for none.",
    },
    Parameter {
        name: "commandlog-large-reply-max-len",
        aliases: &[],
        kind: integer!(commandlog_large_reply_max_len, 0..=i64::MAX),
        default: "128",
        mutable: true,
        about: "How many commands the log of large replies keeps.",
    },
    Parameter {
        name: "commandlog-key-larger-than",
        aliases: &[],
        kind: integer!(commandlog_key_larger_than, -1..=i64::MAX),
        default: "10485760",
        mutable: true,
        about: "Commands which make a key take, with its value, at least this many bytes of memory enter the log of large \
                keys; -1 for none.",
    },
    Parameter {
        name: "commandlog-large-key-max-len",
        aliases: &[],
        kind: integer!(commandlog_large_key_max_len, 0..=i64::MAX),
        default: "128",
        mutable: true,
        about: "How many commands the log of large keys keeps.",
    },
    Parameter {
        name: "hotkeys-sampling",
        aliases: &[],
        kind: integer!(hotkeys_sampling, 0..=SAMPLING_MAX),
        default: "64",
        mutable: true,
        about: "One in so many commands is looked at for HOTKEYS; 0 for none.",
    },
    Parameter {
        name: "latency-monitor-threshold",
        aliases: &[],
        kind: integer!(latency_monitor_threshold, 0..=i64::MAX),
        default: "0",
        mutable: true,
        about: "Events which take at least this many milliseconds are kept for LATENCY; 0 for none.",
    },
    Parameter {
        name: "latency-tracking",
        aliases: &[],
        kind: Kind::YesNo(field!(latency_tracking)),
        default: "yes",
        mutable: true,
        about: "Whether a histogram of latencies is kept for each command.",
    },
    Parameter {
        name: "latency-tracking-info-percentiles",
        aliases: &[],
        kind: Kind::Words {
            shape: "up to 32 numbers from 0 to 100",
            get: |config| percentiles::format(&config.latency_tracking_info_percentiles),
            set: |config, text| {
                percentiles::parse(text).map(|parsed| config.latency_tracking_info_percentiles = parsed)
            },
        },
        default: "50 99 99.9",
        mutable: true,
        about: "The percentiles of those latencies which INFO shows.",
    },
    Parameter {
        name: "metrics-port",
        aliases: &[],
        kind: integer!(metrics_port, 0..=65535),
        default: "0",
        mutable: false,
        about: "The HTTP port of `/metrics` (for Prometheus), `/health` and `/ready`; 0 for none.",
    },
    Parameter {
        name: "metrics-bind",
        aliases: &[],
        kind: Kind::Words {
            shape: "up to 16 addresses",
            get: |config| bind_address::format(&config.metrics_bind),
            set: |config, text| bind_address::parse(text).map(|addresses| config.metrics_bind = addresses),
        },
        default: "127.0.0.1 -::1",
        mutable: false,
        about: "The addresses to listen on there, as in `bind`. Who reaches them can read all metrics: they name commands \
                and count keys, but show no data.",
    },
    Parameter {
        name: "tracking-table-max-keys",
        aliases: &[],
        kind: integer!(tracking_table_max_keys, 0..=i64::MAX),
        default: "1000000",
        mutable: true,
        about: "Of how many keys it is noted which clients keep copies; what is beyond is told to have changed; 0 for \
                no limit. Each shard has its share.",
    },
    Parameter {
        name: "notify-keyspace-events",
        aliases: &[],
        kind: Kind::Words {
            shape: "letters of `KEg$lshzxetdmnA`",
            get: |config| config.notify_keyspace_events.format(),
            set: |config, text| {
                KeyspaceEvents::parse(text).map(|events| config.notify_keyspace_events = events)
            },
        },
        default: "",
        mutable: true,
        about: "Which changes of keys are published: `K` on the channel of the key, `E` on that of the event; `g` \
                generic commands, `$` strings, `l` lists, `s` sets, `h` hashes, `z` sorted sets, `x` expired keys, \
                `e` evicted keys, `t` streams, `m` reads of missing keys, `n` new keys, `A` for `g$lshzxetd`.",
    },
    Parameter {
        name: "loglevel",
        aliases: &[],
        kind: choice!(loglevel: LogLevel),
        default: "notice",
        mutable: true,
        about: "The least severe messages which are logged.",
    },
    Parameter {
        name: "logfile",
        aliases: &[],
        kind: Kind::Path(field!(logfile)),
        default: "",
        mutable: false,
        about: "The file to log to; empty for the standard output.",
    },
    // Process.
    Parameter {
        name: "dir",
        aliases: &["data-dir"],
        kind: Kind::Path(field!(dir)),
        default: ".",
        mutable: false,
        about: "The directory the server works in: relative paths of `logfile`, `pidfile` and `unixsocket` begin here, and data is kept here.",
    },
    Parameter {
        name: "pidfile",
        aliases: &[],
        kind: Kind::Path(field!(pidfile)),
        default: "",
        mutable: false,
        about: "A file for the process id, removed at exit; empty for none.",
    },
    Parameter {
        name: "daemonize",
        aliases: &[],
        kind: Kind::Fixed {
            accepts: &["no"],
            reason: "the server stays in the foreground: let a supervisor such as systemd run it",
        },
        default: "no",
        mutable: false,
        about: "Whether the server detaches from its terminal.",
    },
    Parameter {
        name: "supervised",
        aliases: &[],
        kind: choice!(supervised: Supervised),
        default: "no",
        mutable: false,
        about: "Which supervisor is told when the server is ready: `systemd` through `NOTIFY_SOCKET`, or `auto` for \
                systemd when that variable is set.",
    },
    Parameter {
        name: "shutdown-timeout",
        aliases: &[],
        kind: integer!(shutdown_timeout, 0..=INT_MAX),
        default: "10",
        mutable: true,
        about: "Seconds a shutdown may wait for clients to read their last replies.",
    },
    // Persistence, replication, cluster.
    Parameter {
        name: "appendonly",
        aliases: &[],
        kind: Kind::YesNo(field!(appendonly)),
        default: "no",
        mutable: true,
        about: "Whether every write is kept in an append-only file (AOF), from which the data set is read at the start.",
    },
    Parameter {
        name: "appendfsync",
        aliases: &[],
        kind: choice!(appendfsync: AppendFsync),
        default: "everysec",
        mutable: true,
        about: "When a write is durable: `always`, before it is acknowledged; `everysec`, within about a second; `no`, when \
                the operating system sees fit.",
    },
    Parameter {
        name: "appenddirname",
        aliases: &[],
        kind: Kind::Words {
            shape: "the name of a directory",
            get: |config| config.appenddirname.clone(),
            set: |config, text| file_name(text, "appenddirname").map(|name| config.appenddirname = name),
        },
        default: "appendonlydir",
        mutable: false,
        about: "The directory in `dir` with the files of the AOF.",
    },
    Parameter {
        name: "appendfilename",
        aliases: &[],
        kind: Kind::Words {
            shape: "the name of a file",
            get: |config| config.appendfilename.clone(),
            set: |config, text| file_name(text, "appendfilename").map(|name| config.appendfilename = name),
        },
        default: "appendonly.aof",
        mutable: false,
        about: "How the names of the files of the AOF begin.",
    },
    Parameter {
        name: "aof-timestamp-enabled",
        aliases: &[],
        kind: Kind::YesNo(field!(aof_timestamp_enabled)),
        default: "no",
        mutable: true,
        about: "Whether the AOF says the time of its commands, so that it can be cut at a time.",
    },
    Parameter {
        name: "aof-load-truncated",
        aliases: &[],
        kind: Kind::YesNo(field!(aof_load_truncated)),
        default: "yes",
        mutable: true,
        about: "Whether the server starts when the end of the AOF was lost in a crash, and cuts it there; otherwise it says \
                so and ends.",
    },
    Parameter {
        name: "aof-use-rdb-preamble",
        aliases: &[],
        kind: Kind::Fixed { accepts: &["yes"], reason: "the base of an AOF is always an RDB file" },
        default: "yes",
        mutable: true,
        about: "The base of an AOF is an RDB file.",
    },
    Parameter {
        name: "auto-aof-rewrite-percentage",
        aliases: &[],
        kind: integer!(auto_aof_rewrite_percentage, 0..=INT_MAX),
        default: "100",
        mutable: true,
        about: "By how much per cent the AOF must have grown since its last rewrite to be rewritten by itself; 0: never.",
    },
    Parameter {
        name: "auto-aof-rewrite-min-size",
        aliases: &[],
        kind: Kind::Memory { range: 0..=BYTES_MAX, field: field!(auto_aof_rewrite_min_size) },
        default: "64mb",
        mutable: true,
        about: "An AOF below this size is not rewritten by itself.",
    },
    Parameter {
        name: "aof-lag-limit",
        aliases: &[],
        kind: integer!(aof_lag_limit, 1000..=3_600_000),
        default: "2000",
        mutable: true,
        about: "With `appendfsync everysec`: how many ms a write may stay without being durable because the disk is slow; \
                while one is older, writes wait.",
    },
    Parameter {
        name: "aof-wait-limit",
        aliases: &[],
        kind: integer!(aof_wait_limit, 0..=3_600_000),
        default: "1000",
        mutable: true,
        about: "How many ms writes wait for a slow disk. After that they are refused with MISCONF until the disk has caught \
                up. With `appendfsync always` a connection whose writes wait for a disk that fails is closed after this time.",
    },
    Parameter {
        name: "dbfilename",
        aliases: &[],
        kind: Kind::Words {
            shape: "the name of a file",
            get: |config| config.dbfilename.clone(),
            set: |config, text| file_name(text, "dbfilename").map(|name| config.dbfilename = name),
        },
        default: "dump.rdb",
        mutable: false,
        about: "The file in `dir` that the data set is read from at the start, if it is there, and that is written: an RDB \
                file as Redis has it.",
    },
    Parameter {
        name: "rdbcompression",
        aliases: &[],
        kind: Kind::YesNo(field!(rdbcompression)),
        default: "yes",
        mutable: true,
        about: "Whether strings in RDB files are packed by LZF where that makes them shorter.",
    },
    Parameter {
        name: "rdbchecksum",
        aliases: &[],
        kind: Kind::Fixed {
            accepts: &["yes"],
            reason: "RDB files always end with a checksum, which takes no time to speak of",
        },
        default: "yes",
        mutable: false,
        about: "Whether RDB files end with a checksum, which is compared when they are read.",
    },
    Parameter {
        name: ENCRYPTION_KEY_FILE,
        aliases: &[],
        kind: Kind::Path(field!(encryption_key_file)),
        default: "",
        mutable: true,
        about: "A file with the keys that files of the data set are encrypted with: 32 bytes in hexadecimal digits or \
                base64 on each line, the current key first, then older ones. Empty for the keys of the variable \
                `EMBER_ENCRYPTION_KEY`, or no encryption without it. CONFIG SET reads the file again.",
    },
    Parameter {
        name: "save",
        aliases: &[],
        kind: Kind::Lines {
            shape: "pairs of seconds and changes",
            get: |config| config.save.format(),
            set: |config, text| config.save.set(text),
            add: |config, text| config.save.add(text),
        },
        default: "3600 1 300 100 60 10000",
        mutable: true,
        about: "When the data set is saved in the background by itself: after so many seconds with so many changes at \
                least; one pair that is fulfilled is enough. Empty for never; SHUTDOWN then saves only if it is told \
                to. Further lines of a file add their pairs.",
    },
    Parameter {
        name: "stop-writes-on-bgsave-error",
        aliases: &[],
        kind: Kind::YesNo(field!(stop_writes_on_bgsave_error)),
        default: "yes",
        mutable: true,
        about: "Whether writes are refused after saving in the background has failed, until it succeeds: only while there \
                are rules in `save`.",
    },
    Parameter {
        name: "replicaof",
        aliases: &["slaveof"],
        kind: Kind::Fixed {
            accepts: &["", "no one"],
            reason: "replication is not available in this version",
        },
        default: "",
        mutable: false,
        about: "The primary to replicate.",
    },
    Parameter {
        name: "cluster-enabled",
        aliases: &[],
        kind: Kind::Fixed { accepts: &["no"], reason: "cluster mode is not available in this version" },
        default: "no",
        mutable: false,
        about: "Whether the server is a node of a cluster.",
    },
];
