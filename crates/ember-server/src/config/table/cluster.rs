//! Cluster.

use super::bounds::INT_MAX;
use crate::config::parameter::{Kind, Parameter};
use crate::config::stored::{Form, check_host_name, check_node_name};

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
        "The file in which a node keeps what it knows of the others.",
    )
    .at_start(),
    stored(
        "cluster-node-timeout",
        Form::Integer(0..=i64::MAX),
        "15000",
        "After how many milliseconds without an answer a node is taken for down.",
    ),
    stored("cluster-port", PORT, "0", "The port for other nodes; 0 for that of clients and 10000.")
        .at_start(),
    stored("cluster-announce-ip", Form::Text, "", "The address that a node tells the others."),
    stored("cluster-announce-port", PORT, "0", "The port for clients that a node tells the others."),
    stored(
        "cluster-announce-tls-port",
        PORT,
        "0",
        "The port for clients with TLS that a node tells the others.",
    ),
    stored("cluster-announce-bus-port", PORT, "0", "The port for nodes that a node tells the others."),
    stored(
        "cluster-announce-hostname",
        Form::Checked { shape: "a host name", check: check_host_name },
        "",
        "The host name that a node tells the others.",
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
        "How clients are told where a node is.",
    ),
    stored(
        "cluster-migration-barrier",
        Form::Integer(0..=INT_MAX),
        "1",
        "How many replicas a primary keeps when one goes to a primary without any.",
    ),
    stored(
        "cluster-allow-replica-migration",
        Form::YesNo,
        "yes",
        "Whether replicas go to primaries without any.",
    ),
    stored(
        "cluster-require-full-coverage",
        Form::YesNo,
        "yes",
        "Whether a cluster with slots that no node serves refuses everything.",
    ),
    stored(
        "cluster-replica-validity-factor",
        Form::Integer(0..=INT_MAX),
        "10",
        "How old the data of a replica may be for it to become a primary.",
    )
    .or(&["cluster-slave-validity-factor"]),
    stored(
        "cluster-replica-no-failover",
        Form::YesNo,
        "no",
        "Whether a replica never becomes a primary by itself.",
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
        "Above how many bytes that wait the connection to another node is closed; 0 for never.",
    ),
    stored("tls-cluster", Form::YesNo, "no", "Whether nodes speak TLS with each other."),
];
