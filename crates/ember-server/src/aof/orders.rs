//! What the AOF writer is told to do, in the order it is told.

use ember_persistence::aof::{AofDirectory, AofWriter, Rewrite};

use super::rewriting::{Base, BaseWritten, NewFiles};

/// An AOF whose first increment is there, and whose base is to be written.
pub(crate) struct Beginning {
    pub(super) directory: AofDirectory,
    pub(super) writer: AofWriter,
    pub(super) rewrite: Rewrite,
    pub(super) base: Base,
    /// The number of the last record whose effect is in the base.
    pub(super) behind: u64,
    /// Whether replies to what comes behind it wait for the base: before there was an AOF that they could count on.
    pub(super) holds: bool,
}

/// Something to do when all records up to number `behind` are written.
pub(crate) enum Order {
    /// Begin an AOF. The records before are not written: what they have done is in its base.
    Begin(Box<Beginning>),
    /// Begin an AOF in these files when there is the data for its base: another snapshot is under way.
    Await { files: Box<NewFiles>, behind: u64 },
    /// The data for an AOF that begins anew, as it was behind this record.
    BaseTaken(Box<(Base, u64)>),
    /// Begin the next file; with a base, the rest is a rewrite.
    Rotate { behind: u64, base: Option<Base> },
    /// The base of a rewrite is written, or not.
    BaseWritten(Box<BaseWritten>),
    /// Make what is written durable, and keep nothing more.
    End { behind: u64 },
    /// The same, and end: no worker runs any more.
    Stop { behind: u64 },
}

impl Order {
    /// The number of the last record that is to be written before.
    pub(super) fn behind(&self) -> u64 {
        match self {
            // What came before is in the base.
            Order::Begin(_) | Order::BaseTaken(_) | Order::BaseWritten(_) => 0,
            Order::Await { behind, .. }
            | Order::Rotate { behind, .. }
            | Order::End { behind }
            | Order::Stop { behind } => *behind,
        }
    }
}
