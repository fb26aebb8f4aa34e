//! Scripts and functions in Lua: the interpreters, their sandbox and libraries, and the state that workers share.
//!
//! ```text
//! EVAL, EVALSHA, FCALL ─ script_host/ of the server: takes locks, checks the user and the flags
//!                      └ interpreter.rs: one for each worker; prelude.lua: the sandbox
//!                          ├ api.rs: redis.call and the rest of the table `redis`
//!                          ├ stack.rs: calls of scripts, and conversion of replies to Lua values
//!                          ├ reply.rs: conversion of Lua values to replies
//!                          └ cjson, cmsgpack.rs, structs.rs, bit.rs, random.rs: the libraries of scripts;
//!                            output.rs: builds their texts
//! confinement/: proves from the text of a program that it may run concurrently with others
//! scripts.rs, library.rs, running.rs: texts, libraries and running scripts, which all workers share
//! ```

mod api;
mod arguments;
mod bit;
mod cjson;
mod cmsgpack;
pub mod commands;
pub mod confinement;
mod format;
pub mod interpreter;
pub mod library;
mod output;
pub mod payload;
pub mod raised;
mod random;
pub mod reply;
pub mod running;
pub mod scripts;
pub mod sha1;
pub mod shebang;
mod stack;
mod structs;
#[cfg(test)]
mod tests;
mod walk;

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering};

use emberkv_core::redis_version::RedisVersion;
use interpreter::Interpreter;
use library::LibraryRegistry;
use running::RunningScripts;
use scripts::Scripts;

/// The change in the size of an interpreter, in bytes, from which the shared sum is updated.
const REPORTED_BYTES_MIN: usize = 16 * 1024;

/// The state of scripts that all workers share.
pub struct Scripting {
    /// The texts of scripts, by digest.
    pub scripts: Scripts,
    /// The libraries of functions.
    pub libraries: LibraryRegistry,
    /// The records of running scripts.
    pub running: RunningScripts,
    /// The memory of all interpreters, in bytes.
    interpreter_bytes: AtomicU64,
    /// The number of requests so far to drop compiled programs.
    forgets: AtomicU64,
    redis_version: RedisVersion,
}

impl Scripting {
    /// Creates a state without scripts for this many workers; scripts read `redis_version`.
    pub fn new(workers: usize, redis_version: RedisVersion) -> Scripting {
        Scripting {
            redis_version,
            scripts: Scripts::default(),
            libraries: LibraryRegistry::default(),
            running: RunningScripts::new(workers),
            interpreter_bytes: AtomicU64::new(0),
            forgets: AtomicU64::new(0),
        }
    }

    /// Returns the memory of all interpreters after their last scripts, in bytes, to within some KiB for each.
    pub fn interpreter_bytes(&self) -> u64 {
        self.interpreter_bytes.load(Ordering::Relaxed)
    }

    /// Calls `act` with this worker's interpreter, whose memory limit is `memory_bytes_max`.
    ///
    /// # Errors
    /// Returns an error if the memory limit is too low for an interpreter.
    pub fn with_interpreter<R>(
        &self,
        memory_bytes_max: u64,
        act: impl FnOnce(&mut Interpreter) -> R,
    ) -> Result<R, &'static str> {
        INTERPRETER.with_borrow_mut(|(slot, reported_bytes)| {
            if slot.is_none() {
                let memory_bytes_max = usize::try_from(memory_bytes_max).unwrap_or(usize::MAX);
                let interpreter = Interpreter::new(memory_bytes_max, self.redis_version);
                *slot = Some(interpreter.map_err(|_| "ERR there is no memory for an interpreter")?);
            }
            let interpreter = slot.as_mut().expect("it was created just now if it was missing");
            self.forget(Some(interpreter));
            interpreter.collect_if_short();
            let result = act(interpreter);
            HAS_GARBAGE.set(interpreter.has_garbage());
            self.report_bytes(interpreter, reported_bytes);
            Ok(result)
        })
    }

    /// Makes every interpreter drop its compiled programs, because scripts or libraries were removed. Each worker does
    /// so before its next script, or when it calls [`Scripting::forget_if_requested`].
    pub fn forget_compiled(&self) {
        self.forgets.fetch_add(1, Ordering::Relaxed);
    }

    /// Drops the compiled programs of this worker's interpreter if a drop was requested and no program is running.
    pub fn forget_if_requested(&self) {
        if FORGETS_SEEN.get() == self.forgets.load(Ordering::Relaxed) {
            return;
        }
        INTERPRETER.with(|interpreter| {
            // While the interpreter is borrowed it runs a program, and this function is called again later.
            if let Ok(mut interpreter) = interpreter.try_borrow_mut() {
                self.forget(interpreter.0.as_mut());
            }
        });
    }

    fn forget(&self, interpreter: Option<&mut Interpreter>) {
        let forgets = self.forgets.load(Ordering::Relaxed);
        if FORGETS_SEEN.replace(forgets) != forgets
            && let Some(interpreter) = interpreter
        {
            interpreter.forget_compiled();
            HAS_GARBAGE.set(interpreter.has_garbage());
        }
    }

    /// Collects garbage of this worker's interpreter for a short time, if scripts have left much. Returns true if some
    /// garbage is left: collecting all of it at once would make the worker's clients wait.
    #[inline]
    pub fn collect_garbage(&self) -> bool {
        HAS_GARBAGE.get() && self.collect_some()
    }

    #[cold]
    fn collect_some(&self) -> bool {
        INTERPRETER.with_borrow_mut(|(slot, reported_bytes)| {
            let has_more = slot.as_ref().is_some_and(Interpreter::collect_some);
            HAS_GARBAGE.set(has_more);
            slot.iter().for_each(|interpreter| self.report_bytes(interpreter, reported_bytes));
            has_more
        })
    }

    /// Updates the shared sum by the change in the interpreter's size since `reported_bytes`.
    fn report_bytes(&self, interpreter: &Interpreter, reported_bytes: &mut usize) {
        let bytes = interpreter.memory_bytes();
        if bytes.abs_diff(*reported_bytes) >= REPORTED_BYTES_MIN {
            // Sizes are added and subtracted modulo 2^64, so that the sum of all differences is the memory in use.
            let grown = (bytes as u64).wrapping_sub(*reported_bytes as u64);
            self.interpreter_bytes.fetch_add(grown, Ordering::Relaxed);
            *reported_bytes = bytes;
        }
    }
}

thread_local! {
    /// This worker's interpreter, created by its first script, and the size in bytes with which the shared sum includes
    /// it.
    static INTERPRETER: RefCell<(Option<Interpreter>, usize)> = const { RefCell::new((None, 0)) };

    /// The number of drop requests that this worker has handled.
    static FORGETS_SEEN: Cell<u64> = const { Cell::new(0) };

    /// Whether this worker's interpreter has much garbage.
    static HAS_GARBAGE: Cell<bool> = const { Cell::new(false) };
}
