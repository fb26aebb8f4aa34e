//! Live queries: commands that watch the result of a reading command.

mod list;
mod open;
mod watch;

use emberkv_core::spec::{Flags, Group, Spec};

use crate::executor::session::ServerCommand;

/// The family's commands, file by file.
pub(super) const COMMANDS: &[&[ServerCommand]] = &[list::COMMANDS, open::COMMANDS, watch::COMMANDS];

const TEMPLATE: Spec = Spec {
    group: Group::PubSub,
    since: "0.1.0",
    flags: Flags::PUBSUB.union(Flags::NOSCRIPT).union(Flags::NO_MULTI),
    ..Spec::DEFAULT
};
