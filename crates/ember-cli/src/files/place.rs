//! What a path on the command line means: a file, or an AOF of several files.

use std::path::{Path, PathBuf};
use std::{fs, io};

use ember_persistence::encryption::Ending;
use ember_persistence::files::{DirectoryLock, unfinished_target};

use super::check::ending_of;

/// Something that can be checked and copied as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// A file by itself.
    File(PathBuf),
    /// The AOF that a manifest is of.
    Aof(PathBuf),
}

impl Place {
    /// The path to name it by.
    pub(super) fn path(&self) -> &Path {
        match self {
            Place::File(path) | Place::Aof(path) => path,
        }
    }

    /// The data directory of a running server that an AOF is in, and who that is. An RDB file is replaced as a whole, so
    /// that it can be read at any time.
    pub(super) fn in_use(&self) -> Option<(PathBuf, String)> {
        if ending_of(self) == Ending::Whole {
            return None;
        }
        // A part of an AOF lies in a directory below that of the data, a single file of an older server in that itself.
        let own = std::path::absolute(self.path()).ok()?;
        let directories = own.ancestors().skip(1).take(2);
        directories
            .filter_map(|directory| Some((directory.to_owned(), DirectoryLock::holder(directory)?)))
            .next()
    }

    fn of(path: PathBuf) -> Place {
        if has_extension(&path, "manifest") { Place::Aof(path) } else { Place::File(path) }
    }
}

/// All that a path means. A directory stands for the AOFs whose manifests are in it; or else, as the directory of a
/// server's data, for the RDB files and AOFs in it and the AOFs in the directories of it.
///
/// # Errors
/// In words: if it cannot be listed, or nothing is there.
pub(super) fn places(path: &Path) -> Result<Vec<Place>, String> {
    if !path.is_dir() {
        return Ok(vec![Place::of(path.to_owned())]);
    }
    let manifests = files_of(path, &["manifest"])?;
    if !manifests.is_empty() {
        return Ok(manifests);
    }
    let mut found = files_of(path, &["rdb", "aof"])?;
    for below in entries_of(path)?.iter().filter(|entry| entry.is_dir()) {
        found.extend(files_of(below, &["manifest"])?);
    }
    if found.is_empty() {
        return Err(format!("there is no RDB file, AOF or manifest in {}; name the file", path.display()));
    }
    Ok(found)
}

/// The one thing that a path means.
///
/// # Errors
/// Those of [`places`], and if there is more than one.
pub(super) fn place(path: &Path) -> Result<Place, String> {
    let mut found = places(path)?;
    if found.len() > 1 {
        let names: Vec<String> = found.iter().map(|place| place.path().display().to_string()).collect();
        return Err(format!(
            "there is more than one file in {}; name one of {}",
            path.display(),
            names.join(", ")
        ));
    }
    found.pop().ok_or_else(|| format!("there is nothing in {}", path.display()))
}

fn files_of(directory: &Path, extensions: &[&str]) -> Result<Vec<Place>, String> {
    let wanted =
        |path: &PathBuf| extensions.iter().any(|extension| has_extension(path, extension)) && path.is_file();
    Ok(entries_of(directory)?.into_iter().filter(wanted).map(Place::of).collect())
}

/// What is in a directory, in order. Files that are not finished are nothing yet.
fn entries_of(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let listed = fs::read_dir(directory)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>());
    let is_finished = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        unfinished_target(&name).is_none()
    };
    let mut paths = listed.map_err(|error| format!("cannot list {}: {error}", directory.display()))?;
    paths.retain(is_finished);
    paths.sort();
    Ok(paths)
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found == extension)
}
