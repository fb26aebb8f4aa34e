//! What the stream's subscriber is to do behind a record.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use super::copy::Copy;

/// Something to be done when all records up to a number are in the stream.
pub(super) enum Order {
    /// A copy of the data was taken behind this record: the stream begins or goes on there, and says its database again.
    Meet { behind: u64, copy: Arc<Copy> },
    /// A command that changes nothing here, but concerns replicas; it is of a database, or of none.
    PassOn { behind: u64, command: Vec<u8>, database: Option<usize> },
    /// Somebody wants to know at which position that is.
    Tell { behind: u64, position: SyncSender<u64> },
    /// The stream ends.
    End { behind: u64 },
    /// The server is a replica: what comes behind this record is not in the stream, which is whole then.
    GiveOver { behind: u64, done: SyncSender<()> },
    /// The server is a primary again: what comes behind this record is in the stream.
    TakeAgain { behind: u64 },
}

impl Order {
    pub(super) fn behind(&self) -> u64 {
        let (Order::Meet { behind, .. }
        | Order::PassOn { behind, .. }
        | Order::Tell { behind, .. }
        | Order::End { behind }
        | Order::GiveOver { behind, .. }
        | Order::TakeAgain { behind }) = self;
        *behind
    }
}
