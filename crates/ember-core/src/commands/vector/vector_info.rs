//! VECTOR.INFO.

use super::{NO_INDEX, tuning};
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::commands::vector_set::scalar;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::Collection;
use crate::types::vector_set::{Kind, VectorSet};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "vector.info",
        summary: "Returns the properties and the memory of an index.",
        since: "0.1.0",
        group: Group::VectorSet,
        arity: 2,
        flags: Flags::READONLY.union(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RO)],
        tips: &["nondeterministic_output"],
        syntax: "index",
        example: Example { given: &[], call: "VECTOR.INFO missing", reply: "(error) ERR no such index" },
        ..Spec::DEFAULT
    },
    Run::Keys(info),
)];

fn info(call: &mut Call<'_, '_>) -> CommandResult {
    let set = call.keys.read_value::<VectorSet>(1)?.ok_or(NO_INDEX)?;
    let kind = match set.kind() {
        Kind::Hnsw { .. } => "HNSW",
        Kind::Ivf { .. } => "IVF",
        Kind::Flat => "FLAT",
    };
    // Only IVF indexes have lists, which need training.
    let (lists, list_count) = set.lists().unwrap_or((1, 0));
    let probes = if list_count > 0 { tuning(set).probes } else { 0 };
    let texts = [
        ("distance", scalar::metric_name(set.metric())),
        ("type", kind),
        ("quantization", scalar::quant_name(set.scalar())),
    ];
    let numbers = [
        ("dimensions", set.dim()),
        ("vectors", set.len()),
        ("memory", set.memory_bytes()),
        ("m", set.links()),
        ("ef_construction", tuning(set).build_width),
        ("ef_search", tuning(set).search_width),
        ("nlist", list_count),
        ("nprobe", probes),
        ("is_trained", usize::from(lists > 0)),
        ("pending", set.pending()),
    ];
    call.reply.map(1 + texts.len() + numbers.len());
    call.reply.bulk(b"name");
    call.reply.bulk(call.args.at(1));
    for (name, text) in texts {
        call.reply.bulk(name.as_bytes());
        call.reply.bulk(text.as_bytes());
    }
    for (name, number) in numbers {
        call.reply.bulk(name.as_bytes());
        call.reply.integer(number as i64);
    }
    Ok(())
}
