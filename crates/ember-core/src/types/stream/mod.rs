//! Values of the type of streams.

use crate::types::{Collection, variant};

/// The value of a key that holds one of the streams.
#[derive(Clone, Debug, Default)]
pub struct Stream {}

impl Collection for Stream {
    variant!(Stream);

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
