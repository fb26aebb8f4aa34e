//! CLUSTER, READONLY, READWRITE and ASKING: reply as Redis does on a server that is not part of a cluster.

use emberkv_core::spec::{Category, Command, Example, Flags, Group, Spec};

use crate::executor::session::ServerCommand;

const DISABLED: &str = "ERR This instance has cluster support disabled";

/// The reply that all documented examples show.
const SHOWN: &str = "(error) ERR This instance has cluster support disabled";

/// Declares a command that is refused, because it requires a cluster.
const fn refused(spec: Spec) -> ServerCommand {
    Command::new(spec, Some(|_| Err(DISABLED.into())))
}

const fn example(call: &'static str) -> Example {
    Example { given: &[], call, reply: SHOWN }
}

/// The common part of the specifications in this file.
const TEMPLATE: Spec = Spec {
    since: "3.0.0",
    group: Group::Cluster,
    complexity: "O(1)",
    arity: 2,
    flags: Flags::STALE,
    ..Spec::DEFAULT
};

/// The common part of commands whose replies may differ between nodes.
const QUERIES: Spec = Spec { tips: &["nondeterministic_output"], ..TEMPLATE };

/// The common part of commands that change a node's view of the cluster.
const CHANGES: Spec =
    Spec { flags: Flags::ADMIN.union(Flags::STALE).union(Flags::NO_ASYNC_LOADING), ..TEMPLATE };

const LOADING: Flags = Flags::LOADING.union(Flags::STALE);

/// The common part of commands about the connection.
const CONNECTION: Spec =
    Spec { arity: 1, flags: Flags::FAST.union(LOADING), categories: Category::CONNECTION, ..TEMPLATE };

const ADMIN_QUERIES: Spec = Spec { flags: Flags::ADMIN.union(Flags::STALE), ..QUERIES };

pub(super) const COMMANDS: &[&[ServerCommand]] = &[&[
    refused(Spec {
        name: "asking",
        summary: "Allows the next command to access a slot that is being imported.",
        flags: Flags::FAST,
        example: example("ASKING"),
        ..CONNECTION
    }),
    refused(Spec {
        name: "readonly",
        summary: "Enables reads from a replica for the connection.",
        example: example("READONLY"),
        ..CONNECTION
    }),
    refused(Spec {
        name: "readwrite",
        summary: "Reverts READONLY.",
        example: example("READWRITE"),
        ..CONNECTION
    }),
    Command::container(
        Spec {
            name: "cluster",
            summary: "Contains subcommands for the cluster.",
            complexity: "Depends on the subcommand.",
            arity: -2,
            flags: Flags::empty(),
            ..TEMPLATE
        },
        None,
        SUBCOMMANDS,
    ),
]];

const SUBCOMMANDS: &[ServerCommand] = &[
    refused(Spec {
        name: "addslots",
        summary: "Assigns slots to this node.",
        complexity: "O(N) for N slots.",
        arity: -3,
        syntax: "slot [slot ...]",
        example: example("CLUSTER ADDSLOTS 1"),
        ..CHANGES
    }),
    refused(Spec {
        name: "addslotsrange",
        summary: "Assigns ranges of slots to this node.",
        since: "7.0.0",
        complexity: "O(N) for N slots.",
        arity: -4,
        syntax: "start-slot end-slot [start-slot end-slot ...]",
        example: example("CLUSTER ADDSLOTSRANGE 1 2"),
        ..CHANGES
    }),
    refused(Spec {
        name: "bumpepoch",
        summary: "Raises this node's configuration epoch.",
        tips: &["nondeterministic_output"],
        example: example("CLUSTER BUMPEPOCH"),
        ..CHANGES
    }),
    refused(Spec {
        name: "count-failure-reports",
        summary: "Returns the number of nodes that report a node as failed.",
        complexity: "O(N) for N reports.",
        arity: 3,
        syntax: "node-id",
        example: example("CLUSTER COUNT-FAILURE-REPORTS a"),
        ..ADMIN_QUERIES
    }),
    refused(Spec {
        name: "countkeysinslot",
        summary: "Returns the number of keys in a slot.",
        arity: 3,
        syntax: "slot",
        example: example("CLUSTER COUNTKEYSINSLOT 1"),
        ..TEMPLATE
    }),
    refused(Spec {
        name: "delslots",
        summary: "Removes the assignment of slots on this node.",
        complexity: "O(N) for N slots.",
        arity: -3,
        syntax: "slot [slot ...]",
        example: example("CLUSTER DELSLOTS 1"),
        ..CHANGES
    }),
    refused(Spec {
        name: "delslotsrange",
        summary: "Removes the assignment of ranges of slots on this node.",
        since: "7.0.0",
        complexity: "O(N) for N slots.",
        arity: -4,
        syntax: "start-slot end-slot [start-slot end-slot ...]",
        example: example("CLUSTER DELSLOTSRANGE 1 2"),
        ..CHANGES
    }),
    refused(Spec {
        name: "failover",
        summary: "Makes this replica the primary of its shard.",
        arity: -2,
        syntax: "[options:<FORCE | TAKEOVER>]",
        example: example("CLUSTER FAILOVER"),
        ..CHANGES
    }),
    refused(Spec {
        name: "flushslots",
        summary: "Removes all slots from this node.",
        example: example("CLUSTER FLUSHSLOTS"),
        ..CHANGES
    }),
    refused(Spec {
        name: "forget",
        summary: "Removes a node from this node's table of nodes.",
        arity: 3,
        syntax: "node-id",
        example: example("CLUSTER FORGET a"),
        ..CHANGES
    }),
    refused(Spec {
        name: "getkeysinslot",
        summary: "Returns keys of a slot.",
        complexity: "O(N) for N keys.",
        arity: 4,
        syntax: "slot count",
        example: example("CLUSTER GETKEYSINSLOT 1 1"),
        ..QUERIES
    }),
    refused(Spec {
        name: "help",
        summary: "Describes the subcommands.",
        since: "5.0.0",
        flags: LOADING,
        example: example("CLUSTER HELP"),
        ..TEMPLATE
    }),
    refused(Spec {
        name: "info",
        summary: "Returns information about the cluster as this node sees it.",
        example: example("CLUSTER INFO"),
        ..QUERIES
    }),
    refused(Spec {
        name: "keyslot",
        summary: "Returns the slot of a key.",
        complexity: "O(N) for N bytes of the key.",
        arity: 3,
        syntax: "key",
        example: example("CLUSTER KEYSLOT key"),
        ..TEMPLATE
    }),
    refused(Spec {
        name: "links",
        summary: "Returns information about the connections to other nodes.",
        since: "7.0.0",
        complexity: "O(N) for N nodes.",
        example: example("CLUSTER LINKS"),
        ..QUERIES
    }),
    refused(Spec {
        name: "meet",
        summary: "Introduces a node to this node.",
        arity: -4,
        syntax: "ip port [cluster-bus-port]@4.0.0",
        history: &[("4.0.0", "`cluster-bus-port` came.")],
        example: example("CLUSTER MEET 127.0.0.1 7000"),
        ..CHANGES
    }),
    refused(Spec {
        name: "myid",
        summary: "Returns the name of this node.",
        example: example("CLUSTER MYID"),
        ..TEMPLATE
    }),
    refused(Spec {
        name: "myshardid",
        summary: "Returns the name of this node's shard.",
        since: "7.2.0",
        example: example("CLUSTER MYSHARDID"),
        ..QUERIES
    }),
    refused(Spec {
        name: "nodes",
        summary: "Returns information about all nodes.",
        complexity: "O(N) for N nodes.",
        example: example("CLUSTER NODES"),
        ..QUERIES
    }),
    refused(Spec {
        name: "replicas",
        summary: "Returns information about the replicas of a node.",
        since: "5.0.0",
        complexity: "O(N) for N replicas.",
        arity: 3,
        syntax: "node-id",
        example: example("CLUSTER REPLICAS a"),
        ..ADMIN_QUERIES
    }),
    refused(Spec {
        name: "replicate",
        summary: "Makes this node a replica of another one.",
        arity: 3,
        syntax: "node-id",
        example: example("CLUSTER REPLICATE a"),
        ..CHANGES
    }),
    refused(Spec {
        name: "reset",
        summary: "Resets this node's cluster state.",
        complexity: "O(N) for N nodes; of a replica all keys are removed.",
        arity: -2,
        flags: Flags::ADMIN.union(Flags::STALE).union(Flags::NOSCRIPT),
        syntax: "[reset-type:<HARD | SOFT>]",
        example: example("CLUSTER RESET"),
        ..TEMPLATE
    }),
    refused(Spec {
        name: "saveconfig",
        summary: "Writes this node's cluster state to its file.",
        example: example("CLUSTER SAVECONFIG"),
        ..CHANGES
    }),
    refused(Spec {
        name: "set-config-epoch",
        summary: "Sets the configuration epoch of a new node.",
        arity: 3,
        syntax: "config-epoch",
        example: example("CLUSTER SET-CONFIG-EPOCH 1"),
        ..CHANGES
    }),
    refused(Spec {
        name: "setslot",
        summary: "Assigns a slot to a node, or sets its migration state.",
        arity: -4,
        syntax: "slot subcommand:<IMPORTING node-id | MIGRATING node-id | NODE node-id | STABLE>",
        example: example("CLUSTER SETSLOT 1 STABLE"),
        ..CHANGES
    }),
    refused(Spec {
        name: "shards",
        summary: "Returns the nodes and slots of each shard.",
        since: "7.0.0",
        complexity: "O(N) for N nodes.",
        flags: LOADING,
        example: example("CLUSTER SHARDS"),
        ..QUERIES
    }),
    refused(Spec {
        name: "slaves",
        summary: "Returns information about the replicas of a node.",
        complexity: "O(N) for N replicas.",
        arity: 3,
        syntax: "node-id",
        deprecated: Some(("5.0.0", "`CLUSTER REPLICAS`")),
        example: example("CLUSTER SLAVES a"),
        ..ADMIN_QUERIES
    }),
    refused(Spec {
        name: "slots",
        summary: "Returns the nodes of each range of slots.",
        complexity: "O(N) for N nodes.",
        flags: LOADING,
        history: &[("4.0.0", "Added the names of nodes."), ("7.0.0", "Added more network information.")],
        deprecated: Some(("7.0.0", "`CLUSTER SHARDS`")),
        example: example("CLUSTER SLOTS"),
        ..QUERIES
    }),
];
