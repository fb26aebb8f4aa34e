//! Confinement: proves from a program's text, before it runs, that it may run concurrently with other programs.
//!
//! A program is *confined* if its text proves two things. First, each of its calls is of a command that accesses only
//! the shards of declared keys. Second, its run time is short: it contains no loops except over the keys and arguments
//! of the call. A confined program runs while it holds the locks of exactly those shards; any other program closes the
//! gate ([`gate`]).
//!
//! The proof is necessary before the program starts, because a program cannot be run again once it has written, and
//! must not wait for further locks while it holds locks that other programs wait for. The run time must be short
//! because those programs cannot be ended while they wait. If a program has no effect so far and takes long because of
//! the values that it reads, it is aborted and run with exclusive access (`script_host/program.rs` of the server).
//! After an effect, it can no longer be aborted. So programs with effects must also nest few tables: a table that is
//! contained many times in other tables makes the data of a call, or of the reply, arbitrarily large.
//!
//! [`checker`] parses only a subset of Lua's grammar and treats all other constructs as not confined: functions inside
//! the program, other loops, methods, `KEYS` anywhere except in `KEYS[…]`, `#KEYS`, `ipairs(KEYS)` and `unpack(KEYS)`,
//! `redis` anywhere except in a plain call, and command names that are not literals. A parser for all of Lua would have
//! no further benefit here, and would need protection against texts nested deeper than its stack.
//!
//! [`gate`]: emberkv_core::gate

mod calls;
mod checker;
mod functions;
mod lexer;

use checker::{Checker, Class};
pub use functions::confined_functions;

use crate::commands::Commands;

/// The maximum number of steps of a confined run. A step is a word of the text and takes some tens of nanoseconds,
/// unless the word is part of a call; a call consists of at least four words.
const STEPS_MAX: u64 = 20_000;

/// The maximum length of a parsed text in bytes: within the step limit, a longer text would consist mostly of comments.
const TEXT_BYTES_MAX: usize = 256 * 1024;

/// Proof that a program is confined, with the number of its steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Confinement {
    /// The number of steps of each run.
    steps: u64,
    /// The number of additional steps for each argument of the call, because of loops.
    steps_per_argument: u64,
}

impl Confinement {
    /// Whether a run with this many keys and arguments stays within the step limit.
    pub fn holds_for(&self, arguments: usize) -> bool {
        self.steps.saturating_add(self.steps_per_argument.saturating_mul(arguments as u64)) <= STEPS_MAX
    }
}

/// Returns the confinement of the script with this text, if it is confined. Takes O(length of the text) steps.
pub fn confined_script(commands: &dyn Commands, text: &[u8]) -> Option<Confinement> {
    let tokens = tokens(text)?;
    Checker::new(commands, &tokens, vec![(b"KEYS", Class::Keys), (b"ARGV", Class::Arguments)]).body()
}

fn tokens(text: &[u8]) -> Option<Vec<lexer::Token<'_>>> {
    let is_readable = text.len() <= TEXT_BYTES_MAX;
    is_readable.then(|| lexer::tokens(text, STEPS_MAX as usize))?
}
