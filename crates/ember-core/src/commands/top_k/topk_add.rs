//! TOPK.ADD and TOPK.INCRBY.

use ember_protocol::number;

use super::NO_KEY;
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::effects::events::Event;
use crate::error::CommandError;
use crate::keys::Edited;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::sketches::TopK;
use crate::types::sketches::top_k::INCREMENT_MAX;

const TOPK_ADD: Spec = Spec {
    name: "topk.add",
    summary: "Counts items in a top-k sketch; returns for each item the one that it displaced from the list.",
    since: "8.0.0",
    group: Group::TopK,
    complexity: "O(N · (D + K)) for N items, D rows and a list of K items.",
    arity: -3,
    flags: Flags::WRITE.union(Flags::DENYOOM),
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))],
    syntax: "key item [item ...]",
    example: Example {
        given: &["TOPK.RESERVE words 1"],
        call: "TOPK.ADD words the the",
        reply: "1) (nil)\n2) (nil)",
    },
    ..Spec::DEFAULT
};

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(TOPK_ADD, Run::Keys(topk_add)),
    Command::new(
        Spec {
            name: "topk.incrby",
            summary: "Increases the counts of items in a top-k sketch; returns for each item the one that it displaced \
                      from the list.",
            complexity: "O(N · (D · I + K)) for N items, D rows, increments of I and a list of K items.",
            arity: -4,
            syntax: "key <item increment> [item increment ...]",
            example: Example {
                given: &["TOPK.RESERVE words 1", "TOPK.ADD words the"],
                call: "TOPK.INCRBY words and 5",
                reply: "1) \"the\"",
            },
            ..TOPK_ADD
        },
        Run::Keys(topk_incrby),
    ),
];

const NOT_AN_INCREMENT: &str = "TopK: increment must be an integer greater or equal to 0                            and \
                                smaller or equal to 100,000";

fn topk_add(call: &mut Call<'_, '_>) -> CommandResult {
    let args = call.args;
    add(call, (2..args.len()).map(|arg| (args.at(arg), Some(1))), "topk.add")
}

fn topk_incrby(call: &mut Call<'_, '_>) -> CommandResult {
    let args = call.args;
    if args.len() % 2 == 1 {
        return Err(CommandError::WrongArity("topk.incrby".into()));
    }
    let increment = |arg: usize| {
        let number = number::parse_i64(args.at(arg)).and_then(|number| u32::try_from(number).ok());
        number.filter(|&number| number <= INCREMENT_MAX)
    };
    let counts = (2..args.len()).step_by(2).map(|arg| (args.at(arg), increment(arg + 1)));
    add(call, counts, "topk.incrby")
}

/// Adds the counts up to the first that is wrong (`None`), which ends the reply with an error. RedisBloom states the full
/// length of the reply then, although no further elements follow.
fn add<'a>(
    call: &mut Call<'_, '_>,
    counts: impl Iterator<Item = (&'a [u8], Option<u32>)>,
    event: &'static str,
) -> CommandResult {
    let results = call.keys.key(1).edit_value(Event::module(event), |sketch: &mut TopK| {
        let mut results = Vec::new();
        for (item, increment) in counts {
            let Some(increment) = increment else {
                results.push(Err(()));
                break;
            };
            results.push(Ok(sketch.add(item, increment)));
        }
        Edited { is_change: results.first().is_some_and(Result::is_ok), result: results }
    })?;
    let results = results.ok_or(NO_KEY)?.result;
    call.reply.array(results.len());
    for result in results {
        match result {
            Ok(Some(item)) => call.reply.bulk(&item),
            Ok(None) => call.reply.null(),
            Err(()) => call.reply.error(NOT_AN_INCREMENT),
        }
    }
    Ok(())
}
