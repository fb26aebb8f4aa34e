//! What the stream's subscriber is to do behind a record.

use std::sync::Arc;

use super::copy::Copy;

/// Something to be done when all records up to a number are in the stream.
pub(super) enum Order {
    /// A copy of the data was taken behind this record: the stream begins or goes on there, and says its database again.
    Meet { behind: u64, copy: Arc<Copy> },
    /// A command that changes nothing here, but concerns replicas.
    PassOn { behind: u64, command: Vec<u8> },
    /// The stream ends.
    End { behind: u64 },
}

impl Order {
    pub(super) fn behind(&self) -> u64 {
        let (Order::Meet { behind, .. } | Order::PassOn { behind, .. } | Order::End { behind }) = self;
        *behind
    }
}
