//! The files of the agreement, in the directory `raft` next to the file of the topology: the vote and the log.
//!
//! ```text
//! vote   ember-vote 1 <group> <node> <term> <candidate or -> crc=…      replaced as a whole
//! log    ember-log 1 <group> <index of the base> <term of the base> crc=…
//!        <index> <term> <change> crc=…                                  appended; replaced when entries are removed
//! ```
//!
//! Both are synced before the node answers. A crash while lines are appended can leave an incomplete last line. The
//! node has not confirmed that entry to any other node, so the line is removed. Any other damage prevents startup.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use ember_cluster::consensus::{Entry, Log, LogWrite, Vote};
use ember_cluster::node::Name;
use ember_persistence::replace_file::replace;

use super::checked_lines::{lines_of, text_of};

/// The name of the directory.
const DIRECTORY: &str = "raft";

/// The contents of the files.
#[derive(Debug)]
pub(crate) struct Stored {
    /// The group to which they belong.
    pub(crate) group: Name,
    pub(crate) vote: Vote,
    pub(crate) log: Log,
}

/// The open files.
#[derive(Debug)]
pub(crate) struct AgreementFiles {
    directory: PathBuf,
    /// The log, opened when it is first appended to, with the checksum of its last line.
    log: Option<(File, u32)>,
}

/// Returns the directory for a file of the topology.
fn directory_of(topology: &Path) -> PathBuf {
    topology.parent().unwrap_or(Path::new("")).join(DIRECTORY)
}

/// Reads the files of the node with this name; `None` if one is missing.
///
/// # Errors
/// Returns an error that names the file, its fault, and what to do.
pub(crate) fn load(topology: &Path, me: Name) -> Result<Option<Stored>, String> {
    let directory = directory_of(topology);
    let (Some(vote), Some(mut log)) = (read(&directory.join("vote"))?, read(&directory.join("log"))?) else {
        return Ok(None);
    };
    let end = log.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    log.truncate(end);
    let damaged = |file: &str, reason: String| {
        format!(
            "{}: {reason}. The file belongs to the agreement of the nodes: restore the whole directory of this node from a \
             copy that is not older than its last run, or start it with an empty directory as a new node, and remove the \
             old one with CLUSTER FORGET",
            directory.join(file).display()
        )
    };
    let (vote_group, vote) = parse_vote(&vote, me).map_err(|reason| damaged("vote", reason))?;
    let (group, log) = parse_log(&log).map_err(|reason| damaged("log", reason))?;
    if group != vote_group {
        // The node has crashed while it joined a group: its topology does not have a group yet.
        return Ok(Some(Stored { group, vote: Vote::default(), log: Log::default() }));
    }
    Ok(Some(Stored { group, vote, log }))
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, String> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("cannot read {}: {error}", path.display())),
    }
}

fn lines_or_reason(bytes: &[u8]) -> Result<Vec<&str>, String> {
    let lines = lines_of(bytes).map_err(|error| format!("line {}: {}", error.line, error.reason))?;
    Ok(lines.0)
}

fn name_of(text: &str) -> Result<Name, String> {
    Name::parse(text).ok_or_else(|| format!("'{}' is not a name", text.escape_default()))
}

fn number_of(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("'{}' is not a number", text.escape_default()))
}

fn parse_vote(bytes: &[u8], me: Name) -> Result<(Name, Vote), String> {
    let lines = lines_or_reason(bytes)?;
    let words: Vec<&str> = lines.iter().flat_map(|line| line.split(' ')).collect();
    let ["ember-vote", "1", group, node, term, candidate] = words[..] else {
        return Err("the file does not contain a vote".to_owned());
    };
    if name_of(node)? != me {
        return Err(format!("it is the vote of node {node}, but this is node {me}"));
    }
    let candidate = if candidate == "-" { None } else { Some(name_of(candidate)?) };
    Ok((name_of(group)?, Vote { term: number_of(term)?, candidate }))
}

fn parse_log(bytes: &[u8]) -> Result<(Name, Log), String> {
    let lines = lines_or_reason(bytes)?;
    let (first, entries) = lines.split_first().ok_or("the file has no first line")?;
    let ["ember-log", "1", group, index, term] = first.split(' ').collect::<Vec<_>>()[..] else {
        return Err("the file does not contain a log".to_owned());
    };
    let mut log = Log::new((number_of(index)?, number_of(term)?));
    for line in entries {
        let entry = Entry::parse(line)?;
        if entry.index != log.last().0 + 1 {
            return Err(format!("entry {} follows entry {}", entry.index, log.last().0));
        }
        log.push(entry);
    }
    Ok((name_of(group)?, log))
}

impl AgreementFiles {
    /// Returns the files that belong to a file of the topology.
    pub(crate) fn new(topology: &Path) -> AgreementFiles {
        AgreementFiles { directory: directory_of(topology), log: None }
    }

    /// Stores the vote durably.
    ///
    /// # Errors
    /// Returns errors of the system.
    pub(crate) fn save_vote(&mut self, group: Name, me: Name, vote: Vote) -> io::Result<()> {
        self.create_directory()?;
        let candidate = vote.candidate.map_or("-".to_owned(), |name| name.to_string());
        let line = format!("ember-vote 1 {group} {me} {} {candidate}", vote.term);
        replace(&self.directory.join("vote"), text_of(0, [&*line]).0.as_bytes())
    }

    fn create_directory(&self) -> io::Result<()> {
        match fs::create_dir(&self.directory) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
            Ok(()) => {
                let parent = self.directory.parent().filter(|parent| !parent.as_os_str().is_empty());
                File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
            }
        }
    }

    /// Changes the log durably.
    ///
    /// # Errors
    /// Returns errors of the system. The file may then end with a part of the entries: nothing may be appended to it.
    pub(crate) fn write_log(&mut self, group: Name, write: &LogWrite) -> io::Result<()> {
        match write {
            LogWrite::Replace(log) => self.replace_log(group, log),
            LogWrite::Append(entries) => self.append(entries),
        }
    }

    fn replace_log(&mut self, group: Name, log: &Log) -> io::Result<()> {
        self.log = None;
        self.create_directory()?;
        let (index, term) = log.base();
        let first = format!("ember-log 1 {group} {index} {term}");
        let entries: Vec<String> = log.entries().iter().map(Entry::text).collect();
        let (text, last) = text_of(0, [&*first].into_iter().chain(entries.iter().map(String::as_str)));
        let path = self.directory.join("log");
        replace(&path, text.as_bytes())?;
        self.log = Some((OpenOptions::new().append(true).open(path)?, last));
        Ok(())
    }

    fn append(&mut self, entries: &[Entry]) -> io::Result<()> {
        let (mut file, before) = match self.log.take() {
            Some(open) => open,
            None => self.reopen()?,
        };
        let lines: Vec<String> = entries.iter().map(Entry::text).collect();
        let (text, last) = text_of(before, lines.iter().map(String::as_str));
        file.write_all(text.as_bytes())?;
        file.sync_data()?;
        self.log = Some((file, last));
        Ok(())
    }

    /// Opens the log of the last run, and removes a line that a crash has left without an end.
    fn reopen(&self) -> io::Result<(File, u32)> {
        let path = self.directory.join("log");
        let bytes = fs::read(&path)?;
        let end = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let damaged = |_| {
            io::Error::new(
                ErrorKind::InvalidData,
                "the file raft/log was changed after this server's startup",
            )
        };
        let (_, before) = lines_of(&bytes[..end]).map_err(damaged)?;
        let file = OpenOptions::new().append(true).open(path)?;
        if end < bytes.len() {
            file.set_len(end as u64)?;
            file.sync_all()?;
        }
        Ok((file, before))
    }
}

#[cfg(test)]
mod tests {
    use ember_cluster::change::Change;

    use super::*;

    fn name(digit: &str) -> Name {
        Name::parse(&digit.repeat(40)).unwrap()
    }

    fn entry(index: u64) -> Entry {
        Entry { index, term: 2, change: Change::Forget(name("c")) }
    }

    /// Writes files with a vote and two entries in a new directory; returns the path of the topology.
    fn written(test: &str) -> PathBuf {
        let directory = std::env::temp_dir().join(format!("ember-raft-{}-{test}", std::process::id()));
        _ = fs::remove_dir_all(&directory);
        fs::create_dir(&directory).unwrap();
        let topology = directory.join("nodes.conf");
        let mut files = AgreementFiles::new(&topology);
        let vote = Vote { term: 2, candidate: Some(name("b")) };
        files.save_vote(name("9"), name("a"), vote).unwrap();
        files.write_log(name("9"), &LogWrite::Replace(Log::new((4, 1)))).unwrap();
        files.write_log(name("9"), &LogWrite::Append(vec![entry(5)])).unwrap();
        // Another run continues.
        let mut files = AgreementFiles::new(&topology);
        files.write_log(name("9"), &LogWrite::Append(vec![entry(6)])).unwrap();
        topology
    }

    #[test]
    fn what_was_stored_is_loaded_again() {
        let topology = written("loaded");
        let Stored { group, vote, log } = load(&topology, name("a")).unwrap().unwrap();
        assert_eq!((group, vote.term, vote.candidate), (name("9"), 2, Some(name("b"))));
        assert_eq!((log.base(), log.entries()), ((4, 1), &[entry(5), entry(6)][..]));
        let error = load(&topology, name("d")).unwrap_err();
        assert!(error.contains("it is the vote of node"), "{error}");
        fs::remove_dir_all(topology.parent().unwrap()).unwrap();
    }

    #[test]
    fn every_changed_byte_is_found_and_a_torn_last_line_is_removed() {
        let topology = written("damaged");
        for file in ["vote", "log"] {
            let path = directory_of(&topology).join(file);
            let whole = fs::read(&path).unwrap();
            for at in 0..whole.len() {
                let mut bytes = whole.clone();
                bytes[at] ^= 1;
                fs::write(&path, &bytes).unwrap();
                // Without its end, the last line of the log is one that was not written completely.
                let is_torn = file == "log" && at == whole.len() - 1;
                let loaded = load(&topology, name("a"));
                assert_eq!(loaded.is_ok(), is_torn, "{file}, byte {at}: {loaded:?}");
            }
            fs::write(&path, &whole).unwrap();
        }
        let path = directory_of(&topology).join("log");
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..whole.len() - 9]).unwrap();
        assert_eq!(load(&topology, name("a")).unwrap().unwrap().log.entries(), [entry(5)]);
        let mut files = AgreementFiles::new(&topology);
        files.write_log(name("9"), &LogWrite::Append(vec![entry(6)])).unwrap();
        assert_eq!(fs::read(&path).unwrap(), whole);
        fs::remove_dir_all(topology.parent().unwrap()).unwrap();
    }
}
