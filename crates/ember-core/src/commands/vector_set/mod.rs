//! Vector set commands.

pub(super) mod scalar;
pub(super) mod search;
pub(super) mod vadd;
mod vadd_batch;
mod vcard;
pub(super) mod vector;
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
use crate::types::vector_set::{Metric, VectorSet};

/// The commands of this family, one list per file.
pub(super) const COMMANDS: &[&[DataCommand]] = &[
    vadd::COMMANDS,
    vadd_batch::COMMANDS,
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

/// Returns the score of two vectors: with the cosine metric, 1 for the same direction and 0 for the opposite direction;
/// with the other metrics, their distance or their inner product.
fn score(set: &VectorSet, distance: f32) -> f64 {
    match set.metric() {
        Metric::Cosine => 1.0 - f64::from(distance) / 2.0,
        Metric::L2 | Metric::InnerProduct => set.metric_distance(distance).into(),
    }
}
