//! The replies of a primary before its stream: the reply to PSYNC, and the line before a full sync. Malformed lines are
//! rejected.
//!
//! ```text
//! +CONTINUE [<id>]               the bytes after the replica's position follow; the history may have a new ID
//! +FULLRESYNC <id> <offset>      all data as of this byte of the history follow
//! $<length>                      an RDB file of that length follows
//! $EOF:<mark>                    an RDB file follows, then the mark of 40 bytes
//! ```

/// Length of a replication ID in digits, and of an end mark in bytes.
const ID_DIGITS: usize = 40;

/// The maximum accepted offset: a stream that is written to for a thousand years stays below it.
const OFFSET_MAX: u64 = 1 << 62;

/// The primary's reply to PSYNC: a full or a partial sync.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The primary continues after the replica's position; the history may have a new replication ID.
    Continue(Option<String>),
    /// The primary sends all data as of this position in the history.
    Copy {
        /// The replication ID of the history.
        id: String,
        /// The number of bytes of the history that the data include.
        offset: u64,
    },
}

impl Answer {
    /// Parses the reply to PSYNC, a line without its line end. Only a replica that has data (`holds_data`) can resume.
    pub fn parse(line: &[u8], holds_data: bool) -> Option<Answer> {
        let text = std::str::from_utf8(line).ok()?;
        let mut words = text.split_ascii_whitespace();
        let (verb, id, offset) = (words.next()?, words.next(), words.next());
        match (verb, id, offset, words.next()) {
            ("+CONTINUE", id, None, None) if holds_data && id.is_none_or(is_id) => {
                Some(Answer::Continue(id.map(str::to_owned)))
            }
            ("+FULLRESYNC", Some(id), Some(offset), None) if is_id(id) => {
                let offset = offset.parse().ok().filter(|&offset| offset <= OFFSET_MAX)?;
                Some(Answer::Copy { id: id.to_owned(), offset })
            }
            _ => None,
        }
    }
}

fn is_id(word: &str) -> bool {
    word.len() == ID_DIGITS && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The mark by which a replica recognizes the end of a full sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyEnd {
    /// The RDB file has this number of bytes.
    Length(u64),
    /// This mark follows the RDB file.
    Mark([u8; ID_DIGITS]),
}

impl CopyEnd {
    /// Parses the line before a full sync, without its line end.
    pub fn parse(line: &[u8]) -> Option<CopyEnd> {
        let text = line.strip_prefix(b"$")?;
        if let Some(mark) = text.strip_prefix(b"EOF:") {
            return mark.try_into().ok().map(CopyEnd::Mark);
        }
        // The check is necessary because `parse` also accepts a sign.
        let is_number = text.iter().all(u8::is_ascii_digit);
        let length = std::str::from_utf8(text).ok().filter(|_| is_number)?;
        length.parse().ok().map(CopyEnd::Length)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef01234567";

    #[test]
    fn answers_are_read() {
        let parse = |text: &str| Answer::parse(text.as_bytes(), true);
        assert_eq!(parse("+CONTINUE"), Some(Answer::Continue(None)));
        assert_eq!(parse(&format!("+CONTINUE {ID}")), Some(Answer::Continue(Some(ID.to_owned()))));
        let copy = Answer::Copy { id: ID.to_owned(), offset: 77 };
        assert_eq!(parse(&format!("+FULLRESYNC {ID} 77")), Some(copy));
        for wrong in [
            "",
            "+CONTINUE short",
            "+CONTINUE 0123456789abcdef0123456789abcdef0123456g",
            "+FULLRESYNC",
            "+FULLRESYNC 0123456789abcdef0123456789abcdef01234567",
            "+FULLRESYNC 0123456789abcdef0123456789abcdef01234567 -1",
            "+FULLRESYNC 0123456789abcdef0123456789abcdef01234567 9223372036854775807",
            "+FULLRESYNC 0123456789abcdef0123456789abcdef01234567 1 2",
            "-NOMASTERLINK",
        ] {
            assert_eq!(parse(wrong), None, "{wrong:?}");
        }
        assert_eq!(Answer::parse(b"+CONTINUE", false), None, "no data to continue from");
    }

    #[test]
    fn headers_of_copies_are_parsed() {
        assert_eq!(CopyEnd::parse(b"$0"), Some(CopyEnd::Length(0)));
        assert_eq!(CopyEnd::parse(b"$18446744073709551615"), Some(CopyEnd::Length(u64::MAX)));
        let mark: [u8; ID_DIGITS] = ID.as_bytes().try_into().unwrap();
        assert_eq!(CopyEnd::parse(format!("$EOF:{ID}").as_bytes()), Some(CopyEnd::Mark(mark)));
        for wrong in ["", "$", "$x", "$-1", "$+1", "$18446744073709551616", "$EOF:", "$EOF:short", "12"] {
            assert_eq!(CopyEnd::parse(wrong.as_bytes()), None, "{wrong:?}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_lines_are_parsed_without_panics(
            line in prop::collection::vec(any::<u8>(), 0..200), holds_data: bool,
        ) {
            let _ = Answer::parse(&line, holds_data);
            let _ = CopyEnd::parse(&line);
        }
    }
}
