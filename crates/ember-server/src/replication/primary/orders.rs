//! Orders to the stream's subscriber, each to be executed after a certain record.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use super::copy::Copy;

/// What to do when all records up to a number are in the stream.
pub(super) enum Order {
    /// A copy of the data was taken after this record: the stream begins or continues there, and selects its database
    /// again.
    Meet { behind: u64, copy: Arc<Copy> },
    /// A command that changes nothing here but concerns replicas, of a database or of none.
    PassOn { behind: u64, command: Vec<u8>, database: Option<usize> },
    /// Sends the stream position of this record.
    Tell { behind: u64, position: SyncSender<u64> },
    /// The stream ends.
    End { behind: u64 },
    /// The server is a replica: records after this one do not go into the stream, which is then complete.
    GiveOver { behind: u64, done: SyncSender<()> },
    /// The server is a primary again: records after this one go into the stream.
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
