//! RESP2 and RESP3: an incremental request parser and a reply writer, without I/O; and the encoding and decoding for
//! clients ([`client`]).
//!
//! Requests: a [`Parser`] per connection turns input bytes into commands of a [`Batch`], whose [`Args`] are slices of
//! the input. Replies: a [`Reply`] collects the bytes of one batch of replies. Numbers follow the strict textual forms
//! of Redis ([`number`]); times of users have the forms of [`moment`].
//!
//! ```
//! use ember_protocol::{Batch, Limits, ParseStatus, Parser, Protocol, Reply};
//!
//! let input = b"*2\r\n$4\r\nECHO\r\n$2\r\nhi\r\n*1\r\n$4\r\nPI";
//! let (mut parser, mut batch) = (Parser::new(), Batch::new());
//! let mut reply = Reply::new(Protocol::Resp2);
//!
//! assert_eq!(parser.parse(input, &mut batch, &Limits::default()), ParseStatus::NeedMore);
//! for index in 0..batch.len() {
//!     reply.bulk(batch.command(index, input).at(1));
//! }
//! assert_eq!(reply.to_vec(), b"$2\r\nhi\r\n");
//!
//! // The second command is incomplete: its bytes stay, those before it may go.
//! batch.clear();
//! let rest = &input[parser.consumed()..];
//! parser.discard(parser.consumed());
//! assert_eq!(rest, b"*1\r\n$4\r\nPI");
//! ```
#![forbid(unsafe_code)]

mod arguments;
pub mod client;
mod inline;
mod limits;
pub mod moment;
pub mod number;
mod parser;
mod reply;
mod request;

pub use arguments::{Args, ArgsIter, Batch, OwnedBatch, StoredCommand};
pub use limits::{
    BATCH_COMMANDS_MAX, LARGE_ARGUMENT_MIN, Limits, UNAUTHENTICATED_BULK_LEN_MAX,
    UNAUTHENTICATED_MULTIBULK_COUNT_MAX,
};
pub use parser::{LargeTarget, ParseStatus, Parser, ProtocolError};
pub use reply::{Mark, Protocol, Reply, SHARED_LEN_MIN, Slices};
pub use request::{push_command_head, push_word};
