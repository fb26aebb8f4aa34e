//! The options that SET and MSETEX have in common: when a value is stored, and what becomes of the expiry.

use ember_protocol::Args;

use crate::commands::arguments::{ExpiryUnit, expiry_unit, is_word, positive_expiry};
use crate::error::CommandError;

/// When something is stored.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Condition {
    /// In any case.
    Always,
    /// Only if the key is not there.
    IfAbsent,
    /// Only if the key is there.
    IfPresent,
}

/// What becomes of the expiry.
#[derive(Clone, Copy)]
pub(super) enum Expiry {
    /// The key has none afterwards.
    None,
    /// It stays.
    Keep,
    /// The amount stands in this argument.
    Argument(usize, ExpiryUnit),
}

impl Expiry {
    /// The Unix time in ms at which the key expires, if that is new. `command` is named in an error.
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

/// The options read so far.
pub(super) struct Options {
    pub(super) condition: Condition,
    pub(super) expiry: Expiry,
}

impl Options {
    /// Those of a call without any.
    pub(super) const NONE: Options = Options { condition: Condition::Always, expiry: Expiry::None };

    /// Reads the option in argument `arg` and returns the argument behind it. One may be repeated, of the expiries the last
    /// counts.
    ///
    /// # Errors
    /// `Syntax` for what is no such option, and for one that excludes an earlier one.
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
