//! Commands for publishing messages and subscribing to channels.

mod introspection;
mod publish;
mod subscribe;

use emberkv_core::spec::{Flags, Group, KeyFlags, KeySpec, Spec};

use crate::executor::session::ServerCommand;

/// The family's commands, file by file.
pub(super) const COMMANDS: &[&[ServerCommand]] =
    &[introspection::COMMANDS, publish::COMMANDS, subscribe::COMMANDS];

const TEMPLATE: Spec = Spec {
    group: Group::PubSub,
    since: "2.0.0",
    flags: Flags::PUBSUB.union(Flags::LOADING).union(Flags::STALE),
    ..Spec::DEFAULT
};

/// The arguments that are names of shard channels have key positions, so that clients of a cluster can route by them.
const SHARD_CHANNELS: &[KeySpec] = &[KeySpec::from(1, 1, KeyFlags::NOT_KEY)];
