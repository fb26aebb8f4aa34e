//! Replication.

use super::bounds::{BYTES_MAX, INT_MAX};
use crate::config::parameter::{Kind, Parameter};
use crate::config::stored::{Form, check_source_address};

const REASON: &str = "replication is not available in this version";

const fn stored(name: &'static str, form: Form, default: &'static str, about: &'static str) -> Parameter {
    Parameter::without_effect(name, form, default, REASON, about)
}

pub(super) static PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "replicaof",
        aliases: &["slaveof"],
        kind: Kind::Fixed { accepts: &["", "no one"], reason: REASON },
        default: "",
        mutable: false,
        about: "The primary to replicate.",
    },
    stored("masterauth", Form::Secret, "", "The password that a replica shows to its primary.")
        .or(&["primaryauth"]),
    stored("masteruser", Form::Secret, "", "The user that a replica is to its primary.").or(&["primaryuser"]),
    stored(
        "bind-source-addr",
        Form::Checked { shape: "an address of this machine", check: check_source_address },
        "",
        "The address that connections to a primary come from.",
    ),
    stored(
        "replica-serve-stale-data",
        Form::YesNo,
        "yes",
        "Whether a replica answers while it has no connection to its primary.",
    )
    .or(&["slave-serve-stale-data"]),
    stored("replica-read-only", Form::YesNo, "yes", "Whether a replica refuses writes of its clients.")
        .or(&["slave-read-only"]),
    stored(
        "replica-ignore-maxmemory",
        Form::YesNo,
        "yes",
        "Whether a replica leaves eviction to its primary.",
    )
    .or(&["slave-ignore-maxmemory"]),
    stored(
        "replica-lazy-flush",
        Form::YesNo,
        "no",
        "Whether a replica frees its old data set in the background when it gets a new one.",
    )
    .or(&["slave-lazy-flush"]),
    stored("replica-announced", Form::YesNo, "yes", "Whether Sentinel is told of this replica."),
    stored(
        "replica-ignore-disk-write-errors",
        Form::YesNo,
        "no",
        "Whether a replica goes on when it cannot write to its disk.",
    ),
    stored(
        "replica-priority",
        Form::Integer(0..=INT_MAX),
        "100",
        "Which replica Sentinel promotes first: the one with the lowest number; 0 for never.",
    )
    .or(&["slave-priority"]),
    stored("replica-announce-ip", Form::Text, "", "The address that a replica tells its primary.")
        .or(&["slave-announce-ip"]),
    stored(
        "replica-announce-port",
        Form::Integer(0..=65535),
        "0",
        "The port that a replica tells its primary; 0 for the real one.",
    )
    .or(&["slave-announce-port"]),
    stored(
        "repl-diskless-sync",
        Form::YesNo,
        "yes",
        "Whether a primary sends its data set to replicas without a file.",
    ),
    stored(
        "repl-diskless-sync-delay",
        Form::Integer(0..=INT_MAX),
        "5",
        "For how many seconds a primary waits for more replicas before it sends its data set.",
    ),
    stored(
        "repl-diskless-sync-max-replicas",
        Form::Integer(0..=INT_MAX),
        "0",
        "With how many replicas it does not wait any longer; 0 for any number.",
    ),
    stored(
        "repl-diskless-load",
        Form::Choice(&["disabled", "on-empty-db", "swapdb"]),
        "disabled",
        "Whether a replica loads the data set as it comes, without a file.",
    ),
    stored(
        "repl-disable-tcp-nodelay",
        Form::YesNo,
        "no",
        "Whether fewer and larger packets go to replicas, later.",
    ),
    stored(
        "repl-ping-replica-period",
        Form::Integer(1..=INT_MAX),
        "10",
        "Every how many seconds a primary sends PING to its replicas.",
    )
    .or(&["repl-ping-slave-period"]),
    stored(
        "repl-timeout",
        Form::Integer(1..=INT_MAX),
        "60",
        "After how many seconds of silence primary and replica take their connection for broken.",
    ),
    stored(
        "repl-backlog-size",
        Form::Memory(1..=BYTES_MAX),
        "1mb",
        "How much of what was sent to replicas is kept for those that come back.",
    ),
    stored(
        "repl-backlog-ttl",
        Form::Integer(0..=i64::MAX),
        "3600",
        "For how many seconds it is kept when there are no replicas; 0 for ever.",
    ),
    stored(
        "min-replicas-to-write",
        Form::Integer(0..=INT_MAX),
        "0",
        "Without this many replicas a primary refuses writes.",
    )
    .or(&["min-slaves-to-write"]),
    stored(
        "min-replicas-max-lag",
        Form::Integer(0..=INT_MAX),
        "10",
        "How many seconds ago those replicas must have been heard.",
    )
    .or(&["min-slaves-max-lag"]),
    stored(
        "rdb-del-sync-files",
        Form::YesNo,
        "no",
        "Whether RDB files that were written for replication only are removed.",
    ),
    stored(
        "propagation-error-behavior",
        Form::Choice(&["ignore", "panic", "panic-on-replicas"]),
        "ignore",
        "What happens when a command from the primary or a file fails.",
    ),
    stored("tls-replication", Form::YesNo, "no", "Whether replicas speak TLS with their primary."),
    stored("tls-client-cert-file", Form::Text, "", "The certificate that a replica shows to its primary."),
    stored("tls-client-key-file", Form::Text, "", "The private key of that certificate."),
    stored("tls-client-key-file-pass", Form::Secret, "", "The password of that key."),
    stored(
        "replica-full-sync-buffer-limit",
        Form::Memory(0..=BYTES_MAX),
        "0",
        "How much of what the primary sends during a full synchronization a replica keeps; 0 for the limit of \
         `client-output-buffer-limit`.",
    ),
    stored(
        "dual-channel-replication-enabled",
        Form::YesNo,
        "no",
        "Whether the data set of a full synchronization comes over a connection of its own.",
    ),
    stored("repl-mptcp", Form::YesNo, "no", "Whether a replica speaks Multipath TCP with its primary.")
        .at_start(),
];
