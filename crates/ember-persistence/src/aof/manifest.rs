//! The list of the files of an AOF.
//!
//! ```text
//! file appendonly.aof.1.base.rdb seq 1 type b size 41822
//! file appendonly.aof.2.incr.aof seq 2 type i size 7310
//! file appendonly.aof.3.incr.aof seq 3 type i
//! ```
//!
//! Each file has one line of pairs of a word and its value. Types are `b`, the base, of which there is at most one; `i`,
//! the increments after the base, in order; `h`, files that the server no longer loads. Names with special characters
//! are in double quotes with the escapes of redis-cli. Empty manifests, empty lines and lines of 1024 characters are
//! refused; lines that begin with `#` are comments.
//!
//! Redis 7 skips the following pairs, and omits them when it writes the manifest; other pairs are skipped here, too.
//!
//! * `size`, of a closed file: its size in bytes. It reveals a file that was cut off at the end of a command, or that
//!   lost all of its bytes.
//! * `time`, of a base: the Unix time in s at which its data were taken. Earlier increments have no later timestamp, later
//!   increments no earlier one.
//! * `chain new`, of a base: its data are not those at the end of the increments before it, because the AOF was off, or an
//!   increment was lost.
//! * `replaced`, of a file of type `h`: the `time` of the base that replaced it, from which `aof-keep-seconds` counts.
//!
//! The format: Redis 7, `aof.c` by S. Sanfilippo and C. Zhao.

use std::fmt::{self, Display};
use std::path::Path;

use ember_protocol::number;

use super::AofError;

/// The type of an AOF file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileType {
    /// A base: the data set at one moment.
    Base,
    /// An increment: the changes since the base or the previous increment.
    Increment,
    /// A file that a rewrite has replaced. It is removed, or kept for `aof-keep-seconds`.
    History,
}

impl FileType {
    fn letter(self) -> char {
        match self {
            FileType::Base => 'b',
            FileType::Increment => 'i',
            FileType::History => 'h',
        }
    }
}

/// A file of an AOF.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AofFile {
    /// The file's name in the directory of the AOF.
    pub name: String,
    /// The file's number among the files of the same type.
    pub sequence: u64,
    /// The file's type.
    pub file_type: FileType,
    /// The file's size in bytes when it was closed. None if it is still open, or the manifest does not record its size.
    pub size: Option<u64>,
    /// The Unix time in s at which the data of a base were taken, if the manifest records it.
    pub time_s: Option<i64>,
    /// Whether the file is a base whose data are not those at the end of the increments before it.
    pub begins_chain: bool,
    /// The Unix time in s at which the data of the base were taken that replaced the file, if the file is kept.
    pub replaced_s: Option<i64>,
}

impl AofFile {
    /// Returns a file of which only the name, the number and the type are known.
    pub fn new(name: String, sequence: u64, file_type: FileType) -> AofFile {
        let (size, time_s, replaced_s) = (None, None, None);
        AofFile { name, sequence, file_type, size, time_s, begins_chain: false, replaced_s }
    }

    /// Checks that this file, which exists at `path` with `found` bytes, has not been truncated.
    ///
    /// # Errors
    /// Returns [`AofError::Short`] if the file has fewer bytes than recorded, or is an empty base in RDB form.
    pub fn check_size(&self, path: &Path, found: u64) -> Result<(), AofError> {
        let is_rdb_base = self.file_type == FileType::Base && self.name.ends_with(".rdb");
        if self.size.is_some_and(|size| found < size) || (is_rdb_base && found == 0) {
            return Err(AofError::Short { file: path.to_owned(), found, recorded: self.size });
        }
        Ok(())
    }
}

/// The files of an AOF, as listed in its manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// The base, if there is one.
    pub base: Option<AofFile>,
    /// Files that rewrites have replaced, in the order in which they were written.
    pub history: Vec<AofFile>,
    /// The increments, in ascending order of their numbers.
    pub increments: Vec<AofFile>,
}

/// The reason why a manifest is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ManifestError {
    /// The number of the invalid line, from 1; 0 if the error concerns the whole file.
    pub line: usize,
    /// A description of the error.
    pub what: &'static str,
}

impl Display for ManifestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

/// Upper bound on the length of a line: a name has at most 255 bytes, each of at most four characters.
const LINE_MAX_BYTES: usize = 1024;

impl Manifest {
    /// The maximum size of a manifest, in bytes.
    pub const MAX_BYTES: u64 = 16 * 1024 * 1024;

    /// Parses a manifest.
    ///
    /// # Errors
    /// Returns an error if the manifest is invalid.
    pub fn parse(bytes: &[u8]) -> Result<Manifest, ManifestError> {
        let mut manifest = Manifest::default();
        if bytes.is_empty() {
            return Err(ManifestError { line: 0, what: "Found an empty AOF manifest" });
        }
        let lines = bytes.strip_suffix(b"\n").unwrap_or(bytes).split(|&byte| byte == b'\n');
        for (index, line) in lines.enumerate() {
            let error = |what| ManifestError { line: index + 1, what };
            if line.starts_with(b"#") {
                continue;
            }
            if line.len() >= LINE_MAX_BYTES {
                return Err(error("The AOF manifest file contains too long line"));
            }
            manifest.add(parse_line(line).map_err(error)?).map_err(error)?;
        }
        Ok(manifest)
    }

    fn add(&mut self, file: AofFile) -> Result<(), &'static str> {
        match file.file_type {
            FileType::Base if self.base.is_some() => return Err("Found duplicate base file information"),
            FileType::Base => self.base = Some(file),
            FileType::History => self.history.push(file),
            FileType::Increment => {
                if self.increments.last().is_some_and(|last| last.sequence >= file.sequence) {
                    return Err("Found a non-monotonic sequence number of an increment");
                }
                self.increments.push(file);
            }
        }
        Ok(())
    }

    /// Returns the manifest in its file format.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut text = String::new();
        for file in self.base.iter().chain(&self.history).chain(&self.increments) {
            let AofFile { name, sequence, file_type, size, time_s, begins_chain, replaced_s } = file;
            let (name, letter) = (quoted(name), file_type.letter());
            text.push_str(&format!("file {name} seq {sequence} type {letter}"));
            if let Some(size) = size {
                text.push_str(&format!(" size {size}"));
            }
            if let Some(time_s) = time_s {
                text.push_str(&format!(" time {time_s}"));
            }
            if *begins_chain {
                text.push_str(" chain new");
            }
            if let Some(replaced_s) = replaced_s {
                text.push_str(&format!(" replaced {replaced_s}"));
            }
            text.push('\n');
        }
        text.into_bytes()
    }

    /// Iterates over the files to load, in order.
    pub fn live(&self) -> impl Iterator<Item = &AofFile> {
        self.base.iter().chain(&self.increments)
    }
}

/// Returns a file name as it is written in the manifest: quoted if necessary.
fn quoted(name: &str) -> String {
    let is_simple = |byte: u8| byte.is_ascii_graphic() && !b"\\\"'".contains(&byte);
    if !name.is_empty() && name.bytes().all(is_simple) {
        return name.to_owned();
    }
    let mut text = String::from("\"");
    for byte in name.bytes() {
        match byte {
            b'\\' | b'"' => text.extend(['\\', char::from(byte)]),
            b'\n' => text.push_str("\\n"),
            b'\r' => text.push_str("\\r"),
            b'\t' => text.push_str("\\t"),
            7 => text.push_str("\\a"),
            8 => text.push_str("\\b"),
            b' '..=b'~' => text.push(char::from(byte)),
            _ => text.push_str(&format!("\\x{byte:02x}")),
        }
    }
    text.push('"');
    text
}

fn parse_line(line: &[u8]) -> Result<AofFile, &'static str> {
    const INCOMPLETE: &str = "Invalid AOF manifest file format: a file needs a name, a number and a type";
    let words = split(line).ok_or("Invalid AOF manifest file format: the quotes are not balanced")?;
    if words.len() < 6 || !words.len().is_multiple_of(2) {
        return Err(INCOMPLETE);
    }
    let (mut name, mut sequence, mut file_type, mut size) = (None, None, None, None);
    let (mut time_s, mut begins_chain, mut replaced_s) = (None, false, None);
    let time = |value: &[u8]| number::parse_i64(value).ok_or("a time is not a number");
    for pair in words.chunks_exact(2) {
        let (word, value) = (pair[0].to_ascii_lowercase(), &pair[1]);
        match word.as_slice() {
            b"file" => name = Some(file_name(value)?),
            b"seq" => {
                let number = number::parse_u64(value).filter(|&number| number > 0);
                sequence = Some(number.ok_or("Invalid AOF manifest file format: the number is invalid")?);
            }
            b"type" => {
                file_type = Some(match value.as_slice() {
                    b"b" => FileType::Base,
                    b"i" => FileType::Increment,
                    b"h" => FileType::History,
                    _ => return Err("Unknown AOF file type: it must be b, i or h"),
                });
            }
            b"size" => size = Some(number::parse_u64(value).ok_or("its size is not a number")?),
            b"time" => time_s = Some(time(value)?),
            b"chain" => begins_chain = value == b"new",
            b"replaced" => replaced_s = Some(time(value)?),
            _ => {}
        }
    }
    match (name, sequence, file_type) {
        (Some(name), Some(sequence), Some(file_type)) => {
            Ok(AofFile { name, sequence, file_type, size, time_s, begins_chain, replaced_s })
        }
        _ => Err(INCOMPLETE),
    }
}

fn file_name(bytes: &[u8]) -> Result<String, &'static str> {
    let name = String::from_utf8(bytes.to_vec()).map_err(|_| "the file's name is not UTF-8")?;
    if name.is_empty() || name.contains(['/', '\\', '\0']) || name == "." || name == ".." {
        return Err("the file must be a name without a path");
    }
    Ok(name)
}

/// Splits a line into words and removes their quotes. None if a quote is not closed, or is closed in the middle of a
/// word.
fn split(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    let mut rest = line;
    loop {
        rest = rest.trim_ascii_start();
        let Some((&first, after)) = rest.split_first() else { return Some(words) };
        let mut word = Vec::new();
        rest = match first {
            b'"' | b'\'' => unquote(after, first, &mut word)?,
            _ => {
                let end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
                word.extend_from_slice(&rest[..end]);
                &rest[end..]
            }
        };
        words.push(word);
    }
}

/// Appends the text up to the closing `quote` to `word`, and returns the text after the quote.
fn unquote<'a>(mut rest: &'a [u8], quote: u8, word: &mut Vec<u8>) -> Option<&'a [u8]> {
    let is_double = quote == b'"';
    loop {
        rest = match rest {
            [b'\\', b'x', high, low, after @ ..]
                if is_double && high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                let digits = [*high, *low].map(|digit| char::from(digit).to_digit(16).unwrap_or(0) as u8);
                word.push(digits[0] << 4 | digits[1]);
                after
            }
            [b'\\', letter, after @ ..] if is_double => {
                word.push(match letter {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'a' => 7,
                    b'b' => 8,
                    other => *other,
                });
                after
            }
            [b'\\', b'\'', after @ ..] if !is_double => {
                word.push(b'\'');
                after
            }
            [closing, after @ ..] if *closing == quote => {
                return after.first().is_none_or(u8::is_ascii_whitespace).then_some(after);
            }
            [byte, after @ ..] => {
                word.push(*byte);
                after
            }
            [] => return None,
        };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn manifests_of_redis_are_read_and_written_as_they_are() {
        let text =
            b"file appendonly.aof.2.base.rdb seq 2 type b\nfile appendonly.aof.1.base.rdb seq 1 type h\n\
            file appendonly.aof.4.incr.aof seq 4 type i\nfile appendonly.aof.5.incr.aof seq 5 type i\n";
        let manifest = Manifest::parse(text).unwrap();
        assert_eq!(manifest.to_bytes(), text);
        let live: Vec<u64> = manifest.live().map(|file| file.sequence).collect();
        assert_eq!(live, [2, 4, 5]);
        let other = b"# a comment\nfile \"a b\\x01.aof\" SEQ 1 later x type i\nfile 'it\\'s' seq 9 type b";
        let manifest = Manifest::parse(other).unwrap();
        assert_eq!(manifest.increments[0].name, "a b\u{1}.aof");
        assert_eq!(manifest.to_bytes(), b"file \"it's\" seq 9 type b\nfile \"a b\\x01.aof\" seq 1 type i\n");
    }

    #[test]
    fn invalid_manifests_are_rejected_with_their_line() {
        let long = [b"file ", &[b'a'; 1020][..], b" seq 1 type i\n"].concat();
        for (text, line) in [
            (&b""[..], 0),
            (b"\n", 1),
            (b"file a seq 1 type i\n\n", 2),
            (b"file a seq 1\n", 1),
            (b"file a seq 1 type i more\n", 1),
            (b"file a seq 0 type i\n", 1),
            (b"file a seq x type i\n", 1),
            (b"file a seq 1 type j\n", 1),
            (b"file a seq 1 type i size -1\n", 1),
            (b"file a seq 1 type b time then\n", 1),
            (b"file a seq 1 type h replaced 1.5\n", 1),
            (b"file a/b seq 1 type i\n", 1),
            (b"file .. seq 1 type i\n", 1),
            (b"file \"\" seq 1 type i\n", 1),
            (b"file \"a seq 1 type i\n", 1),
            (b"file \"a\"b seq 1 type i\n", 1),
            (b"file a seq 1 file a seq 1\n", 1),
            (b"file a seq 2 type b\nfile b seq 3 type b\n", 2),
            (b"file a seq 2 type i\nfile b seq 2 type i\n", 2),
            (b"file \xFF seq 2 type i\n", 1),
            (&long, 1),
        ] {
            let error = Manifest::parse(text).unwrap_err();
            assert_eq!(error.line, line, "{}: {error}", text.escape_ascii());
        }
    }

    #[test]
    fn a_closed_file_has_at_least_its_recorded_size_and_a_base_in_rdb_form_is_never_empty() {
        let text = b"file a.1.base.rdb seq 1 type b\nfile a.1.incr.aof seq 1 type i size 7\n\
            file a.2.incr.aof seq 2 type i\n";
        let manifest = Manifest::parse(text).unwrap();
        assert_eq!(manifest.to_bytes(), text);
        let sizes: Vec<Option<u64>> = manifest.live().map(|file| file.size).collect();
        assert_eq!(sizes, [None, Some(7), None]);
        let is_refused = |number: usize, found: u64| {
            let file = manifest.live().nth(number).unwrap();
            file.check_size(Path::new("d/a"), found).is_err()
        };
        assert!(is_refused(0, 0) && !is_refused(0, 1));
        assert!(is_refused(1, 6) && !is_refused(1, 7) && !is_refused(1, 8));
        assert!(!is_refused(2, 0));
    }

    proptest! {
        #[test]
        fn any_name_survives_the_round_trip(
            name in "[^/\\\\\u{0}]{1,40}",
            sequence in 1..u64::MAX >> 1,
            size in any::<Option<u64>>(),
            time_s in any::<Option<i64>>(),
            begins_chain in any::<bool>(),
            replaced_s in any::<Option<i64>>(),
        ) {
            prop_assume!(name != "." && name != "..");
            let facts = AofFile::new(name, sequence, FileType::History);
            let file = AofFile { size, time_s, begins_chain, replaced_s, ..facts };
            let manifest = Manifest { history: vec![file], ..Manifest::default() };
            prop_assert_eq!(Manifest::parse(&manifest.to_bytes()).unwrap(), manifest);
        }

        #[test]
        fn arbitrary_bytes_are_parsed_without_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Manifest::parse(&bytes);
        }
    }
}
