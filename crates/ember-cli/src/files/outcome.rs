//! The outcome of a file tool, and its error messages.

use std::fmt::Display;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use ember_persistence::check::FileError;
use ember_persistence::encryption::{Encryption, KEY_VARIABLE, KeyRing};
use ember_persistence::files::OsDisk;
use ember_protocol::moment::parse_moment;

use crate::arguments::KeyOption;

/// The outcome of a file tool, which determines the exit code. The worst outcome of several files applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Outcome {
    Fine = 0,
    Damaged = 1,
    Failed = 2,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> ExitCode {
        ExitCode::from(outcome as u8)
    }
}

/// Prints an error on standard error.
pub(super) fn print_problem(what: impl Display) {
    eprintln!("ember-cli: {what}");
}

/// Returns the time in an option as Unix time in whole seconds; prints an error if the text is not a time.
pub(super) fn second_of(option: &str, text: &str, now: SystemTime) -> Result<i64, Outcome> {
    let now_ms = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as i64;
    let moment_ms = parse_moment(text, now_ms).map_err(|error| {
        print_problem(format!("{option}: {error}"));
        Outcome::Failed
    })?;
    Ok(moment_ms.div_euclid(1000))
}

/// Prints the error of a file.
pub(super) fn print_error(error: &FileError) -> Outcome {
    print_problem(error);
    if error.is_damage() { Outcome::Damaged } else { Outcome::Failed }
}

/// Loads the configured keys; prints errors.
pub(super) fn encryption(option: &KeyOption) -> Result<Encryption, Outcome> {
    let (from, ring) = match &option.encryption_key_file {
        Some(file) => (file.display().to_string(), KeyRing::from_file(&OsDisk, file)),
        None if std::env::var_os(KEY_VARIABLE).is_none() => return Ok(Encryption::off()),
        None => (KEY_VARIABLE.to_owned(), KeyRing::from_environment(KEY_VARIABLE)),
    };
    ring.map(Encryption::with).map_err(|error| {
        print_problem(format_args!("cannot load keys from {from}: {error}"));
        Outcome::Failed
    })
}
