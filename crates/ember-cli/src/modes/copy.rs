//! Copies a server's data to an RDB file (`--rdb`, `--functions-rdb`), as in a full sync of a new replica.
//!
//! ```text
//! REPLCONF rdb-only 1    only the file; a server that does not support this treats the client as a replica
//! SYNC                   until the connection is closed, as soon as the file has arrived
//! $<length>\r\n<file>    or $EOF:<mark of 40 bytes>\r\n<file><mark>; blank lines before it are keepalives
//! ```

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use ember_client::{Connection, cause};
use ember_protocol::client::Value;

use super::failure::Failure;

/// Length in bytes of the mark after a file of unknown length.
const MARK_BYTES: usize = 40;
/// The maximum length of the line before the file.
const LINE_BYTES_MAX: usize = 4096;

/// The part of the server's data to copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Everything.
    All,
    /// Functions only.
    Functions,
}

/// The marker of the file's end in the stream: a length or an end mark.
#[derive(Clone, Debug, PartialEq, Eq)]
enum End {
    After(u64),
    Mark([u8; MARK_BYTES]),
}

/// Copies the data to `file`, which exists under that name only once it is complete; `-` is standard output.
pub(super) fn run(connection: &mut Connection, file: &Path, part: Part) -> Result<(), Failure> {
    connection.ask(&["REPLCONF", "capa", "eof"])?;
    // Servers that do not support this option send the same file, so its reply is ignored.
    connection.ask(&["REPLCONF", "rdb-only", "1"])?;
    if part == Part::Functions
        && let Value::Error(text) = connection.ask(&["REPLCONF", "rdb-filter-only", "functions"])?
    {
        return Err(Failure::Said(format!(
            "The server cannot send functions only ({}). Use FUNCTION DUMP instead.",
            String::from_utf8_lossy(&text)
        )));
    }
    connection.send(&["SYNC"])?;
    let mut buffer = Vec::new();
    let end = read_head(connection, &mut buffer)?;
    let mut target = Target::create(file)?;
    let done = receive(connection, &mut buffer, &end, |bytes| target.write(bytes));
    let length = target.finish(done)?;
    eprintln!("Transfer finished with success after {length} bytes");
    Ok(())
}

/// Skips the copy after SYNC and returns its length. Afterwards the buffer may contain bytes that follow the copy.
pub(super) fn pass_by(connection: &mut Connection, buffer: &mut Vec<u8>) -> Result<u64, Failure> {
    let end = read_head(connection, buffer)?;
    receive(connection, buffer, &end, |_| Ok(()))
}

/// Reads the line before the file. Bytes after the line remain in the buffer.
fn read_head(connection: &mut Connection, buffer: &mut Vec<u8>) -> Result<End, Failure> {
    loop {
        let blank = buffer.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        buffer.drain(..blank);
        if let Some(at) = buffer.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = buffer.drain(..=at).collect();
            return parse_head(line.trim_ascii_end()).map_err(Failure::Said);
        }
        if buffer.len() > LINE_BYTES_MAX {
            return Err(Failure::Said("The server sent data that is not an RDB file".to_owned()));
        }
        if connection.read_some(buffer)? == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
    }
}

fn parse_head(line: &[u8]) -> Result<End, String> {
    if let Some(mark) = line.strip_prefix(b"$EOF:") {
        return mark
            .try_into()
            .map(End::Mark)
            .map_err(|_| "The server's end mark is not 40 bytes long".to_owned());
    }
    let length = line.strip_prefix(b"$").and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
    length.map(End::After).ok_or_else(|| {
        let said = String::from_utf8_lossy(line.strip_prefix(b"-").unwrap_or(line)).into_owned();
        format!("The server did not send an RDB file: {said}")
    })
}

/// Passes the file to `write`, part by part, and returns its length. Bytes after the file remain in the buffer.
fn receive(
    connection: &mut Connection,
    buffer: &mut Vec<u8>,
    end: &End,
    mut write: impl FnMut(&[u8]) -> Result<(), Failure>,
) -> Result<u64, Failure> {
    let mut written = 0;
    loop {
        // The bytes that certainly belong to the file, and the length of its end mark, if that has arrived.
        let (count, ending) = match end {
            End::After(length) => {
                let left = usize::try_from(length - written).unwrap_or(usize::MAX);
                (left.min(buffer.len()), (left <= buffer.len()).then_some(0))
            }
            End::Mark(mark) => match buffer.windows(MARK_BYTES).position(|bytes| bytes == mark) {
                Some(at) => (at, Some(MARK_BYTES)),
                None => (buffer.len().saturating_sub(MARK_BYTES - 1), None),
            },
        };
        write(&buffer[..count])?;
        written += count as u64;
        buffer.drain(..count + ending.unwrap_or(0));
        if ending.is_some() {
            return Ok(written);
        }
        if connection.read_some(buffer)? == 0 {
            return Err(Failure::Said(
                "The server closed the connection before the end of the file".to_owned(),
            ));
        }
    }
}

/// The destination of the copy.
enum Target {
    Output,
    /// A file next to the target, until it is complete.
    File {
        file: File,
        partial: PathBuf,
        wanted: PathBuf,
    },
}

impl Target {
    fn create(wanted: &Path) -> Result<Target, Failure> {
        if wanted == Path::new("-") {
            return Ok(Target::Output);
        }
        let mut partial = wanted.as_os_str().to_owned();
        partial.push(".part");
        let partial = PathBuf::from(partial);
        // A server's data must be readable only by the user.
        let opened = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&partial);
        match opened {
            Ok(file) => Ok(Target::File { file, partial, wanted: wanted.to_owned() }),
            Err(error) => Err(unwritten(&partial, &error)),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        match self {
            Target::Output => {
                ember_client::put(bytes);
                Ok(())
            }
            Target::File { file, partial, .. } => {
                file.write_all(bytes).map_err(|error| unwritten(partial, &error))
            }
        }
    }

    /// Syncs the file and renames it to its target, or removes it if it is incomplete.
    fn finish(self, done: Result<u64, Failure>) -> Result<u64, Failure> {
        let Target::File { file, partial, wanted } = self else { return done };
        let placed = done.and_then(|length| {
            let put = file.sync_all().and_then(|()| fs::rename(&partial, &wanted));
            put.map(|()| length).map_err(|error| unwritten(&wanted, &error))
        });
        if placed.is_err() {
            // The original error is reported; a remaining partial file is harmless.
            let _ = fs::remove_file(&partial);
        }
        placed
    }
}

fn unwritten(path: &Path, error: &io::Error) -> Failure {
    Failure::Said(format!("Cannot write {}: {}", path.display(), cause(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_of_a_copy_is_a_length_or_an_end_mark() {
        assert_eq!(parse_head(b"$123"), Ok(End::After(123)));
        assert_eq!(parse_head(&[&b"$EOF:"[..], &[b'm'; 40]].concat()), Ok(End::Mark([b'm'; 40])));
        for line in [&b"$"[..], b"$-1", b"$EOF:short", b"", b"+OK"] {
            assert!(parse_head(line).is_err(), "{}", line.escape_ascii());
        }
        assert!(parse_head(b"-NOPERM no").unwrap_err().ends_with(": NOPERM no"));
    }
}
