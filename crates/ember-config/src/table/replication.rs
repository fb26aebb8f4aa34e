//! Parameters of replication.

use super::bounds::{BYTES_MAX, INT_MAX, SYNC_REPLICAS_MAX};
use crate::parameter::{Field, Kind, Parameter};
use crate::primary_address::PrimaryAddress;
use crate::stored::{Form, check_source_address};
use crate::value::parse_line;
use crate::value::{ReplicaApply, SyncLevel};

macro_rules! word {
    ($field:ident, $shape:literal) => {
        Kind::Words {
            shape: $shape,
            get: |config| config.$field.clone(),
            set: |config, text| parse_line(text).map(|text| config.$field = text),
        }
    };
}

pub(super) static PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "replicaof",
        aliases: &["slaveof"],
        kind: Kind::Words {
            shape: "a host and a port, or `no one`",
            get: |config| config.replicaof.format(),
            set: |config, text| PrimaryAddress::parse(text).map(|primary| config.replicaof = primary),
        },
        default: "",
        mutable: false,
        about: "Host and port of the primary to replicate. At run time the command REPLICAOF changes it.",
    },
    Parameter {
        name: "masterauth",
        aliases: &["primaryauth"],
        kind: Kind::Secret { field: field!(masterauth), file: None },
        default: "",
        mutable: true,
        about: "The password with which a replica logs in to its primary.",
    },
    Parameter {
        name: "masteruser",
        aliases: &["primaryuser"],
        kind: Kind::Secret { field: field!(masteruser), file: None },
        default: "",
        mutable: true,
        about: "The user with which a replica logs in to its primary; without one it sends only the password.",
    },
    Parameter {
        name: "bind-source-addr",
        aliases: &[],
        kind: Kind::Words {
            shape: "an address of this machine",
            get: |config| config.bind_source_addr.clone(),
            set: |config, text| {
                if !text.is_empty() {
                    check_source_address(text)?;
                }
                config.bind_source_addr = text.to_owned();
                Ok(())
            },
        },
        default: "",
        mutable: true,
        about: "The local address of the connection to a primary, if possible.",
    },
    Parameter {
        name: "replica-serve-stale-data",
        aliases: &["slave-serve-stale-data"],
        kind: Kind::YesNo(field!(replica_serve_stale_data)),
        default: "yes",
        mutable: true,
        about: "Whether a replica serves its data while it has no connection to its primary.",
    },
    Parameter {
        name: "replica-read-only",
        aliases: &["slave-read-only"],
        kind: Kind::Fixed {
            accepts: &["yes"],
            reason: "writes to a replica would be lost or would make it differ from its primary, so it is always \
                     read-only",
        },
        default: "yes",
        mutable: true,
        about: "Whether a replica refuses writes of its clients.",
    },
    Parameter {
        name: "replica-apply",
        aliases: &[],
        kind: choice!(replica_apply: ReplicaApply),
        default: "serial",
        mutable: true,
        about: "How a replica applies the stream of its primary: `parallel`, on all cores, each key in order and each \
                transaction as a whole; or `serial`, on one core, so that readers never see a write without all \
                earlier ones.",
    },
    Parameter {
        name: "replica-ignore-maxmemory",
        aliases: &["slave-ignore-maxmemory"],
        kind: Kind::Fixed { accepts: &["yes"], reason: "a replica removes no key that its primary has" },
        default: "yes",
        mutable: true,
        about: "Whether a replica leaves eviction to its primary.",
    },
    Parameter {
        name: "replica-lazy-flush",
        aliases: &["slave-lazy-flush"],
        kind: Kind::YesNo(field!(replica_lazy_flush)),
        default: "no",
        mutable: true,
        about: "Whether a replica frees its old data set in the background when it receives a new one.",
    },
    Parameter {
        name: "replica-announced",
        aliases: &[],
        kind: Kind::YesNo(field!(replica_announced)),
        default: "yes",
        mutable: true,
        about: "Whether this replica is reported to Sentinel.",
    },
    Parameter::without_effect(
        "replica-ignore-disk-write-errors",
        Form::YesNo,
        "no",
        "a replica whose append-only file cannot be written applies nothing until it can",
        "Whether a replica continues when it cannot write to its disk.",
    ),
    Parameter {
        name: "replica-priority",
        aliases: &["slave-priority"],
        kind: integer!(replica_priority, 0..=INT_MAX),
        default: "100",
        mutable: true,
        about: "Which replica Sentinel promotes first: the one with the lowest number; 0 for never.",
    },
    Parameter {
        name: "replica-announce-ip",
        aliases: &["slave-announce-ip"],
        kind: word!(replica_announce_ip, "an address"),
        default: "",
        mutable: true,
        about: "The address that a replica reports to its primary; empty for the source address of its connection.",
    },
    Parameter {
        name: "replica-announce-port",
        aliases: &["slave-announce-port"],
        kind: integer!(replica_announce_port, 0..=65535),
        default: "0",
        mutable: true,
        about: "The port that a replica reports to its primary; 0 for the real one.",
    },
    Parameter {
        name: "repl-diskless-sync",
        aliases: &[],
        kind: Kind::YesNo(field!(repl_diskless_sync)),
        default: "yes",
        mutable: true,
        about: "Whether the data of a full sync is streamed to replicas while it is written, or sent when it is complete.",
    },
    Parameter {
        name: "repl-diskless-sync-delay",
        aliases: &[],
        kind: integer!(repl_diskless_sync_delay, 0..=INT_MAX),
        default: "1",
        mutable: true,
        about: "The seconds for which a primary waits for more replicas before it starts their common snapshot.",
    },
    Parameter {
        name: "repl-diskless-sync-max-replicas",
        aliases: &[],
        kind: integer!(repl_diskless_sync_max_replicas, 0..=INT_MAX),
        default: "0",
        mutable: true,
        about: "The number of waiting replicas at which the snapshot starts at once; 0 for no such number.",
    },
    Parameter {
        name: "repl-diskless-load",
        aliases: &[],
        kind: Kind::Fixed {
            accepts: &["disabled", "on-empty-db", "flush-before-load"],
            reason: "a replica removes its data before it loads that of its primary",
        },
        default: "disabled",
        mutable: true,
        about: "How a replica loads the data of its primary: directly from the link, without a file, replacing its own \
                data.",
    },
    Parameter {
        name: "repl-disable-tcp-nodelay",
        aliases: &[],
        kind: Kind::YesNo(field!(repl_disable_tcp_nodelay)),
        default: "no",
        mutable: true,
        about: "Whether replicas receive fewer and larger packets, with more delay. It applies to replicas that \
                connect from then on.",
    },
    Parameter {
        name: "repl-ping-replica-period",
        aliases: &["repl-ping-slave-period"],
        kind: integer!(repl_ping_replica_period, 1..=INT_MAX),
        default: "10",
        mutable: true,
        about: "The interval in seconds at which a primary sends PING to its replicas.",
    },
    Parameter {
        name: "repl-timeout",
        aliases: &[],
        kind: integer!(repl_timeout, 1..=INT_MAX),
        default: "60",
        mutable: true,
        about: "The seconds without data after which primary and replica consider their connection broken.",
    },
    Parameter {
        name: "repl-backlog-size",
        aliases: &[],
        kind: Kind::Memory { range: 1..=BYTES_MAX, field: field!(repl_backlog_size) },
        default: "16mb",
        mutable: true,
        about: "The size of the replication stream kept in memory for replicas that reconnect.",
    },
    Parameter {
        name: "repl-backlog-spill",
        aliases: &[],
        kind: Kind::Memory { range: 0..=BYTES_MAX, field: field!(repl_backlog_spill) },
        default: "1gb",
        mutable: true,
        about: "The size of the stream kept beyond that, in files without names, while a connected or disconnected \
                replica still needs it. With 0 it is kept in memory for connected replicas, as far as \
                `client-output-buffer-limit replica` allows.",
    },
    Parameter {
        name: "repl-backlog-ttl",
        aliases: &[],
        kind: integer!(repl_backlog_ttl, 0..=i64::MAX),
        default: "3600",
        mutable: true,
        about: "The seconds for which the stream is kept without replicas; 0 for ever.",
    },
    Parameter {
        name: "min-replicas-to-write",
        aliases: &["min-slaves-to-write"],
        kind: integer!(min_replicas_to_write, 0..=INT_MAX),
        default: "0",
        mutable: true,
        about: "The number of replicas below which a primary refuses writes.",
    },
    Parameter {
        name: "min-replicas-max-lag",
        aliases: &["min-slaves-max-lag"],
        kind: integer!(min_replicas_max_lag, 0..=INT_MAX),
        default: "10",
        mutable: true,
        about: "The seconds within which these replicas must have reported.",
    },
    Parameter {
        name: "sync-replicas",
        aliases: &[],
        kind: integer!(sync_replicas, 0..=SYNC_REPLICAS_MAX as i64),
        default: "0",
        mutable: true,
        about: "The number of replicas that must confirm a write before its reply; with fewer good replicas it is \
                refused.",
    },
    Parameter {
        name: "sync-level",
        aliases: &[],
        kind: choice!(sync_level: SyncLevel),
        default: "memory",
        mutable: true,
        about: "Where these replicas must have the write: in `memory`, or on `disk`, in their append-only files.",
    },
    Parameter {
        name: "sync-timeout",
        aliases: &[],
        kind: integer!(sync_timeout, 1..=INT_MAX),
        default: "5000",
        mutable: true,
        about: "The milliseconds without a confirmation by these replicas after which a client's connection is \
                closed, because the outcome of its write is unknown.",
    },
    Parameter::without_effect(
        "rdb-del-sync-files",
        Form::YesNo,
        "no",
        "the data of full syncs is in unnamed files, which the system removes",
        "Whether RDB files that were written for replication only are removed.",
    ),
    Parameter::without_effect(
        "propagation-error-behavior",
        Form::Choice(&["ignore", "panic", "panic-on-replicas"]),
        "ignore",
        "a command of the primary that fails stops the link",
        "The reaction to a failed command from the primary or a file.",
    ),
    Parameter {
        name: "tls-replication",
        aliases: &[],
        kind: Kind::YesNo(field!(tls_replication)),
        default: "no",
        mutable: true,
        about: "Whether a replica connects to its primary with TLS. The primary's certificate must be issued by an \
                authority of `tls-ca-cert-file` or `tls-ca-cert-dir` for the host in `replicaof`.",
    },
    Parameter {
        name: "tls-client-cert-file",
        aliases: &[],
        kind: Kind::Path(field!(tls_client_cert_file)),
        default: "",
        mutable: true,
        about: "The certificate that a replica presents to its primary; empty for that of `tls-cert-file`.",
    },
    Parameter {
        name: "tls-client-key-file",
        aliases: &[],
        kind: Kind::Path(field!(tls_client_key_file)),
        default: "",
        mutable: true,
        about: "The private key of that certificate.",
    },
    Parameter {
        name: "tls-client-key-file-pass",
        aliases: &[],
        kind: Kind::Secret { field: field!(tls_client_key_file_pass), file: None },
        default: "",
        mutable: true,
        about: "The password of that key.",
    },
    Parameter::without_effect(
        "replica-full-sync-buffer-limit",
        Form::Memory(0..=BYTES_MAX),
        "0",
        "the primary keeps the stream that follows a snapshot",
        "The size of the primary's stream that a replica buffers during a full sync; 0 for the limit of \
         `client-output-buffer-limit`.",
    ),
    Parameter::without_effect(
        "dual-channel-replication-enabled",
        Form::YesNo,
        "no",
        "data and stream come over one connection",
        "Whether the data set of a full sync is sent over a separate connection.",
    ),
    Parameter::without_effect(
        "repl-mptcp",
        Form::YesNo,
        "no",
        "the link is TCP",
        "Whether a replica uses Multipath TCP to its primary.",
    )
    .at_start(),
];
