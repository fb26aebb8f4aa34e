//! ember compared with Redis Stack 7.4, reply by reply. `REDIS_STACK_SERVER` is the program that starts it with its
//! modules; `scripts/setup-redis-stack.sh` installs it. `STACK_COMMANDS` is the number of random commands.

#![allow(clippy::unwrap_used, reason = "the whole program is a test")]

mod json;
mod sketches;

use std::path::PathBuf;

use ember_testkit::{Directory, Server};

/// The default number of random commands of each comparison.
const COMMANDS: usize = 10_000;

/// Starts Redis Stack in a directory of its own.
fn start_stack(directory: &Directory) -> Server {
    let path = std::env::var_os("REDIS_STACK_SERVER").map(PathBuf::from);
    let program =
        path.expect("set REDIS_STACK_SERVER to the program that scripts/setup-redis-stack.sh prints");
    Server::builder(program).directory(&directory.0).arguments(&["--save", ""]).start()
}

/// Returns how many random commands each comparison runs.
fn commands() -> usize {
    std::env::var("STACK_COMMANDS").map_or(COMMANDS, |count| count.parse().unwrap())
}
