//! A condition on the string at a key: `IFEQ`, `IFNE`, `IFDEQ` and `IFDNE` of SET and DELEX.

use ember_protocol::Args;

use super::{digest, value};
use crate::commands::arguments::is_word;
use crate::entries::entry::EntryRef;
use crate::error::CommandError;

/// The operand of the comparison.
#[derive(Clone, Copy)]
enum Operand {
    /// The bytes of this argument.
    Value(usize),
    /// A digest.
    Digest(u64),
}

/// The option words: whether each takes a digest, and whether it is negated.
const WORDS: [(&str, bool, bool); 4] =
    [("IFEQ", false, false), ("IFNE", false, true), ("IFDEQ", true, false), ("IFDNE", true, true)];

/// A condition on the string.
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

    /// Parses the condition whose word is argument `arg`, if it is one and its operand follows.
    ///
    /// # Errors
    /// If the operand should be a digest and is not one; the text describes digests.
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

    /// Returns whether the condition holds: without a key, only negated conditions do. O(length of the value).
    ///
    /// # Errors
    /// `WrongType` if the entry holds another type.
    pub(super) fn holds(self, args: Args<'_>, entry: Option<EntryRef<'_>>) -> Result<bool, CommandError> {
        let is_equal = match self.operand {
            Operand::Value(arg) => value::equals(entry, args.at(arg))?,
            Operand::Digest(digest) => value::string(entry)?.is_some_and(|value| digest::of(value) == digest),
        };
        Ok(is_equal != self.is_negated)
    }
}
