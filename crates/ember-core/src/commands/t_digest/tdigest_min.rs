//! TDIGEST.MIN and TDIGEST.MAX.

use super::read;
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};

const TDIGEST_MIN: Spec = Spec {
    name: "tdigest.min",
    summary: "Returns the lowest number of a t-digest.",
    since: "8.0.0",
    group: Group::TDigest,
    arity: 2,
    flags: Flags::READONLY,
    keys: &[KeySpec::one(1, KeyFlags::RO)],
    syntax: "key",
    example: Example {
        given: &["TDIGEST.CREATE latencies", "TDIGEST.ADD latencies 1.5 2 7"],
        call: "TDIGEST.MIN latencies",
        reply: "\"1.5\"",
    },
    ..Spec::DEFAULT
};

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(TDIGEST_MIN, Run::Keys(tdigest_min)),
    Command::new(
        Spec {
            name: "tdigest.max",
            summary: "Returns the highest number of a t-digest.",
            example: Example { call: "TDIGEST.MAX latencies", reply: "\"7\"", ..TDIGEST_MIN.example },
            ..TDIGEST_MIN
        },
        Run::Keys(tdigest_max),
    ),
];

fn tdigest_min(call: &mut Call<'_, '_>) -> CommandResult {
    let min = read(call)?.min();
    call.reply.double(min);
    Ok(())
}

fn tdigest_max(call: &mut Call<'_, '_>) -> CommandResult {
    let max = read(call)?.max();
    call.reply.double(max);
    Ok(())
}
