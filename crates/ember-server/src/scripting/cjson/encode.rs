//! JSON texts of Lua values.

use mlua::{Function, Lua, Table, Value};

use super::{InvalidNumbers, Settings};
use crate::scripting::arguments::{as_number, type_name};
use crate::scripting::format::write_general;
use crate::scripting::interpreter::Shared;
use crate::scripting::raised;
use crate::scripting::walk::Pairs;

/// What is left to write of a table.
enum Rest {
    List { table: Table, next: i64, count: i64 },
    Map { pairs: Pairs, is_first: bool },
}

/// The text of `value`.
///
/// # Errors
/// Lua CJSON's words for what has no JSON text.
pub(super) fn encode(
    lua: &Lua,
    shared: &Shared,
    value: &Value,
    settings: &Settings,
) -> mlua::Result<Vec<u8>> {
    let next = shared.next();
    let mut encoder = Encoder { lua, next, settings, out: Vec::new() };
    let mut open: Vec<Rest> = Vec::new();
    open.extend(encoder.begin(value, 1)?);
    while let Some(rest) = open.last_mut() {
        if encoder.out.len() > shared.memory_bytes_max {
            return Err(raised::text(lua, "not enough memory"));
        }
        let value = match rest {
            Rest::List { table, next, count } if *next <= *count => {
                if *next > 1 {
                    encoder.out.push(b',');
                }
                *next += 1;
                Some(table.raw_get(*next - 1)?)
            }
            Rest::List { .. } => {
                encoder.out.push(b']');
                None
            }
            Rest::Map { pairs, is_first } => match pairs.advance()? {
                Some((key, value)) => {
                    if !std::mem::take(is_first) {
                        encoder.out.push(b',');
                    }
                    encoder.key(&key)?;
                    encoder.out.push(b':');
                    Some(value)
                }
                None => {
                    encoder.out.push(b'}');
                    None
                }
            },
        };
        match value {
            None => {
                open.pop();
            }
            Some(value) => {
                let depth = open.len() as i64 + 1;
                open.extend(encoder.begin(&value, depth)?);
            }
        }
    }
    Ok(encoder.out)
}

struct Encoder<'e> {
    lua: &'e Lua,
    next: &'e Function,
    settings: &'e Settings,
    out: Vec<u8>,
}

impl Encoder<'_> {
    fn refuse(&self, value: &Value, reason: &str) -> mlua::Error {
        raised::text(self.lua, format!("Cannot serialise {}: {reason}", type_name(value)))
    }

    /// Writes a value, or the beginning of a table at this depth, whose rest is returned.
    fn begin(&mut self, value: &Value, depth: i64) -> mlua::Result<Option<Rest>> {
        match value {
            Value::Nil => self.out.extend_from_slice(b"null"),
            Value::Boolean(true) => self.out.extend_from_slice(b"true"),
            Value::Boolean(false) => self.out.extend_from_slice(b"false"),
            Value::Integer(_) | Value::Number(_) => self.number(value)?,
            Value::String(string) => write_string(&mut self.out, &string.as_bytes()),
            Value::LightUserData(pointer) if pointer.0.is_null() => self.out.extend_from_slice(b"null"),
            Value::Table(table) => return self.begin_table(table, depth).map(Some),
            _ => return Err(self.refuse(value, "type not supported")),
        }
        Ok(None)
    }

    fn begin_table(&mut self, table: &Table, depth: i64) -> mlua::Result<Rest> {
        if depth > self.settings.encode_depth_max {
            return Err(raised::text(self.lua, format!("Cannot serialise, excessive nesting ({depth})")));
        }
        match self.list_len(table)? {
            Some(count) if count > 0 => {
                self.out.push(b'[');
                Ok(Rest::List { table: table.clone(), next: 1, count })
            }
            _ => {
                self.out.push(b'{');
                Ok(Rest::Map { pairs: Pairs::of(self.next, table), is_first: true })
            }
        }
    }

    /// The largest index of a table whose keys are all positive integers, unless it is too sparse for a list.
    fn list_len(&self, table: &Table) -> mlua::Result<Option<i64>> {
        let mut pairs = Pairs::of(self.next, table);
        let (mut largest, mut count) = (0, 0);
        while let Some((key, _)) = pairs.advance()? {
            match key {
                Value::Integer(index) if index > 0 => {
                    largest = index.max(largest);
                    count += 1;
                }
                _ => return Ok(None),
            }
        }
        let Settings { sparse_converts, sparse_ratio, sparse_safe, .. } = *self.settings;
        if sparse_ratio > 0 && largest > count * sparse_ratio && largest > sparse_safe {
            if !sparse_converts {
                return Err(self.refuse(&Value::Table(table.clone()), "excessively sparse array"));
            }
            return Ok(None);
        }
        Ok(Some(largest))
    }

    fn key(&mut self, key: &Value) -> mlua::Result<()> {
        match key {
            Value::Integer(_) | Value::Number(_) => {
                self.out.push(b'"');
                self.number(key)?;
                self.out.push(b'"');
            }
            Value::String(key) => write_string(&mut self.out, &key.as_bytes()),
            _ => {
                let problem = "Cannot serialise table: table key must be a number or string";
                return Err(raised::text(self.lua, problem));
            }
        }
        Ok(())
    }

    fn number(&mut self, value: &Value) -> mlua::Result<()> {
        let number = as_number(value).unwrap_or(f64::NAN);
        if !number.is_finite() {
            match self.settings.encode_invalid {
                InvalidNumbers::Refused => return Err(self.refuse(value, "must not be NaN or Inf")),
                InvalidNumbers::Null => self.out.extend_from_slice(b"null"),
                InvalidNumbers::Written if number.is_nan() => self.out.extend_from_slice(b"nan"),
                InvalidNumbers::Written => write_general(&mut self.out, number, 1),
            }
            return Ok(());
        }
        write_general(&mut self.out, number, usize::try_from(self.settings.number_precision).unwrap_or(1));
        Ok(())
    }
}

/// A string between quotes; everything that is not printable ASCII or above is escaped, and so is `/`.
fn write_string(out: &mut Vec<u8>, text: &[u8]) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    for &byte in text {
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'/' => out.extend_from_slice(b"\\/"),
            8 => out.extend_from_slice(b"\\b"),
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\n' => out.extend_from_slice(b"\\n"),
            12 => out.extend_from_slice(b"\\f"),
            b'\r' => out.extend_from_slice(b"\\r"),
            0..32 | 127 => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}
