//! Commands of transactions: MULTI, EXEC, DISCARD, WATCH, UNWATCH.

mod multi;
mod watch;

use emberkv_core::spec::{Flags, Group, Spec};

use crate::executor::session::ServerCommand;

/// The family's commands, file by file.
pub(super) const COMMANDS: &[&[ServerCommand]] = &[multi::COMMANDS, watch::COMMANDS];

const TEMPLATE: Spec = Spec {
    group: Group::Transactions,
    arity: 1,
    flags: Flags::NOSCRIPT
        .union(Flags::LOADING)
        .union(Flags::STALE)
        .union(Flags::FAST)
        .union(Flags::ALLOW_BUSY),
    ..Spec::DEFAULT
};
