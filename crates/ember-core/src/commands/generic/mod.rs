//! Commands on keys of any type.

mod copy;
mod del;
mod dump;
mod exists;
mod expire;
mod keys;
mod move_key;
mod object;
mod persist;
mod randomkey;
mod rename;
mod restore;
mod scan;
mod sort;
mod touch;
mod ttl;
mod type_of;

use crate::call::DataCommand;

/// The commands of this family, one list per file.
pub(super) const COMMANDS: &[&[DataCommand]] = &[
    copy::COMMANDS,
    del::COMMANDS,
    dump::COMMANDS,
    exists::COMMANDS,
    expire::COMMANDS,
    keys::COMMANDS,
    move_key::COMMANDS,
    object::COMMANDS,
    persist::COMMANDS,
    randomkey::COMMANDS,
    rename::COMMANDS,
    restore::COMMANDS,
    scan::COMMANDS,
    sort::COMMANDS,
    touch::COMMANDS,
    ttl::COMMANDS,
    type_of::COMMANDS,
];
