//! Geographic commands: sorted sets whose scores are positions.

mod geoadd;
mod geodist;
mod geopos;
mod georadius;
mod geosearch;
mod positions;
mod search;

use crate::call::DataCommand;

/// The family's commands, file by file.
pub(super) const COMMANDS: &[&[DataCommand]] =
    &[geoadd::COMMANDS, geodist::COMMANDS, geopos::COMMANDS, georadius::COMMANDS, geosearch::COMMANDS];
