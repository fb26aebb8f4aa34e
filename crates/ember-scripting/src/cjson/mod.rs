//! The library `cjson`: conversion between Lua values and JSON texts, with the settings and errors of Lua CJSON 2.1.

mod decode;
mod encode;

use std::cell::Cell;
use std::rc::Rc;

use mlua::{Function, Lua, MultiValue, Table, Value};

use super::arguments::Arguments;
use super::interpreter::Shared;

/// The possible settings of `encode_invalid_numbers`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InvalidNumbers {
    /// NaN and infinities are an error.
    Refused,
    /// NaN and infinities are written as `nan` and `inf`, which is not valid JSON.
    Written,
    /// NaN and infinities are written as `null`.
    Null,
}

/// The settings of one instance of the library. They last until the script ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    sparse_converts: bool,
    sparse_ratio: i64,
    sparse_safe: i64,
    encode_depth_max: i64,
    decode_depth_max: i64,
    number_precision: i64,
    keeps_buffer: bool,
    encode_invalid: InvalidNumbers,
    decodes_invalid: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            sparse_converts: false,
            sparse_ratio: 2,
            sparse_safe: 10,
            encode_depth_max: 1000,
            decode_depth_max: 1000,
            number_precision: 14,
            keeps_buffer: true,
            encode_invalid: InvalidNumbers::Refused,
            decodes_invalid: true,
        }
    }
}

const INT_MAX: i64 = i32::MAX as i64;

/// The maximum that `encode_number_precision` accepts, in digits.
const PRECISION_MAX: i64 = 14;

/// Creates the library's table.
pub(super) fn library(lua: &Lua, shared: &Rc<Shared>) -> mlua::Result<Table> {
    let settings = Rc::new(Cell::new(Settings::default()));
    shared.json.borrow_mut().push(Rc::clone(&settings));
    let library = lua.create_table()?;
    library.set("null", Value::NULL)?;
    library.set("_NAME", "cjson")?;
    library.set("_VERSION", "2.1.0")?;
    let for_encode = (Rc::clone(&settings), Rc::clone(shared));
    library.set(
        "encode",
        lua.create_function(move |lua, arguments: MultiValue| {
            let arguments = Arguments::new(lua, arguments);
            let [value] = arguments.values() else { return Err(arguments.error(1, "expected 1 argument")) };
            encode::encode(lua, &for_encode.1, value, &for_encode.0.get())
        })?,
    )?;
    let for_decode = (Rc::clone(&settings), Rc::clone(shared));
    library.set(
        "decode",
        lua.create_function(move |lua, arguments: MultiValue| {
            let arguments = Arguments::new(lua, arguments);
            if arguments.len() != 1 {
                return Err(arguments.error(1, "expected 1 argument"));
            }
            decode::decode(lua, &for_decode.1, &arguments.string(1)?.as_bytes(), &for_decode.0.get())
        })?,
    )?;
    setters(lua, &library, &settings)?;
    let shared = Rc::clone(shared);
    library.set("new", lua.create_function(move |lua, _: MultiValue| self::library(lua, &shared))?)?;
    Ok(library)
}

/// Adds the functions that change and return the settings.
fn setters(lua: &Lua, library: &Table, settings: &Rc<Cell<Settings>>) -> mlua::Result<()> {
    type Field = fn(&mut Settings) -> &mut i64;
    let integers: [(&str, i64, Field); 3] = [
        ("encode_max_depth", INT_MAX, |settings| &mut settings.encode_depth_max),
        ("decode_max_depth", INT_MAX, |settings| &mut settings.decode_depth_max),
        ("encode_number_precision", PRECISION_MAX, |settings| &mut settings.number_precision),
    ];
    for (name, max, field) in integers {
        let setter = setter(lua, settings, 1, move |arguments, settings| {
            set_integer(arguments, 1, 1, max, field(settings))?;
            Ok(vec![Value::Integer(*field(settings))])
        })?;
        library.set(name, setter)?;
    }
    let sparse = setter(lua, settings, 3, |arguments, settings| {
        set_truth(arguments, 1, &mut settings.sparse_converts)?;
        set_integer(arguments, 2, 0, INT_MAX, &mut settings.sparse_ratio)?;
        set_integer(arguments, 3, 0, INT_MAX, &mut settings.sparse_safe)?;
        Ok(vec![
            Value::Boolean(settings.sparse_converts),
            Value::Integer(settings.sparse_ratio),
            Value::Integer(settings.sparse_safe),
        ])
    })?;
    library.set("encode_sparse_array", sparse)?;
    let keep = setter(lua, settings, 1, |arguments, settings| {
        set_truth(arguments, 1, &mut settings.keeps_buffer)?;
        Ok(vec![Value::Boolean(settings.keeps_buffer)])
    })?;
    library.set("encode_keep_buffer", keep)?;
    let decodes_invalid = setter(lua, settings, 1, |arguments, settings| {
        set_truth(arguments, 1, &mut settings.decodes_invalid)?;
        Ok(vec![Value::Boolean(settings.decodes_invalid)])
    })?;
    library.set("decode_invalid_numbers", decodes_invalid)?;
    let encodes_invalid = {
        let settings = Rc::clone(settings);
        lua.create_function(move |lua, arguments: MultiValue| {
            let arguments = Arguments::new(lua, arguments);
            check_count(&arguments, 1)?;
            let mut changed = settings.get();
            if let Some(value) = arguments.given(1) {
                changed.encode_invalid = match value {
                    Value::Boolean(truth) => {
                        if *truth {
                            InvalidNumbers::Written
                        } else {
                            InvalidNumbers::Refused
                        }
                    }
                    _ => invalid_numbers(&arguments)?,
                };
                settings.set(changed);
            }
            Ok(match changed.encode_invalid {
                InvalidNumbers::Refused => Value::Boolean(false),
                InvalidNumbers::Written => Value::Boolean(true),
                InvalidNumbers::Null => Value::String(lua.create_string("null")?),
            })
        })?
    };
    library.set("encode_invalid_numbers", encodes_invalid)
}

fn setter(
    lua: &Lua,
    settings: &Rc<Cell<Settings>>,
    arguments_max: usize,
    set: impl Fn(&Arguments<'_>, &mut Settings) -> mlua::Result<Vec<Value>> + 'static,
) -> mlua::Result<Function> {
    let settings = Rc::clone(settings);
    lua.create_function(move |lua, arguments: MultiValue| {
        let arguments = Arguments::new(lua, arguments);
        check_count(&arguments, arguments_max)?;
        let mut changed = settings.get();
        let result = set(&arguments, &mut changed)?;
        settings.set(changed);
        Ok(MultiValue::from_vec(result))
    })
}

fn check_count(arguments: &Arguments<'_>, max: usize) -> mlua::Result<()> {
    if arguments.len() > max { Err(arguments.error(max + 1, "found too many arguments")) } else { Ok(()) }
}

fn set_integer(
    arguments: &Arguments<'_>,
    number: usize,
    min: i64,
    max: i64,
    setting: &mut i64,
) -> mlua::Result<()> {
    if arguments.given(number).is_some() {
        let given = arguments.integer(number)?;
        if !(min..=max).contains(&given) {
            return Err(arguments.error(number, &format!("expected integer between {min} and {max}")));
        }
        *setting = given;
    }
    Ok(())
}

fn set_truth(arguments: &Arguments<'_>, number: usize, setting: &mut bool) -> mlua::Result<()> {
    match arguments.given(number) {
        None => {}
        Some(Value::Boolean(truth)) => *setting = *truth,
        Some(_) => {
            let given = arguments.string(number)?;
            *setting = match &*given.as_bytes() {
                b"on" => true,
                b"off" => false,
                other => return Err(invalid_option(arguments, number, other)),
            };
        }
    }
    Ok(())
}

fn invalid_numbers(arguments: &Arguments<'_>) -> mlua::Result<InvalidNumbers> {
    let given = arguments.string(1)?;
    match &*given.as_bytes() {
        b"off" => Ok(InvalidNumbers::Refused),
        b"on" => Ok(InvalidNumbers::Written),
        b"null" => Ok(InvalidNumbers::Null),
        other => Err(invalid_option(arguments, 1, other)),
    }
}

fn invalid_option(arguments: &Arguments<'_>, number: usize, given: &[u8]) -> mlua::Error {
    arguments.error(number, &format!("invalid option '{}'", String::from_utf8_lossy(given)))
}
