//! VEMB, and VGET, which is VEMB without RAW.

use super::scalar;
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::commands::arguments::is_word;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::vector_set::{Scalar, VectorSet};

pub(crate) const COMMANDS: &[DataCommand] = &[VEMB, VGET];

const VEMB: DataCommand = Command::new(
    Spec {
        name: "vemb",
        summary: "Returns the approximate vector of an element of a vector set, or its stored form.",
        since: "8.0.0",
        group: Group::VectorSet,
        complexity: "O(log N + D) for N elements and D dimensions.",
        arity: -3,
        flags: Flags::READONLY.union(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
        syntax: "key element [RAW]",
        example: Example {
            given: &["VADD points VALUES 2 1 -1 pt:A BIN"],
            call: "VEMB points pt:A",
            reply: "1) \"1\"\n2) \"-1\"",
        },
        ..Spec::DEFAULT
    },
    Run::Keys(vemb),
);

const VGET: DataCommand = Command::new(
    Spec {
        name: "vget",
        summary: "Returns the approximate vector of an element of a vector set.",
        since: "0.1.0",
        group: Group::VectorSet,
        complexity: "O(log N + D) for N elements and D dimensions.",
        arity: 3,
        flags: Flags::READONLY.union(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
        syntax: "key element",
        example: Example {
            given: &["VADD points VALUES 2 1 -1 pt:A BIN"],
            call: "VGET points pt:A",
            reply: "1) \"1\"\n2) \"-1\"",
        },
        ..Spec::DEFAULT
    },
    Run::Keys(vemb),
);

fn vemb(call: &mut Call<'_, '_>) -> CommandResult {
    let args = call.args;
    let is_raw = args.len() > 3;
    if !(3..args.len()).all(|arg| is_word(args, arg, "RAW")) {
        return Err("ERR invalid option".into());
    }
    let set = call.keys.read_value::<VectorSet>(1)?;
    let Some((set, slot)) = set.and_then(|set| Some((set, set.find(args.at(2))?))) else {
        call.reply.null();
        return Ok(());
    };
    if is_raw {
        let (numbers, norm, range) = set.stored(slot);
        let has_range = set.scalar() == Scalar::Int8;
        call.reply.array(if has_range { 4 } else { 3 });
        call.reply.simple(scalar::name(set.scalar()));
        call.reply.bulk(&numbers);
        call.reply.double(norm.into());
        if has_range {
            call.reply.double(range.into());
        }
    } else {
        let vector = set.vector(slot);
        call.reply.array(vector.len());
        vector.iter().for_each(|&number| call.reply.double(number.into()));
    }
    Ok(())
}
