//! Orders to the stream's subscriber, each to be executed after a certain record of the journal.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use super::copy::Copy;

/// The action after all records up to number `after` are in the stream.
pub(super) enum Order {
    /// Sets the position of a snapshot that was taken after this record: the stream begins or continues there, and
    /// selects its database again.
    Meet { after: u64, copy: Arc<Copy> },
    /// Appends a command that changes no data here but concerns replicas. `database` is the database that it needs, if
    /// any.
    PassOn { after: u64, command: Vec<u8>, database: Option<usize> },
    /// Sends the stream position after this record through the channel.
    SendPosition { after: u64, position: SyncSender<u64> },
    /// Ends the stream.
    End { after: u64 },
    /// Releases the stream, because the server is a replica now: records after this one are not appended. `done` is
    /// notified when all earlier records are in the stream.
    GiveOver { after: u64, done: SyncSender<()> },
    /// Takes the stream back, because the server is a primary again: records after this one are appended.
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
