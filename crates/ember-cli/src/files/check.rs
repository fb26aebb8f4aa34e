//! `ember-cli check`: checks files for damage, and shows their contents.

use std::process::ExitCode;

use ember_persistence::check::{CommandFacts, FileError, RdbFacts, Report, check_aof, check_file};
use ember_persistence::encryption::{Encryption, Ending};
use ember_persistence::files::OsDisk;
use ember_persistence::repair::repair_command;

use super::outcome::{Outcome, encryption, print_error, print_problem};
use super::place::{Place, places};
use super::stores::{check_opened, check_store, store_at};
use crate::arguments::Check;
use ember_client::put_line;

/// Checks all given paths. Prints intact files on standard output, others on standard error.
pub(crate) fn check(arguments: &Check) -> ExitCode {
    if let Some(files) = &arguments.opened_as {
        return check_opened(arguments, files).into();
    }
    let encryption = match encryption(&arguments.key) {
        Ok(encryption) => encryption,
        Err(outcome) => return outcome.into(),
    };
    let mut outcome = Outcome::Fine;
    for path in &arguments.paths {
        let store = store_at(path).map(|(_, files)| files);
        if let Some(files) = &store {
            outcome = outcome.max(check_store(files, &arguments.key));
        }
        let found = match places(path) {
            // The path is the store itself, so there are no other files to check.
            _ if store.as_deref() == Some(path) => None,
            Err(_) if store.is_some() => None,
            Ok(places) => places.iter().map(|place| check_place(place, &encryption)).max(),
            Err(error) => {
                print_problem(error);
                Some(Outcome::Failed)
            }
        };
        outcome = outcome.max(found.unwrap_or(Outcome::Fine));
    }
    outcome.into()
}

fn check_place(place: &Place, encryption: &Encryption) -> Outcome {
    let checked = match place {
        Place::File(file) => Ok(vec![check_file(&OsDisk, file, encryption, ending_of(place))]),
        Place::Aof(manifest) => check_aof(&OsDisk, manifest, encryption),
    };
    match checked {
        Ok(files) => files.iter().map(say).max().unwrap_or(Outcome::Fine),
        Err(error) => print_error(&error),
    }
}

/// Determines whether a single file may have a torn end. A snapshot must be complete; an AOF may still be written to.
pub(super) fn ending_of(place: &Place) -> Ending {
    let is_snapshot = place.path().extension().is_some_and(|extension| extension == "rdb");
    if is_snapshot { Ending::Whole } else { Ending::MayBeTorn }
}

fn say(checked: &Result<Report, FileError>) -> Outcome {
    let report = match checked {
        Ok(report) => report,
        Err(error) => return print_error(error),
    };
    let torn = report.commands.as_ref().and_then(|commands| commands.torn);
    let state = if torn.is_some() { "intact except for a torn end" } else { "intact" };
    let form = if report.is_encrypted { ", encrypted" } else { "" };
    let mut parts = Vec::new();
    parts.extend(report.rdb.as_ref().map(rdb_part));
    parts.extend(report.commands.as_ref().map(commands_part));
    put_line(format!(
        "{}: {state}, {} bytes{form}: {}",
        report.file.display(),
        report.size,
        parts.join("; ")
    ));
    let Some(torn) = torn else { return Outcome::Fine };
    print_problem(format_args!(
        "{} at offset {}: {} torn bytes: {}; a server truncates them at startup, or remove them with `{}`",
        report.file.display(),
        torn.valid_to,
        torn.torn_bytes,
        torn.what,
        repair_command(&report.file)
    ));
    Outcome::Damaged
}

fn rdb_part(rdb: &RdbFacts) -> String {
    let functions = match rdb.functions {
        0 => String::new(),
        count => format!(", {}", counted(count, "function library", "function libraries")),
    };
    let keys = counted(rdb.keys, "key", "keys");
    let empty = match rdb.empty {
        0 => String::new(),
        count => format!(", {count} more without elements, which are skipped on loading"),
    };
    let skipped: String =
        rdb.skipped.iter().map(|data| format!(", {data}, which are skipped on loading")).collect();
    format!("RDB version {}, {keys}, {} with an expiry{functions}{empty}{skipped}", rdb.version, rdb.expiring)
}

fn commands_part(commands: &CommandFacts) -> String {
    let times = commands
        .times
        .map_or(String::new(), |(first, last)| format!(", with Unix timestamps from {first} to {last}"));
    let checksums = if commands.is_checked { "" } else { ", without checksums" };
    let count = counted(commands.commands, "command", "commands");
    format!("{count} in {}{times}{checksums}", counted(commands.units, "unit", "units"))
}

pub(super) fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
