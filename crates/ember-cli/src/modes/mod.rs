//! What is done instead of running commands: bulk loading, looking at all keys, watching the server.

mod failure;
mod hotkeys;
mod keys;
mod largest;
mod latency;
mod pipe;
mod spectrum;
mod stat;

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::process::ExitCode;

use crate::arguments::{ClientArguments, ModeOptions};
use crate::client::{Client, say_lost};
use crate::one_shot::unquoted;

use failure::Failure;

/// A mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Pipe,
    Scan,
    LargestByElements,
    LargestByMemory,
    HotKeys,
    Stat,
    Latency { is_history: bool },
    Spectrum,
}

/// The mode that the options ask for.
pub(crate) fn of(options: &ModeOptions) -> Option<Mode> {
    match options {
        ModeOptions { latency_dist: true, .. } => Some(Mode::Spectrum),
        ModeOptions { latency_history: true, .. } => Some(Mode::Latency { is_history: true }),
        ModeOptions { latency: true, .. } => Some(Mode::Latency { is_history: false }),
        ModeOptions { pipe: true, .. } => Some(Mode::Pipe),
        ModeOptions { bigkeys: true, .. } => Some(Mode::LargestByElements),
        ModeOptions { memkeys: true, .. } | ModeOptions { memkeys_samples: Some(_), .. } => {
            Some(Mode::LargestByMemory)
        }
        ModeOptions { hotkeys: true, .. } => Some(Mode::HotKeys),
        ModeOptions { stat: true, .. } => Some(Mode::Stat),
        ModeOptions { scan: true, .. } => Some(Mode::Scan),
        _ => None,
    }
}

/// Connects and does what the mode is about.
pub(crate) fn run(mode: Mode, client: &mut Client, arguments: &ClientArguments) -> ExitCode {
    let options = &arguments.modes;
    let pattern = match pattern(options) {
        Ok(pattern) => pattern,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    if !client.connect() {
        return ExitCode::FAILURE;
    }
    let Some(mut connection) = client.connection.take() else { return ExitCode::FAILURE };
    let connection = &mut connection;
    let interval = client.interval;
    let scan = keys::Scan::new(pattern, options.count, interval);
    let done = match mode {
        Mode::Pipe => pipe::run(connection, options.pipe_timeout),
        Mode::Scan => keys::list(connection, scan, &client.output),
        Mode::LargestByElements => largest::run(connection, scan, &largest::Measure::Elements),
        Mode::LargestByMemory => {
            largest::run(connection, scan, &largest::Measure::Memory(options.memkeys_samples))
        }
        Mode::HotKeys => hotkeys::run(connection, scan),
        Mode::Stat => stat::run(connection, interval),
        Mode::Latency { is_history } => latency::run(connection, interval, is_history, client.output.form),
        Mode::Spectrum => spectrum::run(connection, interval),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Lost(error)) => {
            say_lost(&error);
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
