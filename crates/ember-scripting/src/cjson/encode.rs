//! Encodes Lua values as JSON texts.

use mlua::{Lua, LuaString, Table, Value};

use super::{InvalidNumbers, Settings};
use crate::arguments::{as_number, type_name};
use crate::format::write_general;
use crate::interpreter::{ELEMENT_WORK, Shared};
use crate::output::Output;
use crate::raised;
use crate::walk::Pairs;

/// The part of a table that is not encoded yet.
enum Rest {
    List { table: Table, next: i64, count: i64 },
    Map { pairs: Pairs, is_first: bool },
}

/// Encodes `value` as JSON.
///
/// # Errors
/// Returns Lua CJSON's message for values that JSON cannot represent.
pub(super) fn encode(
    lua: &Lua,
    shared: &Shared,
    value: &Value,
    settings: &Settings,
) -> mlua::Result<LuaString> {
    let mut encoder = Encoder { lua, shared, settings, out: Output::new(lua, shared) };
    let mut open: Vec<Rest> = Vec::new();
    open.extend(encoder.begin(value, 1)?);
    while let Some(rest) = open.last_mut() {
        encoder.out.count_element()?;
        let value = match rest {
            Rest::List { table, next, count } if *next <= *count => {
                if *next > 1 {
                    encoder.out.bytes.push(b',');
                }
                *next += 1;
                Some(table.raw_get(*next - 1)?)
            }
            Rest::List { .. } => {
                encoder.out.bytes.push(b']');
                None
            }
            Rest::Map { pairs, is_first } => match pairs.advance()? {
                Some((key, value)) => {
                    if !std::mem::take(is_first) {
                        encoder.out.bytes.push(b',');
                    }
                    encoder.key(&key)?;
                    encoder.out.bytes.push(b':');
                    Some(value)
                }
                None => {
                    encoder.out.bytes.push(b'}');
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
    encoder.out.into_string()
}

struct Encoder<'e> {
    lua: &'e Lua,
    shared: &'e Shared,
    settings: &'e Settings,
    out: Output<'e>,
}

impl Encoder<'_> {
    fn refuse(&self, value: &Value, reason: &str) -> mlua::Error {
        raised::text(self.lua, format!("Cannot serialise {}: {reason}", type_name(value)))
    }

    /// Writes a value, or the beginning of a table at this depth; returns the remaining part of the table.
    fn begin(&mut self, value: &Value, depth: i64) -> mlua::Result<Option<Rest>> {
        match value {
            Value::Nil => self.out.bytes.extend_from_slice(b"null"),
            Value::Boolean(true) => self.out.bytes.extend_from_slice(b"true"),
            Value::Boolean(false) => self.out.bytes.extend_from_slice(b"false"),
            Value::Integer(_) | Value::Number(_) => self.number(value)?,
            Value::String(string) => self.string(&string.as_bytes())?,
            Value::LightUserData(pointer) if pointer.0.is_null() => self.out.bytes.extend_from_slice(b"null"),
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
                self.out.bytes.push(b'[');
                Ok(Rest::List { table: table.clone(), next: 1, count })
            }
            _ => {
                self.out.bytes.push(b'{');
                Ok(Rest::Map { pairs: Pairs::of(self.shared.next(), table), is_first: true })
            }
        }
    }

    /// Returns the largest index of a table whose keys are all positive integers, unless it is too sparse to encode as
    /// an array.
    fn list_len(&self, table: &Table) -> mlua::Result<Option<i64>> {
        let mut pairs = Pairs::of(self.shared.next(), table);
        let (mut largest, mut count) = (0, 0);
        while let Some((key, _)) = pairs.advance()? {
            self.shared.work(ELEMENT_WORK)?;
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
                self.out.bytes.push(b'"');
                self.number(key)?;
                self.out.bytes.push(b'"');
            }
            Value::String(key) => self.string(&key.as_bytes())?,
            _ => {
                let problem = "Cannot serialise table: table key must be a number or string";
                return Err(raised::text(self.lua, problem));
            }
        }
        Ok(())
    }

    /// Writes a string in quotes.
    fn string(&mut self, text: &[u8]) -> mlua::Result<()> {
        self.out.bytes.push(b'"');
        self.out.extend_by(text, write_escaped)?;
        self.out.bytes.push(b'"');
        Ok(())
    }

    fn number(&mut self, value: &Value) -> mlua::Result<()> {
        let number = as_number(value).unwrap_or(f64::NAN);
        if !number.is_finite() {
            match self.settings.encode_invalid {
                InvalidNumbers::Refused => return Err(self.refuse(value, "must not be NaN or Inf")),
                InvalidNumbers::Null => self.out.bytes.extend_from_slice(b"null"),
                InvalidNumbers::Written if number.is_nan() => self.out.bytes.extend_from_slice(b"nan"),
                InvalidNumbers::Written => write_general(&mut self.out.bytes, number, 1),
            }
            return Ok(());
        }
        write_general(
            &mut self.out.bytes,
            number,
            usize::try_from(self.settings.number_precision).unwrap_or(1),
        );
        Ok(())
    }
}

/// Writes the contents of a string, escaping control characters, DEL, quotes, backslashes and `/`.
fn write_escaped(out: &mut Vec<u8>, text: &[u8]) {
    out.reserve(text.len());
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
            0..32 | 127 => {
                let digit =
                    |value: u8| char::from_digit(u32::from(value), 16).map_or(b'0', |digit| digit as u8);
                out.extend_from_slice(&[b'\\', b'u', b'0', b'0', digit(byte >> 4), digit(byte & 0xF)]);
            }
            _ => out.push(byte),
        }
    }
}
