//! The ember server program.

mod acl;
#[cfg(feature = "jemalloc")]
mod allocator;
mod census;
mod client;
mod command_log;
mod commands;
#[cfg(test)]
mod compatibility;
mod conditions;
mod config;
mod connection;
mod control_plane;
mod data_lock;
mod driver;
mod encryption;
mod executor;
mod hot_keys;
mod journal;
mod latency;
mod listener;
mod log;
mod mailbox;
mod memory;
mod metrics;
mod monitors;
mod open_files;
mod over_limit;
mod processor_time;
mod pubsub;
mod rates;
mod registry;
mod replace_file;
mod scripting;
mod server;
mod session;
mod snapshot;
mod start;
mod stats;
mod supervisor;
mod syntax;
mod tls;
mod tracking;
mod transaction;
mod waiting;
mod worker;

use std::io::Write;
use std::process::ExitCode;

use config::Launch;

fn main() -> ExitCode {
    match config::launch(std::env::args_os().skip(1), |name| std::env::var_os(name), std::io::stdin()) {
        Ok(Launch::Serve(config)) => match start::serve(config) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(&error),
        },
        Ok(Launch::Print(text)) => {
            let printed = writeln!(std::io::stdout(), "{text}");
            if printed.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => fail(&error),
    }
}

fn fail(error: &str) -> ExitCode {
    eprintln!("ember-server: {error}");
    ExitCode::FAILURE
}
