//! Commands of the server that only need the keyspace.

mod dbsize;
mod flush;
mod lolwut;
mod swapdb;

use crate::call::DataCommand;

/// The family's commands, file by file.
pub(super) const COMMANDS: &[&[DataCommand]] =
    &[dbsize::COMMANDS, flush::COMMANDS, lolwut::COMMANDS, swapdb::COMMANDS];
