//! Hashes.

use crate::call::DataCommand;

pub(super) const COMMANDS: &[&[DataCommand]] = &[];
