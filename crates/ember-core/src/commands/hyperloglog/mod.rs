//! HyperLogLogs, kept in strings.

use crate::call::DataCommand;

pub(super) const COMMANDS: &[&[DataCommand]] = &[];
