//! What subcommands of CLIENT have in common.

use emberkv_core::spec::{Category, Flags, Group, Spec};

/// What subcommands about the own connection have in common.
pub(super) const OWN: Spec = Spec {
    group: Group::Connection,
    complexity: "O(1)",
    flags: Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE),
    ..Spec::DEFAULT
};

/// What subcommands about others' connections have in common.
pub(super) const ADMIN: Spec =
    Spec { flags: OWN.flags.union(Flags::ADMIN), categories: Category::CONNECTION, ..OWN };
