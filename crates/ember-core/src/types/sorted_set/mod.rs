//! Values of the type of sorted sets.

use crate::types::{Collection, variant};

/// The value of a key that holds one of the sorted sets.
#[derive(Clone, Debug, Default)]
pub struct SortedSet {}

impl Collection for SortedSet {
    variant!(SortedSet);

    fn encoding_name(&self) -> &'static str {
        "listpack"
    }

    fn memory_bytes(&self) -> usize {
        0
    }

    fn len(&self) -> usize {
        0
    }

    fn check_invariants(&self) {}
}
