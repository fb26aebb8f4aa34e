//! A copy of a server's data as an RDB file (`--rdb`, `--functions-rdb`): what a new replica of it would be sent.
//!
//! ```text
//! REPLCONF rdb-only 1    the file and nothing behind it; a server that does not know this takes us for a replica
//! SYNC                   until the connection is closed, which it is as soon as the file is here
//! $<length>\r\n<file>    or $EOF:<mark of 40 bytes>\r\n<file><mark>; blank lines before it say that the server is alive
//! ```

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use ember_client::{Connection, cause};
use ember_protocol::client::Value;

use super::failure::Failure;

/// Bytes of the mark behind a file whose length is not known before.
const MARK_BYTES: usize = 40;
/// Longest line before the file.
const LINE_BYTES_MAX: usize = 4096;

/// What is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Everything.
    All,
    /// Functions alone.
    Functions,
}

/// Where the file ends.
#[derive(Clone, Debug, PartialEq, Eq)]
enum End {
    After(u64),
    Mark([u8; MARK_BYTES]),
}

/// Copies into `file`, which is there only once it is whole; `-` is standard output.
pub(super) fn run(connection: &mut Connection, file: &Path, part: Part) -> Result<(), Failure> {
    connection.ask(&["REPLCONF", "capa", "eof"])?;
    // Whoever does not know this sends the same file.
    connection.ask(&["REPLCONF", "rdb-only", "1"])?;
    if part == Part::Functions
        && let Value::Error(text) = connection.ask(&["REPLCONF", "rdb-filter-only", "functions"])?
    {
        return Err(Failure::Said(format!(
            "The server does not send functions alone ({}). FUNCTION DUMP has them.",
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

/// Lets a copy pass by, after SYNC; its length. What comes behind it may be in the buffer already.
pub(super) fn pass_by(connection: &mut Connection, buffer: &mut Vec<u8>) -> Result<u64, Failure> {
    let end = read_head(connection, buffer)?;
    receive(connection, buffer, &end, |_| Ok(()))
}

/// Reads the line before the file. What is behind it stays in the buffer.
fn read_head(connection: &mut Connection, buffer: &mut Vec<u8>) -> Result<End, Failure> {
    loop {
        let blank = buffer.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        buffer.drain(..blank);
        if let Some(at) = buffer.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = buffer.drain(..=at).collect();
            return parse_head(line.trim_ascii_end()).map_err(Failure::Said);
        }
        if buffer.len() > LINE_BYTES_MAX {
            return Err(Failure::Said("The server sends something that is no RDB file".to_owned()));
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
            .map_err(|_| "The server's end mark has no 40 bytes".to_owned());
    }
    let length = line.strip_prefix(b"$").and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
    length.map(End::After).ok_or_else(|| {
        let said = String::from_utf8_lossy(line.strip_prefix(b"-").unwrap_or(line)).into_owned();
        format!("The server sends no copy of its data: {said}")
    })
}

/// Hands the file to `write`, part by part; how long it is. What is behind it is left in the buffer.
fn receive(
    connection: &mut Connection,
    buffer: &mut Vec<u8>,
    end: &End,
    mut write: impl FnMut(&[u8]) -> Result<(), Failure>,
) -> Result<u64, Failure> {
    let mut written = 0;
    loop {
        // The bytes that are surely of the file, and those of what ends it, if that is here.
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

/// What is written to.
enum Target {
    Output,
    /// A file beside the one that is wanted, until it is whole.
    File {
        file: File,
        beside: PathBuf,
        wanted: PathBuf,
    },
}

impl Target {
    fn create(wanted: &Path) -> Result<Target, Failure> {
        if wanted == Path::new("-") {
            return Ok(Target::Output);
        }
        let mut beside = wanted.as_os_str().to_owned();
        beside.push(".part");
        let beside = PathBuf::from(beside);
        // What a server keeps is nobody else's business.
        let opened = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside);
        match opened {
            Ok(file) => Ok(Target::File { file, beside, wanted: wanted.to_owned() }),
            Err(error) => Err(unwritten(&beside, &error)),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        match self {
            Target::Output => {
                ember_client::put(bytes);
                Ok(())
            }
            Target::File { file, beside, .. } => {
                file.write_all(bytes).map_err(|error| unwritten(beside, &error))
            }
        }
    }

    /// Puts the file in its place, on the disk; or removes it if it is not whole.
    fn finish(self, done: Result<u64, Failure>) -> Result<u64, Failure> {
        let Target::File { file, beside, wanted } = self else { return done };
        let placed = done.and_then(|length| {
            let put = file.sync_all().and_then(|()| fs::rename(&beside, &wanted));
            put.map(|()| length).map_err(|error| unwritten(&wanted, &error))
        });
        if placed.is_err() {
            // What is wrong is said; a part that stays is of no use and does no harm.
            let _ = fs::remove_file(&beside);
        }
        placed
    }
}

fn unwritten(path: &Path, error: &io::Error) -> Failure {
    Failure::Said(format!("{} cannot be written: {}", path.display(), cause(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_before_a_file_says_where_it_ends() {
        assert_eq!(parse_head(b"$123"), Ok(End::After(123)));
        assert_eq!(parse_head(&[&b"$EOF:"[..], &[b'm'; 40]].concat()), Ok(End::Mark([b'm'; 40])));
        for line in [&b"$"[..], b"$-1", b"$EOF:short", b"", b"+OK"] {
            assert!(parse_head(line).is_err(), "{}", line.escape_ascii());
        }
        assert!(parse_head(b"-NOPERM no").unwrap_err().ends_with(": NOPERM no"));
    }
}
