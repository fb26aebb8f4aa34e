//! Errors raised by the interpreter's Rust functions, and their conversion to Lua values.
//!
//! The binding raises its own error objects. Scripts never receive them: `pcall`, `xpcall`, `coroutine.resume` and the
//! handler of uncaught errors convert them ([`into_value`]) to the string or table that a C function would raise.

use std::fmt;

use mlua::{Error, Lua, LuaString, Value};

/// The field of an error table that contains its text.
pub(super) const ERROR_FIELD: &str = "err";

/// The field of an error table that marks an error of a call, which has already been counted as failed.
pub(super) const UNCOUNTED_FIELD: &str = "ignore_error_stats_update";

/// A raised error.
#[derive(Debug)]
pub(super) enum Raised {
    /// A string, prefixed with the position in the script where it was raised.
    Text(Vec<u8>),
    /// A table whose field `err` contains this text: the error of a call or of a function in the table `redis`.
    Reply(Vec<u8>),
    /// The error that ends a script; scripts cannot catch it.
    Killed,
}

impl fmt::Display for Raised {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Raised::Text(text) | Raised::Reply(text) => String::from_utf8_lossy(text).fmt(formatter),
            Raised::Killed => KILLED.fmt(formatter),
        }
    }
}

impl std::error::Error for Raised {}

/// The error text that the caller of a killed script receives.
pub const KILLED: &str = "ERR Script killed by user with SCRIPT KILL...";

/// Creates an error whose value is a string prefixed with the position of the function's caller.
pub(super) fn text(lua: &Lua, text: impl AsRef<[u8]>) -> Error {
    let mut message = position(lua);
    message.extend_from_slice(text.as_ref());
    Error::external(Raised::Text(message))
}

/// Creates an error whose value is a string without a position.
pub(super) fn plain(text: &str) -> Error {
    Error::external(Raised::Text(text.as_bytes().to_vec()))
}

/// Creates an error whose value is a table with the field `err`.
pub(super) fn reply(text: impl Into<Vec<u8>>) -> Error {
    Error::external(Raised::Reply(text.into()))
}

/// Creates the error that ends the script.
pub(super) fn killed() -> Error {
    Error::external(Raised::Killed)
}

/// Creates an error about argument `number` of the running function, counted from one.
pub(super) fn bad_argument(lua: &Lua, number: usize, problem: &str) -> Error {
    let name =
        lua.inspect_stack(0, |running| running.names().name.map(std::borrow::Cow::into_owned)).flatten();
    let name = name.as_deref().unwrap_or("?");
    text(lua, format!("bad argument #{number} to '{name}' ({problem})"))
}

/// Returns the position of the running function's call: `user_script:1: `, or an empty text if the caller is not Lua
/// code.
fn position(lua: &Lua) -> Vec<u8> {
    let place = lua.inspect_stack(1, |caller| {
        let line = caller.current_line().filter(|&line| line > 0)?;
        Some(format!("{}:{line}: ", caller.source().short_src?).into_bytes())
    });
    place.flatten().unwrap_or_default()
}

/// Converts an error object of the binding to the value that a script sees; returns other values unchanged.
pub(super) fn into_value(lua: &Lua, value: Value) -> mlua::Result<Value> {
    let Value::Error(error) = value else { return Ok(value) };
    match root(&error) {
        Error::ExternalError(raised) => match raised.downcast_ref::<Raised>() {
            Some(Raised::Text(text)) => Ok(Value::String(lua.create_string(text)?)),
            Some(Raised::Reply(text)) => error_table(lua, lua.create_string(text)?),
            Some(Raised::Killed) => error_table(lua, lua.create_string(KILLED)?),
            None => Ok(Value::String(lua.create_string(raised.to_string())?)),
        },
        Error::MemoryError(_) => Ok(Value::String(lua.create_string("not enough memory")?)),
        other => Ok(Value::String(lua.create_string(other.to_string())?)),
    }
}

/// Returns the innermost cause of an error.
pub(super) fn root(error: &Error) -> &Error {
    match error {
        Error::CallbackError { cause, .. } | Error::WithContext { cause, .. } => root(cause),
        other => other,
    }
}

/// Creates `{err = text}`, an error that has not been counted.
pub(super) fn error_table(lua: &Lua, text: LuaString) -> mlua::Result<Value> {
    let table = lua.create_table_with_capacity(0, 1)?;
    table.raw_set(ERROR_FIELD, text)?;
    Ok(Value::Table(table))
}
