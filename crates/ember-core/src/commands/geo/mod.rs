//! Geographic positions, kept in sorted sets.

use crate::call::DataCommand;

pub(super) const COMMANDS: &[&[DataCommand]] = &[];
