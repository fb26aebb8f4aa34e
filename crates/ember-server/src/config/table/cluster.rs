//! Replication and cluster.

use crate::config::parameter::{Kind, Parameter};

pub(super) static PARAMETERS: &[Parameter] = &[
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
