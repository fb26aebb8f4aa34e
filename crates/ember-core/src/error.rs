//! The errors of commands, and their texts, which are those of Redis.

use std::borrow::Cow;

/// An error of a command, which has written nothing to its reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandError {
    /// The key holds another type.
    WrongType,
    /// The arguments do not follow the command's syntax.
    Syntax,
    /// An argument is not a 64-bit integer.
    NotInteger,
    /// An argument is not a floating-point number.
    NotFloat,
    /// The result exceeds the range of a 64-bit integer.
    Overflow,
    /// The result is NaN or infinite.
    NanOrInfinity,
    /// The key does not exist.
    NoSuchKey,
    /// An index is out of range.
    IndexOutOfRange,
    /// The argument for a database number is not a number.
    InvalidDatabase,
    /// The database number is not below the number of databases.
    DatabaseOutOfRange,
    /// A string would exceed `proto-max-bulk-len`.
    StringTooLong,
    /// A bit offset is not an integer from 0 to 2^32 − 1 (or up to the configured size of strings).
    BitOffset,
    /// The expiry in a call of the named command cannot be represented or is not positive.
    InvalidExpire(&'static str),
    /// The number of arguments of the named command is wrong.
    WrongArity(Cow<'static, str>),
    /// The memory limit is reached and no key may be evicted.
    OutOfMemory,
    /// Any other error, as its whole text with the error code.
    Text(Cow<'static, str>),
    /// Any other error whose text quotes bytes of the request, which need not be UTF-8.
    Bytes(Vec<u8>),
}

impl CommandError {
    /// Returns an error that quotes `word`, an argument of the request, up to the first NUL, like C's `%s` in Redis.
    /// Quotes are truncated to [`QUOTED_WORD_BYTES_MAX`], which no name or option of Redis reaches.
    pub fn quoting(before: &str, word: &[u8], after: &str) -> CommandError {
        let word = quoted_up_to(word, QUOTED_WORD_BYTES_MAX);
        CommandError::Bytes([before.as_bytes(), word, after.as_bytes()].concat())
    }

    /// Returns the text that follows the `-` of the reply. The text may quote the request, so it is not always UTF-8.
    pub fn text(&self) -> Cow<'_, [u8]> {
        let text = match self {
            CommandError::WrongType => "WRONGTYPE Operation against a key holding the wrong kind of value",
            CommandError::Syntax => "ERR syntax error",
            CommandError::NotInteger => "ERR value is not an integer or out of range",
            CommandError::NotFloat => "ERR value is not a valid float",
            CommandError::Overflow => "ERR increment or decrement would overflow",
            CommandError::NanOrInfinity => "ERR increment would produce NaN or Infinity",
            CommandError::NoSuchKey => "ERR no such key",
            CommandError::IndexOutOfRange => "ERR index out of range",
            CommandError::InvalidDatabase => "ERR invalid DB index",
            CommandError::DatabaseOutOfRange => "ERR DB index is out of range",
            CommandError::StringTooLong => "ERR string exceeds maximum allowed size (proto-max-bulk-len)",
            CommandError::BitOffset => "ERR bit offset is not an integer or out of range",
            CommandError::OutOfMemory => "OOM command not allowed when used memory > 'maxmemory'.",
            CommandError::InvalidExpire(command) => {
                return Cow::Owned(format!("ERR invalid expire time in '{command}' command").into());
            }
            CommandError::WrongArity(command) => {
                return Cow::Owned(format!("ERR wrong number of arguments for '{command}' command").into());
            }
            CommandError::Text(text) => text,
            CommandError::Bytes(text) => return Cow::Borrowed(text),
        };
        Cow::Borrowed(text.as_bytes())
    }
}

/// Returns the part of `word`, an argument of the request, that an error quotes: the bytes before the first NUL, at
/// most 128, like C's `%.128s` in Redis.
pub fn quoted(word: &[u8]) -> &[u8] {
    quoted_up_to(word, QUOTED_BYTES_MAX)
}

/// Like [`quoted`], with the limit `bytes_max`.
pub fn quoted_up_to(word: &[u8], bytes_max: usize) -> &[u8] {
    let word = &word[..word.len().min(bytes_max)];
    &word[..word.iter().position(|&byte| byte == 0).unwrap_or(word.len())]
}

/// The maximum bytes of an argument that an error quotes where Redis has this limit, too.
const QUOTED_BYTES_MAX: usize = 128;

/// The maximum bytes of an argument that an error quotes where Redis has no limit. Without a limit, an error reply
/// could be as large as the request.
const QUOTED_WORD_BYTES_MAX: usize = 16 * 1024;

impl From<&'static str> for CommandError {
    fn from(text: &'static str) -> CommandError {
        CommandError::Text(Cow::Borrowed(text))
    }
}

impl From<Vec<u8>> for CommandError {
    fn from(text: Vec<u8>) -> CommandError {
        CommandError::Bytes(text)
    }
}

impl From<String> for CommandError {
    fn from(text: String) -> CommandError {
        CommandError::Text(Cow::Owned(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_word_ends_at_a_nul_and_at_128_bytes() {
        assert_eq!(quoted(b""), b"");
        assert_eq!(quoted(b"\xc7D\xca\x00|U3"), b"\xc7D\xca");
        assert_eq!(quoted(&[b'x'; 200]), [b'x'; 128]);
        assert_eq!(quoted_up_to(b"abc", 2), b"ab");
    }

    #[test]
    fn a_text_of_bytes_is_kept_as_it_is() {
        let error = CommandError::from(b"ERR \xff".to_vec());
        assert_eq!(&*error.text(), b"ERR \xff");
        assert_eq!(&*CommandError::quoting("ERR '", b"\xfe\0x", "'").text(), b"ERR '\xfe'");
    }
}
