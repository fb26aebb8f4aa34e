//! Values of the type of lists.

use crate::types::{Collection, variant};

/// The value of a key that holds one of the lists.
#[derive(Clone, Debug, Default)]
pub struct List {}

impl Collection for List {
    variant!(List);

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
