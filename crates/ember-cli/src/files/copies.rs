//! `ember-cli repair` and `ember-cli convert`: copies of files. The original is not modified, and existing files are
//! not overwritten.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::SystemTime;

use ember_persistence::check::{FileError, open_manifest};
use ember_persistence::convert::{
    Reader, Target, convert_aof, convert_aof_for, convert_file, convert_file_for,
};
use ember_persistence::encryption::{Encryption, KEY_VARIABLE, is_encrypted};
use ember_persistence::files::{Disk, OsDisk};
use ember_persistence::repair::{Plan, Repaired, repair_aof, repair_file};

use super::check::ending_of;
use super::outcome::{Outcome, encryption, print_error, print_problem, second_of};
use super::place::{Place, place};
use crate::arguments::{Convert, Copy, ForServer, Form, Repair};
use ember_client::put_line;

/// The maximum number of lost keys that are named individually.
const NAMED_KEYS_MAX: usize = 20;

/// Copies the intact part of a file or AOF.
pub(crate) fn repair(arguments: &Repair) -> ExitCode {
    let until = arguments.until.as_deref().map(|text| second_of("--until", text, SystemTime::now()));
    let until_s = match until.transpose() {
        Ok(until_s) => until_s,
        Err(outcome) => return outcome.into(),
    };
    let run = |place: &Place, encryption: &Encryption, output: &Path| {
        let disk: Arc<dyn Disk> = Arc::new(OsDisk);
        let sealed = seals(place)?;
        let plan = Plan {
            cuts_damage: true,
            until_s,
            encryption: if sealed { encryption.clone() } else { Encryption::off() },
        };
        match place {
            Place::File(file) => {
                let ending = ending_of(place);
                Ok(vec![(file.clone(), repair_file(&disk, file, output, encryption, ending, &plan)?)])
            }
            Place::Aof(manifest) => {
                let files = open_manifest(&OsDisk, manifest)?.files;
                let repaired = repair_aof(&disk, manifest, output, encryption, &plan)?;
                Ok(files.into_iter().zip(repaired).collect())
            }
        }
    };
    copy(&arguments.copy, encryption(&arguments.key), run)
}

/// Whether to encrypt the copy: if any part of the original is encrypted.
fn seals(place: &Place) -> Result<bool, FileError> {
    let files = match place {
        Place::File(file) => vec![file.clone()],
        Place::Aof(manifest) => open_manifest(&OsDisk, manifest)?.files,
    };
    for file in files {
        match OsDisk.open_to_read(&file) {
            Ok(file) if is_encrypted(file.as_ref())? => return Ok(true),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(false)
}

/// Copies between encrypted and unencrypted form, or to the format of another server.
pub(crate) fn convert(arguments: &Convert) -> ExitCode {
    let run = |place: &Place, encryption: &Encryption, output: &Path| {
        let disk: Arc<dyn Disk> = Arc::new(OsDisk);
        let is_sealed = match arguments.to {
            Some(form) => form == Form::Encrypted,
            None => seals(place)?,
        };
        let target = if is_sealed { encryption.clone() } else { Encryption::off() };
        if let Some(server) = arguments.target {
            let reader =
                Reader { target: target_of(server), leaves_out: arguments.leave_out, encryption: target };
            return convert_for(&disk, place, encryption, output, &reader);
        }
        match place {
            Place::File(file) => {
                Ok(vec![(file.clone(), convert_file(&disk, file, output, encryption, &target)?)])
            }
            Place::Aof(manifest) => {
                let files = open_manifest(&OsDisk, manifest)?.files;
                let copied = convert_aof(&disk, manifest, output, encryption, &target)?;
                Ok(files.into_iter().zip(copied).collect())
            }
        }
    };
    let keys = encryption(&arguments.key);
    if arguments.to == Some(Form::Encrypted) && keys.as_ref().is_ok_and(|keys| !keys.is_on()) {
        print_problem(format_args!(
            "there is no encryption key; specify its file with --encryption-key-file, or set {KEY_VARIABLE}"
        ));
        return Outcome::Failed.into();
    }
    copy(&arguments.copy, keys, run)
}

fn target_of(server: ForServer) -> Target {
    match server {
        ForServer::Redis72 => Target::Redis72,
        ForServer::Redis8 => Target::Redis8,
        ForServer::Valkey9 => Target::Valkey9,
    }
}

fn convert_for(
    disk: &Arc<dyn Disk>,
    place: &Place,
    encryption: &Encryption,
    output: &Path,
    reader: &Reader,
) -> Copied {
    match place {
        Place::File(file) => {
            let ending = ending_of(place);
            Ok(vec![(file.clone(), convert_file_for(disk, file, output, encryption, ending, reader)?)])
        }
        Place::Aof(manifest) => {
            let files = open_manifest(&OsDisk, manifest)?.files;
            let copied = convert_aof_for(disk, manifest, output, encryption, reader)?;
            Ok(files.into_iter().zip(copied).collect())
        }
    }
}

type Copied = Result<Vec<(PathBuf, Repaired)>, FileError>;

/// Copies with the given keys; if the keys are invalid, prints an error and returns.
fn copy(
    arguments: &Copy,
    keys: Result<Encryption, Outcome>,
    run: impl Fn(&Place, &Encryption, &Path) -> Copied,
) -> ExitCode {
    let encryption = match keys {
        Ok(encryption) => encryption,
        Err(outcome) => return outcome.into(),
    };
    let place = match place(&arguments.path) {
        Ok(place) => place,
        Err(error) => {
            print_problem(error);
            return Outcome::Failed.into();
        }
    };
    if let Some((directory, holder)) = place.in_use() {
        print_problem(format_args!(
            "{} is in use by a server ({holder}): a copy would miss later writes; stop \
             the server first",
            directory.display()
        ));
        return Outcome::Failed.into();
    }
    match run(&place, &encryption, &arguments.output) {
        Ok(copied) => {
            copied.iter().for_each(|(file, repaired)| say(file, repaired));
            put_line(format!(
                "{}: written. To use it, stop the server and replace {} with it.",
                arguments.output.display(),
                replaced(&place).display()
            ));
            ExitCode::SUCCESS
        }
        Err(error) => print_error(&error).into(),
    }
}

/// The path of the original that the copy can replace: a file, or the directory of a manifest.
fn replaced(place: &Place) -> &Path {
    match place {
        Place::File(file) => file,
        Place::Aof(manifest) => ember_persistence::files::directory_of(manifest),
    }
}

fn say(file: &Path, repaired: &Repaired) {
    let kept = match (&repaired.cut, repaired.kept_bytes) {
        (None, _) => "copied completely".to_owned(),
        (Some(_), 0) => format!("copied the {} readable keys", repaired.kept_keys),
        (Some(_), bytes) => format!("copied the first {bytes} bytes"),
    };
    put_line(format!("{}: {kept}", file.display()));
    if let Some(cut) = &repaired.cut {
        put_line(format!("  reason: {cut}"));
    }
    if !repaired.unsupported.is_empty() {
        put_line(format!("  left out: {}", repaired.unsupported));
    }
    for (key, error) in repaired.lost_keys.iter().take(NAMED_KEYS_MAX) {
        put_line(format!("  lost: the key '{}': {}", key.escape_ascii(), error.problem));
    }
    if repaired.lost_keys.len() > NAMED_KEYS_MAX {
        put_line(format!("  lost: {} more keys", repaired.lost_keys.len() - NAMED_KEYS_MAX));
    }
    for left_out in &repaired.left_out {
        put_line(format!("{}: left out, because it follows the cut", left_out.display()));
    }
}
