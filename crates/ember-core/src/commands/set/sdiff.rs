//! SDIFF and SDIFFSTORE.

use super::{sources, write_member};
use crate::call::{Attempt, AttemptResult, Call, DataCommand, Run};
use crate::effects::events::Event;
use crate::keys::Keys;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::Collection;
use crate::types::set::{Set, algebra};

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(
        Spec {
            name: "sdiff",
            summary: "Returns the difference of the first set and the others.",
            since: "1.0.0",
            group: Group::Set,
            complexity: "O(N) for N members in all sets.",
            arity: -2,
            flags: Flags::READONLY,
            keys: &[KeySpec::from(1, 1, KeyFlags::RO.union(KeyFlags::ACCESS))],
            tips: &["nondeterministic_output_order"],
            syntax: "key [key ...]",
            example: Example {
                given: &["SADD even 2 4 6", "SADD prime 2 3 5"],
                call: "SDIFF even prime",
                reply: "1) \"4\"\n2) \"6\"",
            },
            ..Spec::DEFAULT
        },
        Run::Long(sdiff),
    ),
    Command::new(
        Spec {
            name: "sdiffstore",
            summary: "Stores the difference of the first set and the others; returns its size.",
            since: "1.0.0",
            group: Group::Set,
            complexity: "O(N) for N members in all sets.",
            arity: -3,
            flags: Flags::WRITE.union(Flags::DENYOOM),
            keys: &[
                KeySpec::one(1, KeyFlags::OW.union(KeyFlags::UPDATE)),
                KeySpec::from(2, 1, KeyFlags::RO.union(KeyFlags::ACCESS)),
            ],
            syntax: "destination key [key ...]",
            example: Example {
                given: &["SADD even 2 4 6", "SADD prime 2 3 5"],
                call: "SDIFFSTORE rest even prime",
                reply: "(integer) 2",
            },
            ..Spec::DEFAULT
        },
        Run::Long(sdiffstore),
    ),
];

/// Returns the set of the key in argument `first`, and the sets of the existing keys after it; `None` if the first set
/// is missing.
fn operands<'a>(keys: &'a Keys<'_, '_>, first: usize, end: usize) -> Option<(&'a Set, Vec<&'a Set>)> {
    let minuend = keys.value::<Set>(first).ok().flatten()?;
    Some((minuend, sources::sets(keys, first + 1..end)))
}

fn sdiff(call: &mut Call<'_, '_>) -> AttemptResult {
    let end = call.args.len();
    sources::look_up(&mut call.keys, 1..end)?;
    if sources::all_steps(&call.keys, 1..end) > call.steps_max() {
        return Ok(Attempt::Offload);
    }
    let mark = call.reply.mark();
    let mut count = 0;
    if let Some((first, mut others)) = operands(&call.keys, 1, end) {
        algebra::for_each_difference(first, &mut others, |member| {
            write_member(call.reply, member);
            count += 1;
        });
    }
    call.reply.insert_set(mark, count);
    Ok(Attempt::Done)
}

fn sdiffstore(call: &mut Call<'_, '_>) -> AttemptResult {
    let end = call.args.len();
    sources::look_up(&mut call.keys, 2..end)?;
    if sources::all_steps(&call.keys, 2..end) > call.steps_max() {
        return Ok(Attempt::Offload);
    }
    let difference = operands(&call.keys, 2, end).map(|(first, mut others)| {
        algebra::difference(first, &mut others, &call.keys.turn.settings.encoding)
    });
    let difference = difference.unwrap_or_default();
    call.reply.integer(difference.len() as i64);
    call.keys.key(1).store_value(Event::set("sdiffstore"), difference);
    Ok(Attempt::Done)
}
