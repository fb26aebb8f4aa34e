//! String commands.

mod append;
mod condition;
mod delex;
mod delifeq;
mod digest;
mod get;
mod getrange;
mod incr;
mod incrbyfloat;
mod increx;
mod lcs;
mod mget;
mod mset;
mod msetex;
mod options;
mod set;
mod setrange;
mod strlen;
pub(super) mod value;

use crate::call::DataCommand;

/// The commands of this family, one list per file.
pub(super) const COMMANDS: &[&[DataCommand]] = &[
    append::COMMANDS,
    delex::COMMANDS,
    delifeq::COMMANDS,
    digest::COMMANDS,
    get::COMMANDS,
    getrange::COMMANDS,
    incr::COMMANDS,
    incrbyfloat::COMMANDS,
    increx::COMMANDS,
    lcs::COMMANDS,
    mget::COMMANDS,
    mset::COMMANDS,
    msetex::COMMANDS,
    set::COMMANDS,
    setrange::COMMANDS,
    strlen::COMMANDS,
];
