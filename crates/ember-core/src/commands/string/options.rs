//! The common options of SET and MSETEX: the condition for storing a value, and the change of the expiry.

use ember_protocol::Args;

use crate::commands::arguments::{ExpiryUnit, expiry_unit, is_word, positive_expiry};
use crate::error::CommandError;

/// The condition on the key for storing a value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Condition {
    /// The value is always stored.
    Always,
    /// The value is stored only if the key does not exist.
    IfAbsent,
    /// The value is stored only if the key exists.
    IfPresent,
}

/// The change that a call makes to the expiry of the key.
#[derive(Clone, Copy)]
pub(super) enum Expiry {
    /// The expiry is removed.
    None,
    /// The expiry is kept.
    Keep,
    /// The expiry is set to the amount in this argument, in this unit.
    Argument(usize, ExpiryUnit),
}

impl Expiry {
    /// Returns the Unix time in ms at which the key expires, if the call sets an expiry. An error contains the name
    /// `command`.
    pub(super) fn resolve(
        self,
        args: Args<'_>,
        now_ms: i64,
        command: &'static str,
    ) -> Result<Option<i64>, CommandError> {
        match self {
            Expiry::None | Expiry::Keep => Ok(None),
            Expiry::Argument(arg, unit) => positive_expiry(args, arg, unit, now_ms, command).map(Some),
        }
    }
}

/// The options of a call, as parsed so far.
pub(super) struct Options {
    pub(super) condition: Condition,
    pub(super) expiry: Expiry,
}

impl Options {
    /// The options of a call without options.
    pub(super) const NONE: Options = Options { condition: Condition::Always, expiry: Expiry::None };

    /// Parses the option in argument `arg` and returns the index of the argument after it. Options may be repeated; the
    /// last expiry counts.
    ///
    /// # Errors
    /// Returns Returns `Syntax` for an unknown option, and for an option that excludes an earlier one.
    pub(super) fn read(&mut self, args: Args<'_>, arg: usize) -> Result<usize, CommandError> {
        if is_word(args, arg, "NX") && self.condition != Condition::IfPresent {
            self.condition = Condition::IfAbsent;
        } else if is_word(args, arg, "XX") && self.condition != Condition::IfAbsent {
            self.condition = Condition::IfPresent;
        } else if is_word(args, arg, "KEEPTTL") && !matches!(self.expiry, Expiry::Argument(..)) {
            self.expiry = Expiry::Keep;
        } else if let Some(unit) = expiry_unit(args, arg)
            && arg + 1 < args.len()
        {
            match self.expiry {
                Expiry::Argument(_, other) if other != unit => return Err(CommandError::Syntax),
                Expiry::Keep => return Err(CommandError::Syntax),
                Expiry::Argument(..) | Expiry::None => {}
            }
            self.expiry = Expiry::Argument(arg + 1, unit);
            return Ok(arg + 2);
        } else {
            return Err(CommandError::Syntax);
        }
        Ok(arg + 1)
    }
}
