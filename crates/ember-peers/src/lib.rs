//! Comparison of ember with redis-server: random commands for both, and the rules for comparing their replies; and a
//! browser.
//!
//! The tests of this crate need other programs (redis-server, redis-cli, client libraries, Chromium);
//! `scripts/setup-peers.sh` installs them and `make test-peers` runs the tests. A missing program is a failure, never a
//! skipped test.

pub mod browser;
mod contents;
mod driver;
mod exceptions;
mod generate;
mod load;
mod programs;
mod walk;
mod writer;

pub use contents::{contents, differences, field_expiries};
pub use driver::{Plan, Protocol, compare_servers};
pub use exceptions::{COMMAND_FACT_EXCEPTIONS, FactException};
pub use generate::{COMMANDS, Generator};
pub use load::{Written, write_while};
pub use programs::{
    Mode, clients_directory, frameworks_directory, in_both_modes, require_program, require_valkey,
    start_ember, start_redis, tools_directory,
};
pub use walk::{PORTS, Walk};
pub use writer::Writer;
