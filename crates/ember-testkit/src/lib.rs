//! What the tests of several crates share: servers as child processes, a raw RESP client, redis-cli rendering.
//!
//! Nothing here knows ember's code: a server is met through its command line and its sockets alone, so every helper
//! works on `redis-server` as well, which is how the two servers are compared.

mod client;
mod documents;
mod http;
mod random;
mod render;
mod server;
mod value;

pub use client::RawClient;
pub use documents::{Block, Exchange, code_blocks, run_session, session_exchanges};
pub use http::{HttpAnswer, http_exchange, http_get};
pub use random::Random;
pub use render::{quote, render, split_arguments};
pub use server::{Server, ServerBuilder, Usage, find_ember_cli, find_ember_server};
pub use value::{Value, read_frame};
