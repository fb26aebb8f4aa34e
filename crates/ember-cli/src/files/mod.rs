//! Tools for RDB files, AOFs and stores: check, repair, convert, restore. `ember_persistence` does the work; this module
//! has the user interface.

mod check;
mod copies;
mod outcome;
mod place;
mod restore;
mod stores;

pub(crate) use check::check;
pub(crate) use copies::{convert, repair};
pub(crate) use restore::restore;
