//! VRANGE.

use std::ops::Bound;

use ember_protocol::number;

use crate::call::{Attempt, AttemptResult, Call, DataCommand, Run};
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::vector_set::VectorSet;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "vrange",
        summary: "Returns a lexicographic range of the elements of a vector set.",
        since: "8.4.0",
        group: Group::VectorSet,
        complexity: "O(log N + M) for N elements and M names returned.",
        arity: -4,
        flags: Flags::READONLY,
        keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
        syntax: "key start end [count]",
        example: Example {
            given: &["VADD words VALUES 2 1 0 apple", "VADD words VALUES 2 0 1 banana"],
            call: "VRANGE words [b + 10",
            reply: "1) \"banana\"",
        },
        ..Spec::DEFAULT
    },
    Run::Long(vrange),
)];

/// Parses a bound of a range: `[name`, `(name`, or the word `open` (`-` or `+`) for no bound.
fn bound<'a>(word: &'a [u8], open: u8, invalid: &'static str) -> Result<Bound<&'a [u8]>, CommandError> {
    match word {
        [b'[', name @ ..] => Ok(Bound::Included(name)),
        [b'(', name @ ..] => Ok(Bound::Excluded(name)),
        [sign] if *sign == open => Ok(Bound::Unbounded),
        [b'-' | b'+'] => Err("ERR '-' can only be used as first argument, '+' only as second".into()),
        _ => Err(invalid.into()),
    }
}

fn vrange(call: &mut Call<'_, '_>) -> AttemptResult {
    let args = call.args;
    if args.len() > 5 {
        return Err(CommandError::WrongArity("vrange".into()));
    }
    let start = bound(args.at(2), b'-', "ERR invalid start range format")?;
    let end = bound(args.at(3), b'+', "ERR invalid end range format")?;
    let count = match args.get(4).map(number::parse_i64) {
        None => None,
        Some(count) => usize::try_from(count.ok_or("ERR invalid COUNT value")?).ok(),
    };
    let steps_max = call.steps_max();
    let Some(set) = call.keys.read_value::<VectorSet>(1)? else {
        call.reply.array(0);
        return Ok(Attempt::Done);
    };
    let (first, is_included) = match start {
        Bound::Included(name) => (name, true),
        Bound::Excluded(name) => (name, false),
        Bound::Unbounded => (&b""[..], true),
    };
    let is_within = |slot: &u32| match end {
        Bound::Included(name) => set.element(*slot).name() <= name,
        Bound::Excluded(name) => set.element(*slot).name() < name,
        Bound::Unbounded => true,
    };
    let slots = set.names_from(first, is_included).take_while(is_within).take(count.unwrap_or(usize::MAX));
    let slots: Vec<u32> = slots.take(steps_max.saturating_add(1)).collect();
    if slots.len() > steps_max {
        return Ok(Attempt::Offload);
    }
    call.reply.array(slots.len());
    slots.into_iter().for_each(|slot| call.reply.bulk(set.element(slot).name()));
    Ok(Attempt::Done)
}
