//! Server commands that only need access to the keyspace.

mod dbsize;
mod flush;
mod lolwut;
mod swapdb;

use crate::call::DataCommand;

/// The commands of this family, one list per file.
pub(super) const COMMANDS: &[&[DataCommand]] =
    &[dbsize::COMMANDS, flush::COMMANDS, lolwut::COMMANDS, swapdb::COMMANDS];
