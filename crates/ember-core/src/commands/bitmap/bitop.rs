//! BITOP.

use super::{BYTES_PER_STEP, value};
use crate::algorithms::bits::{self, Operation};
use crate::call::{Attempt, AttemptResult, Call, DataCommand, Run};
use crate::commands::arguments::is_word;
use crate::effects::events::Event;
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "bitop",
        summary: "Stores the result of a bitwise operation on string values and returns its length.",
        since: "2.6.0",
        group: Group::Bitmap,
        complexity: "O(N), N being the length of all strings together",
        arity: -4,
        flags: Flags::WRITE.union(Flags::DENYOOM),
        keys: &[
            KeySpec::one(2, KeyFlags::OW.union(KeyFlags::UPDATE)),
            KeySpec::from(3, 1, KeyFlags::RO.union(KeyFlags::ACCESS)),
        ],
        syntax: "operation:<AND | OR | XOR | NOT | DIFF @8.2.0 | DIFF1 @8.2.0 | ANDOR @8.2.0 | ONE @8.2.0> destkey key [key ...]",
        history: &[("8.2.0", "`DIFF`, `DIFF1`, `ANDOR` and `ONE` came.")],
        example: Example {
            given: &["MSET key1 foobar key2 abcdef"],
            call: "BITOP AND dest key1 key2",
            reply: "(integer) 6",
        },
        ..Spec::DEFAULT
    },
    Run::Long(bitop),
)];

/// The index of the argument with the first source key.
const FIRST_SOURCE: usize = 3;

/// The rule by which the result is computed from the sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// Combines all sources one after the other with this operation.
    Fold(Operation),
    /// Inverts the only source.
    Not,
    /// Sets the bits that are set in the first source and in no other source.
    Difference,
    /// Sets the bits that are set in any other source and not in the first source.
    OppositeDifference,
    /// Sets the bits that are set in the first source and in any other source.
    SharedWithAny,
    /// Sets the bits that are set in exactly one source.
    One,
}

impl Rule {
    /// Returns whether all versions of Redis support the operation; Redis has added the other operations in 8.2.
    fn is_known_to_all(self) -> bool {
        matches!(self, Rule::Fold(_) | Rule::Not)
    }
}

const RULES: [(&str, Rule); 8] = [
    ("AND", Rule::Fold(Operation::And)),
    ("OR", Rule::Fold(Operation::Or)),
    ("XOR", Rule::Fold(Operation::Xor)),
    ("NOT", Rule::Not),
    ("DIFF", Rule::Difference),
    ("DIFF1", Rule::OppositeDifference),
    ("ANDOR", Rule::SharedWithAny),
    ("ONE", Rule::One),
];

fn bitop(call: &mut Call<'_, '_>) -> AttemptResult {
    let args = call.args;
    let (name, rule) =
        RULES.into_iter().find(|(name, _)| is_word(args, 1, name)).ok_or(CommandError::Syntax)?;
    let sources = args.len() - FIRST_SOURCE;
    match rule {
        Rule::Not if sources != 1 => {
            return Err("ERR BITOP NOT must be called with a single source key.".into());
        }
        Rule::Difference | Rule::OppositeDifference | Rule::SharedWithAny if sources < 2 => {
            let text = format!("ERR BITOP {name} must be called with at least two source keys.");
            return Err(text.into());
        }
        _ => {}
    }
    let mut bytes = 0;
    for source in FIRST_SOURCE..args.len() {
        let mut digits = itoa::Buffer::new();
        bytes += value::bytes_or_empty(value::string(call.keys.entry(source))?, &mut digits).len();
    }
    if bytes / BYTES_PER_STEP > call.steps_max() {
        return Ok(Attempt::Offload);
    }
    // With `One`, `others` contains the bits that are set in more than one source.
    let (mut result, mut others) = (Vec::new(), Vec::new());
    for source in FIRST_SOURCE..args.len() {
        let mut digits = itoa::Buffer::new();
        let bytes = value::bytes_or_empty(value::string(call.keys.read(source))?, &mut digits);
        match rule {
            _ if source == FIRST_SOURCE => result.extend_from_slice(bytes),
            Rule::Fold(operation) => bits::combine(operation, &mut result, bytes),
            Rule::One => {
                let common = result.len().min(bytes.len());
                let mut repeated = result[..common].to_vec();
                bits::combine(Operation::And, &mut repeated, &bytes[..common]);
                bits::combine(Operation::Or, &mut others, &repeated);
                bits::combine(Operation::Or, &mut result, bytes);
            }
            _ => bits::combine(Operation::Or, &mut others, bytes),
        }
    }
    let len = result.len().max(others.len());
    if !rule.is_known_to_all() {
        result.resize(len, 0);
        others.resize(len, 0);
    }
    match rule {
        Rule::Fold(_) => {}
        Rule::Not => bits::invert(&mut result),
        Rule::SharedWithAny => bits::combine(Operation::And, &mut result, &others),
        Rule::OppositeDifference => {
            bits::invert(&mut result);
            bits::combine(Operation::And, &mut result, &others);
        }
        Rule::Difference | Rule::One => {
            bits::invert(&mut others);
            bits::combine(Operation::And, &mut result, &others);
        }
    }
    call.reply.integer(result.len() as i64);
    let mut target = call.keys.key(2);
    // Replicas that do not support the operation receive its result instead. The result is recorded after the removals
    // of expired keys, which are recorded when the keys are looked up.
    let journaled = (!rule.is_known_to_all() && target.is_journaled()).then(|| result.clone());
    if result.is_empty() {
        if target.remove().is_some() {
            target.notify(Event::DEL);
            if journaled.is_some() {
                target.journal_removal();
            }
        }
    } else {
        value::set_raw(&mut target, result, None);
        target.notify(value::SET);
        if let Some(bytes) = journaled {
            target.journal("SET", |words| _ = words.word(&bytes));
        }
    }
    Ok(Attempt::Done)
}
