//! VRANDMEMBER.

use std::collections::HashSet;

use ember_protocol::{Reply, number};

use crate::algorithms::random::Random;
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::commands::drawn_reply;
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::Collection;
use crate::types::vector_set::VectorSet;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "vrandmember",
        summary: "Returns random elements of a vector set: one, or up to a count, distinct unless the count \
                  is negative.",
        since: "8.0.0",
        group: Group::VectorSet,
        complexity: "O(1) without a count, O(N) for a count of N or -N.",
        arity: -2,
        flags: Flags::READONLY,
        keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
        tips: &["nondeterministic_output"],
        syntax: "key [count]",
        example: Example {
            given: &["VADD points VALUES 2 1.0 1.0 pt:A"],
            call: "VRANDMEMBER points",
            reply: "\"pt:A\"",
        },
        ..Spec::DEFAULT
    },
    Run::Keys(vrandmember),
)];

fn vrandmember(call: &mut Call<'_, '_>) -> CommandResult {
    let count = match call.args.len() {
        2 => None,
        3 => Some(number::parse_i64(call.args.at(2)).ok_or("ERR COUNT value is not an integer")?),
        _ => return Err(CommandError::WrongArity("vrandmember".into())),
    };
    // A count of 0 has an empty reply for a key of any type, as in Redis.
    if count == Some(0) {
        call.reply.array(0);
        return Ok(());
    }
    let bytes_max = call.keys.turn.settings.string_bytes_max;
    let mut random = Random::seeded(call.keys.turn.random.next_u64());
    let set = call.keys.read_value::<VectorSet>(1)?;
    match (set, count) {
        (Some(set), Some(count @ ..0)) => {
            let count = count.unsigned_abs();
            return drawn_reply::bounded(call.reply, count, bytes_max, |reply, bound| {
                reply.array(count as usize);
                for element in (0..count).map_while(|_| set.random(&mut random)) {
                    reply.bulk(element.name());
                    if !bound.holds(reply) {
                        break;
                    }
                }
            });
        }
        (Some(set), Some(count)) => distinct(set, count as u64, &mut random, call.reply),
        (None, Some(_)) => call.reply.array(0),
        (set, None) => match set.and_then(|set| set.random(&mut random)) {
            Some(element) => call.reply.bulk(element.name()),
            None => call.reply.null(),
        },
    }
    Ok(())
}

/// Replies with distinct random elements; every selection of `count` elements has the same probability (Floyd's
/// algorithm).
fn distinct(set: &VectorSet, count: u64, random: &mut Random, reply: &mut Reply) {
    let count = usize::try_from(count).map_or(set.len(), |count| count.min(set.len()));
    reply.array(count);
    let mut chosen = HashSet::new();
    for last in set.len() - count..set.len() {
        let drawn = random.below(last + 1);
        let nth = if chosen.insert(drawn) { drawn } else { last };
        chosen.insert(nth);
        reply.bulk(set.nth(nth).name());
    }
}
