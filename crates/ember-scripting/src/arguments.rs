//! The arguments of Lua functions that are implemented in Rust, checked and converted like those of Lua's standard
//! library.

use mlua::{Lua, LuaString, MultiValue, Value};

use super::raised;

/// The arguments of a called function.
pub(super) struct Arguments<'l> {
    lua: &'l Lua,
    values: Vec<Value>,
}

impl<'l> Arguments<'l> {
    /// Wraps the arguments `values`.
    pub(super) fn new(lua: &'l Lua, values: MultiValue) -> Arguments<'l> {
        Arguments { lua, values: values.into_vec() }
    }

    /// Returns the number of arguments.
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns all arguments.
    pub(super) fn values(&self) -> &[Value] {
        &self.values
    }

    /// Returns argument `number`, counted from one.
    pub(super) fn get(&self, number: usize) -> Option<&Value> {
        self.values.get(number - 1)
    }

    /// Returns argument `number` unless it is absent or nil.
    pub(super) fn given(&self, number: usize) -> Option<&Value> {
        self.get(number).filter(|value| !value.is_nil())
    }

    /// Returns argument `number` as a string; numbers are converted.
    pub(super) fn string(&self, number: usize) -> mlua::Result<LuaString> {
        match self.get(number) {
            Some(Value::String(string)) => Ok(string.clone()),
            Some(value @ (Value::Integer(_) | Value::Number(_))) => {
                self.lua.coerce_string(value.clone())?.ok_or_else(|| self.type_error(number, "string"))
            }
            _ => Err(self.type_error(number, "string")),
        }
    }

    /// Returns argument `number` as a number; strings that are numbers are converted.
    pub(super) fn number(&self, number: usize) -> mlua::Result<f64> {
        let found = match self.get(number) {
            Some(Value::Number(found)) => Some(*found),
            Some(Value::Integer(found)) => Some(*found as f64),
            Some(value @ Value::String(_)) => self.lua.coerce_number(value.clone())?,
            _ => None,
        };
        found.ok_or_else(|| self.type_error(number, "number"))
    }

    /// Returns argument `number` as an integer; fractions are truncated, as by a C cast.
    pub(super) fn integer(&self, number: usize) -> mlua::Result<i64> {
        self.number(number).map(|found| found as i64)
    }

    /// Creates the error for an argument `number` that is not of type `expected`.
    pub(super) fn type_error(&self, number: usize, expected: &str) -> mlua::Error {
        let found = self.get(number).map_or("no value", type_name);
        self.error(number, &format!("{expected} expected, got {found}"))
    }

    /// Creates an error about argument `number`.
    pub(super) fn error(&self, number: usize, problem: &str) -> mlua::Error {
        raised::bad_argument(self.lua, number, problem)
    }
}

/// Returns the name of a value's Lua type.
pub(super) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Nil => "nil",
        Value::Boolean(_) => "boolean",
        Value::Integer(_) | Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Table(_) => "table",
        Value::Function(_) => "function",
        Value::Thread(_) => "thread",
        _ => "userdata",
    }
}

/// Returns a value as a number, if it is a number or a numeric string.
pub(super) fn as_number(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(number) => Some(*number as f64),
        Value::Number(number) => Some(*number),
        _ => None,
    }
}
