//! The entry point of `ember-server`.

mod acl;
mod aof;
mod catalogue;
mod clients;
mod cluster;
mod commands;
mod control_plane;
mod defragmentation;
mod executor;
mod files;
mod history;
mod journal;
mod live_queries;
mod metrics;
mod migration;
mod observability;
mod replication;
mod script_host;
mod server;
mod snapshot;
mod start;
mod system;
mod tiers;
mod tls;
mod worker;

use std::io::Write;
use std::process::ExitCode;

use ember_config::Launch;
use system::daemon::{self, Kept};

fn main() -> ExitCode {
    let mut input = Kept::new(std::io::stdin());
    match ember_config::launch(std::env::args_os().skip(1), |name| std::env::var_os(name), &mut input) {
        Ok(Launch::Serve(config)) if daemon::is_wanted(&config.snapshot()) => {
            match daemon::start(&input.bytes) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => fail(&format!("daemonize: cannot start a process in the background: {error}")),
            }
        }
        Ok(Launch::Serve(config)) => match start::serve(config) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(&error),
        },
        Ok(Launch::Check(config)) => match start::check(&config) {
            Ok(()) => print("the configuration is valid"),
            Err(error) => fail(&error),
        },
        Ok(Launch::Print(text)) => print(&text),
        Err(error) => fail(&error),
    }
}

fn print(text: &str) -> ExitCode {
    let printed = writeln!(std::io::stdout(), "{text}");
    if printed.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn fail(errors: &str) -> ExitCode {
    errors.lines().for_each(|error| eprintln!("ember-server: {error}"));
    ExitCode::FAILURE
}
