//! The library `struct`: conversion between Lua values and C structures in strings, like Roberto Ierusalimschy's
//! library of the same name.
//!
//! | option | value | | option | value |
//! |---|---|---|---|---|
//! | `b` `B` | 1 byte | | `f` `d` | float, double |
//! | `h` `H` | 2 bytes | | `s` | string up to a zero byte |
//! | `i` `I`, with an optional size | 4 bytes | | `c`n | n bytes; `c0`: the previous value is the length |
//! | `l` `L` `T` | 8 bytes | | `x` | a zero byte without a value |
//! | `<` `>` | little, big endian | | `!`n | alignment up to n bytes |

use std::rc::Rc;

use mlua::{Lua, LuaString, MultiValue, Table, Value};

use super::arguments::Arguments;
use super::interpreter::Shared;
use super::output::Output;
use super::raised;

/// The maximum size of an `i` or `I` option in bytes.
const INTEGER_BYTES_MAX: usize = 32;

/// The maximum alignment in bytes that `!` without a number sets.
const ALIGNMENT_DEFAULT: usize = 8;

/// The maximum number of values that one call may return; more would not fit on the interpreter's stack.
const VALUES_MAX: usize = 7000;

/// The cost of reading an option, as an equivalent number of bytes of work.
const OPTION_WORK: usize = 8;

/// The maximum length in digits of a number in a format: enough for any 32-bit number with some leading zeros.
const DIGITS_MAX: usize = 20;

/// Creates the library's table.
pub(super) fn library(lua: &Lua, shared: &Rc<Shared>) -> mlua::Result<Table> {
    let library = lua.create_table()?;
    let for_pack = Rc::clone(shared);
    library.set("pack", lua.create_function(move |lua, arguments| pack(lua, &for_pack, arguments))?)?;
    let for_unpack = Rc::clone(shared);
    library.set("unpack", lua.create_function(move |lua, arguments| unpack(lua, &for_unpack, arguments))?)?;
    let for_size = Rc::clone(shared);
    library.set("size", lua.create_function(move |lua, arguments| size(lua, &for_size, arguments))?)?;
    Ok(library)
}

/// A format string that is being parsed, and the state set by its control options.
struct Format<'f> {
    arguments: &'f Arguments<'f>,
    lua: &'f Lua,
    shared: &'f Shared,
    rest: &'f [u8],
    is_big: bool,
    alignment: usize,
}

/// An option and the size of its value in bytes; 0 for strings and invalid options.
struct Field {
    option: u8,
    size: usize,
}

impl<'f> Format<'f> {
    fn new(lua: &'f Lua, shared: &'f Shared, arguments: &'f Arguments<'f>, format: &'f [u8]) -> Format<'f> {
        Format { arguments, lua, shared, rest: format, is_big: cfg!(target_endian = "big"), alignment: 1 }
    }

    fn field(&mut self) -> mlua::Result<Option<Field>> {
        self.shared.work(OPTION_WORK)?;
        // As in C, the format ends at a zero byte.
        let Some((&option, rest)) = self.rest.split_first().filter(|&(&option, _)| option != 0) else {
            return Ok(None);
        };
        self.rest = rest;
        let size = match option {
            b'B' | b'b' | b'x' => 1,
            b'H' | b'h' => 2,
            b'L' | b'l' | b'T' | b'd' => 8,
            b'f' => 4,
            b'c' => self.number(1)?,
            b'i' | b'I' => {
                let size = self.number(4)?;
                if size > INTEGER_BYTES_MAX {
                    let text = format!("integral size {size} is larger than limit of {INTEGER_BYTES_MAX}");
                    return Err(raised::text(self.lua, text));
                }
                size
            }
            _ => 0,
        };
        Ok(Some(Field { option, size }))
    }

    /// Reads the number at the current position; returns `default` if there is none.
    fn number(&mut self, default: usize) -> mlua::Result<usize> {
        let digits = self.rest.iter().take(DIGITS_MAX).take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 {
            return Ok(default);
        }
        let (digits, rest) = self.rest.split_at(digits);
        self.rest = rest;
        let number = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse::<i32>().ok());
        let number = number.and_then(|number| usize::try_from(number).ok());
        number.ok_or_else(|| raised::text(self.lua, "integral size overflow"))
    }

    /// Returns the number of padding bytes that align the field after `len` bytes.
    fn padding(&self, len: usize, field: &Field) -> usize {
        let size = field.size.min(self.alignment);
        if field.size == 0 || field.option == b'c' || size <= 1 {
            return 0;
        }
        (size - (len & (size - 1))) & (size - 1)
    }

    fn control(&mut self, option: u8) -> mlua::Result<()> {
        match option {
            b' ' => {}
            b'>' => self.is_big = true,
            b'<' => self.is_big = false,
            b'!' => {
                let alignment = self.number(ALIGNMENT_DEFAULT)?;
                if !alignment.is_power_of_two() {
                    return Err(raised::text(self.lua, format!("alignment {alignment} is not a power of 2")));
                }
                self.alignment = alignment;
            }
            _ => {
                let option = char::from(option);
                return Err(self.arguments.error(1, &format!("invalid format option '{option}'")));
            }
        }
        Ok(())
    }

    /// Writes the lowest `size` bytes of `value` in the selected byte order.
    fn write(&self, out: &mut Vec<u8>, value: u64, size: usize) {
        let start = out.len();
        out.extend((0..size).map(|at| if at < 8 { value.to_le_bytes()[at] } else { 0 }));
        if self.is_big {
            out[start..].reverse();
        }
    }

    fn read(&self, bytes: &[u8]) -> u64 {
        let fold = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        if self.is_big { bytes.iter().fold(0, fold) } else { bytes.iter().rev().fold(0, fold) }
    }
}

fn pack(lua: &Lua, shared: &Shared, arguments: MultiValue) -> mlua::Result<LuaString> {
    let arguments = Arguments::new(lua, arguments);
    let format = arguments.string(1)?;
    let format = format.as_bytes();
    let mut format = Format::new(lua, shared, &arguments, &format);
    let mut out = Output::new(lua, shared);
    let mut argument = 1;
    while let Some(field) = format.field()? {
        let len = out.bytes.len();
        out.bytes.resize(len + format.padding(len, &field), 0);
        let mut next = || {
            argument += 1;
            argument
        };
        match field.option {
            b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' => {
                let number = number(&arguments, next())?;
                let bits = if number < 0.0 { number as i64 as u64 } else { number as u64 };
                format.write(&mut out.bytes, bits, field.size);
            }
            b'x' => out.bytes.push(0),
            b'f' => {
                format.write(&mut out.bytes, u64::from((number(&arguments, next())? as f32).to_bits()), 4)
            }
            b'd' => format.write(&mut out.bytes, number(&arguments, next())?.to_bits(), 8),
            b'c' | b's' => {
                let string = string(&arguments, next())?;
                let string = string.as_bytes();
                let len = if field.size == 0 { string.len() } else { field.size };
                let Some(kept) = string.get(..len) else {
                    return Err(arguments.error(next(), "string too short"));
                };
                out.extend(kept)?;
                if field.option == b's' {
                    out.bytes.push(0);
                }
            }
            option => format.control(option)?,
        }
    }
    out.into_string()
}

/// Returns a number to pack; a missing argument is treated as nil.
fn number(arguments: &Arguments<'_>, number: usize) -> mlua::Result<f64> {
    match arguments.get(number) {
        None => Err(arguments.error(number, "number expected, got nil")),
        Some(_) => arguments.number(number),
    }
}

fn string(arguments: &Arguments<'_>, number: usize) -> mlua::Result<LuaString> {
    match arguments.get(number) {
        None => Err(arguments.error(number, "string expected, got nil")),
        Some(_) => arguments.string(number),
    }
}

fn unpack(lua: &Lua, shared: &Shared, arguments: MultiValue) -> mlua::Result<MultiValue> {
    let arguments = Arguments::new(lua, arguments);
    let (format, data) = (arguments.string(1)?, arguments.string(2)?);
    let (format, data) = (format.as_bytes(), data.as_bytes());
    let mut format = Format::new(lua, shared, &arguments, &format);
    let too_short = || arguments.error(2, "data string too short");
    let start = if arguments.given(3).is_some() { arguments.integer(3)? } else { 1 };
    if start == 0 {
        return Err(arguments.error(3, "offset must be 1 or greater"));
    }
    let mut at = usize::try_from(start - 1).map_err(|_| too_short())?;
    let mut values: Vec<Value> = Vec::new();
    while let Some(field) = format.field()? {
        at += format.padding(at, &field);
        let bytes_at = |at: usize, len: usize| {
            at.checked_add(len).and_then(|end| data.get(at..end)).ok_or_else(too_short)
        };
        let bytes = bytes_at(at, field.size)?;
        let mut taken = field.size;
        let value = match field.option {
            b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' => {
                let bits = format.read(bytes);
                Some(if field.option.is_ascii_lowercase() {
                    Value::Number(signed(bits, field.size) as f64)
                } else {
                    Value::Number(bits as f64)
                })
            }
            b'f' => Some(Value::Number(f64::from(f32::from_bits(format.read(bytes) as u32)))),
            b'd' => Some(Value::Number(f64::from_bits(format.read(bytes)))),
            b'c' if field.size == 0 => {
                let len = values.pop().and_then(|value| super::arguments::as_number(&value));
                let len = len.ok_or_else(|| raised::text(lua, "format 'c0' needs a previous size"))?;
                taken = len as usize;
                Some(Value::String(lua.create_string(bytes_at(at, taken)?)?))
            }
            b'c' => Some(Value::String(lua.create_string(bytes)?)),
            b's' => {
                let rest = data.get(at..).unwrap_or_default();
                let end = memchr::memchr(0, rest);
                let end = end.ok_or_else(|| raised::text(lua, "unfinished string in data"))?;
                taken = end + 1;
                Some(Value::String(lua.create_string(&rest[..end])?))
            }
            b'x' => None,
            option => {
                format.control(option)?;
                None
            }
        };
        at += taken;
        values.extend(value);
        if values.len() > VALUES_MAX {
            return Err(raised::text(lua, "stack overflow (too many results)"));
        }
    }
    values.push(Value::Number((at + 1) as f64));
    Ok(MultiValue::from_vec(values))
}

/// Sign-extends the lowest `size` bytes of `bits`.
fn signed(bits: u64, size: usize) -> i64 {
    if size == 0 || size >= 8 {
        return bits as i64;
    }
    let unused = 64 - 8 * size as u32;
    (bits << unused) as i64 >> unused
}

fn size(lua: &Lua, shared: &Shared, arguments: MultiValue) -> mlua::Result<f64> {
    let arguments = Arguments::new(lua, arguments);
    let format = arguments.string(1)?;
    let format = format.as_bytes();
    let mut format = Format::new(lua, shared, &arguments, &format);
    let mut total = 0;
    while let Some(field) = format.field()? {
        total += format.padding(total, &field);
        match field.option {
            b's' => return Err(arguments.error(1, "option 's' has no fixed size")),
            b'c' if field.size == 0 => return Err(arguments.error(1, "option 'c0' has no fixed size")),
            option if !option.is_ascii_alphanumeric() => format.control(option)?,
            _ => {}
        }
        total += field.size;
    }
    Ok(total as f64)
}
