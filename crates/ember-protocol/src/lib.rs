//! RESP2 and RESP3: an incremental request parser and a reply writer, without I/O.
//!
//! Requests: a [`Parser`] per connection turns input bytes into commands of a [`Batch`], whose [`Args`] are
//! slices of the input. Replies: a [`Reply`] collects the bytes of one batch of answers. Numbers follow the
//! strict textual forms of Redis ([`number`]).
#![forbid(unsafe_code)]

mod arguments;
mod inline;
mod limits;
pub mod number;
mod parser;
mod reply;

pub use arguments::{Args, ArgsIter, Batch, OwnedBatch};
pub use limits::{
    LARGE_ARGUMENT_MIN, Limits, UNAUTHENTICATED_BULK_LEN_MAX, UNAUTHENTICATED_MULTIBULK_COUNT_MAX,
};
pub use parser::{BATCH_COMMANDS_MAX, LargeTarget, ParseStatus, Parser, ProtocolError};
pub use reply::{Mark, Protocol, Reply, SHARED_LEN_MIN, Slices};
