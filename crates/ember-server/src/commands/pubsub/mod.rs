//! Publish and subscribe.

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

/// Names of shard channels are arguments in key positions, so that a cluster's clients can route by them.
const SHARD_CHANNELS: &[KeySpec] = &[KeySpec::from(1, 1, KeyFlags::NOT_KEY)];
