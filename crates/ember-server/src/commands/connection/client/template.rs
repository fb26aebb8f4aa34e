//! The common parts of the specifications of CLIENT's subcommands.

use emberkv_core::spec::{Category, Flags, Group, Spec};

/// The common part of subcommands about the caller's connection.
pub(super) const OWN: Spec = Spec {
    group: Group::Connection,
    complexity: "O(1)",
    flags: Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE),
    ..Spec::DEFAULT
};

/// The common part of subcommands about other connections.
pub(super) const ADMIN: Spec =
    Spec { flags: OWN.flags.union(Flags::ADMIN), categories: Category::CONNECTION, ..OWN };
