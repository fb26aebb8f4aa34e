//! Geographic commands, which store positions as scores of sorted sets.

mod geoadd;
mod geodist;
mod geopos;
mod georadius;
mod geosearch;
mod positions;
mod search;

use crate::call::DataCommand;

/// The commands of this family, one list per file.
pub(super) const COMMANDS: &[&[DataCommand]] =
    &[geoadd::COMMANDS, geodist::COMMANDS, geopos::COMMANDS, georadius::COMMANDS, geosearch::COMMANDS];
