//! HyperLogLog commands.

mod pfadd;
mod pfcount;
mod pfdebug;
mod pfmerge;
mod pfselftest;
mod value;

use crate::call::DataCommand;

/// The commands of this family, one list per file.
pub(super) const COMMANDS: &[&[DataCommand]] =
    &[pfadd::COMMANDS, pfcount::COMMANDS, pfdebug::COMMANDS, pfmerge::COMMANDS, pfselftest::COMMANDS];
