//! CLUSTER, READONLY, READWRITE and ASKING. Without `cluster-enabled`, all of them are refused, as in Redis.

mod changing;
mod connection;
mod reading;
mod slot_stats;

use ember_cluster::slots::SLOTS;
use ember_protocol::Args;
use ember_protocol::number::parse_i64;
use emberkv_core::error::CommandError;
use emberkv_core::spec::{Category, Command, Example, Flags, Group, Spec};

use crate::cluster::changing::DISABLED;
use crate::commands::help::reply_help;
use crate::executor::session::{ServerCommand, ServerHandler, Session, SessionResult};
use crate::server::Server;
use crate::server::slots::Slots;

/// The reply that all documented examples show.
const SHOWN: &str = "(error) ERR This instance has cluster support disabled";

/// Declares a command whose example shows its reply on a server that is not a node of a cluster.
const fn command(spec: Spec, handler: ServerHandler) -> ServerCommand {
    Command::new(spec, Some(handler))
}

/// Returns the state of this node.
///
/// # Errors
/// Returns an error if the server is not a node of a cluster.
fn node_of(server: &'static Server) -> Result<&'static Slots, CommandError> {
    server.slots.as_ref().ok_or_else(|| DISABLED.into())
}

/// Returns the number of the slot in an argument.
///
/// # Errors
/// Returns an error if there is no such slot.
fn slot(args: Args<'_>, arg: usize) -> Result<u16, CommandError> {
    let number = parse_i64(args.at(arg)).and_then(|number| u16::try_from(number).ok());
    number.filter(|&slot| usize::from(slot) < SLOTS).ok_or_else(|| "ERR Invalid or out of range slot".into())
}

fn help(session: &mut Session<'_>) -> SessionResult {
    node_of(session.server)?;
    reply_help(session, HELP)
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
    command(
        Spec {
            name: "asking",
            summary: "Allows the next command to access a slot that is being imported.",
            flags: Flags::FAST,
            example: example("ASKING"),
            ..CONNECTION
        },
        connection::asking,
    ),
    command(
        Spec {
            name: "readonly",
            summary: "Enables reads from a replica for the connection.",
            example: example("READONLY"),
            ..CONNECTION
        },
        connection::readonly,
    ),
    command(
        Spec { name: "readwrite", summary: "Reverts READONLY.", example: example("READWRITE"), ..CONNECTION },
        connection::readwrite,
    ),
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

const HELP: &[&str] = &[
    "ADDSLOTS <slot> [<slot> ...]",
    "    Assign slots to this node.",
    "ADDSLOTSRANGE <start slot> <end slot> [<start slot> <end slot> ...]",
    "    Assign ranges of slots to this node.",
    "BUMPEPOCH",
    "    Return the configuration epoch of this node, which stays the same.",
    "COUNT-FAILURE-REPORTS <node-id>",
    "    Return how many nodes report a node as failed.",
    "COUNTKEYSINSLOT <slot>",
    "    Return the number of keys in a slot.",
    "DELSLOTS <slot> [<slot> ...]",
    "    Remove slots from this node.",
    "DELSLOTSRANGE <start slot> <end slot> [<start slot> <end slot> ...]",
    "    Remove ranges of slots from this node.",
    "FAILOVER [FORCE]",
    "    Make this replica the primary of its shard; with FORCE, without the help of the present primary.",
    "FLUSHSLOTS",
    "    Remove all slots from this node.",
    "GETKEYSINSLOT <slot> <count>",
    "    Return keys in a slot.",
    "INFO",
    "    Return the state of the cluster.",
    "KEYSLOT <key>",
    "    Return the slot of a key.",
    "LINKS",
    "    Return the connections to other nodes.",
    "MYID",
    "    Return the name of this node.",
    "MYSHARDID",
    "    Return the name of the shard of this node.",
    "NODES",
    "    Return all nodes. Output format:",
    "    <id> <ip:port@bus-port[,hostname]> <flags> <primary> <pings> <pongs> <epoch> <link> <slot> ...",
    "REPLICAS <node-id>",
    "    Return the replicas of a node.",
    "RESET [HARD|SOFT]",
    "    Remove all slots from this node; HARD also gives it a new name.",
    "SAVECONFIG",
    "    Write the nodes and their slots to the file of this node.",
    "SET-CONFIG-EPOCH <epoch>",
    "    Set the configuration epoch of a new node.",
    "SHARDS",
    "    Return the slots and nodes of each shard.",
    "SLOT-STATS SLOTSRANGE <start slot> <end slot>",
    "    Return the number of keys of each slot in a range.",
    "SLOT-STATS ORDERBY KEY-COUNT [LIMIT <count>] [ASC|DESC]",
    "    Return the slots with the most or the fewest keys.",
    "SLOTS",
    "    Return the nodes of each range of slots.",
];

const SUBCOMMANDS: &[ServerCommand] = &[
    command(
        Spec {
            name: "addslots",
            summary: "Assigns slots to this node.",
            complexity: "O(N) for N slots.",
            arity: -3,
            syntax: "slot [slot ...]",
            example: example("CLUSTER ADDSLOTS 1"),
            ..CHANGES
        },
        changing::add_slots,
    ),
    command(
        Spec {
            name: "addslotsrange",
            summary: "Assigns ranges of slots to this node.",
            since: "7.0.0",
            complexity: "O(N) for N slots.",
            arity: -4,
            syntax: "start-slot end-slot [start-slot end-slot ...]",
            example: example("CLUSTER ADDSLOTSRANGE 1 2"),
            ..CHANGES
        },
        changing::add_ranges,
    ),
    command(
        Spec {
            name: "bumpepoch",
            summary: "Raises this node's configuration epoch.",
            tips: &["nondeterministic_output"],
            example: example("CLUSTER BUMPEPOCH"),
            ..CHANGES
        },
        changing::bump_epoch,
    ),
    command(
        Spec {
            name: "count-failure-reports",
            summary: "Returns the number of nodes that report a node as failed.",
            complexity: "O(N) for N reports.",
            arity: 3,
            syntax: "node-id",
            example: example("CLUSTER COUNT-FAILURE-REPORTS a"),
            ..ADMIN_QUERIES
        },
        reading::count_failure_reports,
    ),
    command(
        Spec {
            name: "countkeysinslot",
            summary: "Returns the number of keys in a slot.",
            arity: 3,
            syntax: "slot",
            example: example("CLUSTER COUNTKEYSINSLOT 1"),
            ..TEMPLATE
        },
        reading::count_keys_in_slot,
    ),
    command(
        Spec {
            name: "delslots",
            summary: "Removes the assignment of slots on this node.",
            complexity: "O(N) for N slots.",
            arity: -3,
            syntax: "slot [slot ...]",
            example: example("CLUSTER DELSLOTS 1"),
            ..CHANGES
        },
        changing::delete_slots,
    ),
    command(
        Spec {
            name: "delslotsrange",
            summary: "Removes the assignment of ranges of slots on this node.",
            since: "7.0.0",
            complexity: "O(N) for N slots.",
            arity: -4,
            syntax: "start-slot end-slot [start-slot end-slot ...]",
            example: example("CLUSTER DELSLOTSRANGE 1 2"),
            ..CHANGES
        },
        changing::delete_ranges,
    ),
    command(
        Spec {
            name: "failover",
            summary: "Makes this replica the primary of its shard.",
            arity: -2,
            syntax: "[options:<FORCE | TAKEOVER>]",
            example: example("CLUSTER FAILOVER"),
            ..CHANGES
        },
        changing::failover,
    ),
    command(
        Spec {
            name: "flushslots",
            summary: "Removes all slots from this node.",
            example: example("CLUSTER FLUSHSLOTS"),
            ..CHANGES
        },
        changing::flush_slots,
    ),
    command(
        Spec {
            name: "forget",
            summary: "Removes a node from this node's table of nodes.",
            arity: 3,
            syntax: "node-id",
            example: example("CLUSTER FORGET a"),
            ..CHANGES
        },
        changing::forget,
    ),
    command(
        Spec {
            name: "getkeysinslot",
            summary: "Returns keys of a slot.",
            complexity: "O(N) for N keys.",
            arity: 4,
            syntax: "slot count",
            example: example("CLUSTER GETKEYSINSLOT 1 1"),
            ..QUERIES
        },
        reading::keys_in_slot,
    ),
    command(
        Spec {
            name: "help",
            summary: "Describes the subcommands.",
            since: "5.0.0",
            flags: LOADING,
            example: example("CLUSTER HELP"),
            ..TEMPLATE
        },
        help,
    ),
    command(
        Spec {
            name: "info",
            summary: "Returns information about the cluster as this node sees it.",
            example: example("CLUSTER INFO"),
            ..QUERIES
        },
        reading::info,
    ),
    command(
        Spec {
            name: "keyslot",
            summary: "Returns the slot of a key.",
            complexity: "O(N) for N bytes of the key.",
            arity: 3,
            syntax: "key",
            example: example("CLUSTER KEYSLOT key"),
            ..TEMPLATE
        },
        reading::key_slot,
    ),
    command(
        Spec {
            name: "links",
            summary: "Returns information about the connections to other nodes.",
            since: "7.0.0",
            complexity: "O(N) for N nodes.",
            example: example("CLUSTER LINKS"),
            ..QUERIES
        },
        reading::links,
    ),
    command(
        Spec {
            name: "meet",
            summary: "Makes this node and another one members of the same cluster.",
            arity: -4,
            syntax: "ip port [cluster-bus-port]@4.0.0",
            history: &[("4.0.0", "`cluster-bus-port` came.")],
            example: example("CLUSTER MEET 127.0.0.1 7000"),
            ..CHANGES
        },
        changing::meet,
    ),
    command(
        Spec {
            name: "myid",
            summary: "Returns the name of this node.",
            example: example("CLUSTER MYID"),
            ..TEMPLATE
        },
        reading::my_id,
    ),
    command(
        Spec {
            name: "myshardid",
            summary: "Returns the name of this node's shard.",
            since: "7.2.0",
            example: example("CLUSTER MYSHARDID"),
            ..QUERIES
        },
        reading::my_shard_id,
    ),
    command(
        Spec {
            name: "nodes",
            summary: "Returns information about all nodes.",
            complexity: "O(N) for N nodes.",
            example: example("CLUSTER NODES"),
            ..QUERIES
        },
        reading::nodes,
    ),
    command(
        Spec {
            name: "replicas",
            summary: "Returns information about the replicas of a node.",
            since: "5.0.0",
            complexity: "O(N) for N replicas.",
            arity: 3,
            syntax: "node-id",
            example: example("CLUSTER REPLICAS a"),
            ..ADMIN_QUERIES
        },
        reading::replicas,
    ),
    command(
        Spec {
            name: "replicate",
            summary: "Makes this node a replica of another one.",
            arity: 3,
            syntax: "node-id",
            example: example("CLUSTER REPLICATE a"),
            ..CHANGES
        },
        changing::replicate,
    ),
    command(
        Spec {
            name: "reset",
            summary: "Resets this node's cluster state.",
            complexity: "O(N) for N nodes; of a replica all keys are removed.",
            arity: -2,
            flags: Flags::ADMIN.union(Flags::STALE).union(Flags::NOSCRIPT),
            syntax: "[reset-type:<HARD | SOFT>]",
            example: example("CLUSTER RESET"),
            ..TEMPLATE
        },
        changing::reset,
    ),
    command(
        Spec {
            name: "saveconfig",
            summary: "Writes this node's cluster state to its file.",
            example: example("CLUSTER SAVECONFIG"),
            ..CHANGES
        },
        changing::save_config,
    ),
    command(
        Spec {
            name: "set-config-epoch",
            summary: "Sets the configuration epoch of a new node.",
            arity: 3,
            syntax: "config-epoch",
            example: example("CLUSTER SET-CONFIG-EPOCH 1"),
            ..CHANGES
        },
        changing::set_config_epoch,
    ),
    command(
        Spec {
            name: "setslot",
            summary: "Assigns a slot to a node, or sets its migration state.",
            arity: -4,
            syntax: "slot subcommand:<IMPORTING node-id | MIGRATING node-id | NODE node-id | STABLE>",
            example: example("CLUSTER SETSLOT 1 STABLE"),
            ..CHANGES
        },
        changing::set_slot,
    ),
    command(
        Spec {
            name: "shards",
            summary: "Returns the nodes and slots of each shard.",
            since: "7.0.0",
            complexity: "O(N) for N nodes.",
            flags: LOADING,
            example: example("CLUSTER SHARDS"),
            ..QUERIES
        },
        reading::shards,
    ),
    command(
        Spec {
            name: "slaves",
            summary: "Returns information about the replicas of a node.",
            complexity: "O(N) for N replicas.",
            arity: 3,
            syntax: "node-id",
            deprecated: Some(("5.0.0", "`CLUSTER REPLICAS`")),
            example: example("CLUSTER SLAVES a"),
            ..ADMIN_QUERIES
        },
        reading::replicas,
    ),
    command(
        Spec {
            name: "slot-stats",
            summary: "Returns the number of keys of slots.",
            since: "8.0.0",
            complexity: "O(N) for N slots of this node; O(N*log(N)) with ORDERBY.",
            arity: -4,
            flags: LOADING,
            syntax: "filter:<slotsrange:<SLOTSRANGE start-slot end-slot> | orderby:<ORDERBY metric [LIMIT limit] [order:<ASC | DESC>]>>",
            tips: &["nondeterministic_output", "request_policy:all_shards"],
            example: example("CLUSTER SLOT-STATS ORDERBY KEY-COUNT LIMIT 1"),
            ..TEMPLATE
        },
        slot_stats::slot_stats,
    ),
    command(
        Spec {
            name: "slots",
            summary: "Returns the nodes of each range of slots.",
            complexity: "O(N) for N nodes.",
            flags: LOADING,
            history: &[("4.0.0", "Added the names of nodes."), ("7.0.0", "Added more network information.")],
            deprecated: Some(("7.0.0", "`CLUSTER SHARDS`")),
            example: example("CLUSTER SLOTS"),
            ..QUERIES
        },
        reading::slots,
    ),
];
