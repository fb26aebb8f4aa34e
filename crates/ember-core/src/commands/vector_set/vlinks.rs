//! VLINKS.

use super::score;
use crate::call::{Attempt, AttemptResult, Call, DataCommand, Run, Waiting};
use crate::commands::arguments::is_word;
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::vector_set::VectorSet;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "vlinks",
        summary: "Returns the neighbours of an element in the graph of a vector set, level after level from the highest.",
        since: "8.0.0",
        group: Group::VectorSet,
        complexity: "O(log N + L) for N elements and L links.",
        arity: -3,
        flags: Flags::READONLY.union(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
        tips: &["nondeterministic_output"],
        syntax: "key element [WITHSCORES]",
        example: Example { given: &[], call: "VLINKS missing pt:A", reply: "(nil)" },
        ..Spec::DEFAULT
    },
    Run::Long(vlinks),
)];

fn vlinks(call: &mut Call<'_, '_>) -> AttemptResult {
    let args = call.args;
    let with_scores = args.len() == 4 && is_word(args, 3, "WITHSCORES");
    if args.len() > 3 && !with_scores {
        return Err(CommandError::WrongArity("vlinks".into()));
    }
    let set = call.keys.read_value::<VectorSet>(1)?;
    let Some(set) = set.filter(|set| set.find(args.at(2)).is_some()) else {
        call.reply.null();
        return Ok(Attempt::Done);
    };
    // The neighbors of this vector may still change: through vectors that are not linked yet, and through removals
    // after which the graph is not repaired yet.
    if set.left_to_linkers() > 0 && call.waiting == Waiting::Allowed {
        return Ok(Attempt::Offload);
    }
    let linked = set.linked();
    let set = &*linked;
    // The slot is looked up after linking, which may move other elements to the slots of removed ones.
    let slot = set.find(args.at(2)).expect("the linked set has the same elements");
    call.reply.array(set.level(slot) + 1);
    for level in (0..=set.level(slot)).rev() {
        let neighbors = set.neighbors(slot, level);
        if with_scores {
            call.reply.map(neighbors.len());
        } else {
            call.reply.array(neighbors.len());
        }
        for neighbor in neighbors {
            call.reply.bulk(set.element(neighbor).name());
            if with_scores {
                call.reply.double(score(set, set.distance(slot, neighbor)));
            }
        }
    }
    Ok(Attempt::Done)
}
