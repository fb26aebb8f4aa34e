//! Orders to the AOF subscriber, executed in their order.

use ember_persistence::aof::{AofDirectory, AofWriter, Rewrite};

use super::rewriting::{Base, BaseWritten, NewFiles};

/// An AOF whose first increment exists, and whose base must be written.
pub(crate) struct Beginning {
    pub(super) directory: AofDirectory,
    pub(super) writer: AofWriter,
    pub(super) rewrite: Rewrite,
    pub(super) base: Base,
    /// The number of the last record whose effect is in the base.
    pub(super) after: u64,
    /// Whether replies to later records wait for the base: the client could rely on an AOF before.
    pub(super) holds: bool,
}

/// The action after all records up to number `after` are written.
pub(crate) enum Order {
    /// Begin an AOF. Earlier records are not written: their effects are in its base.
    Begin(Box<Beginning>),
    /// Begin an AOF in these files when the data for its base are available: another snapshot is running.
    Await { files: Box<NewFiles>, after: u64 },
    /// The data for the base of a restarted AOF, as they were after this record.
    BaseTaken(Box<(Base, u64)>),
    /// Begin the next file; with a base, this is a rewrite.
    Rotate { after: u64, base: Option<Base> },
    /// The base of a rewrite is written, or has failed.
    BaseWritten(Box<BaseWritten>),
    /// Make everything written durable, and close the AOF.
    End { after: u64 },
    /// The same, and end: no worker runs any more.
    Stop { after: u64 },
}

impl Order {
    /// Returns the number of the last record to be written before the order.
    pub(super) fn after(&self) -> u64 {
        match self {
            // Earlier records are in the base.
            Order::Begin(_) | Order::BaseTaken(_) | Order::BaseWritten(_) => 0,
            Order::Await { after, .. }
            | Order::Rotate { after, .. }
            | Order::End { after }
            | Order::Stop { after } => *after,
        }
    }
}
