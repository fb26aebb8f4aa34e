//! A condition on the string at a key: `IFEQ`, `IFNE`, `IFDEQ` and `IFDNE` of SET and DELEX.

use ember_protocol::Args;

use super::{digest, value};
use crate::commands::arguments::is_word;
use crate::entries::entry::EntryRef;
use crate::error::CommandError;

/// The operand with which the string is compared.
#[derive(Clone, Copy)]
enum Operand {
    /// The string is compared with the bytes of this argument.
    Value(usize),
    /// The digest of the string is compared with this digest.
    Digest(u64),
}

/// The words of the conditions, each with whether its operand is a digest and whether the condition is negated.
const WORDS: [(&str, bool, bool); 4] =
    [("IFEQ", false, false), ("IFNE", false, true), ("IFDEQ", true, false), ("IFDNE", true, true)];

/// A condition on the string at a key.
#[derive(Clone, Copy)]
pub(super) struct StringCondition {
    operand: Operand,
    is_negated: bool,
}

impl StringCondition {
    /// Returns whether argument `arg` is the word of a condition.
    pub(super) fn is_at(args: Args<'_>, arg: usize) -> bool {
        WORDS.iter().any(|(word, ..)| is_word(args, arg, word))
    }

    /// Parses the condition at argument `arg`; returns `None` if the argument is not the word of a condition or no
    /// operand follows.
    ///
    /// # Errors
    /// Returns an error that describes digests if the operand must be a digest and is not.
    pub(super) fn read(args: Args<'_>, arg: usize) -> Result<Option<StringCondition>, CommandError> {
        let found = WORDS.iter().find(|(word, ..)| is_word(args, arg, word));
        let Some(&(_, takes_digest, is_negated)) = found.filter(|_| arg + 1 < args.len()) else {
            return Ok(None);
        };
        let operand = if takes_digest {
            Operand::Digest(digest::parse(args.at(arg + 1))?)
        } else {
            Operand::Value(arg + 1)
        };
        Ok(Some(StringCondition { operand, is_negated }))
    }

    /// Returns whether the condition holds for an entry; if the key is missing, only negated conditions hold. O(length
    /// of the value).
    ///
    /// # Errors
    /// Returns `WrongType` if the entry holds another type.
    pub(super) fn holds(self, args: Args<'_>, entry: Option<EntryRef<'_>>) -> Result<bool, CommandError> {
        let is_equal = match self.operand {
            Operand::Value(arg) => value::equals(entry, args.at(arg))?,
            Operand::Digest(digest) => value::string(entry)?.is_some_and(|value| digest::of(value) == digest),
        };
        Ok(is_equal != self.is_negated)
    }
}
