//! VINFO.

use super::scalar;
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::Collection;
use crate::types::vector_set::VectorSet;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "vinfo",
        summary: "Returns the properties of a vector set.",
        since: "8.0.0",
        group: Group::VectorSet,
        arity: 2,
        flags: Flags::READONLY.union(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RO)],
        tips: &["nondeterministic_output"],
        syntax: "key",
        example: Example { given: &[], call: "VINFO missing", reply: "(nil)" },
        ..Spec::DEFAULT
    },
    Run::Keys(vinfo),
)];

fn vinfo(call: &mut Call<'_, '_>) -> CommandResult {
    let Some(set) = call.keys.read_value::<VectorSet>(1)? else {
        call.reply.null_array();
        return Ok(());
    };
    let numbers = [
        ("hnsw-m", set.links() as u64),
        ("vector-dim", set.dim() as u64),
        ("projection-input-dim", set.projection().map_or(0, |projection| projection.input) as u64),
        ("size", set.len() as u64),
        ("max-level", set.top_level() as u64),
        ("attributes-count", set.attributes_count() as u64),
        ("vset-uid", set.number()),
        ("hnsw-max-node-uid", set.inserted()),
    ];
    call.reply.map(1 + numbers.len());
    call.reply.simple("quant-type");
    call.reply.simple(scalar::name(set.scalar()));
    for (name, number) in numbers {
        call.reply.simple(name);
        call.reply.integer(number as i64);
    }
    Ok(())
}
