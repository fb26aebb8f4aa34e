//! VCARD and VDIM.

use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::Collection;
use crate::types::vector_set::VectorSet;

const GIVEN: &[&str] = &["VADD points VALUES 2 1.0 1.0 pt:A"];

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(
        Spec {
            name: "vcard",
            summary: "Returns the number of elements of a vector set.",
            since: "8.0.0",
            group: Group::VectorSet,
            arity: 2,
            flags: Flags::READONLY.union(Flags::FAST),
            keys: &[KeySpec::one(1, KeyFlags::RO)],
            syntax: "key",
            example: Example { given: GIVEN, call: "VCARD points", reply: "(integer) 1" },
            ..Spec::DEFAULT
        },
        Run::Keys(vcard),
    ),
    Command::new(
        Spec {
            name: "vdim",
            summary: "Returns the dimensions of the vectors in a vector set.",
            since: "8.0.0",
            group: Group::VectorSet,
            arity: 2,
            flags: Flags::READONLY.union(Flags::FAST),
            keys: &[KeySpec::one(1, KeyFlags::RO)],
            syntax: "key",
            example: Example { given: GIVEN, call: "VDIM points", reply: "(integer) 2" },
            ..Spec::DEFAULT
        },
        Run::Keys(vdim),
    ),
];

fn vcard(call: &mut Call<'_, '_>) -> CommandResult {
    let count = call.keys.read_value::<VectorSet>(1)?.map_or(0, Collection::len);
    call.reply.integer(count as i64);
    Ok(())
}

fn vdim(call: &mut Call<'_, '_>) -> CommandResult {
    let set = call.keys.read_value::<VectorSet>(1)?.ok_or("ERR key does not exist")?;
    call.reply.integer(set.dim() as i64);
    Ok(())
}
