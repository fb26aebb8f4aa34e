//! Parameters of Redis Cluster.

use super::bounds::INT_MAX;
use crate::parameter::{Kind, Parameter};
use crate::stored::{Form, check_host_name, check_ipv4, check_ipv6, check_node_name};

const REASON: &str = "cluster mode is not available in this version";

const PORT: Form = Form::Integer(0..=65535);

const fn stored(name: &'static str, form: Form, default: &'static str, about: &'static str) -> Parameter {
    Parameter::without_effect(name, form, default, REASON, about)
}

pub(super) static PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "cluster-enabled",
        aliases: &[],
        kind: Kind::Fixed { accepts: &["no"], reason: REASON },
        default: "no",
        mutable: false,
        about: "Whether the server is a node of a cluster.",
    },
    stored(
        "cluster-config-file",
        Form::Text,
        "nodes.conf",
        "The file in which a node stores the state of the other nodes.",
    )
    .at_start(),
    stored(
        "cluster-node-timeout",
        Form::Integer(0..=i64::MAX),
        "15000",
        "The milliseconds without an answer after which a node is considered down.",
    ),
    stored("cluster-port", PORT, "0", "The port for other nodes; 0 for the port of clients plus 10000.")
        .at_start(),
    stored("cluster-announce-ip", Form::Text, "", "The address that a node announces to the others."),
    stored("cluster-announce-port", PORT, "0", "The port for clients that a node announces to the others."),
    stored(
        "cluster-announce-tls-port",
        PORT,
        "0",
        "The port for clients with TLS that a node announces to the others.",
    ),
    stored("cluster-announce-bus-port", PORT, "0", "The port for nodes that a node announces to the others."),
    stored(
        "cluster-announce-hostname",
        Form::Checked { shape: "a host name", check: check_host_name },
        "",
        "The host name that a node announces to the others.",
    ),
    stored(
        "cluster-announce-human-nodename",
        Form::Checked { shape: "a name", check: check_node_name },
        "",
        "The name of a node in logs.",
    ),
    stored(
        "cluster-preferred-endpoint-type",
        Form::Choice(&["ip", "hostname", "unknown-endpoint"]),
        "ip",
        "The form in which clients receive the address of a node.",
    ),
    stored(
        "cluster-migration-barrier",
        Form::Integer(0..=INT_MAX),
        "1",
        "The number of replicas that a primary keeps when one of them migrates to a primary without any.",
    ),
    stored(
        "cluster-allow-replica-migration",
        Form::YesNo,
        "yes",
        "Whether replicas migrate to primaries without any.",
    ),
    stored(
        "cluster-require-full-coverage",
        Form::YesNo,
        "yes",
        "Whether a cluster refuses all commands while a slot has no node.",
    ),
    stored(
        "cluster-replica-validity-factor",
        Form::Integer(0..=INT_MAX),
        "10",
        "The maximum age of the data of a replica that becomes a primary.",
    )
    .or(&["cluster-slave-validity-factor"]),
    stored(
        "cluster-replica-no-failover",
        Form::YesNo,
        "no",
        "Whether a replica never becomes a primary automatically.",
    )
    .or(&["cluster-slave-no-failover"]),
    stored(
        "cluster-allow-reads-when-down",
        Form::YesNo,
        "no",
        "Whether a node answers reads while the cluster is down.",
    ),
    stored(
        "cluster-allow-pubsubshard-when-down",
        Form::YesNo,
        "yes",
        "Whether a node serves its shard channels while the cluster is down.",
    ),
    stored(
        "cluster-link-sendbuf-limit",
        Form::Memory(0..=u64::MAX),
        "0",
        "The unsent bytes above which the connection to another node is closed; 0 for never.",
    ),
    stored("tls-cluster", Form::YesNo, "no", "Whether nodes use TLS among each other."),
    stored(
        "cluster-announce-client-ipv4",
        Form::Checked { shape: "an IPv4 address", check: check_ipv4 },
        "",
        "The address that clients receive over IPv4.",
    ),
    stored(
        "cluster-announce-client-ipv6",
        Form::Checked { shape: "an IPv6 address", check: check_ipv6 },
        "",
        "The address that clients receive over IPv6.",
    ),
    stored("cluster-announce-client-port", PORT, "0", "The port that clients receive."),
    stored("cluster-announce-client-tls-port", PORT, "0", "The port that clients with TLS receive."),
    stored(
        "cluster-blacklist-ttl",
        Form::Integer(0..=i64::MAX),
        "60",
        "The seconds for which a forgotten node is not added again.",
    ),
    stored(
        "cluster-config-save-behavior",
        Form::Choice(&["sync", "best-effort"]),
        "sync",
        "Whether a node exits when it cannot write its file.",
    ),
    stored("cluster-databases", Form::Integer(1..=INT_MAX), "1", "The number of databases of a node.")
        .at_start(),
    stored(
        "cluster-manual-failover-timeout",
        Form::Integer(1..=INT_MAX),
        "5000",
        "The milliseconds after which a manual failover is abandoned.",
    ),
    stored(
        "cluster-slot-stats-enabled",
        Form::YesNo,
        "no",
        "Whether the resource usage of each slot is counted.",
    ),
    stored(
        "cluster-slot-migration-log-max-len",
        Form::Integer(0..=i64::MAX),
        "1000",
        "The maximum number of slot migrations in the log.",
    ),
    stored(
        "slot-migration-max-failover-repl-bytes",
        Form::Integer(-1..=i64::MAX),
        "0",
        "The unsent bytes below which a slot migration completes; -1 for any number.",
    ),
    stored(
        "cluster-compatibility-sample-ratio",
        Form::Integer(0..=100),
        "0",
        "The percentage of commands that are checked for compatibility with a cluster.",
    ),
];
