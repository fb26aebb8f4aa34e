//! TDIGEST.QUANTILE.

use super::{numbers, read, reply_doubles, run_or_offload};
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "tdigest.quantile",
        summary: "Returns estimates of quantiles: the numbers that a part of all numbers does not exceed.",
        since: "8.0.0",
        group: Group::TDigest,
        complexity: "O(N + Q) for N nodes and Q ascending quantiles.",
        arity: -3,
        flags: Flags::READONLY,
        keys: &[KeySpec::one(1, KeyFlags::RO)],
        syntax: "key quantile [quantile ...]",
        example: Example {
            given: &["TDIGEST.CREATE latencies", "TDIGEST.ADD latencies 1.5 2 7"],
            call: "TDIGEST.QUANTILE latencies 0.5 0.99",
            reply: "1) \"2\"\n2) \"7\"",
        },
        ..Spec::DEFAULT
    },
    Run::Long(|call| run_or_offload(call, tdigest_quantile)),
)];

fn tdigest_quantile(call: &mut Call<'_, '_>) -> CommandResult {
    let args = call.args;
    let digest = read(call)?;
    let quantiles = numbers(args, "ERR T-Digest: error parsing quantile")?;
    if quantiles.iter().any(|quantile| !(0.0..=1.0).contains(quantile)) {
        return Err("ERR T-Digest: quantile should be in [0,1]".into());
    }
    let view = digest.view();
    let ascending = quantiles.chunk_by(|a, b| a <= b);
    let values: Vec<f64> = ascending.flat_map(|quantiles| view.quantiles(quantiles)).collect();
    reply_doubles(call.reply, &values);
    Ok(())
}
