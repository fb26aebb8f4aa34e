//! String commands.

mod get;
mod set;

use crate::call::DataCommand;

/// The family's commands, file by file.
pub(super) const COMMANDS: &[&[DataCommand]] = &[get::COMMANDS, set::COMMANDS];
