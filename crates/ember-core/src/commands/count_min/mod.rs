//! Count-min sketch commands.

mod cms_incrby;
mod cms_info;
mod cms_initbydim;
mod cms_merge;
mod cms_query;

use crate::call::DataCommand;

/// The commands of this family, one list per file.
pub(super) const COMMANDS: &[&[DataCommand]] = &[
    cms_incrby::COMMANDS,
    cms_info::COMMANDS,
    cms_initbydim::COMMANDS,
    cms_merge::COMMANDS,
    cms_query::COMMANDS,
];

/// The error of RedisBloom for a missing key.
const NO_KEY: &str = "CMS: key does not exist";
