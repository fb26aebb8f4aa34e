//! The library `cmsgpack`: conversion between Lua values and MessagePack, like lua-cmsgpack 0.4.
//!
//! MessagePack types without a Lua equivalent (binary data, extensions) are refused, as in lua-cmsgpack.

use mlua::{Lua, LuaString, MultiValue, Table, Value};

use super::arguments::{Arguments, as_number};
use super::interpreter::{ELEMENT_WORK, Shared};
use super::output::Output;
use super::raised;
use super::walk::Pairs;
use std::rc::Rc;

/// The maximum nesting depth for packing; deeper tables become nil.
const PACK_DEPTH_MAX: usize = 16;

/// The maximum nesting depth for unpacking.
const UNPACK_DEPTH_MAX: usize = 4000;

/// The maximum number of values that one call may return; more would not fit on the interpreter's stack.
const VALUES_MAX: usize = 7000;

/// Creates the library's table.
pub(super) fn library(lua: &Lua, shared: &Rc<Shared>) -> mlua::Result<Table> {
    let library = lua.create_table()?;
    library.set("_NAME", "cmsgpack")?;
    library.set("_VERSION", "lua-cmsgpack 0.4.0")?;
    library.set("_DESCRIPTION", "MessagePack for Lua")?;
    let for_pack = Rc::clone(shared);
    library.set("pack", lua.create_function(move |lua, values| pack(lua, &for_pack, values))?)?;
    let for_unpack = Rc::clone(shared);
    library.set(
        "unpack",
        lua.create_function(move |lua, values| {
            let arguments = Arguments::new(lua, values);
            unpack(lua, &for_unpack, &arguments, 0, 0)
        })?,
    )?;
    let for_unpack_one = Rc::clone(shared);
    library.set(
        "unpack_one",
        lua.create_function(move |lua, values| {
            let arguments = Arguments::new(lua, values);
            let offset = if arguments.given(2).is_some() { arguments.integer(2)? } else { 0 };
            arguments.string(1)?;
            unpack(lua, &for_unpack_one, &arguments, 1, offset)
        })?,
    )?;
    let for_unpack_limit = Rc::clone(shared);
    library.set(
        "unpack_limit",
        lua.create_function(move |lua, values| {
            let arguments = Arguments::new(lua, values);
            arguments.string(1)?;
            let limit = arguments.integer(2)?;
            let offset = if arguments.given(3).is_some() { arguments.integer(3)? } else { 0 };
            unpack(lua, &for_unpack_limit, &arguments, limit, offset)
        })?,
    )?;
    Ok(library)
}

fn pack(lua: &Lua, shared: &Shared, values: MultiValue) -> mlua::Result<LuaString> {
    if values.is_empty() {
        return Err(raised::bad_argument(lua, 0, "MessagePack pack needs input."));
    }
    let mut packer = Packer { shared, out: Output::new(lua, shared) };
    for value in values {
        packer.value(&value, 0)?;
    }
    packer.out.into_string()
}

struct Packer<'p> {
    shared: &'p Shared,
    out: Output<'p>,
}

impl Packer<'_> {
    /// Packs a value. Its recursion is limited to [`PACK_DEPTH_MAX`].
    fn value(&mut self, value: &Value, depth: usize) -> mlua::Result<()> {
        match value {
            Value::String(string) => self.string(&string.as_bytes())?,
            Value::Boolean(truth) => self.out.bytes.push(if *truth { 0xC3 } else { 0xC2 }),
            Value::Integer(number) => self.integer(*number),
            Value::Number(number) => self.number(*number),
            Value::Table(table) if depth < PACK_DEPTH_MAX => self.table(table, depth)?,
            _ => self.out.bytes.push(0xC0),
        }
        self.out.count_element()
    }

    /// Writes a header with the first of `kinds` whose length field (of 1, 2 or 4 bytes) can represent `len`.
    fn head(&mut self, len: usize, kinds: [Option<u8>; 3]) {
        let len = len as u32;
        match (kinds, len) {
            ([Some(kind), ..], 0..=0xFF) => self.out.bytes.extend_from_slice(&[kind, len as u8]),
            ([_, Some(kind), _], 0..=0xFFFF) => {
                self.out.bytes.push(kind);
                self.out.bytes.extend_from_slice(&(len as u16).to_be_bytes());
            }
            ([.., kind], _) => {
                self.out.bytes.push(kind.unwrap_or(0xC1));
                self.out.bytes.extend_from_slice(&len.to_be_bytes());
            }
        }
    }

    fn string(&mut self, string: &[u8]) -> mlua::Result<()> {
        match string.len() {
            len @ 0..32 => self.out.bytes.push(0xA0 | len as u8),
            len => self.head(len, [Some(0xD9), Some(0xDA), Some(0xDB)]),
        }
        self.out.extend(string)
    }

    fn integer(&mut self, number: i64) {
        let bytes = number.to_be_bytes();
        let (kind, len) = match number {
            -32..=127 => return self.out.bytes.push(number as u8),
            128..=0xFF => (0xCC, 1),
            0x100..=0xFFFF => (0xCD, 2),
            0x1_0000..=0xFFFF_FFFF => (0xCE, 4),
            0x1_0000_0000.. => (0xCF, 8),
            -128..=-33 => (0xD0, 1),
            -32_768..=-129 => (0xD1, 2),
            -2_147_483_648..=-32_769 => (0xD2, 4),
            _ => (0xD3, 8),
        };
        self.out.bytes.push(kind);
        self.out.bytes.extend_from_slice(&bytes[8 - len..]);
    }

    fn number(&mut self, number: f64) {
        const LIMIT: f64 = 9_223_372_036_854_775_808.0;
        if number.fract() == 0.0 && (-LIMIT..LIMIT).contains(&number) {
            return self.integer(number as i64);
        }
        let short = number as f32;
        if f64::from(short) == number {
            self.out.bytes.push(0xCA);
            self.out.bytes.extend_from_slice(&short.to_be_bytes());
        } else {
            self.out.bytes.push(0xCB);
            self.out.bytes.extend_from_slice(&number.to_be_bytes());
        }
    }

    fn table(&mut self, table: &Table, depth: usize) -> mlua::Result<()> {
        if let Some(len) = self.list_len(table)? {
            match len {
                0..16 => self.out.bytes.push(0x90 | len as u8),
                _ => self.head(len, [None, Some(0xDC), Some(0xDD)]),
            }
            for number in 1..=len {
                self.value(&table.raw_get(number)?, depth + 1)?;
            }
            return Ok(());
        }
        let mut len = 0;
        let mut pairs = Pairs::of(self.shared.next(), table);
        while pairs.advance()?.is_some() {
            self.shared.work(ELEMENT_WORK)?;
            len += 1;
        }
        match len {
            0..16 => self.out.bytes.push(0x80 | len as u8),
            _ => self.head(len, [None, Some(0xDE), Some(0xDF)]),
        }
        let mut pairs = Pairs::of(self.shared.next(), table);
        while let Some((key, value)) = pairs.advance()? {
            self.value(&key, depth + 1)?;
            self.value(&value, depth + 1)?;
        }
        Ok(())
    }

    /// Returns the length of a table whose keys are exactly 1, 2, 3 and so on; `None` for other tables.
    fn list_len(&self, table: &Table) -> mlua::Result<Option<usize>> {
        let (mut largest, mut count) = (0.0, 0usize);
        let mut pairs = Pairs::of(self.shared.next(), table);
        while let Some((key, _)) = pairs.advance()? {
            self.shared.work(ELEMENT_WORK)?;
            match as_number(&key) {
                Some(index) if index > 0.0 && index.fract() == 0.0 => {
                    largest = index.max(largest);
                    count += 1;
                }
                _ => return Ok(None),
            }
        }
        Ok((largest == count as f64).then_some(count))
    }
}

/// Unpacks `limit` values, starting at `offset`. The first result is the offset after these values, or -1 at the end of
/// the data. With a limit and an offset of 0, unpacks all values and returns no offset.
fn unpack(
    lua: &Lua,
    shared: &Shared,
    arguments: &Arguments<'_>,
    limit: i64,
    offset: i64,
) -> mlua::Result<MultiValue> {
    let input = arguments.string(1)?;
    let input = input.as_bytes();
    let (Ok(count_max), Ok(start)) = (usize::try_from(limit), usize::try_from(offset)) else {
        let len = input.len();
        let text = format!("Invalid request to unpack with offset of {offset} and limit of {len}.");
        return Err(raised::text(lua, text));
    };
    if start > input.len() {
        let text = format!("Start offset {start} greater than input length {}.", input.len());
        return Err(raised::text(lua, text));
    }
    let mut unpacker = Unpacker { lua, shared, input: &input, at: start };
    let mut values = Vec::new();
    let takes_all = limit == 0 && offset == 0;
    while unpacker.at < input.len() && (takes_all || values.len() < count_max) {
        if values.len() >= VALUES_MAX {
            return Err(raised::text(lua, "too many results to unpack"));
        }
        values.push(unpacker.value()?);
    }
    if !takes_all {
        let next = if unpacker.at >= input.len() { -1 } else { unpacker.at as i64 };
        values.insert(0, Value::Integer(next));
    }
    Ok(MultiValue::from_vec(values))
}

struct Unpacker<'u> {
    lua: &'u Lua,
    shared: &'u Shared,
    input: &'u [u8],
    at: usize,
}

/// An array or map under construction.
struct Open {
    table: Table,
    /// The number of values (in a map: pairs) that are still missing.
    left: usize,
    /// The number of values in an array so far; `None` in a map.
    count: Option<usize>,
    /// In a map, the key of the value that follows.
    key: Option<Value>,
}

/// A value, or the header of an array or map.
enum Item {
    Value(Value),
    Array(usize),
    Map(usize),
}

impl Unpacker<'_> {
    fn take(&mut self, len: usize) -> mlua::Result<&[u8]> {
        let end = self.at.checked_add(len).filter(|&end| end <= self.input.len());
        let Some(end) = end else { return Err(raised::text(self.lua, "Missing bytes in input.")) };
        let bytes = &self.input[self.at..end];
        self.at = end;
        Ok(bytes)
    }

    /// Reads a big-endian number of `len` bytes.
    fn unsigned(&mut self, len: usize) -> mlua::Result<u64> {
        Ok(self.take(len)?.iter().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }

    fn string(&mut self, len: usize) -> mlua::Result<Item> {
        let lua = self.lua;
        Ok(Item::Value(Value::String(lua.create_string(self.take(len)?)?)))
    }

    fn item(&mut self) -> mlua::Result<Item> {
        let integer = |number: i64| Item::Value(Value::Integer(number));
        let kind = self.take(1)?[0];
        Ok(match kind {
            0..0x80 => integer(i64::from(kind)),
            0x80..0x90 => Item::Map(usize::from(kind & 0xF)),
            0x90..0xA0 => Item::Array(usize::from(kind & 0xF)),
            0xA0..0xC0 => self.string(usize::from(kind & 0x1F))?,
            0xC0 => Item::Value(Value::Nil),
            0xC2 | 0xC3 => Item::Value(Value::Boolean(kind == 0xC3)),
            0xCA => Item::Value(Value::Number(f64::from(f32::from_bits(self.unsigned(4)? as u32)))),
            0xCB => Item::Value(Value::Number(f64::from_bits(self.unsigned(8)?))),
            0xCC => integer(self.unsigned(1)? as i64),
            0xCD => integer(self.unsigned(2)? as i64),
            0xCE => integer(self.unsigned(4)? as i64),
            // An unsigned 64-bit number is read as a signed one.
            0xCF | 0xD3 => integer(self.unsigned(8)? as i64),
            0xD0 => integer(i64::from(self.unsigned(1)? as i8)),
            0xD1 => integer(i64::from(self.unsigned(2)? as i16)),
            0xD2 => integer(i64::from(self.unsigned(4)? as i32)),
            0xD9..=0xDB => {
                let len = self.unsigned(1 << (kind - 0xD9))? as usize;
                self.string(len)?
            }
            0xDC | 0xDD => Item::Array(self.unsigned(2 << (kind - 0xDC))? as usize),
            0xDE | 0xDF => Item::Map(self.unsigned(2 << (kind - 0xDE))? as usize),
            0xE0.. => integer(i64::from(kind as i8)),
            _ => return Err(raised::text(self.lua, "Bad data format in input.")),
        })
    }

    fn value(&mut self) -> mlua::Result<Value> {
        let mut open: Vec<Open> = Vec::new();
        loop {
            self.shared.work(ELEMENT_WORK)?;
            let (left, count) = match self.item()? {
                Item::Value(value) => match self.put(&mut open, value)? {
                    Some(whole) => return Ok(whole),
                    None => continue,
                },
                Item::Array(left) => (left, Some(0)),
                Item::Map(left) => (left, None),
            };
            if open.len() >= UNPACK_DEPTH_MAX {
                return Err(raised::plain("stack overflow (in function mp_decode_to_lua_type)"));
            }
            open.push(Open { table: self.lua.create_table()?, left, count, key: None });
            if left == 0 {
                let whole = open.pop().map_or(Value::Nil, |open| Value::Table(open.table));
                if let Some(whole) = self.put(&mut open, whole)? {
                    return Ok(whole);
                }
            }
        }
    }

    /// Adds a value to the innermost open array or map, which may then be complete. Returns the outermost value once
    /// that is complete.
    fn put(&mut self, open: &mut Vec<Open>, value: Value) -> mlua::Result<Option<Value>> {
        let mut value = value;
        loop {
            let Some(inner) = open.last_mut() else { return Ok(Some(value)) };
            match (&mut inner.count, inner.key.take()) {
                (Some(count), _) => {
                    *count += 1;
                    inner.table.raw_set(*count, value)?;
                }
                (None, None) => {
                    inner.key = Some(value);
                    return Ok(None);
                }
                (None, Some(Value::Nil)) => return Err(raised::plain("table index is nil")),
                (None, Some(Value::Number(number))) if number.is_nan() => {
                    return Err(raised::plain("table index is NaN"));
                }
                (None, Some(key)) => inner.table.raw_set(key, value)?,
            }
            inner.left -= 1;
            if inner.left > 0 {
                return Ok(None);
            }
            value = open.pop().map_or(Value::Nil, |open| Value::Table(open.table));
        }
    }
}
