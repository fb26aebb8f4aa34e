//! Tools for RDB files, AOFs and stores: check, repair, convert. The work is done by `ember_persistence`; here is what
//! people write and read.

mod check;
mod copies;
mod outcome;
mod place;
mod stores;

pub(crate) use check::check;
pub(crate) use copies::{convert, repair};
