//! List commands.

mod blmove;
mod blpop;
mod ends;
mod lindex;
mod linsert;
mod llen;
mod lmove;
mod lmpop;
mod lpop;
mod lpos;
mod lpush;
mod lrange;
mod lrem;
mod lset;
mod ltrim;

use crate::call::DataCommand;

/// The commands of this family, one list per file.
pub(super) const COMMANDS: &[&[DataCommand]] = &[
    blmove::COMMANDS,
    blpop::COMMANDS,
    lindex::COMMANDS,
    linsert::COMMANDS,
    llen::COMMANDS,
    lmove::COMMANDS,
    lmpop::COMMANDS,
    lpop::COMMANDS,
    lpos::COMMANDS,
    lpush::COMMANDS,
    lrange::COMMANDS,
    lrem::COMMANDS,
    lset::COMMANDS,
    ltrim::COMMANDS,
];
