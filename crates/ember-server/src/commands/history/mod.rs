//! Commands of the history of keys: reads of past states.

mod as_of;
mod diff;
mod restore;
mod temporal;
mod versions;

use emberkv_core::spec::{Flags, Group, KeyFlags, KeySpec, Spec};

use crate::executor::session::ServerCommand;

/// The family's commands, file by file.
pub(super) const COMMANDS: &[&[ServerCommand]] =
    &[as_of::COMMANDS, diff::COMMANDS, restore::COMMANDS, temporal::COMMANDS, versions::COMMANDS];

const TEMPLATE: Spec = Spec {
    group: Group::Generic,
    since: "0.1.0",
    // A call may have to wait for the disk, so it is not allowed in transactions and scripts.
    flags: Flags::READONLY.union(Flags::NOSCRIPT).union(Flags::NO_MULTI),
    tips: &["nondeterministic_output"],
    ..Spec::DEFAULT
};

const OF_KEY: Spec = Spec { keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))], ..TEMPLATE };
