//! The library `bit`: operations on 32-bit integers.
//!
//! Arguments are reduced modulo 2^32, as in Mike Pall's library of the same name; results are signed.

use mlua::{Lua, MultiValue, Table};

use super::arguments::Arguments;

/// The number 2^52 + 2^51. Adding it to a double moves the integer part into the low bits of the mantissa.
const INTEGER_SHIFT: f64 = 6_755_399_441_055_744.0;

/// Converts a number to 32 bits, after rounding it to the nearest integer.
fn bits_of(number: f64) -> u32 {
    (number + INTEGER_SHIFT).to_bits() as u32
}

fn operand(arguments: &Arguments<'_>, number: usize) -> mlua::Result<u32> {
    arguments.number(number).map(bits_of)
}

/// Converts a result to the signed form that Lua receives.
fn signed(bits: u32) -> i32 {
    bits as i32
}

type Unary = fn(u32) -> u32;
type Binary = fn(u32, u32) -> u32;

/// Creates the library's table.
pub(super) fn library(lua: &Lua) -> mlua::Result<Table> {
    let library = lua.create_table()?;
    let unary: [(&str, Unary); 3] =
        [("tobit", |bits| bits), ("bnot", |bits| !bits), ("bswap", u32::swap_bytes)];
    for (name, operation) in unary {
        let function = lua.create_function(move |lua, arguments: MultiValue| {
            Ok(signed(operation(operand(&Arguments::new(lua, arguments), 1)?)))
        })?;
        library.set(name, function)?;
    }
    let folds: [(&str, Binary); 3] = [
        ("band", |one, other| one & other),
        ("bor", |one, other| one | other),
        ("bxor", |one, other| one ^ other),
    ];
    for (name, operation) in folds {
        let function = lua.create_function(move |lua, arguments: MultiValue| {
            let arguments = Arguments::new(lua, arguments);
            let mut result = operand(&arguments, 1)?;
            for number in 2..=arguments.len() {
                result = operation(result, operand(&arguments, number)?);
            }
            Ok(signed(result))
        })?;
        library.set(name, function)?;
    }
    let shifts: [(&str, Binary); 5] = [
        ("lshift", |bits, count| bits << count),
        ("rshift", |bits, count| bits >> count),
        ("arshift", |bits, count| (bits as i32 >> count) as u32),
        ("rol", u32::rotate_left),
        ("ror", u32::rotate_right),
    ];
    for (name, operation) in shifts {
        let function = lua.create_function(move |lua, arguments: MultiValue| {
            let arguments = Arguments::new(lua, arguments);
            Ok(signed(operation(operand(&arguments, 1)?, operand(&arguments, 2)? & 31)))
        })?;
        library.set(name, function)?;
    }
    library.set("tohex", lua.create_function(to_hex)?)?;
    Ok(library)
}

/// Implements `bit.tohex(number [, digits])`; a negative `digits` selects upper-case letters.
fn to_hex(lua: &Lua, arguments: MultiValue) -> mlua::Result<String> {
    let arguments = Arguments::new(lua, arguments);
    let bits = operand(&arguments, 1)?;
    let digits = if arguments.given(2).is_some() { signed(operand(&arguments, 2)?) } else { 8 };
    let text = if digits < 0 { format!("{bits:08X}") } else { format!("{bits:08x}") };
    let count = (digits.unsigned_abs() as usize).min(8);
    Ok(text[8 - count..].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(expression: &str) -> String {
        // Seeds before this interpreter exists: other tests of the process seed, too, and a new seed would make its
        // interned strings impossible to find.
        ember_lua::seed().unwrap();
        let lua = Lua::new();
        lua.globals().set("bit", library(&lua).unwrap()).unwrap();
        lua.load(expression).eval::<String>().unwrap()
    }

    #[test]
    fn numbers_are_taken_modulo_two_to_the_32nd_and_rounded() {
        let expression = "return table.concat({bit.tobit(2^31), bit.tobit(0xffffffff), bit.tobit(2^32+5),
            bit.tobit(1.5), bit.tobit(2.5), bit.tobit('7'), bit.tobit(1e300), bit.tobit(0/0)}, ' ')";
        assert_eq!(run(expression), "-2147483648 -1 5 2 2 7 -2013235812 0");
    }

    #[test]
    fn bit_operations_return_the_expected_values() {
        let expression = "return table.concat({bit.band(255,15,7), bit.bor(1,2,4), bit.bxor(5,1), bit.bnot(0),
            bit.lshift(1,31), bit.rshift(-1,1), bit.arshift(-8,1), bit.rol(0x12345678,8), bit.ror(0x12345678,8),
            bit.bswap(0x12345678), bit.lshift(1,33), bit.lshift(1,-1)}, ' ')";
        assert_eq!(
            run(expression),
            "7 7 4 -1 -2147483648 2147483647 -4 878082066 2014458966 2018915346 2 -2147483648"
        );
    }

    #[test]
    fn hexadecimal_digits_are_counted_from_the_low_end() {
        let expression =
            "return table.concat({bit.tohex(255), bit.tohex(255,4), bit.tohex(255,-4), bit.tohex(-1,0),
            bit.tohex(-1,100), bit.tohex(0xabcdef,-2)}, ' ')";
        assert_eq!(run(expression), "000000ff 00ff 00FF  ffffffff EF");
    }
}
