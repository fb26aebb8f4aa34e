//! Confinement: proves from a program's text, before it runs, that it may run concurrently with others.
//!
//! A program is *confined* if its text proves two things: each of its calls is of a command that accesses only the
//! shards of declared keys, and it is short, because nothing in it repeats except loops over the keys and arguments of
//! the call. A confined program runs with the locks of exactly those shards held; any other closes the gate ([`gate`]).
//!
//! This must be known in advance. A program cannot be run again once it has written, and cannot wait for further locks
//! while others wait for those it holds; nor could it be ended during such a wait, which is why it must be short. A
//! program that takes long because of the values it meets, and has had no effect, is ended and run with exclusive
//! access (`script_host/program.rs` of the server). After an effect that is no longer possible. So programs with
//! effects must also nest few tables: the same table many times in others makes the data of a call, or of the reply,
//! arbitrarily large.
//!
//! [`checker`] parses only a subset of Lua's grammar and treats anything else as not confined: functions inside the
//! program, other loops, methods, `KEYS` anywhere except in `KEYS[…]`, `#KEYS`, `ipairs(KEYS)` and `unpack(KEYS)`,
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
/// unless it is a call; a call has at least four.
const STEPS_MAX: u64 = 20_000;

/// The maximum length of a parsed text in bytes: a longer one would have to consist mostly of comments.
const TEXT_BYTES_MAX: usize = 256 * 1024;

/// Proof that a program is confined, with limits of its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Confinement {
    /// Steps of each run.
    steps: u64,
    /// Steps for each argument of the call, in loops.
    steps_per_argument: u64,
}

impl Confinement {
    /// Whether a run with this many keys and arguments is short.
    pub fn holds_for(&self, arguments: usize) -> bool {
        self.steps.saturating_add(self.steps_per_argument.saturating_mul(arguments as u64)) <= STEPS_MAX
    }
}

/// Checks whether the script of this text is confined. O(its length).
pub fn confined_script(commands: &dyn Commands, text: &[u8]) -> Option<Confinement> {
    let tokens = tokens(text)?;
    Checker::new(commands, &tokens, vec![(b"KEYS", Class::Keys), (b"ARGV", Class::Arguments)]).body()
}

fn tokens(text: &[u8]) -> Option<Vec<lexer::Token<'_>>> {
    let is_readable = text.len() <= TEXT_BYTES_MAX;
    is_readable.then(|| lexer::tokens(text, STEPS_MAX as usize))?
}
