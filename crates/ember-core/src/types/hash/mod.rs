//! Values of the type of hashes.

use crate::types::{Collection, variant};

/// The value of a key that holds one of the hashes.
#[derive(Clone, Debug, Default)]
pub struct Hash {}

impl Collection for Hash {
    variant!(Hash);

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
