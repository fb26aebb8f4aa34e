//! Parameters of Redis Cluster.

use std::ops::RangeInclusive;

use super::bounds::INT_MAX;
use crate::parameter::{Field, Kind, Parameter};
use crate::stored::{Form, check_host_name, check_ipv4, check_ipv6, check_node_name, check_source_address};
use crate::value::{EndpointType, parse_line};

const REASON: &str = "the feature is not available in this version";

const PORT: RangeInclusive<i64> = 0..=65535;

/// The maximum of `cluster-databases`: as many as a server without a cluster has by default, for clients that use several.
const CLUSTER_DATABASES_MAX: i64 = 16;

const fn stored(name: &'static str, form: Form, default: &'static str, about: &'static str) -> Parameter {
    Parameter::without_effect(name, form, default, REASON, about)
}

pub(super) static PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "cluster-enabled",
        aliases: &[],
        kind: Kind::YesNo(field!(cluster_enabled)),
        default: "no",
        mutable: false,
        about: "Whether the server is a node of a cluster.",
    },
    Parameter {
        name: "cluster-config-file",
        aliases: &[],
        kind: Kind::Path(field!(cluster_config_file)),
        default: "nodes.conf",
        mutable: false,
        about: "The file in which a node stores the nodes of the cluster and their slots.",
    },
    Parameter {
        name: "cluster-node-timeout",
        aliases: &[],
        kind: integer!(cluster_node_timeout, 0..=i64::MAX),
        default: "5000",
        mutable: true,
        about: "The time in ms, at least 200, from which the durations of leases (a half) and of the silence of a leader \
                before an election (a sixth) follow.",
    },
    Parameter {
        name: "cluster-auth-pass",
        aliases: &[],
        kind: Kind::Secret { field: field!(cluster_auth_pass), file: Some(field!(cluster_auth_pass_file)) },
        default: "",
        mutable: true,
        about: "The secret of all nodes of a cluster, with which they authenticate each other; a change applies to \
                new connections. On the command line every user of the machine can read it: prefer \
                `cluster-auth-pass-file`.",
    },
    Parameter {
        name: "cluster-auth-pass-file",
        aliases: &[],
        kind: Kind::Path(field!(cluster_auth_pass_file)),
        default: "",
        mutable: false,
        about: "A file that contains the secret of all nodes of a cluster, for example a secret of a container platform.",
    },
    Parameter {
        name: "cluster-unauthenticated",
        aliases: &[],
        kind: Kind::YesNo(field!(cluster_unauthenticated)),
        default: "no",
        mutable: false,
        about: "Whether nodes on other machines may change the cluster without a secret or a certificate.",
    },
    Parameter {
        name: "cluster-bootstrap",
        aliases: &[],
        kind: Kind::YesNo(field!(cluster_bootstrap)),
        default: "no",
        mutable: false,
        about: "Whether a node that is in no cluster forms one, with all slots that have no owner.",
    },
    Parameter {
        name: "cluster-port",
        aliases: &[],
        kind: integer!(cluster_port, PORT),
        default: "0",
        mutable: false,
        about: "The port for other nodes, which a node announces; 0 for the port of clients plus 10000.",
    },
    Parameter {
        name: "cluster-announce-ip",
        aliases: &[],
        kind: Kind::Words {
            shape: "an address",
            get: |config| config.cluster_announce_ip.clone(),
            set: |config, text| {
                check_source_address(text).map(|()| config.cluster_announce_ip = text.to_owned())
            },
        },
        default: "",
        mutable: true,
        about: "The address that a node announces; empty for the one in its file.",
    },
    Parameter {
        name: "cluster-announce-port",
        aliases: &[],
        kind: integer!(cluster_announce_port, PORT),
        default: "0",
        mutable: true,
        about: "The port for clients that a node announces; 0 for its own.",
    },
    Parameter {
        name: "cluster-announce-tls-port",
        aliases: &[],
        kind: integer!(cluster_announce_tls_port, PORT),
        default: "0",
        mutable: true,
        about: "The port for clients with TLS that a node announces; 0 for its own.",
    },
    Parameter {
        name: "cluster-announce-bus-port",
        aliases: &[],
        kind: integer!(cluster_announce_bus_port, PORT),
        default: "0",
        mutable: true,
        about: "The port for nodes that a node announces; 0 for its own.",
    },
    Parameter {
        name: "cluster-announce-hostname",
        aliases: &[],
        kind: Kind::Words {
            shape: "a host name",
            get: |config| config.cluster_announce_hostname.clone(),
            set: |config, text| {
                check_host_name(text).map(|()| config.cluster_announce_hostname = text.to_owned())
            },
        },
        default: "",
        mutable: true,
        about: "The host name that a node announces.",
    },
    Parameter {
        name: "cluster-announce-human-nodename",
        aliases: &[],
        kind: Kind::Words {
            shape: "a name",
            get: |config| config.cluster_announce_human_nodename.clone(),
            set: |config, text| {
                check_node_name(text)?;
                parse_line(text).map(|text| config.cluster_announce_human_nodename = text)
            },
        },
        default: "",
        mutable: true,
        about: "The name of a node in logs.",
    },
    Parameter {
        name: "cluster-preferred-endpoint-type",
        aliases: &[],
        kind: choice!(cluster_preferred_endpoint_type: EndpointType),
        default: "ip",
        mutable: true,
        about: "The form in which clients receive the address of a node.",
    },
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
    Parameter {
        name: "cluster-require-full-coverage",
        aliases: &[],
        kind: Kind::YesNo(field!(cluster_require_full_coverage)),
        default: "yes",
        mutable: true,
        about: "Whether a cluster refuses all commands on keys while a slot has no node.",
    },
    stored(
        "cluster-replica-validity-factor",
        Form::Integer(0..=INT_MAX),
        "10",
        "The maximum age of the data of a replica that becomes a primary.",
    )
    .or(&["cluster-slave-validity-factor"]),
    Parameter {
        name: "cluster-replica-no-failover",
        aliases: &["cluster-slave-no-failover"],
        kind: Kind::YesNo(field!(cluster_replica_no_failover)),
        default: "no",
        mutable: true,
        about: "Whether this node, as a replica, becomes a primary only by CLUSTER FAILOVER.",
    },
    Parameter {
        name: "cluster-allow-reads-when-down",
        aliases: &[],
        kind: Kind::YesNo(field!(cluster_allow_reads_when_down)),
        default: "no",
        mutable: true,
        about: "Whether a node answers reads of its own slots while the cluster is down.",
    },
    Parameter {
        name: "cluster-allow-pubsubshard-when-down",
        aliases: &[],
        kind: Kind::YesNo(field!(cluster_allow_pubsubshard_when_down)),
        default: "yes",
        mutable: true,
        about: "Whether a node serves its shard channels while the cluster is down.",
    },
    stored(
        "cluster-link-sendbuf-limit",
        Form::Memory(0..=u64::MAX),
        "0",
        "The unsent bytes above which the connection to another node is closed; 0 for never.",
    ),
    Parameter {
        name: "tls-cluster",
        aliases: &[],
        kind: Kind::YesNo(field!(tls_cluster)),
        default: "no",
        mutable: false,
        about: "Whether the connections between nodes use TLS.",
    },
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
    stored("cluster-announce-client-port", Form::Integer(PORT), "0", "The port that clients receive."),
    stored(
        "cluster-announce-client-tls-port",
        Form::Integer(PORT),
        "0",
        "The port that clients with TLS receive.",
    ),
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
    Parameter {
        name: "cluster-databases",
        aliases: &[],
        kind: integer!(cluster_databases, 1..=CLUSTER_DATABASES_MAX),
        default: "1",
        mutable: false,
        about: "The number of databases of a node of a cluster.",
    },
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
