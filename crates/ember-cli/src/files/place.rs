//! Resolves a path on the command line: a file, or an AOF of several files.

use std::path::{Path, PathBuf};
use std::{fs, io};

use ember_persistence::encryption::Ending;
use ember_persistence::files::{DirectoryLock, unfinished_target};

use super::check::ending_of;

/// A unit that can be checked and copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// A single file.
    File(PathBuf),
    /// An AOF of several files, by the path of its manifest.
    Aof(PathBuf),
}

impl Place {
    /// The path for messages.
    pub(super) fn path(&self) -> &Path {
        match self {
            Place::File(path) | Place::Aof(path) => path,
        }
    }

    /// If a running server uses this AOF, returns its data directory and a description of the server. `None` for RDB
    /// files: they are replaced atomically, so they can be read at any time.
    pub(super) fn in_use(&self) -> Option<(PathBuf, String)> {
        if ending_of(self) == Ending::Whole {
            return None;
        }
        // The parts of an AOF are in a subdirectory of the data directory; the single file of an older server is in the
        // data directory itself.
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

/// Returns all units that a path refers to. A directory refers to the AOFs whose manifests it contains. A directory
/// without manifests is treated as the data directory of a server: it refers to the RDB files and AOFs in it and in its
/// subdirectories.
///
/// # Errors
/// Returns a message if the directory cannot be listed or contains no such file.
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
        return Err(format!("no RDB file, AOF or manifest in {}; specify the file", path.display()));
    }
    Ok(found)
}

/// Returns the only unit to which a path refers.
///
/// # Errors
/// Returns the errors of [`places`], and a message if there is more than one unit.
pub(super) fn place(path: &Path) -> Result<Place, String> {
    let mut found = places(path)?;
    if found.len() > 1 {
        let names: Vec<String> = found.iter().map(|place| place.path().display().to_string()).collect();
        return Err(format!(
            "{} contains several files; specify one of {}",
            path.display(),
            names.join(", ")
        ));
    }
    found.pop().ok_or_else(|| format!("{} is empty", path.display()))
}

fn files_of(directory: &Path, extensions: &[&str]) -> Result<Vec<Place>, String> {
    let wanted =
        |path: &PathBuf| extensions.iter().any(|extension| has_extension(path, extension)) && path.is_file();
    Ok(entries_of(directory)?.into_iter().filter(wanted).map(Place::of).collect())
}

/// Returns the entries of a directory in order, excluding temporary files.
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
