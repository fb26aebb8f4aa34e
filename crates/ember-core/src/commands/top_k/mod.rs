//! Top-k sketch commands.

mod topk_add;
mod topk_info;
mod topk_list;
mod topk_query;
mod topk_reserve;

use crate::call::DataCommand;

/// The commands of this family, one list per file.
pub(super) const COMMANDS: &[&[DataCommand]] = &[
    topk_add::COMMANDS,
    topk_info::COMMANDS,
    topk_list::COMMANDS,
    topk_query::COMMANDS,
    topk_reserve::COMMANDS,
];

/// The error of RedisBloom for a missing key.
const NO_KEY: &str = "TopK: key does not exist";
