//! Orders to the stream's subscriber, each to be executed after a certain record.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use super::copy::Copy;

/// The action after all records up to a number are in the stream.
pub(super) enum Order {
    /// A copy of the data was taken after this record: the stream begins or continues there, and selects its database
    /// again.
    Meet { after: u64, copy: Arc<Copy> },
    /// A command that changes nothing here but concerns replicas, of a database or of none.
    PassOn { after: u64, command: Vec<u8>, database: Option<usize> },
    /// Sends the stream position of this record.
    SendPosition { after: u64, position: SyncSender<u64> },
    /// The stream ends.
    End { after: u64 },
    /// The server is a replica: records after this one do not go into the stream, which is then complete.
    GiveOver { after: u64, done: SyncSender<()> },
    /// The server is a primary again: records after this one go into the stream.
    TakeAgain { after: u64 },
}

impl Order {
    pub(super) fn after(&self) -> u64 {
        let (Order::Meet { after, .. }
        | Order::PassOn { after, .. }
        | Order::SendPosition { after, .. }
        | Order::End { after }
        | Order::GiveOver { after, .. }
        | Order::TakeAgain { after }) = self;
        *after
    }
}
