//! Orders to the AOF subscriber, which executes them in the order in which they were added.

use ember_persistence::aof::{AofDirectory, AofWriter, Rewrite};

use super::rewriting::{Base, BaseWritten, NewFiles};

/// An AOF whose first increment exists, and whose base must be written.
pub(crate) struct Beginning {
    pub(super) directory: AofDirectory,
    pub(super) writer: AofWriter,
    pub(super) rewrite: Rewrite,
    pub(super) base: Base,
    /// The number of the last record whose effect the base contains.
    pub(super) after: u64,
    /// Whether replies to later records are held until the base is complete, because clients already relied on the
    /// previous AOF.
    pub(super) holds: bool,
}

/// The action after all records up to number `after` are written.
pub(crate) enum Order {
    /// Begin an AOF. Earlier records are not written: their effects are in its base.
    Begin(Box<Beginning>),
    /// Begin an AOF in these files as soon as its base can be taken; until then, another snapshot is running.
    Await { files: Box<NewFiles>, after: u64 },
    /// The base of an AOF that is restarted, with the number of the last record that it contains.
    BaseTaken(Box<(Base, u64)>),
    /// Begin the next increment; with a base, this is a rewrite.
    Rotate { after: u64, base: Option<Base> },
    /// Writing the base of a rewrite has succeeded or failed.
    BaseWritten(Box<BaseWritten>),
    /// Make all records durable, and close the AOF.
    End { after: u64 },
    /// Close the AOF as `End` does, and stop the subscriber: no worker runs any more.
    Stop { after: u64 },
}

impl Order {
    /// Returns the number of the last record that must be written before the order is executed.
    pub(super) fn after(&self) -> u64 {
        match self {
            // The base contains the effects of earlier records.
            Order::Begin(_) | Order::BaseTaken(_) | Order::BaseWritten(_) => 0,
            Order::Await { after, .. }
            | Order::Rotate { after, .. }
            | Order::End { after }
            | Order::Stop { after } => *after,
        }
    }
}
