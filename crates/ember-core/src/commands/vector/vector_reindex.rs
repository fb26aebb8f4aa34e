//! VECTOR.REINDEX.

use super::{NO_INDEX, tuning};
use crate::call::{Attempt, AttemptResult, Call, DataCommand, Run};
use crate::commands::arguments::is_word;
use crate::effects::events::Event;
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::Collection;
use crate::types::vector_set::{Kind, VectorSet};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "vector.reindex",
        summary: "Rebuilds the graph or the lists of an index and replaces the old ones. Long work runs on \
                  another thread; with BACKGROUND the command replies before that ends.",
        since: "0.1.0",
        group: Group::VectorSet,
        complexity: "O(N · EF · log N) distances for N elements; O(N · NLIST) with lists.",
        arity: -2,
        flags: Flags::WRITE.union(Flags::DENYOOM),
        keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))],
        syntax: "index [BACKGROUND]",
        example: Example { given: &["VECTOR.CREATE films DIM 2"], call: "VECTOR.REINDEX films", reply: "OK" },
        ..Spec::DEFAULT
    },
    Run::Long(reindex),
)];

fn reindex(call: &mut Call<'_, '_>) -> AttemptResult {
    let args = call.args;
    if args.len() > 3 || args.len() == 3 && !is_word(args, 2, "BACKGROUND") {
        return Err(CommandError::Syntax);
    }
    let steps_max = call.steps_max();
    let mut key = call.keys.key(1);
    let set = key.value::<VectorSet>()?.ok_or(NO_INDEX)?;
    let is_later = args.len() == 3;
    let width = tuning(set).build_width;
    let steps = match set.kind() {
        // While a graph is built in the background, all changes would have to be applied to the old and the new graph.
        Kind::Hnsw { .. } if is_later => return Err("ERR BACKGROUND is for indexes of type IVF".into()),
        Kind::Hnsw { links } => set.len().saturating_mul(width.saturating_mul(links)),
        Kind::Ivf { .. } if is_later && key.links_later() => {
            key.edit_value(Event::module("vector.reindex"), VectorSet::request_training)?;
            key.request_linking();
            call.reply.ok();
            return Ok(Attempt::Done);
        }
        Kind::Ivf { .. } => set.training_steps(),
        // A flat index has no structure to rebuild.
        Kind::Flat => 0,
    };
    if steps > steps_max {
        return Ok(Attempt::Offload);
    }
    key.edit_value(Event::module("vector.reindex"), |set: &mut VectorSet| set.rebuild(width))?;
    call.reply.ok();
    Ok(Attempt::Done)
}
