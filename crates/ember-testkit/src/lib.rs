//! Helpers for the tests and benchmarks of several crates: servers as child processes, a raw RESP client, replies
//! formatted as by redis-cli, times of operations.
//!
//! A server is accessed only through its command line and its sockets, so every helper works with `redis-server`, too,
//! which is how the two servers are compared. Replies are parsed by `ember_protocol::client`, which the server does not
//! use.

mod client;
mod demotion_targets;
mod directory;
mod documents;
mod events;
mod generated;
mod http;
mod operation_times;
mod pace;
mod ports;
mod proxy;
mod random;
mod replies;
mod server;
mod waiting;

pub use client::{RawClient, encode};
pub use demotion_targets::DEMOTION_TARGETS;
pub use directory::Directory;
pub use documents::{Block, Exchange, code_blocks, run_session, session_exchanges};
pub use ember_protocol::client::{Value, encode_command, quote, split_arguments};
pub use events::{Event, EventStream};
pub use generated::assert_generated;
pub use http::{HttpAnswer, http_exchange, http_get};
pub use operation_times::{OperationTimes, clock_time, times_table};
pub use pace::Pace;
pub use ports::free_port;
pub use proxy::Proxy;
pub use random::Random;
pub use replies::{read_frame, render};
pub use server::{Server, ServerBuilder, Usage, find_ember_cli, find_ember_server, refusal};
pub use waiting::{OnDrop, becomes_true, wait_until};
