//! What a command may answer instead of a result, and the exact words for it.

use std::borrow::Cow;

/// A command failed; nothing was written to its reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandError {
    /// The key holds another type.
    WrongType,
    /// The arguments do not follow the command's syntax.
    Syntax,
    /// A number is no 64-bit integer.
    NotInteger,
    /// A number is no float.
    NotFloat,
    /// The result is no 64-bit integer.
    Overflow,
    /// A result is not a number or infinite.
    NanOrInfinity,
    /// The key is not there and must be.
    NoSuchKey,
    /// An index is beyond the end.
    IndexOutOfRange,
    /// A database number is not a number.
    InvalidDatabase,
    /// A database number is too large.
    DatabaseOutOfRange,
    /// A string would become longer than `proto-max-bulk-len`.
    StringTooLong,
    /// A bit offset is no number below 2^32 (or the configured size).
    BitOffset,
    /// An expiry is not representable or not positive; of the command named.
    InvalidExpire(&'static str),
    /// The number of arguments is wrong; of the command named.
    WrongArity(Cow<'static, str>),
    /// Memory is short and nothing may be evicted.
    OutOfMemory,
    /// Any other error: the whole text, with its code.
    Text(Cow<'static, str>),
}

impl CommandError {
    /// The text after the `-` of the reply.
    pub fn text(&self) -> Cow<'_, str> {
        Cow::Borrowed(match self {
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
                return Cow::Owned(format!("ERR invalid expire time in '{command}' command"));
            }
            CommandError::WrongArity(command) => {
                return Cow::Owned(format!("ERR wrong number of arguments for '{command}' command"));
            }
            CommandError::Text(text) => text,
        })
    }
}

impl From<&'static str> for CommandError {
    fn from(text: &'static str) -> CommandError {
        CommandError::Text(Cow::Borrowed(text))
    }
}

impl From<String> for CommandError {
    fn from(text: String) -> CommandError {
        CommandError::Text(Cow::Owned(text))
    }
}
