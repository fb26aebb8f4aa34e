//! `ember-cli restore`: the data set of an AOF at an earlier moment, as an RDB file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use ember_client::put_line;
use ember_persistence::check::FileError;
use ember_persistence::encryption::Encryption;
use ember_persistence::files::{Disk, OsDisk, directory_of};
use ember_persistence::restore::{Keys, LibraryTexts, Origin, Target, restore as restore_at};
use ember_protocol::Args;
use ember_protocol::moment::format_moment;
use ember_scripting::{library, payload};
use ember_storage::stores::Store;
use emberkv_core::error::CommandError;
use emberkv_core::rdb::PayloadChecks;

use super::check::counted;
use super::outcome::{Outcome, encryption, print_error, print_problem, second_of};
use super::place::{Place, places};
use crate::arguments::Restore;

/// Restores the data set, and reports what it was restored from.
pub(crate) fn restore(arguments: &Restore) -> ExitCode {
    match run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(outcome) => outcome.into(),
    }
}

fn run(arguments: &Restore) -> Result<(), Outcome> {
    let failed = |what: String| {
        print_problem(what);
        Outcome::Failed
    };
    let now = SystemTime::now();
    let now_s = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs().cast_signed();
    let to_s = second_of("--to", &arguments.to, now)?;
    let encryption = encryption(&arguments.key)?;
    let manifest = manifest_in(&arguments.dir).map_err(failed)?;
    let output = arguments.out.as_deref().filter(|_| !arguments.dry_run);
    // Loading the data set may take long, so an output file that exists already is reported first.
    if let Some(present) = output.filter(|output| output.exists()) {
        return Err(print_error(&FileError::Exists(present.to_owned())));
    }
    let disk: Arc<dyn Disk> = Arc::new(OsDisk);
    let databases = arguments.databases;
    let target = Target { manifest: &manifest, to_s, now_s, encryption: &encryption, databases };
    let mut libraries = Libraries::default();
    let restored = restore_at(disk.as_ref(), &target, &mut libraries).map_err(|error| {
        print_problem(&error);
        if error.is_damage() { Outcome::Damaged } else { Outcome::Failed }
    })?;
    say(&restored.origin, restored.keys(now_s), to_s);
    let Some(output) = output else {
        put_line("nothing is written, because of --dry-run");
        return Ok(());
    };
    let key = if restored.origin.is_encrypted { encryption } else { Encryption::off() };
    restored.save(&disk, output, &libraries, now_s, &key).map_err(|error| print_error(&error))?;
    put_line(format!(
        "{}: written. To use it, stop the server, move {} and its RDB file to another directory, and start the server \
         with this file as its RDB file (dbfilename).",
        output.display(),
        directory_of(&manifest).display()
    ));
    Ok(())
}

/// Returns the manifest of the only AOF to which a path refers: a data directory, the directory of an AOF, or a
/// manifest.
fn manifest_in(path: &Path) -> Result<PathBuf, String> {
    let mut manifests = Vec::new();
    for place in places(path)? {
        if let Place::Aof(manifest) = place {
            manifests.push(manifest);
        }
    }
    let manifest = manifests.pop().ok_or_else(|| {
        format!(
            "no AOF in {}: only the files of a server with appendonly yes contain earlier data",
            path.display()
        )
    })?;
    if !manifests.is_empty() {
        return Err(format!("{} contains several AOFs; specify a manifest", path.display()));
    }
    let data_directory = directory_of(directory_of(&manifest));
    match Store::find(&OsDisk, data_directory) {
        Some(engine) => Err(format!(
            "the data set in {} is in a store of {engine}, whose checkpoints overwrite earlier data: its log alone \
             cannot be restored",
            data_directory.display()
        )),
        None => Ok(manifest),
    }
}

fn say(origin: &Origin, keys: Keys, to_s: i64) {
    let moment = |unix_s: i64| format!("{} ({unix_s})", format_moment(unix_s));
    put_line(format!("restored to the end of the second {}", moment(to_s)));
    match &origin.base {
        Some(base) => put_line(format!("base: {}", base.display())),
        None => put_line("base: none, because the AOF began without data"),
    }
    for increment in &origin.increments {
        put_line(format!("increment: {}", increment.display()));
    }
    match origin.last_s {
        Some(last_s) => put_line(format!("last timestamp: {}", moment(last_s))),
        None => put_line("last timestamp: none"),
    }
    if let Some(torn) = &origin.torn {
        put_line(format!("the last {} bytes are torn ({}) and left out", torn.torn_bytes, torn.what));
    }
    if let (count, Some(first)) = &origin.failed {
        put_line(format!(
            "{} failed; they may also have failed when they first ran: {first}",
            counted(*count, "command", "commands")
        ));
    }
    let expired = match keys.expired {
        0 => String::new(),
        count => format!("; {count} of them have expired since, and a server does not load them"),
    };
    let commands = counted(origin.commands, "command", "commands");
    put_line(format!("{}, after {commands}{expired}", counted(keys.total, "key", "keys")));
}

/// The code of each function library, by the library's name.
#[derive(Debug, Default)]
struct Libraries(BTreeMap<Vec<u8>, Vec<u8>>);

impl LibraryTexts for Libraries {
    fn add(&mut self, code: &[u8]) -> Result<(), String> {
        let (name, _) = library::head(code).map_err(|error| text(&error))?;
        self.0.insert(name, code.to_vec());
        Ok(())
    }

    fn change(&mut self, args: Args<'_>) -> Result<(), String> {
        let is = |arg: usize, word: &str| {
            args.get(arg).is_some_and(|given| given.eq_ignore_ascii_case(word.as_bytes()))
        };
        let len = args.len();
        if is(1, "LOAD") && len > 2 {
            return self.add(args.at(len - 1));
        }
        if is(1, "DELETE") && len == 3 {
            return self.0.remove(args.at(2)).map(drop).ok_or_else(|| "ERR Library not found".to_owned());
        }
        if is(1, "FLUSH") && len <= 3 {
            self.0.clear();
            return Ok(());
        }
        if is(1, "RESTORE") && (3..=4).contains(&len) {
            let checks = PayloadChecks { version_max: u16::MAX, ..PayloadChecks::ALL };
            let codes = payload::read(args.at(2), checks).map_err(|error| text(&error))?;
            if is(3, "FLUSH") {
                self.0.clear();
            }
            return codes.iter().try_for_each(|code| self.add(code));
        }
        Err("this call cannot occur in an AOF of ember or of Redis 7".to_owned())
    }

    fn codes(&self) -> Vec<Vec<u8>> {
        self.0.values().cloned().collect()
    }
}

fn text(error: &CommandError) -> String {
    String::from_utf8_lossy(&error.text()).into_owned()
}
