//! JSON commands.

mod access;
mod arrappend;
mod arrindex;
mod arrlen;
mod arrpop;
mod clear;
mod debug;
mod del;
mod get;
mod merge;
mod numincrby;
mod objkeys;
mod resp;
mod set;
mod strappend;
mod toggle;
mod type_of;

use crate::call::DataCommand;

/// The commands of this family, one list per file.
pub(super) const COMMANDS: &[&[DataCommand]] = &[
    arrappend::COMMANDS,
    arrindex::COMMANDS,
    arrlen::COMMANDS,
    arrpop::COMMANDS,
    clear::COMMANDS,
    debug::COMMANDS,
    del::COMMANDS,
    get::COMMANDS,
    merge::COMMANDS,
    numincrby::COMMANDS,
    objkeys::COMMANDS,
    resp::COMMANDS,
    set::COMMANDS,
    strappend::COMMANDS,
    toggle::COMMANDS,
    type_of::COMMANDS,
];
