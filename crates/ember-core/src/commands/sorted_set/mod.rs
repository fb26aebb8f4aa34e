//! Sorted set commands.

mod reply;
pub(super) mod zadd;
mod zcard;
mod zcount;
mod zpop;
mod zrandmember;
mod zrange;
mod zrank;
mod zrem;
mod zremrange;
mod zscan;
mod zscore;
mod zunion;

use crate::call::DataCommand;

/// The commands of this family, one list per file.
pub(super) const COMMANDS: &[&[DataCommand]] = &[
    zadd::COMMANDS,
    zcard::COMMANDS,
    zcount::COMMANDS,
    zpop::COMMANDS,
    zrandmember::COMMANDS,
    zrange::COMMANDS,
    zrank::COMMANDS,
    zrem::COMMANDS,
    zremrange::COMMANDS,
    zscan::COMMANDS,
    zscore::COMMANDS,
    zunion::COMMANDS,
];
