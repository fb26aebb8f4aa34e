//! Confinement: what is known of a program before it runs, so that it may run beside others.
//!
//! A program is *confined* if its text proves two things: each of its calls is of a command that touches nothing but the
//! shards of declared keys, and it is short, because nothing in it repeats but loops over the keys and arguments of the
//! call. A confined program runs with the locks of just those shards held; any other closes the gate ([`gate`]).
//!
//! It must be known beforehand. A program cannot be run again once it has written, and cannot wait for further locks while
//! others wait for those it holds; nor could it be ended while they do, which is why it must be short. What is not short
//! because of the values it meets, and has had no effect, is ended and run with exclusive access (`script_host/program.rs`
//! of the server). After an effect it is too late for that. So of programs with effects the checker also wants that they
//! nest few tables: the same table in others many times makes one call, or the reply, as long as one likes.
//!
//! [`checker`] reads a part of Lua's grammar only, and takes what is not in it for not confined: functions inside the
//! program, other loops, methods, `KEYS` anywhere but in `KEYS[…]`, `#KEYS`, `ipairs(KEYS)` and `unpack(KEYS)`, `redis`
//! anywhere but in a plain call, and names of commands that are not written out. A parser of all of Lua would give nothing
//! that is needed here, and would have to be guarded against texts nested deeper than its stack.
//!
//! [`gate`]: emberkv_core::gate

mod calls;
mod checker;
mod functions;
mod lexer;

use checker::{Checker, Class};
pub use functions::confined_functions;

use crate::commands::Commands;

/// The most steps of a confined run. A step is a word of the text, and takes some tens of nanoseconds if it is no call; a
/// call has at least four.
const STEPS_MAX: u64 = 20_000;

/// The longest text that is read, in bytes: most of a longer one would have to be comments.
const TEXT_BYTES_MAX: usize = 256 * 1024;

/// That a program is confined, and how short it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Confinement {
    /// Steps of each run.
    steps: u64,
    /// Steps for each argument of the call, in loops.
    steps_per_argument: u64,
}

impl Confinement {
    /// Whether a run is short that was called with this many keys and arguments.
    pub fn holds_for(&self, arguments: usize) -> bool {
        self.steps.saturating_add(self.steps_per_argument.saturating_mul(arguments as u64)) <= STEPS_MAX
    }
}

/// Looks whether the script of this text is confined. O(its length).
pub fn confined_script(commands: &dyn Commands, text: &[u8]) -> Option<Confinement> {
    let tokens = tokens(text)?;
    Checker::new(commands, &tokens, vec![(b"KEYS", Class::Keys), (b"ARGV", Class::Arguments)]).body()
}

fn tokens(text: &[u8]) -> Option<Vec<lexer::Token<'_>>> {
    let is_readable = text.len() <= TEXT_BYTES_MAX;
    is_readable.then(|| lexer::tokens(text, STEPS_MAX as usize))?
}
