//! `math.random` for scripts, which returns the same numbers for the same seed on every machine.
//!
//! The generator is the linear congruential one of C's `lrand48`; the algorithm of `math.random` is Lua's.

use std::rc::Rc;

use mlua::{Function, Lua, MultiValue, Value};

use super::arguments::Arguments;
use super::interpreter::Shared;

/// The multiplier, the increment and the low bits of a seed, as in the definition of `drand48`.
const FACTOR: u64 = 0x5_DEEC_E66D;
const INCREMENT: u64 = 0xB;
const SEED_LOW: u64 = 0x330E;
const STATE_MASK: u64 = (1 << 48) - 1;

/// The largest number that [`draw`] returns.
const DRAWN_MAX: i64 = i32::MAX as i64;

/// Returns the state after `srand48(seed)`.
pub(super) fn state_of_seed(seed: i32) -> u64 {
    (u64::from(seed as u32) << 16) | SEED_LOW
}

/// Draws the next number from 0 to 2^31 - 1.
fn draw(shared: &Shared) -> i64 {
    let next = shared.random.get().wrapping_mul(FACTOR).wrapping_add(INCREMENT) & STATE_MASK;
    shared.random.set(next);
    (next >> 17) as i64
}

/// Creates the function `math.random([m [, n]])`.
pub(super) fn random(lua: &Lua, shared: &Rc<Shared>) -> mlua::Result<Function> {
    let shared = Rc::clone(shared);
    lua.create_function(move |lua, arguments: MultiValue| {
        let arguments = Arguments::new(lua, arguments);
        let unit = (draw(&shared) % DRAWN_MAX) as f64 / DRAWN_MAX as f64;
        let scaled =
            |low: i64, high: i64| Value::Number((unit * (high - low + 1) as f64).floor() + low as f64);
        match arguments.len() {
            0 => Ok(Value::Number(unit)),
            1 => {
                let high = i64::from(arguments.integer(1)? as i32);
                if high < 1 { Err(arguments.error(1, "interval is empty")) } else { Ok(scaled(1, high)) }
            }
            2 => {
                let (low, high) =
                    (i64::from(arguments.integer(1)? as i32), i64::from(arguments.integer(2)? as i32));
                if low > high { Err(arguments.error(2, "interval is empty")) } else { Ok(scaled(low, high)) }
            }
            _ => Err(super::raised::text(lua, "wrong number of arguments")),
        }
    })
}

/// Creates the function `math.randomseed(seed)`.
pub(super) fn randomseed(lua: &Lua, shared: &Rc<Shared>) -> mlua::Result<Function> {
    let shared = Rc::clone(shared);
    lua.create_function(move |lua, arguments: MultiValue| {
        let seed = Arguments::new(lua, arguments).integer(1)?;
        shared.random.set(state_of_seed(seed as i32));
        Ok(())
    })
}
