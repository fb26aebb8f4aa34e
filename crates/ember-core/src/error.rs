//! The errors of commands and their exact texts.

use std::borrow::Cow;

/// An error of a command; nothing was written to its reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandError {
    /// The key holds another type.
    WrongType,
    /// The arguments do not follow the command's syntax.
    Syntax,
    /// A number is not a 64-bit integer.
    NotInteger,
    /// A number is not a float.
    NotFloat,
    /// The result does not fit a 64-bit integer.
    Overflow,
    /// The result is NaN or infinite.
    NanOrInfinity,
    /// The key does not exist.
    NoSuchKey,
    /// An index is out of range.
    IndexOutOfRange,
    /// A database number is not a number.
    InvalidDatabase,
    /// A database number is too large.
    DatabaseOutOfRange,
    /// A string would exceed `proto-max-bulk-len`.
    StringTooLong,
    /// A bit offset is not a number below 2^32 (or the configured size).
    BitOffset,
    /// An expiry of the named command is not representable or not positive.
    InvalidExpire(&'static str),
    /// The number of arguments of the named command is wrong.
    WrongArity(Cow<'static, str>),
    /// Memory is used up and nothing may be evicted.
    OutOfMemory,
    /// Any other error: the whole text, including its code.
    Text(Cow<'static, str>),
    /// Any other error that contains bytes of the request, which need not be UTF-8.
    Bytes(Vec<u8>),
}

impl CommandError {
    /// Returns an error that repeats `word`, an argument of the request, as C's `%s` prints it in Redis: up to the
    /// first NUL. Words longer than [`QUOTED_WORD_BYTES_MAX`], which no name or option of Redis reaches, are cut.
    pub fn quoting(before: &str, word: &[u8], after: &str) -> CommandError {
        let word = quoted_up_to(word, QUOTED_WORD_BYTES_MAX);
        CommandError::Bytes([before.as_bytes(), word, after.as_bytes()].concat())
    }

    /// Returns the text after the `-` of the reply. It may quote the request, so it is not always UTF-8.
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

/// Returns the part of `word`, an argument of the request, that an error quotes, as C's `%.128s` prints it in Redis:
/// the bytes before the first NUL, at most 128.
pub fn quoted(word: &[u8]) -> &[u8] {
    quoted_up_to(word, QUOTED_BYTES_MAX)
}

/// Like [`quoted`], with another limit.
pub fn quoted_up_to(word: &[u8], bytes_max: usize) -> &[u8] {
    let word = &word[..word.len().min(bytes_max)];
    &word[..word.iter().position(|&byte| byte == 0).unwrap_or(word.len())]
}

/// Bytes of an argument that an error repeats where Redis has this limit, too.
const QUOTED_BYTES_MAX: usize = 128;

/// Bytes of an argument that an error repeats where Redis has no limit: without one, an error reply could be as large
/// as the request.
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
