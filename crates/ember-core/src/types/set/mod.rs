//! Values of the type of sets.

use crate::types::{Collection, variant};

/// The value of a key that holds one of the sets.
#[derive(Clone, Debug, Default)]
pub struct Set {}

impl Collection for Set {
    variant!(Set);

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
