//! Scripts and functions in Lua: the interpreters, their sandbox and libraries, and what all workers share of them.
//!
//! ```text
//! EVAL, EVALSHA, FCALL ─ host.rs (commands/scripting): which locks, which user, which flags
//!                      └ interpreter.rs: one for each worker; prelude.lua: the sandbox
//!                          ├ api.rs: redis.call and the rest of the table `redis`
//!                          ├ reply.rs: replies ⇄ Lua values
//!                          └ cjson, cmsgpack.rs, structs.rs, bit.rs, random.rs: the libraries of scripts
//! scripts.rs, library.rs, running.rs: texts, libraries and running scripts, which all workers share
//! ```

mod api;
mod arguments;
mod bit;
mod cjson;
mod cmsgpack;
mod format;
pub(crate) mod interpreter;
pub(crate) mod library;
pub(crate) mod payload;
mod raised;
mod random;
pub(crate) mod reply;
pub(crate) mod running;
pub(crate) mod scripts;
pub(crate) mod sha1;
pub(crate) mod shebang;
mod structs;
mod walk;

use std::cell::RefCell;

use interpreter::Interpreter;
use library::LibraryRegistry;
use running::RunningScripts;
use scripts::Scripts;

/// Bytes that a library may make of Lua values: the same table may be in another many times, so that what is small in the
/// interpreter can be large outside.
const OUTPUT_BYTES_MAX: usize = 512 * 1024 * 1024;

/// What all workers share of scripts.
#[derive(Default)]
pub(crate) struct Scripting {
    pub(crate) scripts: Scripts,
    pub(crate) libraries: LibraryRegistry,
    pub(crate) running: RunningScripts,
}

thread_local! {
    /// The interpreter of this worker, from its first script on.
    static INTERPRETER: RefCell<Option<Interpreter>> = const { RefCell::new(None) };
}

/// Calls `act` with this worker's interpreter, which may hold so many bytes.
///
/// # Errors
/// If the memory limit has no room for an interpreter.
pub(crate) fn with_interpreter<R>(
    memory_bytes_max: usize,
    act: impl FnOnce(&mut Interpreter) -> R,
) -> Result<R, &'static str> {
    INTERPRETER.with_borrow_mut(|slot| {
        if slot.is_none() {
            let interpreter = Interpreter::new(memory_bytes_max);
            *slot = Some(interpreter.map_err(|_| "ERR there is no memory for an interpreter")?);
        }
        let interpreter = slot.as_mut().expect("it was made just now if it was not there");
        Ok(act(interpreter))
    })
}

/// Forgets this worker's interpreter with everything in it.
pub(crate) fn drop_interpreter() {
    INTERPRETER.with_borrow_mut(|slot| *slot = None);
}
