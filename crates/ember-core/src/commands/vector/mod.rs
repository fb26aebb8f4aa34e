//! Commands on vector indexes: vector sets that are created with an explicit shape and exist even when they are empty.

mod given;
mod reply;
mod vector_add;
mod vector_create;
mod vector_del;
mod vector_drop;
mod vector_get;
mod vector_info;
mod vector_list;
mod vector_msearch;
mod vector_reindex;
mod vector_search;
mod vector_update;

use crate::call::DataCommand;
use crate::error::CommandError;
use crate::types::vector_set::{TUNING_DEFAULT, Tuning, VectorSet};

/// The commands of this family, one list per file.
pub(super) const COMMANDS: &[&[DataCommand]] = &[
    vector_add::COMMANDS,
    vector_create::COMMANDS,
    vector_del::COMMANDS,
    vector_drop::COMMANDS,
    vector_get::COMMANDS,
    vector_info::COMMANDS,
    vector_list::COMMANDS,
    vector_msearch::COMMANDS,
    vector_reindex::COMMANDS,
    vector_search::COMMANDS,
    vector_update::COMMANDS,
];

const NO_INDEX: CommandError = CommandError::Text(std::borrow::Cow::Borrowed("ERR no such index"));

fn tuning(set: &VectorSet) -> Tuning {
    set.tuning().unwrap_or(TUNING_DEFAULT)
}
