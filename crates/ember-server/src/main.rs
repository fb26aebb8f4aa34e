//! The ember server program.

// The parts which only a running server calls have no caller yet.
#[cfg_attr(not(test), expect(dead_code, reason = "the CONFIG command and the workers use the rest"))]
mod config;

use std::io::Write;
use std::process::ExitCode;

use config::Launch;

fn main() -> ExitCode {
    match config::launch(std::env::args_os().skip(1), |name| std::env::var_os(name), std::io::stdin()) {
        Ok(Launch::Serve(_)) => ExitCode::SUCCESS,
        Ok(Launch::Print(text)) => {
            let printed = writeln!(std::io::stdout(), "{text}");
            if printed.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("ember-server: {error}");
            ExitCode::FAILURE
        }
    }
}
