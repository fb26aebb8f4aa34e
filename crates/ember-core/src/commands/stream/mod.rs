//! Stream commands.

mod group_effects;
mod ids;
mod reading;
mod trimming;
mod xack;
mod xadd;
mod xautoclaim;
mod xclaim;
mod xdel;
mod xdelex;
mod xgroup;
mod xinfo;
mod xlen;
mod xpending;
mod xrange;
mod xread;
mod xreadgroup;
mod xsetid;
mod xtrim;

use crate::call::DataCommand;

/// The commands of this family, one list per file.
pub(super) const COMMANDS: &[&[DataCommand]] = &[
    xack::COMMANDS,
    xadd::COMMANDS,
    xautoclaim::COMMANDS,
    xclaim::COMMANDS,
    xdel::COMMANDS,
    xdelex::COMMANDS,
    xgroup::COMMANDS,
    xinfo::COMMANDS,
    xlen::COMMANDS,
    xpending::COMMANDS,
    xrange::COMMANDS,
    xread::COMMANDS,
    xreadgroup::COMMANDS,
    xsetid::COMMANDS,
    xtrim::COMMANDS,
];
