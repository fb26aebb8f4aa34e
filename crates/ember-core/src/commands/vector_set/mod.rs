//! Vector sets.

mod search;
mod vadd;
mod vcard;
mod vector;
mod vemb;
mod vgetattr;
mod vinfo;
mod vismember;
mod vlinks;
mod vrandmember;
mod vrange;
mod vrem;
mod vsim;

use crate::call::DataCommand;

/// The family's commands, file by file.
pub(super) const COMMANDS: &[&[DataCommand]] = &[
    vadd::COMMANDS,
    vcard::COMMANDS,
    vemb::COMMANDS,
    vgetattr::COMMANDS,
    vinfo::COMMANDS,
    vismember::COMMANDS,
    vlinks::COMMANDS,
    vrandmember::COMMANDS,
    vrange::COMMANDS,
    vrem::COMMANDS,
    vsim::COMMANDS,
];

/// What is said of two vectors at a distance of 0 to 2: 1 for the same direction, 0 for the opposite one.
fn score(distance: f32) -> f64 {
    1.0 - f64::from(distance) / 2.0
}
