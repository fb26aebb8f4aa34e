//! Checks whether a call in a program's text is confined to the declared keys.

use ember_protocol::OwnedBatch;
use emberkv_core::spec::{Begin, Find, Flags, Spec};

use crate::commands::Commands;

/// An argument of a call, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word<'t> {
    /// A literal, whose value is known.
    Literal(&'t [u8]),
    /// A declared key or nil; a call with nil fails before it is executed.
    Key,
    /// Any other value.
    Any,
}

/// Whether a call with these words, followed by any number of words like `rest`, accesses only shards of declared keys.
pub(super) fn is_confined(commands: &dyn Commands, words: &[Word<'_>], rest: Option<Word<'_>>) -> bool {
    let Some(Word::Literal(name)) = words.first() else { return false };
    let command = if commands.is_container(name) {
        let Some(Word::Literal(subcommand)) = words.get(1) else { return false };
        commands.find_in(name, subcommand)
    } else {
        commands.find(name)
    };
    let Some(command) = command else { return false };
    let spec = command.spec;
    command.is_contained
        && !spec.flags.contains(Flags::NOSCRIPT)
        && (rest.is_some() || spec.accepts(words.len()))
        && if has_fixed_places(spec) {
            spec.keys.iter().all(|keys| {
                let (Begin::Index(first), Find::Range { last, step, .. }) = (keys.begin, keys.find) else {
                    return false;
                };
                are_keys(words, rest, first, last, step)
            })
        } else {
            rest.is_none() && are_keys_as_written(spec, words)
        }
}

/// Whether the positions of a command's keys depend only on the number of words.
fn has_fixed_places(spec: &Spec) -> bool {
    let is_fixed = |begin, find| matches!((begin, find), (Begin::Index(_), Find::Range { limit: 0, .. }));
    spec.keys_of.is_none() && spec.keys.iter().all(|keys| is_fixed(keys.begin, keys.find))
}

/// Whether the words at `first`, `first + step` and so on are declared keys. `last` is the distance of the last key
/// from `first`, or, if negative, its position counted from the end.
fn are_keys(words: &[Word<'_>], rest: Option<Word<'_>>, first: usize, last: isize, step: usize) -> bool {
    let is_key = |at: usize| words.get(at).copied().or(rest).is_none_or(|word| word == Word::Key);
    match usize::try_from(last) {
        Ok(last) => (first..=first + last).step_by(step).all(is_key),
        // If the number of words is unknown, all words must be keys, because it is unknown which of them the command
        // uses as keys.
        Err(_) if rest.is_some() => words.iter().skip(first).chain(&rest).all(|word| *word == Word::Key),
        Err(_) => {
            let end = usize::try_from(words.len() as isize + last + 1).unwrap_or(0);
            (first..end.max(first)).step_by(step).all(is_key)
        }
    }
}

/// Checks a call whose key positions depend on its words: whether those positions contain declared keys, and all other
/// words are literals. A key elsewhere could have the name of an option.
fn are_keys_as_written(spec: &Spec, words: &[Word<'_>]) -> bool {
    if words.contains(&Word::Any) {
        return false;
    }
    // The placeholder for the keys is not a word of any command.
    let written: Vec<&[u8]> = words
        .iter()
        .map(|word| match word {
            Word::Literal(text) => text,
            Word::Key | Word::Any => &b"\0"[..],
        })
        .collect();
    let mut call = OwnedBatch::new();
    call.push(&written);
    let places: Vec<usize> = spec.key_positions(call.command(0)).collect();
    words.iter().enumerate().all(|(at, word)| (*word == Word::Key) == places.contains(&at))
}
