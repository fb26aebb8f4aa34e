//! Modes other than running commands: bulk loading, scanning keys, monitoring the server.

mod cache;
mod copy;
mod failure;
mod hotkeys;
mod intrinsic;
mod key_scan;
mod key_statistics;
mod largest;
mod latency;
mod pipe;
mod replica;
mod spectrum;
mod stat;
mod watch;

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::process::ExitCode;

use crate::arguments::{ClientArguments, ModeOptions};
use crate::client::{Client, report_lost};
use crate::one_shot::unquoted;

use failure::Failure;

/// A mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Pipe,
    Scan,
    LargestByElements,
    LargestByMemory,
    KeyStatistics,
    HotKeys,
    Stat,
    Latency { is_history: bool },
    Spectrum,
    IntrinsicLatency { seconds: u64 },
    Cache { keys: u64 },
    Copy(copy::Part),
    Watch,
    Replica,
}

/// Returns the mode that the options select.
pub(crate) fn of(options: &ModeOptions) -> Option<Mode> {
    match options {
        ModeOptions { intrinsic_latency: Some(seconds), .. } => {
            Some(Mode::IntrinsicLatency { seconds: *seconds })
        }
        ModeOptions { latency_dist: true, .. } => Some(Mode::Spectrum),
        ModeOptions { latency_history: true, .. } => Some(Mode::Latency { is_history: true }),
        ModeOptions { latency: true, .. } => Some(Mode::Latency { is_history: false }),
        ModeOptions { lru_test: Some(keys), .. } => Some(Mode::Cache { keys: *keys }),
        ModeOptions { rdb: Some(_), .. } => Some(Mode::Copy(copy::Part::All)),
        ModeOptions { functions_rdb: Some(_), .. } => Some(Mode::Copy(copy::Part::Functions)),
        ModeOptions { replica: true, .. } => Some(Mode::Replica),
        ModeOptions { pipe: true, .. } => Some(Mode::Pipe),
        ModeOptions { bigkeys: true, .. } => Some(Mode::LargestByElements),
        ModeOptions { memkeys: true, .. } | ModeOptions { memkeys_samples: Some(_), .. } => {
            Some(Mode::LargestByMemory)
        }
        ModeOptions { keystats: true, .. } | ModeOptions { keystats_samples: Some(_), .. } => {
            Some(Mode::KeyStatistics)
        }
        ModeOptions { hotkeys: true, .. } => Some(Mode::HotKeys),
        ModeOptions { stat: true, .. } => Some(Mode::Stat),
        ModeOptions { scan: true, .. } => Some(Mode::Scan),
        ModeOptions { watch: true, .. } => Some(Mode::Watch),
        _ => None,
    }
}

/// Connects and runs the mode.
pub(crate) fn run(mode: Mode, client: &mut Client, arguments: &ClientArguments) -> ExitCode {
    let options = &arguments.modes;
    let pattern = match pattern(options) {
        Ok(pattern) => pattern,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    if let Mode::IntrinsicLatency { seconds } = mode {
        intrinsic::run(seconds);
        return ExitCode::SUCCESS;
    }
    if !client.connect() {
        return ExitCode::FAILURE;
    }
    if mode == Mode::Watch {
        return ended(watch::run(client, &arguments.command, options.since.as_deref()));
    }
    let Some(mut connection) = client.connection.take() else { return ExitCode::FAILURE };
    let connection = &mut connection;
    let interval = client.interval;
    let scan = key_scan::Scan::new(pattern, options.count, interval);
    let done = match mode {
        Mode::Pipe => pipe::run(connection, options.pipe_timeout),
        Mode::Scan => key_scan::list(connection, scan, &client.output),
        Mode::LargestByElements => largest::run(connection, scan, &largest::Measure::Elements),
        Mode::LargestByMemory => {
            largest::run(connection, scan, &largest::Measure::Memory(options.memkeys_samples))
        }
        Mode::KeyStatistics => {
            key_statistics::run(connection, scan, options.keystats_samples, options.top as usize)
        }
        Mode::HotKeys => hotkeys::run(connection, scan),
        Mode::Stat => stat::run(connection, interval),
        Mode::Latency { is_history } => latency::run(connection, interval, is_history, client.output.form),
        Mode::Spectrum => spectrum::run(connection, interval),
        Mode::Cache { keys } => cache::run(connection, keys),
        Mode::Copy(part) => {
            let file = options.rdb.as_deref().or(options.functions_rdb.as_deref());
            copy::run(connection, file.unwrap_or(Path::new("-")), part)
        }
        Mode::Replica => replica::run(connection),
        // Modes that use no connection, or several, have been handled above.
        Mode::IntrinsicLatency { .. } | Mode::Watch => Ok(()),
    };
    ended(done)
}

/// Prints why a mode has ended early.
fn ended(done: Result<(), Failure>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Lost(error)) => {
            report_lost(&error);
            ExitCode::FAILURE
        }
        Err(Failure::Said(text)) => {
            eprintln!("{text}");
            ExitCode::FAILURE
        }
        Err(Failure::Known) => ExitCode::FAILURE,
    }
}

fn pattern(options: &ModeOptions) -> Result<Option<Vec<u8>>, String> {
    match (&options.quoted_pattern, &options.pattern) {
        (Some(pattern), _) => unquoted(&pattern.clone().into_vec()).map(Some),
        (None, pattern) => Ok(pattern.clone().map(OsString::into_vec)),
    }
}
