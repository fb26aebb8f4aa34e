//! SRANDMEMBER.

use super::write_member;
use crate::algorithms::random::Random;
use crate::call::{Attempt, AttemptResult, Call, CommandResult, DataCommand, Run};
use crate::commands::arguments::{integer, is_large_count};
use crate::commands::drawn_reply;
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::Collection;
use crate::types::set::Set;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "srandmember",
        summary: "Returns random members of a set: one, or up to a count, distinct unless the count \
                  is negative.",
        since: "1.0.0",
        group: Group::Set,
        complexity: "O(1) without a count, O(N) for a count of N or -N.",
        arity: -2,
        flags: Flags::READONLY,
        keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
        tips: &["nondeterministic_output"],
        syntax: "key [count]@2.6.0",
        history: &[("2.6.0", "The count.")],
        example: Example { given: &["SADD tags rust"], call: "SRANDMEMBER tags", reply: "\"rust\"" },
        ..Spec::DEFAULT
    },
    Run::KeysOrLong { long_if: |args| is_large_count(args, 2), run: srandmember },
)];

fn srandmember(call: &mut Call<'_, '_>) -> AttemptResult {
    match call.args.len() {
        2 => one(call).map(|()| Attempt::Done),
        3 => several(call),
        _ => Err(CommandError::Syntax),
    }
}

fn one(call: &mut Call<'_, '_>) -> CommandResult {
    let mut random = Random::seeded(call.keys.turn.random.next_u64());
    match call.keys.read_value::<Set>(1)?.and_then(|set| set.random(&mut random)) {
        Some(member) => write_member(call.reply, member),
        None => call.reply.null(),
    }
    Ok(())
}

fn several(call: &mut Call<'_, '_>) -> AttemptResult {
    let steps_max = call.steps_max();
    let count = integer(call.args, 2)?;
    if count == i64::MIN {
        let range = format!("{} and {}", -i64::MAX, i64::MAX);
        return Err(format!("ERR value is out of range, value must between {range}").into());
    }
    let bytes_max = call.keys.turn.settings.string_bytes_max;
    let mut random = Random::seeded(call.keys.turn.random.next_u64());
    let Some(set) = call.keys.read_value::<Set>(1)?.filter(|_| count != 0) else {
        call.reply.array(0);
        return Ok(Attempt::Done);
    };
    let draws = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    if (if count < 0 { draws } else { draws.min(set.len()) }) > steps_max {
        return Ok(Attempt::Offload);
    }
    if count < 0 {
        let count = count.unsigned_abs();
        let drawn = drawn_reply::bounded(call.reply, count, bytes_max, |reply, bound| {
            reply.array(count as usize);
            set.sample_with_repetition(count, &mut random, |member| {
                write_member(reply, member);
                bound.holds(reply)
            });
        });
        return drawn.map(|()| Attempt::Done);
    }
    let count = usize::try_from(count).map_or(set.len(), |count| count.min(set.len()));
    call.reply.array(count);
    set.sample(count, &mut random, |member| write_member(call.reply, member));
    Ok(Attempt::Done)
}
