//! TDIGEST.CDF.

use super::{numbers, read, reply_doubles, run_or_offload};
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "tdigest.cdf",
        summary: "Returns for each number an estimate of the part of all numbers of a t-digest that do not exceed it.",
        since: "8.0.0",
        group: Group::TDigest,
        complexity: "O(N · M) for N nodes and M numbers.",
        arity: -3,
        flags: Flags::READONLY,
        keys: &[KeySpec::one(1, KeyFlags::RO)],
        syntax: "key number [number ...]",
        example: Example {
            given: &["TDIGEST.CREATE latencies", "TDIGEST.ADD latencies 1.5 2 7"],
            call: "TDIGEST.CDF latencies 0 2",
            reply: "1) \"0\"\n2) \"0.5\"",
        },
        ..Spec::DEFAULT
    },
    Run::Long(|call| run_or_offload(call, tdigest_cdf)),
)];

fn tdigest_cdf(call: &mut Call<'_, '_>) -> CommandResult {
    let args = call.args;
    let digest = read(call)?;
    let numbers = numbers(args, "ERR T-Digest: error parsing cdf")?;
    let view = digest.view();
    let values: Vec<f64> = numbers.into_iter().map(|number| view.cdf(number)).collect();
    reply_doubles(call.reply, &values);
    Ok(())
}
